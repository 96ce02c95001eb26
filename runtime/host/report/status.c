#include "host/report/status.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/version.h"
#include "host/report/limit_report.h"

#define WATCH_MS 100
/* The counters of a handler that the store keeps for the whole app. */
static const struct {
        const char *name;
        size_t offset;
} counter_names[] = {
        { "done", offsetof(struct outcome_counts, done) },
        { "retried", offsetof(struct outcome_counts, retried) },
        { "later", offsetof(struct outcome_counts, later) },
        { "rejected", offsetof(struct outcome_counts, rejected) },
        { "crashed", offsetof(struct outcome_counts, crashed) },
        { "timed_out", offsetof(struct outcome_counts, timed_out) },
        { "merged", offsetof(struct outcome_counts, merged) },
};
#define COUNTERS    (sizeof(counter_names) / sizeof(counter_names[0]))
#define PENDING_MAX 64 /* shards listed */

/* --- the document --- */

static json_t *text(const char *bytes)
{
        json_t *json = json_string(bytes);
        return json ? json : json_string("(not UTF-8)");
}

static void put_number(json_t *o, const char *name, uint64_t value)
{
        (void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

static json_t *make_handler(const struct host_status *r, const struct handler *handler, bool has_ages)
{
        static const struct handler_report unmeasured = { 0 };
        static const struct survey_handler nothing = { 0 };
        bool is_measured = handler->slot < r->reports_count && !strcmp(r->reports[handler->slot].name, handler->name);
        return handler_report_make(is_measured ? &r->reports[handler->slot] : &unmeasured, handler,
                handler->slot < r->survey.handlers_count ? &r->survey.handlers[handler->slot] : &nothing, has_ages);
}

/* Lists shards that are to move and wait for a running call that a move must not interrupt. */
static void put_pending_moves(json_t *document, const struct shards *all)
{
        json_t *shards = json_array();
        for (uint32_t i = 0; i < all->count && json_array_size(shards) < PENDING_MAX; i++)
                if (shard_is_move_pending(&all->list[i].shard))
                        (void)json_array_append_new(shards, json_integer(i));
        if (json_array_size(shards))
                (void)json_object_set(document, "move_pending", shards);
        json_decref(shards);
}

/* The counts of the HTTP server; without `has_ages` only refusals and errors. */
static void put_http(json_t *document, const struct http_counts *c, bool has_ages)
{
        const struct {
                const char *name;
                uint64_t value;
        } counts[] = { { "accepted", has_ages ? c->accepted : 0 }, { "requests", has_ages ? c->requests : 0 },
                { "refused", c->refused }, { "limited", c->limited }, { "malformed", c->malformed },
                { "forbidden", c->forbidden }, { "timed_out", c->timed_out } };
        json_t *o = json_object();
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                if (counts[i].value)
                        put_number(o, counts[i].name, counts[i].value);
        if (json_object_size(o))
                (void)json_object_set(document, "http_counts", o);
        json_decref(o);
}

/* The host's state as one word.  A host without an assignment is not broken. */
static const char *state_of_host(const struct host_status *r, uint64_t owned)
{
        if (r->view.membership->is_leaving)
                return "leaving";
        if (r->view.shards->is_standing_by)
                return "standby";
        if (r->view.membership->is_drained)
                return owned ? "draining" : "drained";
        return owned ? "running" : "standby";
}

static json_t *make(const struct host_status *r, bool has_ages)
{
        const struct membership *membership = r->view.membership;
        const struct shards *shards = r->view.shards;
        const struct handlers *all = r->view.handlers;
        char nonce[NONCE_TEXT_SIZE];
        uint64_t owned = 0;
        uint64_t fenced = 0;
        uint64_t seats = 0;
        json_t *handlers = json_array();
        membership_nonce_text(membership, nonce);
        for (uint32_t i = 0; i < shards->count; i++) {
                const struct shard *s = &shards->list[i].shard;
                owned += shard_is_held(s);
                fenced += s->fenced;
        }
        for (uint32_t i = 0; i < all->count; i++)
                seats += handler_seats(all->list[i]);
        for (uint32_t i = 0; i < all->count; i++)
                if (handler_is_there(all->list[i]))
                        (void)json_array_append_new(handlers, make_handler(r, all->list[i], has_ages));
        json_t *document = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:{s:f, s:f, s:f}, s:o}",
                "name", membership->name, "nonce", nonce, "state", state_of_host(r, owned), "weight",
                (json_int_t)membership->weight, "pid", (json_int_t)getpid(), "version", QUIVER_VERSION, "machine",
                r->machine, "started_ms", (json_int_t)r->started_ms, "seats", (json_int_t)seats, "shards",
                (json_int_t)owned, "fenced", (json_int_t)fenced, "rates", "done", r->done_rate, "retried",
                r->retried_rate, "failed", r->failed_rate, "handlers", handlers);
        if (has_ages)
                (void)json_object_set_new(document, "wall_ms", json_integer((json_int_t)clock_wall_ms()));
        if (r->view.http)
                (void)json_object_set_new(document, "http", text(r->view.http));
        const struct routes *routes = &all->dispatch->routes;
        json_t *unserved = routes->unserved_count ? json_array() : NULL;
        for (uint32_t i = 0; i < routes->unserved_count; i++)
                (void)json_array_append_new(unserved, text(routes->unserved[i]));
        if (unserved)
                (void)json_object_set_new(document, "unserved", unserved);
        struct http_counts http = http_count(*r->view.server);
        put_http(document, &http, has_ages);
        put_pending_moves(document, shards);
        limit_report_put(document, all, clock_boot_ms());
        reload_order_put(r->view.order, document);
        file_schedules_report(r->view.schedules, document);
        json_t *running = survey_running_by_shard(&r->survey);
        if (json_array_size(running))
                (void)json_object_set(document, "running", running);
        json_decref(running);
        return document;
}

