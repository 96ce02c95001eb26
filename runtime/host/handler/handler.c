/* handler.c: a host's handlers: tasks from the windows to the pools, and how they ended back to their shards. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/handler/desired.h"
#include "host/host_parts.h"
#include "host/shard/retry.h"

static double random_fraction(struct host *h)
{
        h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (double)(h->random >> 11) / 9007199254740992.0;
}

/* A person has paused it; or it takes no tasks for now, and then it keeps at most half of a window: the rest is for
 * others. */
static bool is_shut(const struct shard_io *io, const struct handler *handler)
{
        if (handler->is_paused)
                return true;
        return handler_current(handler)->pool_io.pool.state != POOL_OPEN &&
               io->shard.window.count >= io->host->limits.window_tasks / 2;
}

static bool serves(const struct handler *handler, struct span task)
{
        const struct generation *current = handler_current(handler);
        for (size_t i = 0; current && i < current->settings->tasks.count; i++) {
                const char *name = current->settings->tasks.items[i];
                if (strlen(name) == task.size && !memcmp(name, task.data, task.size))
                        return true;
        }
        return false;
}

/* Once for each name: other hosts may have the handler, or somebody has to do something. */
static void tell_unserved(struct host *h, struct span task)
{
        for (uint32_t i = 0; i < h->unserved_count; i++)
                if (span_is(task, (struct span){ h->unserved[i], strlen(h->unserved[i]) }))
                        return;
        if (h->unserved_count == UNSERVED_MAX || task.size > NAME_HANDLER_MAX)
                return;
        char *name = h->unserved[h->unserved_count++];
        (void)snprintf(name, sizeof(h->unserved[0]), "%.*s", (int)task.size, task.data);
        log_event(LEVEL_WARN, "unserved", "handler=%s hint=%s", LOG_QUOTE(name),
                LOG_QUOTE("its tasks wait, the others go on; add the handler to runtime.cfg and reload"));
}

uint32_t shard_io_pool_of(void *arg, struct span handler)
{
        const struct shard_io *io = arg;
        struct host *h = io->host;
        for (uint32_t i = 0; i < h->handlers_count; i++)
                if (serves(h->handlers[i], handler))
                        return is_shut(io, h->handlers[i]) ? WINDOW_SHUT_POOL : i;
        tell_unserved(h, handler);
        return WINDOW_NO_POOL;
}

static void pack_headers(struct claimed *c)
{
        struct span lines = c->headers;
        struct span name;
        struct span value;
        buffer_clear(&c->headers_packed);
        while (header_next(&lines, &name, &value)) {
                buffer_put(&c->headers_packed, name.data, name.size);
                buffer_put(&c->headers_packed, "", 1);
                buffer_put(&c->headers_packed, value.data, value.size);
                buffer_put(&c->headers_packed, "", 1);
        }
}

static void offer(struct generation *generation, struct shard_io *io, struct claimed *c)
{
        pack_headers(c);
        c->pool_task.task = (struct ring_task){
                .id = c->id.data,
                .key = c->key.data,
                .handler = c->handler.data,
                .attempt = c->attempts + 1,
                .lease = io->shard.number,
                .fence_epoch = io->shard.lease.epoch,
                .fence_start = ++io->shard.starts,
                .timeout_ms = c->timeout_ms ? c->timeout_ms : generation->settings->timeout_ms,
                .headers = c->headers_packed.data,
                .headers_size = c->headers_packed.size,
                .checkpoint = c->checkpoint.data,
                .checkpoint_size = c->checkpoint.size,
                .payload = c->payload.data,
                .payload_size = c->payload.size,
        };
        c->pool_task.is_suspect = c->is_suspect;
        c->pool_task.owner = io;
        pool_io_offer(&generation->pool_io, &c->pool_task);
}

/* It takes no tasks for now, and those that it was meant to take fill windows: they wait in the store instead, for the
 * sake of the others. */
static void return_waiting(struct handler *handler, uint64_t now_ms)
{
        struct host *h = handler->host;
        for (uint32_t i = 0; i < h->shards_count; i++) {
                struct shard *s = &h->shards[i].shard;
                if (s->window.count >= h->limits.window_tasks || s->window.bytes >= h->limits.window_bytes)
                        shard_return_pool(s, handler->slot, now_ms);
        }
}

