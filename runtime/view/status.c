/* status.c: merges the replies of a store and the documents of its hosts, and writes the result as JSON. */
#include "view/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "store/app.h"
#include "view/json.h"
#include "view/limits.h"
#include "view/problems.h"
#include "view/records.h"

#define NONCE_TEXT (2 * STORE_NONCE_SIZE + 1)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const rate_names[] = { "done", "retried", "failed" };
/* A handler's counts in the hosts' documents that are added up. */
static const char *const sums[] = { "waiting", "running", "seats", "lent", "borrowed", "done", "retried", "later",
        "rejected", "crashed", "timed_out", "merged" };
/* Those from here on are also counted in the store, since the app began. */
#define SUMS_COUNTED_FROM 5
/* Real numbers: the rates are added up, of the times the largest is shown. */
static const char *const handler_rates[] = { "done_rate", "failed_rate" };
static const char *const handler_times[] = { "run_p50_ms", "run_p99_ms" };
#define VERSIONS_MAX 32u /* per handler, over all hosts */
/* If hosts report different states of a handler, the last in this list is shown, because it needs attention most.  The
 * first applies to a handler that no host reports. */
static const char *const states[] = { "unserved", "removed", "open", "starting", "paused", "unavailable", "refused",
        "quarantined" };
#define STATE_OPEN 2
/* Fields of a member's document that are shown unchanged, if present. */
static const char *const member_texts[] = { "version", "machine", "http" };
static const char *const member_numbers[] = { "pid", "started_ms", "seats" };
/* A member's HTTP counts, as in its document. */
static const char *const http_numbers[] = { "accepted", "requests", "refused", "limited", "malformed", "forbidden",
        "timed_out" };
/* Lists of a member's document that are shown, if present. */
static const char *const lists[] = { "unserved", "move_pending" };

void status_init(
        struct status *status, const struct store_info *info, const char *store_url, const struct store_counts *counts)
{
        *status = (struct status){
                .info = info,
                .store = store_url,
                .counts = counts,
                .created_ms = info->record ? info->record->created_ms : 0,
                .paused = json_object(),
                .desired = json_object(),
                .members = json_array(),
                .handlers = json_array(),
                .rates = json_object(),
                .dead = json_array(),
                .limits = json_array(),
                .shards = memory_zero(info->shards, sizeof(*status->shards)),
        };
        for (uint32_t i = 0; i < info->shards; i++) {
                store_counts_add(&status->total, &counts[i]);
                status->owned += counts[i].is_held && counts[i].left_ms;
                status->shards[i].oldest_ms = counts[i].oldest_ms;
        }
        status->oldest_ms = status->total.oldest_ms;
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
        json_decref(status->dead);
        json_decref(status->limits);
        json_decref(status->sample.handlers);
        free(status->shards);
        *status = (struct status){ 0 };
}