json_t *host_status_make(struct host_status *r)
{
        survey_take(&r->survey, r->view.handlers, r->view.shards, clock_boot_ms(), clock_wall_ms());
        return make(r, true);
}

static void drop_zeroes(json_t *handlers)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                const char *name;
                json_t *value;
                void *next;
                json_object_foreach_safe(handler, next, name, value)
                {
                        if (json_is_number(value) && json_number_value(value) == 0)
                                (void)json_object_del(handler, name);
                }
        }
}

/* Versions are dropped first: it matters more that all handlers are listed. */
static void drop_versions(json_t *handlers)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                (void)json_object_del(handler, "versions");
        }
}

/* The text for the store; takes ownership of the document. */
static char *as_text(json_t *document)
{
        json_t *handlers = json_object_get(document, "handlers");
        size_t left_out = 0;
        bool has_dropped_versions = false;
        drop_zeroes(handlers);
        for (;;) {
                char *dumped = memory_or_abort(
                        json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5)));
                size_t size = strlen(dumped);
                if (size <= STORE_STATUS_MAX || !json_array_size(handlers)) {
                        json_decref(document);
                        return dumped;
                }
                free(dumped);
                if (!has_dropped_versions) {
                        drop_versions(handlers);
                        has_dropped_versions = true;
                        continue;
                }
                /* A handler takes at most about 400 bytes. */
                for (size_t excess = size - STORE_STATUS_MAX, n = 1 + excess / 400; n && json_array_size(handlers);
                        n--) {
                        (void)json_array_remove(handlers, json_array_size(handlers) - 1);
                        left_out++;
                }
                put_number(document, "handlers_left_out", left_out);
        }
}

/* --- writing the document --- */

static void on_due(uv_timer_t *timer);

