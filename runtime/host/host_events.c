/* host_events.c: the callbacks of a host's parts.  Each passes an event on to the parts concerned and decides
 * nothing. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/host_private.h"

/* --- shards --- */

static uint64_t on_now_ms(void *self)
{
        (void)self;
        return clock_boot_ms();
}

static void on_task_stop(void *self, struct claimed *claimed)
{
        struct host *h = self;
        if (claimed->lent)
                remotes_stop_task(&h->handlers, claimed, clock_boot_ms());
        else
                pool_io_cancel(claimed->pool_task.pool_io, &claimed->pool_task);
}

static void on_task_recall(void *self, struct claimed *claimed)
{
        struct host *h = self;
        if (claimed->lent)
                remotes_recall(&h->handlers, claimed, clock_boot_ms());
        else
                pool_io_recall(claimed->pool_task.pool_io, &claimed->pool_task);
}

static void on_reported(void *self, struct shard *shard, const struct store_control *control)
{
        struct host *h = self;
        remotes_obey(&h->handlers, shard, control, clock_boot_ms());
}

/* Whether the log does not have this reason yet.  The first words of the text are skipped: they name the call, which
 * differs. */
static bool is_news(struct store_outage *outage, const char *text)
{
        const char *colon = strstr(text, ": ");
        const char *reason = colon ? colon : text;
        uint64_t hash = hash_bytes(HASH_START, (const uint8_t *)reason, strlen(reason));
        for (uint32_t i = 0; i < outage->said_count; i++)
                if (outage->said[i] == hash)
                        return false;
        if (outage->said_count == OUTAGE_REASONS_MAX)
                return false;
        outage->said[outage->said_count++] = hash;
        return true;
}

static void note_away(struct host *h, const char *text)
{
        if (!h->outage.is_on)
                h->outage.since_ms = clock_boot_ms();
        h->outage.is_on = true;
        if (!is_news(&h->outage, text))
                return;
        log_event(LEVEL_WARN, "store-away", "text=%s hint=%s", LOG_QUOTE(text),
                LOG_QUOTE("nothing is lost; every call is made again until the store answers"));
}

/* A store that is down fails the calls of every shard: that is one outage, with one log line per reason.  It is a
 * warning, because work resumes by itself.  An error of one shard alone needs a person, and is logged at once. */
static void on_call_failed(void *self, const struct shard *shard, int status, const char *text)
{
        struct host *h = self;
        if (status == -EPROTO || status == -EINVAL || status == -EBADMSG) {
                log_event(LEVEL_ERROR, "shard-failed", "shard=%" PRIu32 " text=%s", shard->number, LOG_QUOTE(text));
                return;
        }
        h->outage.calls++;
        note_away(h, text);
}

static void note_answer(struct host *h)
{
        if (!h->outage.is_on)
                return;
        log_event(LEVEL_INFO, "store-back", "after_ms=%" PRIu64 " failed_calls=%" PRIu64,
                clock_boot_ms() - h->outage.since_ms, h->outage.calls);
        h->outage = (struct store_outage){ 0 };
}

static void on_merged(void *self, const struct claimed *into, uint32_t count)
{
        struct host *h = self;
        if (into->pool < h->handlers.count)
                h->handlers.list[into->pool]->counts.merged += count;
        log_event(LEVEL_DEBUG, "merged", "into=%s key=%s handler=%s tasks=%" PRIu32, into->id.data,
                LOG_QUOTE(into->key.data), into->handler.data, count);
}

/* Our member node in the tree needs an update. */
static void on_news(void *self)
{
        struct host *h = self;
        membership_report(&h->membership);
}

static void on_renewed(void *self, const char *failure, uint64_t desired_version)
{
        struct host *h = self;
        membership_store_seen(&h->membership, !failure);
        if (failure) {
                note_away(h, failure);
                return;
        }
        note_answer(h);
        lend_store_answers(&h->lend);
        if (h->phase == HOST_RUNNING)
                shards_reconcile(&h->shards);
        if (desired_version != h->desired_version)
                host_ask_desired(h);
}

const struct shards_events host_shards_events = { .now_ms = on_now_ms,
        .stop = on_task_stop,
        .recall = on_task_recall,
        .reported = on_reported,
        .failed = on_call_failed,
        .merged = on_merged,
        .stale = on_news,
        .renewed = on_renewed };

/* --- handlers --- */

static void on_spawned(void *self, pid_t pid)
{
        struct host *h = self;
        guard_client_spawned(&h->guard, pid);
}

static void on_reaped(void *self, pid_t pid)
{
        struct host *h = self;
        guard_client_reaped(&h->guard, pid);
        services_runner_gone(&h->services, pid);
}

static void on_call(void *self, struct pool_call *call, const char *handler, const char *task_id)
{
        struct host *h = self;
        services_call(&h->services, call, handler, task_id);
}

static void on_answered(void *self, pid_t pid, uint64_t ticket)
{
        struct host *h = self;
        services_task_ended(&h->services, pid, ticket);
}

static void on_stop_seat(void *self, const struct lent *lent)
{
        struct host *h = self;
        lend_stop_seat(&h->lend, lent);
}

static void on_borrowed_settled(
        void *self, struct pool_task *task, struct generation *generation, const struct settled *settled)
{
        struct host *h = self;
        lend_settled(&h->lend, task, generation, settled);
}

static void on_borrowed_saved(void *self, struct pool_task *task, const void *checkpoint, size_t size)
{
        (void)self;
        lend_saved(task, checkpoint, size);
}

