/* status.c: the replies of a store and the documents of its hosts, merged; and the JSON of that. */
#include "view/status.h"

#include <string.h>

#include "base/units.h"
#include "view/json.h"

#define NONCE_TEXT (2 * STORE_NONCE_SIZE + 1)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const rate_names[] = { "done", "retried", "failed" };
/* The counts of a handler that hosts say and that are added up. */
static const char *const sums[] = { "running", "done", "retried", "rejected", "crashed", "timed_out" };
/* Of several hosts' states of a handler the last in this list is shown: it is the one that someone should look at. */
static const char *const states[] = { "open", "paused", "unavailable", "quarantined" };
/* Lists in a document that are shown with the member, if it has them. */
static const char *const lists[] = { "unserved", "move_pending" };

void status_init(
        struct status *status, const struct store_info *info, const char *store_url, const struct store_counts *counts)
{
        *status = (struct status){
                .info = info,
                .store = store_url,
                .counts = counts,
                .paused = json_object(),
                .desired = json_object(),
                .members = json_array(),
                .handlers = json_array(),
                .rates = json_object(),
        };
        for (uint32_t i = 0; i < info->shards; i++) {
                store_counts_add(&status->total, &counts[i]);
                status->owned += counts[i].is_held && counts[i].left_ms;
        }
        for (size_t i = 0; i < COUNT_OF(rate_names); i++)
                (void)json_object_set_new(status->rates, rate_names[i], json_real(0));
}

void status_free(struct status *status)
{
        json_decref(status->paused);
        json_decref(status->desired);
        json_decref(status->members);
        json_decref(status->handlers);
        json_decref(status->rates);
        *status = (struct status){ 0 };
}

void status_add_desired(struct status *status, const struct store_desired *item)
{
        static const struct span pause = SPAN_TEXT("pause");
        static const struct span of_handler = SPAN_TEXT("pause.");
        struct span name = item->name;
        json_t *to = status->desired;
        if (span_is(name, pause)) {
                to = status->paused;
                name.size = 0;
        } else if (name.size > of_handler.size && !memcmp(name.data, of_handler.data, of_handler.size)) {
                to = status->paused;
                name = (struct span){ name.data + of_handler.size, name.size - of_handler.size };
        }
        json_t *text = view_json_text_span(name);
        (void)json_object_set_new(to, json_string_value(text), view_json_text_span(item->value));
        json_decref(text);
}

/* --- members --- */

/* The leases say it better than the host, which may be long silent. */
static uint64_t count_shards(const struct status *status, const uint8_t nonce[STORE_NONCE_SIZE])
{
        uint64_t shards = 0;
        for (uint32_t i = 0; i < status->info->shards; i++) {
                const struct store_counts *c = &status->counts[i];
                shards += c->is_held && c->left_ms && !memcmp(c->holder, nonce, STORE_NONCE_SIZE);
        }
        return shards;
}

static json_t *make_member(const struct status *status, const json_t *document, const struct store_status *found)
{
        char nonce[NONCE_TEXT];
        const char *name = view_json_get_text(document, "name");
        json_t *o = json_object();
        (void)units_hex(nonce, found->nonce, STORE_NONCE_SIZE);
        view_json_set_text(o, "name", *name ? name : nonce);
        view_json_set_text(o, "nonce", nonce);
        view_json_set_text(o, "state", view_json_get_text(document, "state"));
        view_json_number(o, "weight", view_json_get_number(document, "weight"));
        view_json_number(o, "shards", count_shards(status, found->nonce));
        view_json_number(o, "age_ms", found->age_ms);
        for (size_t i = 0; i < COUNT_OF(lists); i++)
                if (json_is_array(json_object_get(document, lists[i])))
                        (void)json_object_set(o, lists[i], json_object_get(document, lists[i]));
        return o;
}

/* --- handlers --- */

static size_t rank(const char *state)
{
        for (size_t i = 0; i < COUNT_OF(states); i++)
                if (!strcmp(states[i], state))
                        return i;
        return 0;
}

static json_t *ensure_handler(json_t *handlers, const char *name)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                if (!strcmp(view_json_get_text(handler, "name"), name))
                        return handler;
        }
        handler = json_object();
        view_json_set_text(handler, "name", name);
        view_json_set_text(handler, "plugin", "");
        view_json_set_text(handler, "version", "");
        view_json_number(handler, "generation", 0);
        view_json_set_text(handler, "state", states[0]);
        for (size_t n = 0; n < COUNT_OF(sums); n++)
                view_json_number(handler, sums[n], 0);
        view_json_number(handler, "oldest_ms", 0);
        (void)json_array_append_new(handlers, handler);
        return handler;
}

/* Whether "1.0, 1.1" has `text` as one of its parts. */
static bool has_part(const char *list, const char *text)
{
        size_t size = strlen(text);
        for (const char *at = list; (at = strstr(at, text)); at++)
                if ((at == list || (at - list >= 2 && !memcmp(at - 2, ", ", 2))) &&
                        (!at[size] || !strncmp(at + size, ", ", 2)))
                        return true;
        return false;
}