/* The start of a suspect is recorded; one at a time over all shards, so that if this host dies it is known of whom. */
static void mark_suspect(struct handler *handler, uint64_t now_ms)
{
        struct host *h = handler->host;
        uint32_t pool = handler->slot;
        struct shard_set *suspects = &h->schedule.is_suspect;
        bool has_suspect = false;
        for (uint32_t i = 0; (i = shard_set_from(suspects, i)) != SHARD_SET_NONE; i++) {
                const struct window *w = &h->shards[i].shard.window;
                if (window_marks(w, pool))
                        return;
                has_suspect |= window_has_suspect(w, pool);
                if (!window_has_suspects(w))
                        shard_set_remove(suspects, i);
        }
        for (uint32_t i = 0; has_suspect && (i = shard_set_from(suspects, i)) != SHARD_SET_NONE; i++)
                if (shard_mark_next(&h->shards[i].shard, pool, now_ms))
                        return;
}

/* To its io; or to a long wait, if it is a suspect with which a host died. */
static void start(struct generation *generation, struct shard_io *io, struct claimed *c, uint64_t now_ms)
{
        struct handler *handler = generation->handler;
        if (!serves(handler, c->handler)) {
                /* It waited through a reload that gave its name to another. */
                shard_again(&io->shard, c, now_ms);
                shard_reroute(&io->shard, shard_io_pool_of, io, now_ms);
                return;
        }
        if (!c->has_died_alone) {
                offer(generation, io, c);
                return;
        }
        struct pending_outcome *pending = retry_died_alone(c);
        log_event(LEVEL_WARN, "host-died-alone",
                "handler=%s id=%s key=%s deaths=%" PRIu32 " again_ms=%" PRIu64 " text=%s", handler->name, c->id.data,
                LOG_QUOTE(c->key.data), c->hosts_died + 1, pending->outcome.delay_ms,
                LOG_QUOTE("a host died while this task ran alone; if it goes on, the task kills hosts: quiver task "
                          "cancel takes it away"));
        shard_ended(&io->shard, c, pending, now_ms);
}

/* Nobody serves here any more: what was put back since then waits in the store, or goes elsewhere. */
static void return_unserved(struct handler *handler, uint64_t now_ms)
{
        struct host *h = handler->host;
        for (uint32_t i = 0; i < h->shards_count; i++) {
                struct shard *s = &h->shards[i].shard;
                if (window_has_next(&s->window, handler->slot) || window_has_suspect(&s->window, handler->slot))
                        shard_reroute(s, shard_io_pool_of, &h->shards[i], now_ms);
        }
}

/* A pool_io's room is for this many shards at least. */
#define SHARDS_AT_LEAST 4

/* Returns how many, at most `turn`, of the shard's tasks the pool was given. */
static uint32_t feed_from(struct generation *generation, struct shard_io *io, uint32_t turn, uint64_t now_ms)
{
        uint32_t fed = 0;
        while (fed < turn && io->shard.window.count && pool_io_has_room(&generation->pool_io)) {
                struct claimed *c = shard_next(&io->shard, generation->handler->slot, now_ms);
                if (!c)
                        break;
                start(generation, io, c, now_ms);
                fed++;
        }
        return fed;
}

/* First those whose key's next task waited for so little that the store was asked for nothing else: each round trip is
 * one task for such a key, and a turn behind all the others would be most of it.  They have a share of the room, and
 * where there is hardly any every other place: the rest of the shards must not wait until they have nothing left. */
static void feed_urgent(struct generation *generation, uint64_t now_ms)
{
        struct handler *handler = generation->handler;
        struct host *h = handler->host;
        struct shard_io *io, *next;
        uint32_t room = pool_io_room(&generation->pool_io);
        uint32_t left = room >= SHARDS_AT_LEAST ? room / SHARDS_AT_LEAST : handler->was_urgent ? 0 : 1;
        DL_FOREACH_SAFE2(h->urgent, io, next, urgent_next)
        {
                if (!left || !pool_io_has_room(&generation->pool_io))
                        return;
                uint32_t fed = feed_from(generation, io, left < URGENT_TASKS_MAX ? left : URGENT_TASKS_MAX, now_ms);
                /* What it has may be another handler's. */
                if (!fed && shard_is_held(&io->shard) && window_has_ready(&io->shard.window))
                        continue;
                left -= fed;
                handler->was_urgent |= fed > 0;
                DL_DELETE2(h->urgent, io, urgent_prev, urgent_next);
                io->is_urgent = false;
        }
}

/* Round and round over the shards while the pool has room.  A shard gives a task at a time where few fit, so that all
 * get their turn; where many fit it gives several, for what starts together ends together and is one call to the store.
 */