const struct handlers_events host_handlers_events = { .spawned = on_spawned,
        .reaped = on_reaped,
        .changed = on_news,
        .call = on_call,
        .answered = on_answered,
        .stop_seat = on_stop_seat,
        .borrowed_settled = on_borrowed_settled,
        .borrowed_saved = on_borrowed_saved };

/* --- membership --- */

static void on_session(void *self, const char *token)
{
        struct host *h = self;
        if (h->has_guard)
                guard_client_session(&h->guard, token);
        if (h->has_run)
                host_write_run(h, token);
}

static void on_assigned(void *self)
{
        struct host *h = self;
        if (h->phase <= HOST_RUNNING)
                shards_assign(&h->shards, h->membership.is_standing_by, clock_boot_ms());
}

static void on_describe(void *self, struct member_doc *doc)
{
        const struct host *h = self;
        handlers_describe(&h->handlers, doc);
        member_doc_add_features(doc);
        for (uint32_t i = 0; i < h->shards.count; i++)
                if (h->shards.list[i].shard.stale_epoch)
                        member_doc_add_stale(doc, i, h->shards.list[i].shard.stale_epoch);
}

const struct membership_events host_membership_events = {
        .opened = host_start_go_on, .session = on_session, .assigned = on_assigned, .describe = on_describe
};

/* --- reload --- */

static void on_take(void *self, struct shared_config *shared)
{
        struct host *h = self;
        struct shared_config *before = h->shared;
        h->shared = shared_config_get(shared);
        h->config = &shared->config;
        host_warn_of_root(h);
        log_set_level((enum log_level)h->config->log.level);
        host_apply_config(h);
        host_apply_http(h);
        struct error error = { "" };
        if (host_apply_traces(h, &error) < 0)
                log_event(LEVEL_ERROR, "traces", "text=%s hint=%s", LOG_QUOTE(error.text),
                        LOG_QUOTE("spans go where they went before; mend it and reload"));
        uint64_t renew_at_ms = clock_boot_ms() + h->limits.ttl_ms / 3;
        h->renew_at_ms = min_u64(renew_at_ms, h->renew_at_ms);
        shared_config_free(before);
}

static void on_taken(void *self)
{
        struct host *h = self;
        host_ask_desired(h);
        file_schedules_take(&h->file_schedules, h->config);
        membership_report(&h->membership);
        /* Whoever reloads looks at the status next: a handler that was added should not be called unserved there. */
        host_status_hurry(&h->status_doc);
}

/* `quiver reload --all` reads the answer in the status document. */
static void on_ordered(void *self, uint32_t order, const json_t *reply)
{
        struct host *h = self;
        uint32_t reload;
        if (reload_order_answer(&h->reload_order, order, reply, &reload))
                reload_await_ordered(&h->reload, reload, order);
        host_status_hurry(&h->status_doc);
}

const struct reload_events host_reload_events = { .ordered = on_ordered, .take = on_take, .taken = on_taken };

/* --- the store's doorbell --- */

static void on_bell_shard(void *self, uint32_t shard)
{
        struct host *h = self;
        if (shard < h->shards.count)
                shard_rang(&h->shards.list[shard].shard);
}

static void on_bell_mail(void *self)
{
        struct host *h = self;
        lend_mail_rang(&h->lend);
}

static void on_bell_wanting(void *self)
{
        struct host *h = self;
        lend_wanting_rang(&h->lend);
}

static void on_bell_look(void *self)
{
        struct host *h = self;
        shards_rang(&h->shards);
        lend_look(&h->lend);
}

const struct store_bell host_bell = { .shard = on_bell_shard,
        .desired = host_ask_desired,
        .mail = on_bell_mail,
        .wanting = on_bell_wanting,
        .look = on_bell_look };

/* --- the desired state --- */

/* A feature that was switched on meanwhile is refused as at the start: other hosts now write records that this host
 * cannot read. */
static void on_app(struct store_request *request)
{
        struct host *h = container_of(request, struct host, app.request);
        const struct store_app *app = &h->app.app;
        h->is_asking = false;
        if (request->status < 0)
                return;
        membership_limit(&h->membership, app->max_members);
        h->handlers.has_later = store_app_has(app, "later");
        h->limits.can_merge = store_app_has(app, "merge");
        if (store_app_lacks(app) && h->phase == HOST_RUNNING)
                host_stop_lacking(h, store_app_lacks(app));
}

/* The app's record is read after the desired state.  Both share one version, so a change in between shows as a new
 * version. */
static void on_desired(struct store_request *request)
{
        struct host *h = container_of(request, struct host, desired.request);
        if (request->status < 0) {
                h->is_asking = false;
                return;
        }
        h->desired_version = h->desired.version;
        membership_desired(&h->membership, h->desired.items, h->desired.items_count);
        handlers_desired(&h->handlers, h->desired.items, h->desired.items_count);
        limits_io_desired(&h->fleet_limits, h->desired.items, h->desired.items_count, clock_wall_ms());
        file_schedules_desired(&h->file_schedules, h->config, h->desired.items, h->desired.items_count);
        char nonce[NONCE_TEXT_SIZE];
        membership_nonce_text(&h->membership, nonce);
        if (reload_order_find(&h->reload_order, nonce, h->desired.items, h->desired.items_count))
                reload_ask_ordered(&h->reload, h->reload_order.number);
        h->app = (struct store_app_get){ .request.done = on_app };
        store_app_get(h->store, &h->app);
}

void host_ask_desired(void *self)
{
        struct host *h = self;
        if (h->is_asking || !h->store)
                return;
        h->is_asking = true;
        h->desired = (struct store_desired_get){ .request.done = on_desired };
        store_desired_get(h->store, &h->desired);
}
