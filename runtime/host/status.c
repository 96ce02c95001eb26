#include "host/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"

#define WATCH_MS    100
#define PENDING_MAX 64 /* that are named */

/* --- the document --- */

static const char *state_of(const struct handler *handler)
{
        const struct generation *current = handler_current(handler);
        if (handler->all->dispatch->pools[handler->slot].is_paused)
                return "paused";
        if (!current)
                return handler->rollout.candidate ? "starting" : "removed";
        switch (current->pool_io.pool.state) {
        case POOL_OPEN:
                return "open";
        case POOL_PAUSED:
        case POOL_PROBING:
                return "unavailable";
        case POOL_QUARANTINED:
                return "quarantined";
        }
        return "open";
}

/* Counts the tasks that a seat has started. */
static uint64_t count_running(const struct pool_io *io)
{
        uint64_t running = 0;
        for (uint32_t i = 0; i < io->pool.runners_count; i++) {
                const struct process *p = io->pool.runners[i].process;
                struct ring_view view;
                for (uint32_t cursor = 0; p && ring_host_each(&p->ring, &cursor, &view);)
                        running += view.is_started;
        }
        return running;
}

static void look_older(const struct pool_task *first, uint64_t *oldest_ms)
{
        for (const struct pool_task *task = first; task; task = task->next) {
                uint64_t submitted_ms = ((const struct claimed *)task)->submitted_ms;
                if (submitted_ms && submitted_ms < *oldest_ms)
                        *oldest_ms = submitted_ms;
        }
}

/* The age, since its submission, of the oldest task that waits or runs in the pool.  Tasks in the windows or in the
 * store are not considered: there may be millions. */
static uint64_t age_of_oldest(const struct pool *pool)
{
        uint64_t oldest_ms = UINT64_MAX;
        uint64_t now_ms = clock_wall_ms();
        look_older(pool->waiting, &oldest_ms);
        look_older(pool->suspects, &oldest_ms);
        for (uint32_t i = 0; i < pool->runners_count; i++)
                look_older(pool->runners[i].handed, &oldest_ms);
        return oldest_ms < now_ms ? now_ms - oldest_ms : 0;
}

static json_t *text(const char *bytes)
{
        json_t *json = json_string(bytes);
        return json ? json : json_string("(not UTF-8)");
}

static void put_number(json_t *o, const char *name, uint64_t value)
{
        (void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

static json_t *make_handler(const struct handler *handler, bool has_ages)
{
        const struct generation *current = handler_current(handler);
        uint64_t running = 0;
        uint64_t oldest_ms = 0;
        json_t *o = json_object();
        for (const struct rollout_version *g = handler->rollout.newest; g; g = g->older) {
                const struct generation *generation = (const struct generation *)g;
                running += generation->is_open ? count_running(&generation->pool_io) : 0;
                uint64_t age_ms = generation->is_open && has_ages ? age_of_oldest(&generation->pool_io.pool) : 0;
                oldest_ms = max_u64(age_ms, oldest_ms);
        }
        (void)json_object_set_new(o, "name", json_string(handler->name));
        (void)json_object_set_new(o, "plugin", text(current ? current->settings->plugin : ""));
        (void)json_object_set_new(o, "version", text(current ? current->plugin_version : ""));
        put_number(o, "generation", current ? current->version.number : 0);
        (void)json_object_set_new(o, "state", json_string(state_of(handler)));
        put_number(o, "running", running);
        put_number(o, "done", handler->counts.done);
        put_number(o, "retried", handler->counts.retried);
        put_number(o, "rejected", handler->counts.rejected);
        put_number(o, "crashed", handler->counts.crashed);
        put_number(o, "timed_out", handler->counts.timed_out);
        put_number(o, "oldest_ms", oldest_ms);
        if (handler->outage.is_on && !strcmp(state_of(handler), "unavailable")) {
                (void)json_object_set_new(o, "unavailable", text(handler->outage.text));
                put_number(o, "unavailable_ms", has_ages ? clock_boot_ms() - handler->outage.since_ms : 0);
        }
        return o;
}

/* Shards that another is to have, and that stay as long as a call runs which a move must not cut. */
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

static json_t *make(const struct host_status *r, bool has_ages)
{
        const struct membership *membership = r->view.membership;
        const struct shards *shards = r->view.shards;
        const struct handlers *all = r->view.handlers;
        char nonce[NONCE_TEXT_SIZE];
        uint64_t owned = 0;
        uint64_t fenced = 0;
        json_t *handlers = json_array();
        membership_nonce_text(membership, nonce);
        for (uint32_t i = 0; i < shards->count; i++) {
                const struct shard *s = &shards->list[i].shard;
                owned += shard_is_held(s);
                fenced += s->fenced;
        }
        for (uint32_t i = 0; i < all->count; i++)
                if (all->list[i]->rollout.newest)
                        (void)json_array_append_new(handlers, make_handler(all->list[i], has_ages));
        json_t *document = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:{s:f, s:f, s:f}, s:o}", "name",
                membership->name, "nonce", nonce, "state", membership->is_leaving ? "draining" : "running", "weight",
                (json_int_t)membership->weight, "pid", (json_int_t)getpid(), "shards", (json_int_t)owned, "fenced",
                (json_int_t)fenced, "rates", "done", r->done_rate, "retried", r->retried_rate, "failed", r->failed_rate,
                "handlers", handlers);
        const struct routes *routes = &all->dispatch->routes;
        json_t *unserved = routes->unserved_count ? json_array() : NULL;
        for (uint32_t i = 0; i < routes->unserved_count; i++)
                (void)json_array_append_new(unserved, text(routes->unserved[i]));
        if (unserved)
                (void)json_object_set_new(document, "unserved", unserved);
        put_pending_moves(document, shards);
        return document;
}

