/* status_merge.c: the hosts' documents (host/status.h) as one. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/status.h"

const char *status_text(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

uint64_t status_number(const json_t *object, const char *name)
{
        json_int_t value = json_integer_value(json_object_get(object, name));
        return value > 0 ? (uint64_t)value : 0;
}

/* --- members --- */

/* The leases say it better than the host, which may be long silent. */
static uint64_t count_shards(const struct status *status, const char *nonce)
{
        uint64_t shards = 0;
        char holder[STATUS_NONCE_TEXT];
        for (uint32_t i = 0; i < status->shards; i++) {
                const struct store_counts *c = &status->counts[i];
                shards += c->is_held && c->left_ms && !strcmp(status_nonce(holder, c->holder), nonce);
        }
        return shards;
}

/* Of a member, if there is anything in them. */
static const char *const lists[] = { "unserved", "move_pending" };

static json_t *member_of(const struct status *status, const json_t *document)
{
        const char *nonce = status_text(document, "nonce");
        const char *name = status_text(document, "name");
        json_t *o = json_object();
        (void)json_object_set_new(o, "name", json_string(*name ? name : nonce));
        (void)json_object_set_new(o, "nonce", json_string(nonce));
        (void)json_object_set_new(o, "state", json_string(status_text(document, "state")));
        cli_json_number(o, "weight", status_number(document, "weight"));
        cli_json_number(o, "shards", count_shards(status, nonce));
        cli_json_number(o, "age_ms", status_number(document, "age_ms"));
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                if (json_is_array(json_object_get(document, lists[i])))
                        (void)json_object_set(o, lists[i], json_object_get(document, lists[i]));
        return o;
}

/* --- handlers --- */

static const char *const sums[] = { "running", "done", "retried", "rejected", "crashed", "timed_out" };
/* The one that someone should look at wins. */
static const char *const states[] = { "open", "paused", "unavailable", "quarantined" };

static size_t rank(const char *state)
{
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                if (!strcmp(states[i], state))
                        return i;
        return 0;
}

static json_t *find_handler(json_t *handlers, const char *name)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                if (!strcmp(status_text(handler, "name"), name))
                        return handler;
        }
        handler = json_object();
        (void)json_object_set_new(handler, "name", json_string(name));
        (void)json_object_set_new(handler, "plugin", json_string(""));
        (void)json_object_set_new(handler, "version", json_string(""));
        cli_json_number(handler, "generation", 0);
        (void)json_object_set_new(handler, "state", json_string(states[0]));
        for (size_t n = 0; n < sizeof(sums) / sizeof(sums[0]); n++)
                cli_json_number(handler, sums[n], 0);
        cli_json_number(handler, "oldest_ms", 0);
        (void)json_array_append_new(handlers, handler);
        return handler;
}

/* Hosts that do not agree (a reload goes round) show as "1.0, 1.1". */
static void add_text(json_t *into, const char *name, const char *text)
{
        const char *before = status_text(into, name);
        char all[256];
        if (!*text || strstr(before, text))
                return;
        (void)snprintf(all, sizeof(all), "%s%s%s", before, *before ? ", " : "", text);
        (void)json_object_set_new(into, name, cli_json_text(all));
}

static void set_greater(json_t *into, const char *name, uint64_t value)
{
        if (value > status_number(into, name))
                cli_json_number(into, name, value);
}

static void add_handler(json_t *handlers, const json_t *said, uint64_t age_ms)
{
        const char *name = status_text(said, "name");
        if (!*name)
                return;
        json_t *into = find_handler(handlers, name);
        uint64_t oldest_ms = status_number(said, "oldest_ms");
        add_text(into, "plugin", status_text(said, "plugin"));
        add_text(into, "version", status_text(said, "version"));
        set_greater(into, "generation", status_number(said, "generation"));
        set_greater(into, "oldest_ms", oldest_ms ? oldest_ms + age_ms : 0);
        if (rank(status_text(said, "state")) > rank(status_text(into, "state")))
                (void)json_object_set(into, "state", json_object_get(said, "state"));
        add_text(into, "unavailable", status_text(said, "unavailable"));
        uint64_t unavailable_ms = status_number(said, "unavailable_ms");
        set_greater(into, "unavailable_ms", unavailable_ms ? unavailable_ms + age_ms : 0);
        for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
                cli_json_number(into, sums[i], status_number(into, sums[i]) + status_number(said, sums[i]));
}

/* --- all --- */

static void add_rates(json_t *rates, const json_t *said)
{
        static const char *const names[] = { "done", "retried", "failed" };
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                double sum = json_number_value(json_object_get(rates, names[i])) +
                             json_number_value(json_object_get(said, names[i]));
                (void)json_object_set_new(rates, names[i], json_real(sum));
        }
}

void status_merge(struct status *status)
{
        size_t i;
        size_t j;
        json_t *document;
        const json_t *handler;
        status->members = json_array();
        status->handlers = json_array();
        status->rates = json_object();
        add_rates(status->rates, NULL);
        json_array_foreach(status->documents, i, document)
        {
                (void)json_array_append_new(status->members, member_of(status, document));
                add_rates(status->rates, json_object_get(document, "rates"));
                json_array_foreach(json_object_get(document, "handlers"), j, handler)
                {
                        add_handler(status->handlers, handler, status_number(document, "age_ms"));
                }
        }
}