void status_add_desired(struct status *status, const struct store_desired *item)
{
        static const struct span pause = SPAN_TEXT("pause");
        static const struct span of_handler = SPAN_TEXT("pause.");
        static const struct span of_file = SPAN_TEXT("schedules.");
        struct span name = item->name;
        /* Internal: by this item hosts agree on whose schedules are in force.  No person has set it. */
        if (name.size > of_file.size && !memcmp(name.data, of_file.data, of_file.size))
                return;
        json_t *to = status->desired;
        if (limits_add_desired(status->limits, item, status->now_ms))
                return;
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

/* Counted from the leases, because the host may have been silent for long. */
static uint64_t count_shards(const struct status *status, const uint8_t nonce[STORE_NONCE_SIZE])
{
        uint64_t shards = 0;
        for (uint32_t i = 0; i < status->info->shards; i++) {
                const struct store_counts *c = &status->counts[i];
                shards += c->is_held && c->left_ms && !memcmp(c->holder, nonce, STORE_NONCE_SIZE);
        }
        return shards;
}

static void add_http(json_t *member, const json_t *said)
{
        json_t *o = json_object();
        for (size_t i = 0; i < COUNT_OF(http_numbers); i++)
                view_json_number(o, http_numbers[i], view_json_get_number(said, http_numbers[i]));
        (void)json_object_set_new(member, "http_counts", o);
}

/* The schedules of its configuration: the numbers, and the names of those that a command has changed. */
static void add_schedules(json_t *member, const json_t *said)
{
        static const char *const numbers[] = { "version", "in_force", "count", "differ" };
        json_t *o = json_object(), *names = json_array();
        size_t i;
        const json_t *name;
        for (i = 0; i < COUNT_OF(numbers); i++)
                view_json_number(o, numbers[i], view_json_get_number(said, numbers[i]));
        json_array_foreach(json_object_get(said, "conflicts"), i, name)
        {
                if (json_is_string(name))
                        (void)json_array_append_new(names, view_json_text(json_string_value(name)));
        }
        (void)json_object_set_new(o, "conflicts", names);
        (void)json_object_set_new(member, "schedules", o);
}

/* A finite positive number; else 0. */
static double real_of(const json_t *o, const char *name)
{
        double value = json_number_value(json_object_get(o, name));
        return isfinite(value) && value > 0 ? value : 0;
}

/* [[shard, tasks], …] → tasks. */
static uint64_t count_running(const json_t *pairs)
{
        uint64_t sum = 0;
        size_t i;
        const json_t *pair;
        json_array_foreach(pairs, i, pair)
        {
                json_int_t tasks = json_integer_value(json_array_get(pair, 1));
                sum += tasks > 0 && tasks <= UINT32_MAX ? (uint64_t)tasks : 0;
        }
        return sum;
}

static json_t *make_member(const struct status *status, const json_t *document, const struct store_status *found)
{
        char nonce[NONCE_TEXT];
        const char *name = view_json_get_text(document, "name");
        const char *state = view_json_get_text(document, "state");
        uint64_t shards = count_shards(status, found->nonce);
        json_t *o = json_object();
        (void)units_hex(nonce, found->nonce, STORE_NONCE_SIZE);
        view_json_set_text(o, "name", *name ? name : nonce);
        view_json_set_text(o, "nonce", nonce);
        /* A host that has just started wrote its document before it was granted its shards. */
        view_json_set_text(o, "state", shards && !strcmp(state, "standby") ? "running" : state);
        view_json_number(o, "weight", view_json_get_number(document, "weight"));
        view_json_number(o, "shards", shards);
        view_json_number(o, "age_ms", found->age_ms);
        for (size_t i = 0; i < COUNT_OF(member_texts); i++)
                if (*view_json_get_text(document, member_texts[i]))
                        view_json_set_text(o, member_texts[i], view_json_get_text(document, member_texts[i]));
        for (size_t i = 0; i < COUNT_OF(member_numbers); i++)
                if (view_json_get_number(document, member_numbers[i]))
                        view_json_number(o, member_numbers[i], view_json_get_number(document, member_numbers[i]));
        view_json_number(o, "running", count_running(json_object_get(document, "running")));
        (void)json_object_set_new(o, "done_rate", json_real(real_of(json_object_get(document, "rates"), "done")));
        if (json_is_object(json_object_get(document, "http_counts")))
                add_http(o, json_object_get(document, "http_counts"));
        if (json_is_object(json_object_get(document, "schedules")))
                add_schedules(o, json_object_get(document, "schedules"));
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
        return STATE_OPEN;
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
        view_json_number(handler, "dead", 0);
        view_json_number(handler, "oldest_ms", 0);
        for (size_t n = 0; n < COUNT_OF(handler_rates); n++)
                (void)json_object_set_new(handler, handler_rates[n], json_real(0));
        for (size_t n = 0; n < COUNT_OF(handler_times); n++)
                (void)json_object_set_new(handler, handler_times[n], json_real(0));
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

/* If hosts disagree, as during a reload, both are shown: "1.0, 1.1". */
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

/* The age at the time of writing, plus the age of the document. */
static void set_older(json_t *into, const json_t *said, const char *name, uint64_t document_age_ms)
{
        uint64_t age_ms = view_json_get_number(said, name);
        if (age_ms)
                set_greater(into, name, age_ms + document_age_ms);
}

static void add_reals(json_t *into, const json_t *said)
{
        for (size_t i = 0; i < COUNT_OF(handler_rates); i++) {
                double sum = real_of(into, handler_rates[i]) + real_of(said, handler_rates[i]);
                (void)json_object_set_new(into, handler_rates[i], json_real(isfinite(sum) ? sum : 0));
        }
        for (size_t i = 0; i < COUNT_OF(handler_times); i++)
                if (real_of(said, handler_times[i]) > real_of(into, handler_times[i]))
                        (void)json_object_set_new(into, handler_times[i], json_real(real_of(said, handler_times[i])));
}

/* Adds what became of the handler's versions on a host, the latest first. */
static void add_versions(json_t *into, const json_t *said, const char *host)
{
        static const char *const texts[] = { "version", "outcome", "by", "text" };
        json_t *versions = json_object_get(into, "versions");
        size_t i;
        const json_t *version;
        json_array_foreach(json_object_get(said, "versions"), i, version)
        {
                if (!versions) {
                        versions = json_array();
                        (void)json_object_set_new(into, "versions", versions);
                }
                if (json_array_size(versions) == VERSIONS_MAX)
                        return;
                json_t *o = json_object();
                view_json_set_text(o, "host", host);
                view_json_number(o, "generation", view_json_get_number(version, "generation"));
                view_json_number(o, "at_ms", view_json_get_number(version, "at_ms"));
                for (size_t n = 0; n < COUNT_OF(texts); n++)
                        if (*view_json_get_text(version, texts[n]))
                                view_json_set_text(o, texts[n], view_json_get_text(version, texts[n]));
                (void)json_array_append_new(versions, o);
        }
}

static void add_handler(json_t *handlers, const json_t *said, const char *host, uint64_t document_age_ms)
{
        const char *name = view_json_get_text(said, "name");
        if (!*name)
                return;
        json_t *into = ensure_handler(handlers, name);
        add_text(into, said, "plugin");
        add_text(into, said, "version");
        set_greater(into, "generation", view_json_get_number(said, "generation"));
        set_older(into, said, "oldest_ms", document_age_ms);
        size_t state = rank(view_json_get_text(said, "state"));
        if (state > rank(view_json_get_text(into, "state")))
                view_json_set_text(into, "state", states[state]);
        add_text(into, said, "hash");
        add_text(into, said, "refused");
        add_text(into, said, "unavailable");
        set_older(into, said, "unavailable_ms", document_age_ms);
        add_reals(into, said);
        add_versions(into, said, host);
        for (size_t i = 0; i < COUNT_OF(sums); i++)
                view_json_number(
                        into, sums[i], view_json_get_number(into, sums[i]) + view_json_get_number(said, sums[i]));
}

/* --- a document --- */

/* A sum that is not finite is dropped. */
static void add_rates(json_t *rates, const json_t *said)
{
        for (size_t i = 0; i < COUNT_OF(rate_names); i++) {
                double sum = json_number_value(json_object_get(rates, rate_names[i])) +
                             json_number_value(json_object_get(said, rate_names[i]));
                (void)json_object_set_new(rates, rate_names[i], json_real(sum));
        }
}

/* Running tasks of a shard are taken only from the host that holds its lease. */
static void add_running(struct status *status, const json_t *pairs, const struct store_status *found)
{
        size_t i;
        const json_t *pair;
        json_array_foreach(pairs, i, pair)
        {
                json_int_t shard = json_integer_value(json_array_get(pair, 0));
                json_int_t tasks = json_integer_value(json_array_get(pair, 1));
                if (shard < 0 || shard >= status->info->shards || tasks <= 0)
                        continue;
                const struct store_counts *c = &status->counts[shard];
                struct status_shard *to = &status->shards[shard];
                if (!c->is_held || !c->left_ms || memcmp(c->holder, found->nonce, STORE_NONCE_SIZE) != 0)
                        continue;
                /* The document may be older than the counts: no more can run now than are in flight. */
                uint64_t running = min_u64((uint64_t)tasks, c->in_flight - min_u64(c->in_flight, to->running));
                to->running += running;
                status->running += running;
        }
}

void status_add_document(struct status *status, const struct store_status *found)
{
        /* A document that cannot be parsed gives NULL, which counts as empty. */
        json_t *document = json_loadb(found->document.size ? found->document.data : "", found->document.size, 0, NULL);
        size_t i;
        const json_t *handler;
        const json_t *limit;
        (void)json_array_append_new(status->members, make_member(status, document, found));
        add_rates(status->rates, json_object_get(document, "rates"));
        add_running(status, json_object_get(document, "running"), found);
        json_array_foreach(json_object_get(document, "handlers"), i, handler)
        {
                add_handler(status->handlers, handler, view_json_get_text(document, "name"), found->age_ms);
        }
        json_array_foreach(json_object_get(document, "limits"), i, limit)
        {
                limits_add_said(status->limits, limit, found->age_ms);
        }
        json_decref(document);
}

/* --- keys, samples, the dead --- */

static void see_age(struct status *status, uint32_t shard, uint64_t age_ms)
{
        if (shard < status->info->shards)
                status->shards[shard].oldest_ms = max_u64(status->shards[shard].oldest_ms, age_ms);
        status->oldest_ms = max_u64(status->oldest_ms, age_ms);
}

void status_add_key(struct status *status, const struct store_key_info *key)
{
        status->keys_seen++;
        status->parked_keys += key->state == KEY_PARKED;
        status->held_keys += key->state == KEY_HELD;
        limits_add_key(status->limits, key);
        see_age(status, key->shard, key->head_age_ms);
}

void status_sample_begin(struct status *status, uint64_t total)
{
        status->sample = (struct status_sample){ .total = total, .handlers = json_object() };
}

void status_add_sampled(struct status *status, const struct store_listed *task, uint64_t now_ms)
{
        json_t *name = view_json_text_span(task->envelope.handler);
        const char *text = json_string_value(name);
        status->sample.seen++;
        if (*text) {
                uint64_t submitted_ms = task->envelope.submitted_ms;
                view_json_number(
                        status->sample.handlers, text, view_json_get_number(status->sample.handlers, text) + 1);
                set_greater(ensure_handler(status->handlers, text), "oldest_ms",
                        store_age_ms(status->created_ms, submitted_ms, now_ms));
        }
        json_decref(name);
}

void status_sample_end(struct status *status)
{
        struct status_sample *sample = &status->sample;
        const char *name;
        json_t *count;
        json_object_foreach(sample->handlers, name, count)
        {
                json_t *into = ensure_handler(status->handlers, name);
                uint64_t tasks = (uint64_t)json_integer_value(count);
                if (sample->seen < sample->total)
                        (void)json_object_set_new(into, "estimated", json_true());
                double share = (double)tasks * (double)max_u64(sample->total, sample->seen) / (double)sample->seen;
                view_json_number(into, "waiting", view_json_get_number(into, "waiting") + (uint64_t)(share + 0.5));
        }
        json_decref(sample->handlers);
        *sample = (struct status_sample){ 0 };
}

void status_add_dead_group(struct status *status, const struct store_dead_group *group)
{
        json_t *name = view_json_text_span(group->handler);
        if (group->handler.size) {
                json_t *into = ensure_handler(status->handlers, json_string_value(name));
                view_json_number(into, "dead", view_json_get_number(into, "dead") + group->tasks);
        }
        json_decref(name);
        dead_groups_add(status->dead, group);
}

void status_add_total(struct status *status, const struct store_total *total)
{
        size_t i;
        json_t *handler;
        for (size_t n = SUMS_COUNTED_FROM; n < COUNT_OF(sums); n++) {
                size_t size = strlen(sums[n]);
                if (total->name.size <= size + 1 ||
                        memcmp(total->name.data + total->name.size - size, sums[n], size) != 0 ||
                        total->name.data[total->name.size - size - 1] != '.')
                        continue;
                struct span name = { total->name.data, total->name.size - size - 1 };
                json_array_foreach(status->handlers, i, handler)
                {
                        if (span_is(name, span_of_text(view_json_get_text(handler, "name"))))
                                set_greater(handler, sums[n], total->value);
                }
        }
}

/* --- waiting tasks --- */

uint64_t status_shard_waiting(const struct status *status, uint32_t shard)
{
        const struct store_counts *c = &status->counts[shard];
        uint64_t all = store_counts_queued(c) + c->in_flight + store_counts_parked(c);
        return all - min_u64(all, status->shards[shard].running);
}

uint64_t status_waiting(const struct status *status)
{
        uint64_t all =
                store_counts_queued(&status->total) + status->total.in_flight + store_counts_parked(&status->total);
        return all - min_u64(all, status->running);
}

const json_t *status_handler(const struct status *status, const char *name)
{
        size_t i;
        json_t *handler;
        json_array_foreach(status->handlers, i, handler)
        {
                if (!strcmp(view_json_get_text(handler, "name"), name))
                        return handler;
        }
        return NULL;
}

/* --- as JSON --- */

/* The counts that a shard and the whole app share. */
static void set_counts(json_t *o, const struct store_counts *c)
{
        view_json_number(o, "queued", store_counts_queued(c));
        view_json_number(o, "delayed", c->delayed);
        view_json_number(o, "in_flight", c->in_flight);
        view_json_number(o, "parked", store_counts_parked(c));
        view_json_number(o, "dead", c->dead);
}

static json_t *shard_as_json(const struct status *status, uint32_t shard)
{
        const struct store_counts *c = &status->counts[shard];
        char nonce[NONCE_TEXT];
        json_t *o = json_object();
        view_json_number(o, "shard", c->shard);
        (void)json_object_set_new(
                o, "owner", c->is_held ? json_string(units_hex(nonce, c->holder, STORE_NONCE_SIZE)) : json_null());
        if (*c->host)
                view_json_set_text(o, "host", c->host);
        view_json_number(o, "epoch", c->epoch);
        view_json_number(o, "waiting", status_shard_waiting(status, shard));
        view_json_number(o, "running", status->shards[shard].running);
        set_counts(o, c);
        view_json_number(o, "oldest_ms", status->shards[shard].oldest_ms);
        return o;
}

static json_t *lanes_as_json(const uint64_t counts[LANES])
{
        json_t *o = json_object();
        for (unsigned lane = 0; lane < LANES; lane++)
                view_json_number(o, lane_name((enum lane)lane), counts[lane]);
        return o;
}

static json_t *totals_as_json(const struct status *status)
{
        json_t *o = json_object();
        view_json_number(o, "waiting", status_waiting(status));
        view_json_number(o, "running", status->running);
        set_counts(o, &status->total);
        (void)json_object_set_new(o, "queued_lanes", lanes_as_json(status->total.queued));
        (void)json_object_set_new(o, "parked_lanes", lanes_as_json(status->total.parked));
        view_json_number(o, "oldest_ms", status->oldest_ms);
        view_json_number(o, "parked_keys", status->parked_keys);
        view_json_number(o, "held_keys", status->held_keys);
        if (status->are_keys_cut)
                (void)json_object_set_new(o, "keys_estimated", json_true());
        view_json_number(o, "results", status->total.results);
        view_json_number(o, "results_dropped", status->total.results_dropped);
        view_json_number(o, "submitted", status->total.submitted);
        view_json_number(o, "done", status->total.done);
        view_json_number(o, "dropped", status->total.dropped);
        view_json_number(o, "merged", status->total.merged);
        view_json_number(o, "owned", status->owned);
        view_json_number(o, "unowned", status->info->shards - status->owned);
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
                (void)json_array_append_new(shards, shard_as_json(status, i));
        view_json_set_text(o, "app", status->info->app);
        view_json_set_text(o, "store", status->store);
        (void)json_object_set_new(o, "coordination", *coordination ? view_json_text(coordination) : json_null());
        (void)json_object_set_new(o, "shards", shards);
        (void)json_object_set(o, "members", status->members);
        (void)json_object_set(o, "handlers", status->handlers);
        (void)json_object_set(o, "limits", status->limits);
        (void)json_object_set(o, "dead", status->dead);
        (void)json_object_set_new(o, "totals", totals_as_json(status));
        (void)json_object_set(o, "rates", status->rates);
        (void)json_object_set_new(o, "problems", problems_as_json(status));
        return o;
}
