#include "host/handler/reload_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define VERSION_TEXT_MAX 100u /* bytes of the reason in the short form */

const char *const history_outcomes[HISTORY_OUTCOMES] = { "good", "unproven", "refused", "held back", "rolled back",
        "superseded" };

struct history_entry *history_add(struct history *h, const char *handler)
{
        struct history_entry *e = &h->entries[h->count++ % HISTORY_MAX];
        *e = (struct history_entry){ .at_ms = clock_wall_ms(), .outcome = "waiting" };
        (void)snprintf(e->handler, sizeof(e->handler), "%s", handler);
        return e;
}

static uint64_t first(const struct history *h)
{
        return h->count > HISTORY_MAX ? h->count - HISTORY_MAX : 0;
}

struct history_entry *history_find(struct history *h, const char *handler, uint32_t generation)
{
        for (uint64_t i = h->count; i-- > first(h);) {
                struct history_entry *e = &h->entries[i % HISTORY_MAX];
                if (e->generation == generation && !strcmp(e->handler, handler))
                        return e;
        }
        return NULL;
}

void history_set(struct history *h, struct history_entry *entry, const char *outcome, const char *text)
{
        for (uint32_t i = 0; entry->reload && i < HISTORY_OUTCOMES; i++)
                h->ended[i] += !strcmp(outcome, history_outcomes[i]);
        entry->outcome = outcome;
        entry->at_ms = clock_wall_ms();
        (void)snprintf(entry->text, sizeof(entry->text), "%s", text);
}

static bool is_failure(const struct history_entry *e)
{
        return !strcmp(e->outcome, "refused") || !strcmp(e->outcome, "held back") || !strcmp(e->outcome, "rolled back");
}

bool history_has_failed(const struct history *h, uint32_t reload)
{
        for (uint64_t i = first(h); i < h->count; i++)
                if (h->entries[i % HISTORY_MAX].reload == reload && is_failure(&h->entries[i % HISTORY_MAX]))
                        return true;
        return false;
}

bool history_generation(
        const struct history *h, uint32_t reload, uint32_t i, const char **ret_handler, uint32_t *ret_generation)
{
        for (uint64_t at = first(h); at < h->count; at++) {
                const struct history_entry *e = &h->entries[at % HISTORY_MAX];
                if (e->reload != reload || i--)
                        continue;
                *ret_handler = e->handler;
                *ret_generation = e->generation;
                return true;
        }
        return false;
}

static json_t *text_json(const char *text)
{
        json_t *json = json_string(text);
        return json ? json : json_string("(not UTF-8)");
}

static json_t *entry_json(const struct history_entry *e)
{
        char hash[17];
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, e->file_hash);
        json_t *o = json_pack("{s:s, s:I, s:s, s:o, s:I, s:I, s:o, s:s}", "handler", e->handler, "generation",
                (json_int_t)e->generation, "file", e->file_hash ? hash : "", "version", text_json(e->version), "at_ms",
                (json_int_t)e->at_ms, "reload", (json_int_t)e->reload, "by", text_json(e->by), "outcome", e->outcome);
        if (*e->text)
                (void)json_object_set_new(o, "text", text_json(e->text));
        return o;
}

json_t *history_json(const struct history *h, uint32_t reload)
{
        json_t *list = json_array();
        for (uint64_t i = first(h); i < h->count; i++) {
                const struct history_entry *e = &h->entries[i % HISTORY_MAX];
                if (reload == UINT32_MAX || e->reload == reload)
                        (void)json_array_append_new(list, entry_json(e));
        }
        return list;
}

json_t *history_versions(const struct history *h, const char *handler, size_t max)
{
        json_t *list = json_array();
        for (uint64_t i = h->count; i-- > first(h) && json_array_size(list) < max;) {
                const struct history_entry *e = &h->entries[i % HISTORY_MAX];
                if (strcmp(e->handler, handler) != 0)
                        continue;
                char cut[VERSION_TEXT_MAX + 1];
                (void)snprintf(cut, sizeof(cut), "%s", e->text);
                json_t *o = json_pack("{s:I, s:o, s:I, s:s, s:o}", "generation", (json_int_t)e->generation, "version",
                        text_json(e->version), "at_ms", (json_int_t)e->at_ms, "outcome", e->outcome, "by",
                        text_json(e->by));
                if (*cut)
                        (void)json_object_set_new(o, "text", text_json(cut));
                (void)json_array_append_new(list, o);
        }
        return list;
}