/* Hosts that do not agree (a reload goes round) show as "1.0, 1.1". */
static void add_text(json_t *into, const json_t *said, const char *name)
{
        const char *text = view_json_get_text(said, name);
        const char *before = view_json_get_text(into, name);
        if (!*text || has_part(before, text))
                return;
        (void)json_object_set_new(into, name, json_sprintf("%s%s%s", before, *before ? ", " : "", text));
}

static void set_greater(json_t *into, const char *name, uint64_t value)
{
        if (value > view_json_get_number(into, name))
                view_json_number(into, name, value);
}

/* An age was true when the document was written. */
static void set_older(json_t *into, const json_t *said, const char *name, uint64_t document_age_ms)
{
        uint64_t age_ms = view_json_get_number(said, name);
        if (age_ms)
                set_greater(into, name, age_ms + document_age_ms);
}

static void add_handler(json_t *handlers, const json_t *said, uint64_t document_age_ms)
{
        const char *name = view_json_get_text(said, "name");
        if (!*name)
                return;
        json_t *into = ensure_handler(handlers, name);
        add_text(into, said, "plugin");
        add_text(into, said, "version");
        set_greater(into, "generation", view_json_get_number(said, "generation"));
        set_older(into, said, "oldest_ms", document_age_ms);
        if (rank(view_json_get_text(said, "state")) > rank(view_json_get_text(into, "state")))
                (void)json_object_set(into, "state", json_object_get(said, "state"));
        add_text(into, said, "unavailable");
        set_older(into, said, "unavailable_ms", document_age_ms);
        for (size_t i = 0; i < COUNT_OF(sums); i++)
                view_json_number(
                        into, sums[i], view_json_get_number(into, sums[i]) + view_json_get_number(said, sums[i]));
}

/* --- a document --- */

/* A sum that is no number any more is not kept. */
static void add_rates(json_t *rates, const json_t *said)
{
        for (size_t i = 0; i < COUNT_OF(rate_names); i++) {
                double sum = json_number_value(json_object_get(rates, rate_names[i])) +
                             json_number_value(json_object_get(said, rate_names[i]));
                (void)json_object_set_new(rates, rate_names[i], json_real(sum));
        }
}

void status_add_document(struct status *status, const struct store_status *found)
{
        /* One that cannot be read is NULL here, and says nothing. */
        json_t *document = json_loadb(found->document.size ? found->document.data : "", found->document.size, 0, NULL);
        size_t i;
        const json_t *handler;
        (void)json_array_append_new(status->members, make_member(status, document, found));
        add_rates(status->rates, json_object_get(document, "rates"));
        json_array_foreach(json_object_get(document, "handlers"), i, handler)
        {
                add_handler(status->handlers, handler, found->age_ms);
        }
        json_decref(document);
}

/* --- as JSON --- */

/* What a shard and the whole have in common. */
static void set_counts(json_t *o, const struct store_counts *c)
{
        view_json_number(o, "queued", store_counts_queued(c));
        view_json_number(o, "delayed", c->delayed);
        view_json_number(o, "in_flight", c->in_flight);
        view_json_number(o, "parked", c->parked);
        view_json_number(o, "dead", c->dead);
        view_json_number(o, "oldest_ms", c->oldest_ms);
}

static json_t *shard_as_json(const struct store_counts *c)
{
        char nonce[NONCE_TEXT];
        json_t *o = json_object();
        view_json_number(o, "shard", c->shard);
        (void)json_object_set_new(
                o, "owner", c->is_held ? json_string(units_hex(nonce, c->holder, STORE_NONCE_SIZE)) : json_null());
        view_json_number(o, "epoch", c->epoch);
        set_counts(o, c);
        return o;
}

static json_t *totals_as_json(const struct status *status)
{
        json_t *o = json_object();
        set_counts(o, &status->total);
        view_json_number(o, "results", status->total.results);
        view_json_number(o, "submitted", status->total.submitted);
        view_json_number(o, "done", status->total.done);
        view_json_number(o, "dropped", status->total.dropped);
        view_json_number(o, "owned", status->owned);
        (void)json_object_set(o, "paused", status->paused);
        (void)json_object_set(o, "desired", status->desired);
        view_json_set_text(o, "durability", status->info->durability);
        if (*status->info->refuses)
                view_json_set_text(o, "refuses", status->info->refuses);
        return o;
}

json_t *status_as_json(const struct status *status)
{
        const char *coordination = status->info->coordination;
        json_t *o = json_object();
        json_t *shards = json_array();
        for (uint32_t i = 0; i < status->info->shards; i++)
                (void)json_array_append_new(shards, shard_as_json(&status->counts[i]));
        view_json_set_text(o, "app", status->info->app);
        view_json_set_text(o, "store", status->store);
        (void)json_object_set_new(o, "coordination", *coordination ? view_json_text(coordination) : json_null());
        (void)json_object_set_new(o, "shards", shards);
        (void)json_object_set(o, "members", status->members);
        (void)json_object_set(o, "handlers", status->handlers);
        (void)json_object_set_new(o, "totals", totals_as_json(status));
        (void)json_object_set(o, "rates", status->rates);
        return o;
}