void handler_feed(struct handler *handler, uint64_t now_ms)
{
        struct host *h = handler->host;
        struct generation *generation = handler_current(handler);
        struct shard_set *ready = &h->schedule.is_ready;
        if (!generation) {
                return_unserved(handler, now_ms);
                return;
        }
        if (generation->pool_io.pool.state != POOL_OPEN)
                return_waiting(handler, now_ms);
        if (!handler->is_paused && pool_io_has_room(&generation->pool_io))
                mark_suspect(handler, now_ms);
        if (!handler->is_paused)
                feed_urgent(generation, now_ms);
        uint32_t turn = 1 + pool_io_room(&generation->pool_io) / SHARDS_AT_LEAST;
        uint32_t left = handler->is_paused ? 0 : shard_set_count(ready); /* not found dry since one was fed */
        while (left && pool_io_has_room(&generation->pool_io)) {
                uint32_t shard = shard_set_round(ready, handler->next_shard);
                struct shard_io *io = &h->shards[shard];
                handler->next_shard = shard + 1;
                if (feed_from(generation, io, turn, now_ms)) {
                        handler->was_urgent = false;
                        left = shard_set_count(ready);
                        continue;
                }
                left--;
                if (!window_has_ready(&io->shard.window))
                        shard_set_remove(ready, shard);
        }
        pool_io_flush(&generation->pool_io);
}

/* One that has failed before says nothing about the version that fails it now. */
static bool is_fresh(const struct claimed *c)
{
        return !c->attempts && !c->crashes;
}

/* Whether the version of the handler is to be judged by it.  A task that says RETRY over and over is one failure. */
static bool tells_of_version(const struct claimed *c, enum outcome outcome)
{
        if (outcome == OUTCOME_RETRY)
                return is_fresh(c) && !c->interruptions;
        return outcome == OUTCOME_DONE || is_fresh(c);
}

/* The pause itself is the pool's; here it is only told. */
static void note_outage(
        struct handler *handler, const struct generation *generation, const struct settled *settled, uint64_t now_ms)
{
        struct outage *o = &handler->outage;
        uint64_t lasted_ms = 0;
        if (settled->outcome == OUTCOME_UNAVAILABLE) {
                if (!outage_goes_on(o, settled->error, now_ms))
                        return;
                log_event(LEVEL_WARN, "unavailable",
                        "handler=%s generation=%" PRIu32 " since_ms=%" PRIu64 " outages=%" PRIu32 " error=%s hint=%s",
                        handler->name, generation->version.number, now_ms - o->since_ms, o->untold,
                        LOG_QUOTE(settled->error),
                        LOG_QUOTE("its tasks wait at no cost; it is tried again with pauses"));
                outage_told(o, now_ms);
        } else if (generation == handler_current(handler) && generation->pool_io.pool.state == POOL_OPEN &&
                   outage_over(o, now_ms, &lasted_ms)) {
                log_event(LEVEL_INFO, "available", "handler=%s generation=%" PRIu32 " after_ms=%" PRIu64, handler->name,
                        generation->version.number, lasted_ms);
        }
}

static void on_settled(void *owner, struct pool_task *task, const struct settled *settled)
{
        struct generation *generation = owner;
        struct handler *handler = generation->handler;
        struct shard_io *io = task->owner;
        struct claimed *c = (struct claimed *)task;
        struct pending_outcome *pending = NULL;
        host_status_count(&handler->counts, settled->outcome);
        note_outage(handler, generation, settled, clock_boot_ms());
        if (settled->checkpoint) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, settled->checkpoint, settled->checkpoint_size);
                c->has_saved = true;
        }
        if (settled->outcome == OUTCOME_CRASHED || settled->outcome == OUTCOME_TIMED_OUT)
                log_event(LEVEL_WARN, "crash", "handler=%s generation=%" PRIu32 " id=%s key=%s outcome=%s error=%s",
                        handler->name, generation->version.number, c->id.data, LOG_QUOTE(c->key.data),
                        outcome_name(settled->outcome), LOG_QUOTE(settled->error));
        struct settled judged = *settled;
        judged.is_excused = is_fresh(c) && rollout_excuses(&handler->rollout, &generation->version, settled->outcome);
        if (tells_of_version(c, settled->outcome))
                handler_task_ended(handler, generation, settled->outcome);
        if (retry_judge(generation->settings, c, &judged, random_fraction(handler->host), &pending) == VERDICT_AGAIN)
                shard_again(&io->shard, c, clock_boot_ms());
        else
                shard_ended(&io->shard, c, pending, clock_boot_ms());
}