json_t *host_status_make(const struct host_status *r)
{
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
                        if (json_is_integer(value) && !json_integer_value(value))
                                (void)json_object_del(handler, name);
                }
        }
}

/* The text for the store; takes ownership of the document. */
static char *as_text(json_t *document)
{
        json_t *handlers = json_object_get(document, "handlers");
        size_t left_out = 0;
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
                /* A handler takes at most about 400 bytes. */
                for (size_t excess = size - STORE_STATUS_MAX, n = 1 + excess / 400; n && json_array_size(handlers);
                        n--) {
                        (void)json_array_remove(handlers, json_array_size(handlers) - 1);
                        left_out++;
                }
                put_number(document, "handlers_left_out", left_out);
        }
}

/* --- when to write it --- */

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
        for (uint32_t i = 0; i < all->count; i++) {
                const struct outcome_counts *counts = &all->list[i]->counts;
                sum.done += counts->done;
                sum.retried += counts->retried;
                sum.rejected += counts->rejected;
                sum.crashed += counts->crashed;
                sum.timed_out += counts->timed_out;
        }
        uint64_t ms = now_ms - r->sum_ms;
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
        if (request->status < 0) {
                free(r->written);
                r->written = NULL;
        }
}

static void put(struct host_status *r, char *document, uint64_t now_ms)
{
        free(r->document);
        r->document = document;
        r->put = (struct store_status_put){ .request.done = on_put,
                .document = { document ? document : "", document ? strlen(document) : 0 },
                .keep_ms = 3 * refresh_ms(r) };
        memcpy(r->put.nonce, r->view.membership->nonce, sizeof(r->put.nonce));
        r->put_ms = now_ms;
        r->is_putting = true;
        store_status_put(r->view.shards->store, &r->put);
}

/* What it says now, but for ages.  The caller's. */
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
        char *says = what_it_says(r, &is_news);
        if (!r->is_putting && (is_news || now_ms - r->put_ms >= refresh_ms(r))) {
                put(r, as_text(make(r, true)), now_ms);
                free(r->written);
                r->written = says;
        } else {
                free(says);
        }
        /* After news there is more: at least that the rates are zero again. */
        set_due(r, now_ms + (is_news ? HOST_STATUS_PACE_MS : refresh_ms(r)), now_ms);
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
}

bool host_status_withdraw(struct host_status *r)
{
        if (r->is_withdrawn || r->is_putting)
                return r->is_withdrawn;
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
}
