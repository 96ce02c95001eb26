#include "host/handler/handler.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers.h"
#include "host/handler/handler_private.h"
#include "host/handler/handlers.h"
#include "host/handler/task_trace.h"
#include "host/shard/retry.h"

const char *handler_state_name(const struct handler *handler)
{
        const struct generation *current = handler_current(handler);
        if (handler->all->dispatch->pools[handler->slot].is_paused)
                return "paused";
        if (!current && handler->rollout.candidate)
                return "starting";
        if (!current)
                return *handler->refused ? "refused" : "removed";
        if (handler_is_remote(current->settings))
                return handler->remote.paused_ms > clock_boot_ms() ? "unavailable" : "open";
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

uint64_t handler_seats(const struct handler *handler)
{
        const struct generation *current = handler_current(handler);
        if (!current || handler_is_remote(current->settings))
                return 0;
        return (uint64_t)current->settings->processes * current->settings->threads;
}

void handler_pack_headers(struct span lines, struct buffer *to)
{
        struct task_header header;
        struct buffer texts = { 0 };
        buffer_clear(to);
        while (header_next(&lines, &header)) {
                buffer_clear(&texts);
                buffer_put(&texts, header.name.data, header.name.size);
                buffer_put(&texts, "", 1);
                header_put_value(&texts, &header);
                const char *name = (const char *)texts.data;
                size_t name_size = header.name.size + 1;
                ring_put_header(to, &(struct ring_task_header){ .name = name,
                                            .value = name + name_size,
                                            .value_size = texts.size - name_size,
                                            .is_bytes = header.is_base64 });
        }
        buffer_free(&texts);
}

/* Fills in the parts of the task that a runner gets. */
static void prepare(struct generation *generation, struct shard *shard, struct claimed *c)
{
        struct task_start start = { c, shard->lease.epoch, ++shard->starts };
        struct traces *traces = generation->handler->all->traces;
        if (traces_is_on(traces)) {
                struct buffer lines = { 0 };
                handler_pack_headers(task_trace_headers(traces, &start, &lines), &c->headers_packed);
                buffer_free(&lines);
        } else {
                handler_pack_headers(c->headers, &c->headers_packed);
        }
        c->pool_task.task = (struct ring_task){
                .id = c->id.data,
                .key = c->key.data,
                .handler = c->handler.data,
                .attempt = c->attempts + 1,
                .attempts_max = c->attempts_max ? c->attempts_max : generation->settings->retry.attempts,
                .crashes = c->crashes,
                .submitted_ms = c->submitted_ms,
                .lane = (int32_t)LANE_NORMAL - (int32_t)STORE_SEQ_LANE(c->seq),
                .lease = shard->number,
                .fence_epoch = start.fence_epoch,
                .fence_start = start.fence_start,
                .timeout_ms = c->timeout_ms ? c->timeout_ms : generation->settings->timeout_ms,
                .headers = c->headers_packed.data,
                .headers_size = c->headers_packed.size,
                .checkpoint = c->checkpoint.data,
                .checkpoint_size = c->checkpoint.size,
                .payload = c->payload.data,
                .payload_size = c->payload.size,
        };
        c->generation = generation->version.number;
        c->file_hash = (uint32_t)(generation->copy.hash >> 32);
        c->pool_task.is_suspect = c->trust == TRUST_SUSPECT;
        c->pool_task.owner = shard;
        c->pool_task.run_next = NULL;
}

/* Offers the task to the pool, and with batch.same_key the tasks of its key that may run in the same call. */
static void offer(struct generation *generation, struct shard *shard, struct claimed *head, uint64_t now_ms)
{
        struct dispatch *dispatch = generation->handler->all->dispatch;
        uint32_t left = shard_run_max(head, pool_run_max(&generation->pool_io.pool));
        struct claimed *last = head;
        struct claimed *c;
        prepare(generation, shard, head);
        while (--left && (c = dispatch_follow(dispatch, generation->handler->slot, shard, last, now_ms))) {
                prepare(generation, shard, c);
                last->pool_task.run_next = &c->pool_task;
                last = c;
        }
        pool_io_offer(&generation->pool_io, &head->pool_task, now_ms);
}

void handler_end_died_alone(struct handler *handler, struct shard *shard, struct claimed *c, uint64_t now_ms)
{
        struct pending_outcome *pending = retry_died_alone(c);
        log_event(LEVEL_WARN, "host-died-alone",
                "handler=%s task=%s key=%s%s deaths=%" PRIu32 " again_ms=%" PRIu64 " text=%s", handler->name,
                c->id.data, LOG_QUOTE(c->key.data), TASK_TRACE_LOGGED(handler->all->traces, c), c->hosts_died + 1,
                pending->outcome.delay_ms,
                LOG_QUOTE("a host died while this task ran alone; if it happens again, the task itself kills hosts; to "
                          "remove it: quiver task cancel"));
        shard_ended(shard, c, pending, now_ms);
}

/* Offers the task to the pool.  A suspect that ran alone when a host died is parked for long instead. */
static void start(struct generation *generation, struct shard *shard, struct claimed *c, uint64_t now_ms)
{
        if (c->trust == TRUST_DIED_ALONE)
                handler_end_died_alone(generation->handler, shard, c, now_ms);
        else
                offer(generation, shard, c, now_ms);
}

/* A task under a limit must start when it is dispatched, because its shares are counted.  So only free seats count as
 * room. */
static void measure_room(const struct handler *handler, const struct generation *generation, uint32_t room[LANES])
{
        const struct pool_io *io = &generation->pool_io;
        bool is_limited = limits_has(handler->all->dispatch->routes.limits, handler->slot);
        for (unsigned lane = 0; lane < LANES; lane++)
                room[lane] = is_limited ? pool_free_seats(&io->pool) : pool_io_room(io, (enum lane)lane);
}

void handler_set_limits(struct handler *handler, uint64_t now_ms)
{
        struct limits *limits = handler->all->dispatch->routes.limits;
        struct generation *generation = handler_current(handler);
        const struct handler_config *settings = generation ? generation->settings : NULL;
        if (!limits)
                return;
        if (settings != handler->limited) {
                handler->limited = settings;
                limits_serve(limits, handler->slot, generation ? &generation->settings->limited_by : NULL);
        }
        if (!limits_has(limits, handler->slot) || !generation)
                return;
        if (handler_is_remote(settings)) {
                limits_set_room(
                        limits, handler->slot, remote_room(&handler->remote, settings->remote.concurrency, now_ms));
                return;
        }
        uint32_t room = pool_free_seats(&generation->pool_io.pool);
        /* Starts missing runners early.  Tasks are offered only to runners that are ready. */
        if (!room && dispatch_has_waiting(handler->all->dispatch, handler->slot)) {
                uint32_t runners = pool_runners_for_more(&generation->pool_io.pool);
                if (runners)
                        pool_io_warm(&generation->pool_io, runners);
        }
        limits_set_room(limits, handler->slot, room);
}

void handler_feed(struct handler *handler, uint64_t now_ms)
{
        struct dispatch *dispatch = handler->all->dispatch;
        struct generation *generation = handler_current(handler);
        struct shard *shard;
        struct claimed *c;
        /* A host that stops has no generation left at the end.  It keeps its claimed tasks as they are: the next owner
         * serves them. */
        if (!generation && handler->all->is_leaving)
                return;
        if (!generation) {
                dispatch_begin(dispatch, handler->slot, DISPATCH_GONE, 0, now_ms);
                return;
        }
        if (handler_is_remote(generation->settings)) {
                remote_feed(handler, now_ms);
                return;
        }
        const struct pool_io *io = &generation->pool_io;
        uint32_t room[LANES];
        enum dispatch_state state = io->pool.state == POOL_OPEN ? DISPATCH_OPEN : DISPATCH_DOWN;
        remote_feed_seats(handler, now_ms);
        measure_room(handler, generation, room);
        dispatch_begin(dispatch, handler->slot, state, room, now_ms);
        while ((c = dispatch_next(dispatch, handler->slot, room, now_ms, &shard))) {
                start(generation, shard, c, now_ms);
                measure_room(handler, generation, room);
        }
        if (state == DISPATCH_DOWN && room[LANE_HIGH] && !pool_has_tasks(&io->pool))
                dispatch_probe(dispatch, handler->slot);
}

static void on_saved(void *owner, struct pool_task *task, const void *checkpoint, size_t size)
{
        const struct handlers *all = ((const struct generation *)owner)->handler->all;
        if (task->is_borrowed)
                all->events->borrowed_saved(all->self, task, checkpoint, size);
        else
                shard_save(task->owner, (struct claimed *)task, checkpoint, size);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        static const char *const sources[] = { "plugin", "stdout", "stderr" };
        const struct generation *generation = owner;
        log_event(log->level <= LEVEL_DEBUG ? (enum log_level)log->level : LEVEL_DEBUG, "handler",
                "handler=%s source=%s%s%s%s%s%s dropped=%" PRIu32 " text=%s", generation->settings->name,
                log->source < 3 ? sources[log->source] : "plugin", task ? " task=" : "", task ? task->task.id : "",
                task ? " key=" : "", task ? LOG_QUOTE(task->task.key) : "",
                task ? task_trace_field_packed((char[TASK_TRACE_FIELD]){ 0 }, &task->task) : "", log->dropped,
                LOG_QUOTE(log->text));
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        struct generation *generation = owner;
        (void)snprintf(generation->plugin_version, sizeof(generation->plugin_version), "%s", ready->version);
        struct history_entry *entry = history_find(
                &generation->handler->all->history, generation->settings->name, generation->version.number);
        if (entry)
                (void)snprintf(entry->version, sizeof(entry->version), "%s", ready->version);
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
        const struct handlers *all = ((const struct generation *)owner)->handler->all;
        all->events->spawned(all->self, pid);
}

static void on_reaped(void *owner, pid_t pid, enum runner_exit exit)
{
        struct handler *handler = ((const struct generation *)owner)->handler;
        handler->exits[exit]++;
        handler->all->events->reaped(handler->all->self, pid);
}

static void on_refused(void *owner, const char *text)
{
        struct generation *generation = owner;
        log_event(LEVEL_ERROR, "runner-refused", "handler=%s generation=%" PRIu32 " text=%s",
                generation->settings->name, generation->version.number, LOG_QUOTE(text));
        (void)snprintf(generation->words, sizeof(generation->words), "%s", text);
        handler_rollout_event(generation->handler, ROLLOUT_FAILED, generation);
}

static void on_call(void *owner, struct pool_call *call, const struct pool_task *task)
{
        const struct generation *generation = owner;
        const struct handlers *all = generation->handler->all;
        all->events->call(all->self, call, generation->settings->name, task ? task->task.id : "");
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
        .settled = handler_on_settled,
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