static void set_due(struct host_status *r, uint64_t due_ms, uint64_t now_ms)
{
        if (due_ms >= r->due_ms)
                return;
        r->due_ms = due_ms;
        (void)uv_timer_start(&r->timer, on_due, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static uint64_t refresh_ms(const struct host_status *r)
{
        uint64_t ttl_ms = r->view.shards->limits->ttl_ms;
        return max_u64(ttl_ms, HOST_STATUS_PACE_MS);
}

static double per_second(uint64_t now, uint64_t before, uint64_t ms)
{
        return ms && now > before ? (double)(now - before) * 1000 / (double)ms : 0;
}

static void measure(struct host_status *r, uint64_t now_ms)
{
        const struct handlers *all = r->view.handlers;
        struct outcome_counts sum = { 0 };
        if (r->reports_count < all->count) {
                r->reports = memory_resize(r->reports, all->count * sizeof(*r->reports));
                memset(r->reports + r->reports_count, 0, (all->count - r->reports_count) * sizeof(*r->reports));
                r->reports_count = all->count;
        }
        for (uint32_t i = 0; i < all->count; i++) {
                handler_report_measure(&r->reports[i], all->list[i], now_ms);
                const struct outcome_counts *counts = &all->list[i]->counts;
                sum.done += counts->done;
                sum.retried += counts->retried;
                sum.rejected += counts->rejected;
                sum.crashed += counts->crashed;
                sum.timed_out += counts->timed_out;
        }
        uint64_t ms = now_ms - r->sum_ms;
        limit_report_measure(all->dispatch->routes.limits, ms);
        r->done_rate = per_second(sum.done, r->sum.done, ms);
        r->retried_rate = per_second(sum.retried, r->sum.retried, ms);
        r->failed_rate = per_second(
                sum.rejected + sum.crashed + sum.timed_out, r->sum.rejected + r->sum.crashed + r->sum.timed_out, ms);
        r->sum = sum;
        r->sum_ms = now_ms;
}

static void on_put(struct store_request *request)
{
        struct host_status *r = container_of(request, struct host_status, put.request);
        r->is_putting = false;
        r->is_withdrawn = r->is_leaving;
        if (r->is_urgent && !r->is_leaving)
                host_status_hurry(r);
        if (request->status < 0) {
                free(r->written);
                r->written = NULL;
                return;
        }
        for (uint32_t i = 0; i < r->put.counters_count; i++)
                r->counters[i].before = r->counters[i].value;
}

/* The counters of a handler keep their place; those of a new handler are appended. */
static void count_handlers(struct host_status *r)
{
        const struct handlers *all = r->view.handlers;
        if (r->counters_count < all->count * COUNTERS) {
                r->counters = memory_resize(r->counters, all->count * COUNTERS * sizeof(*r->counters));
                memset(r->counters + r->counters_count, 0,
                        (all->count * COUNTERS - r->counters_count) * sizeof(*r->counters));
                r->counters_count = all->count * COUNTERS;
        }
        for (uint32_t i = 0; i < r->counters_count; i++) {
                struct handler_counter *c = &r->counters[i];
                const struct handler *handler = all->list[i / COUNTERS];
                /* The slot has another handler now: its counters start at zero. */
                if (strncmp(c->name, handler->name, strlen(handler->name)) != 0 ||
                        c->name[strlen(handler->name)] != '.') {
                        *c = (struct handler_counter){ 0 };
                        (void)snprintf(
                                c->name, sizeof(c->name), "%s.%s", handler->name, counter_names[i % COUNTERS].name);
                }
                uint64_t value =
                        *(const uint64_t *)((const char *)&handler->counts + counter_names[i % COUNTERS].offset);
                c->value = max_u64(value, c->value);
        }
}

static void put(struct host_status *r, char *document, uint64_t now_ms)
{
        count_handlers(r);
        free(r->document);
        free(r->put_counters);
        r->document = document;
        uint32_t counters = (uint32_t)min_u64(r->counters_count, STORE_COUNTERS_PUT);
        r->put_counters = memory_zero(counters, sizeof(*r->put_counters));
        for (uint32_t i = 0; i < counters; i++)
                r->put_counters[i] = (struct store_counter){ span_of_text(r->counters[i].name), r->counters[i].before,
                        r->counters[i].value };
        r->put = (struct store_status_put){ .request.done = on_put,
                .document = { document ? document : "", document ? strlen(document) : 0 },
                .keep_ms = 3 * refresh_ms(r),
                .counters = r->put_counters,
                .counters_count = counters };
        memcpy(r->put.nonce, r->view.membership->nonce, sizeof(r->put.nonce));
        r->put_ms = now_ms;
        r->is_putting = true;
        store_status_put(r->view.shards->store, &r->put);
}

/* --- the document of running tasks --- */

static void on_put_running(struct store_request *request)
{
        struct host_status *r = container_of(request, struct host_status, put_running.request);
        r->is_putting_running = false;
        if (request->status < 0) {
                free(r->running);
                r->running = NULL;
        }
}

static uint32_t rarer(const struct host_status *r)
{
        const struct assignment *a = &r->view.membership->assignment;
        return survey_rarer((uint64_t)a->owners_count + a->givers_count);
}

static uint64_t running_refresh_ms(const struct host_status *r)
{
        return max_u64(refresh_ms(r), (uint64_t)SURVEY_PACE_MS * rarer(r));
}

/* A host without long-running tasks has no such document. */
static void look_at_running(struct host_status *r, bool is_leaving, uint64_t now_ms)
{
        bool is_early = r->put_running_ms && now_ms < r->put_running_ms + (uint64_t)SURVEY_PACE_MS * rarer(r);
        if (r->is_putting_running || (is_early && !is_leaving))
                return;
        char *says = r->survey.list_count ? survey_document(&r->survey, r->view.membership->name,
                                                    r->started_ms - r->started_boot_ms, STORE_RUNNING_MAX)
                                          : memory_text("");
        bool is_same = r->running ? !strcmp(says, r->running) : !*says;
        if (is_same && (!*says || now_ms - r->put_running_ms < running_refresh_ms(r))) {
                free(says);
                return;
        }
        free(r->running);
        r->running = says;
        r->put_running = (struct store_status_put){ .request.done = on_put_running,
                .kind = DOCUMENT_RUNNING,
                .document = span_of_text(says),
                .keep_ms = 3 * running_refresh_ms(r) };
        memcpy(r->put_running.nonce, r->view.membership->nonce, sizeof(r->put_running.nonce));
        r->put_running_ms = now_ms;
        r->is_putting_running = true;
        store_status_put(r->view.shards->store, &r->put_running);
}

/* The document without ages, and whether it has changed since it was written.  The caller frees it. */
static char *what_it_says(const struct host_status *r, bool *ret_is_news)
{
        char *says = as_text(make(r, false));
        *ret_is_news = !r->written || strcmp(says, r->written) != 0;
        return says;
}

static void on_due(uv_timer_t *timer)
{
        struct host_status *r = timer->data;
        uint64_t now_ms = clock_boot_ms();
        bool is_news;
        r->due_ms = UINT64_MAX;
        if (!r->view.shards->store || r->is_leaving)
                return;
        measure(r, now_ms);
        survey_take(&r->survey, r->view.handlers, r->view.shards, now_ms, clock_wall_ms());
        look_at_running(r, false, now_ms);
        uint64_t done_due_ms = done_report_look(&r->done, r->view.shards->store, rarer(r), now_ms);
        char *says = what_it_says(r, &is_news);
        if (!r->is_putting && (is_news || now_ms - r->put_ms >= refresh_ms(r))) {
                put(r, as_text(make(r, true)), now_ms);
                free(r->written);
                r->written = says;
        } else {
                free(says);
        }
        /* A change is followed by another, at least by rates of zero.  Long-running tasks may report progress. */
        bool is_soon = is_news || r->survey.list_count;
        set_due(r, now_ms + (is_soon ? HOST_STATUS_PACE_MS : refresh_ms(r)), now_ms);
        set_due(r, done_due_ms, now_ms);
}

void host_status_hurry(struct host_status *r)
{
        uint64_t now_ms = clock_boot_ms();
        r->is_urgent = r->is_putting;
        if (!r->is_putting)
                set_due(r, now_ms, now_ms);
}

void host_status_watch(struct host_status *r, uint64_t now_ms)
{
        bool is_news;
        if (!r->view.shards->store || r->is_leaving || r->due_ms <= now_ms + HOST_STATUS_PACE_MS)
                return;
        /* Making the document at every iteration of a busy loop would be too expensive. */
        if (now_ms < r->watched_ms + WATCH_MS) {
                set_due(r, now_ms + HOST_STATUS_PACE_MS, now_ms);
                return;
        }
        r->watched_ms = now_ms;
        survey_take(&r->survey, r->view.handlers, r->view.shards, now_ms, clock_wall_ms());
        free(what_it_says(r, &is_news));
        if (is_news)
                set_due(r, r->put_ms + HOST_STATUS_PACE_MS, now_ms);
}

/* --- start and end --- */

void host_status_init(struct host_status *r, uv_loop_t *loop)
{
        (void)uv_timer_init(loop, &r->timer);
        r->timer.data = r;
        r->due_ms = UINT64_MAX;
        r->started_ms = clock_wall_ms();
        r->started_boot_ms = clock_boot_ms();
        if (gethostname(r->machine, sizeof(r->machine) - 1) < 0)
                r->machine[0] = 0;
}

bool host_status_withdraw(struct host_status *r)
{
        if (r->is_withdrawn || r->is_putting || r->is_putting_running)
                return r->is_withdrawn;
        /* The document of done tasks stays in the store, for later questions. */
        if (!done_report_flush(&r->done, r->view.shards->store, clock_boot_ms()))
                return false;
        if (r->running && *r->running) {
                r->survey.list_count = 0;
                look_at_running(r, true, clock_boot_ms());
                return false;
        }
        r->is_leaving = true;
        put(r, NULL, clock_boot_ms());
        return false;
}

void host_status_close(struct host_status *r)
{
        uv_close((uv_handle_t *)&r->timer, NULL);
}

void host_status_free(struct host_status *r)
{
        free(r->document);
        free(r->written);
        free(r->running);
        free(r->reports);
        free(r->counters);
        free(r->put_counters);
        survey_free(&r->survey);
        done_report_free(&r->done);
}