static void on_saved(void *owner, struct pool_task *task, const void *checkpoint, size_t size)
{
        struct shard_io *io = task->owner;
        (void)owner;
        shard_save(&io->shard, (struct claimed *)task, checkpoint, size);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        static const char *const sources[] = { "plugin", "stdout", "stderr" };
        const struct generation *generation = owner;
        log_event(log->level <= LEVEL_DEBUG ? (enum log_level)log->level : LEVEL_DEBUG, "handler",
                "handler=%s source=%s%s%s dropped=%" PRIu32 " text=%s", generation->settings->name,
                log->source < 3 ? sources[log->source] : "plugin", task ? " id=" : "", task ? task->task.id : "",
                log->dropped, LOG_QUOTE(log->text));
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        struct generation *generation = owner;
        (void)snprintf(generation->plugin_version, sizeof(generation->plugin_version), "%s", ready->version);
        log_event(LEVEL_INFO, "runner-ready", "handler=%s generation=%" PRIu32 " plugin=%s version=%s pid=%d",
                generation->settings->name, generation->version.number, ready->name, LOG_QUOTE(ready->version),
                (int)pid);
        if (*ready->unread)
                log_event(LEVEL_WARN, "settings-unread", "handler=%s names=%s hint=%s", generation->settings->name,
                        LOG_QUOTE(ready->unread), LOG_QUOTE("init never read them; misspelt?"));
        if (*ready->notes)
                log_event(LEVEL_WARN, "sandbox", "handler=%s text=%s", generation->settings->name,
                        LOG_QUOTE(ready->notes));
        handler_rollout_event(generation->handler, ROLLOUT_READY, generation);
}

static void on_spawned(void *owner, pid_t pid)
{
        const struct generation *generation = owner;
        guard_client_spawned(&generation->handler->host->guard, pid);
}

static void on_reaped(void *owner, pid_t pid)
{
        const struct generation *generation = owner;
        guard_client_reaped(&generation->handler->host->guard, pid);
}

static void on_refused(void *owner, const char *text)
{
        struct generation *generation = owner;
        log_event(LEVEL_ERROR, "runner-refused", "handler=%s generation=%" PRIu32 " text=%s",
                generation->settings->name, generation->version.number, LOG_QUOTE(text));
        (void)snprintf(generation->words, sizeof(generation->words), "%s", text);
        handler_rollout_event(generation->handler, ROLLOUT_FAILED, generation);
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        (void)owner, (void)service, (void)holder, (void)name, (void)number;
        return -ENOTSUP;
}

static void on_quarantined(void *owner, const char *text)
{
        struct generation *generation = owner;
        log_event(LEVEL_ERROR, "quarantine", "handler=%s generation=%" PRIu32 " text=%s", generation->settings->name,
                generation->version.number, LOG_QUOTE(text));
        handler_rollout_event(generation->handler, ROLLOUT_STUCK, generation);
}

static void on_pool_stopped(void *owner)
{
        struct generation *generation = owner;
        handler_rollout_event(generation->handler, ROLLOUT_EMPTY, generation);
}

const struct pool_io_events handler_pool_events = {
        .settled = on_settled,
        .saved = on_saved,
        .log = on_log,
        .ready = on_ready,
        .spawned = on_spawned,
        .reaped = on_reaped,
        .refused = on_refused,
        .call = on_call,
        .quarantined = on_quarantined,
        .stopped = on_pool_stopped,
        .closed = generation_closed,
};

void handler_describe(const struct handler *handler, struct member_doc *doc)
{
        const struct generation *current = handler_current(handler);
        if (current)
                member_doc_add_handler(doc, handler->name, current->plugin_version);
}

/* --- the desired state --- */

static void set_paused(struct handler *handler, bool is_paused, struct span reason)
{
        struct host *h = handler->host;
        if (handler->is_paused == is_paused)
                return;
        handler->is_paused = is_paused;
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)reason.size, reason.data ? reason.data : "");
        log_event(LEVEL_INFO, is_paused ? "paused" : "resumed", "handler=%s reason=%s", handler->name, LOG_QUOTE(text));
        for (uint32_t i = 0; is_paused && i < h->shards_count; i++)
                shard_return_pool(&h->shards[i].shard, handler->slot, clock_boot_ms());
}

static void on_desired(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, desired.request));
        h->is_asking = false;
        if (request->status < 0)
                return;
        h->desired_version = h->desired.version;
        membership_desired(h, h->desired.items, h->desired.items_count);
        for (uint32_t i = 0; i < h->handlers_count; i++) {
                struct span reason = { "", 0 };
                struct handler *handler = h->handlers[i];
                const struct rollout_version *target = rollout_target(&handler->rollout);
                if (target)
                        set_paused(handler,
                                desired_is_paused(h->desired.items, h->desired.items_count,
                                        ((const struct generation *)target)->settings, &reason),
                                reason);
        }
}

void host_ask_desired(struct host *h)
{
        if (h->is_asking || !h->store)
                return;
        h->is_asking = true;
        h->desired = (struct store_desired_get){ .request.done = on_desired };
        store_desired_get(h->store, &h->desired);
}
