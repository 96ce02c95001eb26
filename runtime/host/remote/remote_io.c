/* remote_io.c: moves tasks from the windows to workers, and the workers' reports to the shards. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "host/handler/handlers.h"
#include "host/handler/task_trace.h"
#include "host/remote/remote_private.h"
#include "host/shard/shard_io.h"

/* --- the lent tasks --- */

void remote_watch(struct remotes *r, struct lent *lent)
{
        if (lent->is_watched)
                return;
        DL_DELETE(r->resting, lent);
        DL_APPEND(r->watched, lent);
        lent->is_watched = true;
}

static void rest(struct remotes *r, struct lent *lent)
{
        DL_DELETE(r->watched, lent);
        DL_APPEND(r->resting, lent);
        lent->is_watched = false;
        r->due_ms = min_u64(r->due_ms, lent_due_ms(lent));
}

void remote_add(struct handlers *all, struct lent *lent)
{
        struct remotes *r = &all->remotes;
        lent->place[0] = lent->shard->number;
        lent->place[1] = lent->fence.seq;
        lent->is_watched = true;
        HASH_ADD(hh, r->all, place, sizeof(lent->place), lent);
        DL_APPEND(r->watched, lent);
        all->list[lent->slot]->remote.lent++;
}

struct lent *remote_find(const struct handlers *all, uint32_t shard, uint64_t seq)
{
        uint64_t place[2] = { 0 };
        struct lent *lent = NULL;
        place[0] = shard;
        place[1] = seq;
        HASH_FIND(hh, all->remotes.all, place, sizeof(place), lent);
        return lent;
}

/* Answers the reports that wait.  An answered worker may report again from inside this call; that report waits for its
 * own answer. */
static void answer(struct lent *lent, enum work_verdict verdict, uint64_t now_ms)
{
        struct work_saying *next = lent->sayings;
        lent->sayings = NULL;
        while (next) {
                struct work_saying *saying = next;
                next = saying->next;
                saying->verdict = verdict;
                saying->remaining_ms = lent_remaining_ms(lent, now_ms);
                saying->is_stop |= lent->is_cancelled;
                saying->done(saying);
        }
}

/* Unbinds the task from its poll, which stays in the list. */
static void lose_poll(struct handlers *all, struct lent *lent)
{
        if (!lent->poll)
                return;
        lent->poll->lent = NULL;
        all->list[lent->slot]->remote.polls_count++;
        lent->poll = NULL;
}

static void forget(struct handlers *all, struct lent *lent, uint64_t now_ms)
{
        struct remotes *r = &all->remotes;
        struct remote_handler *remote = &all->list[lent->slot]->remote;
        lose_poll(all, lent);
        answer(lent, lent->is_durable ? WORK_TAKEN : WORK_UNKNOWN, now_ms);
        HASH_DELETE(hh, r->all, lent);
        if (lent->is_watched)
                DL_DELETE(r->watched, lent);
        else
                DL_DELETE(r->resting, lent);
        remote->lent -= remote->lent > 0;
        free(lent);
}

const struct handler_config *remote_settings(const struct handler *handler)
{
        const struct generation *current = handler_current(handler);
        return current ? current->settings : NULL;
}

static uint64_t task_timeout(const struct handler *handler, const struct claimed *c)
{
        const struct handler_config *settings = remote_settings(handler);
        return c->timeout_ms ? c->timeout_ms : settings ? settings->timeout_ms : 0;
}

/* When the start ends even if heartbeats come.  0 for a seat: the borrowing host enforces timeout and grace itself. */
static uint64_t timeout_of(const struct handler *handler, const struct lent *lent, const struct claimed *c)
{
        return lent->is_seat ? 0 : task_timeout(handler, c);
}

/* The time that a heartbeat gives the task. */
static uint64_t ttl_of(const struct handler *handler, const struct lent *lent)
{
        const struct handler_config *settings = remote_settings(handler);
        if (lent->is_seat)
                return handler->all->seat_ttl_ms;
        return settings ? settings->remote.ttl_ms : lent->told_for_ms;
}

/* --- polls --- */

static void end_poll(
        struct remote_handler *remote, struct work_poll *poll, enum work_verdict verdict, const struct work_task *task)
{
        remote->polls_count -= !poll->lent;
        DL_DELETE(remote->polls, poll);
        poll->done(poll, verdict, task);
}

void remotes_take(struct handlers *all, struct work_poll *poll, uint64_t now_ms)
{
        struct remote_handler *remote = &handlers_ensure(all, poll->handler)->remote;
        poll->until_ms = now_ms + poll->wait_ms;
        poll->lent = NULL;
        remote->seen_ms = now_ms;
        remote->polls_count++;
        DL_APPEND(remote->polls, poll);
}

void remotes_leave(struct handlers *all, struct work_poll *poll)
{
        struct remote_handler *remote = &handlers_ensure(all, poll->handler)->remote;
        remote->polls_count -= !poll->lent;
        if (poll->lent)
                poll->lent->poll = NULL; /* the start is taken back once it is recorded */
        DL_DELETE(remote->polls, poll);
}

static void end_polls(struct handler *handler, enum work_verdict verdict)
{
        for (struct work_poll *poll = handler->remote.polls, *next; poll; poll = next) {
                next = poll->next;
                if (!poll->lent)
                        end_poll(&handler->remote, poll, verdict, NULL);
        }
}

/* Ends polls of the wrong kind: workers poll for remote handlers, other hosts' seats for handlers with a plugin, and a
 * reload may have turned one into the other. */
static void end_others(struct handler *handler, bool is_for_seats)
{
        for (struct work_poll *poll = handler->remote.polls, *next; poll; poll = next) {
                next = poll->next;
                if (!poll->lent && poll->is_seat != is_for_seats)
                        end_poll(&handler->remote, poll, WORK_NO_HANDLER, NULL);
        }
}

/* Skips polls that a task is bound to. */
void remote_expire_polls(struct handler *handler, uint64_t now_ms)
{
        for (struct work_poll *poll = handler->remote.polls, *next; poll; poll = next) {
                next = poll->next;
                if (!poll->lent && now_ms >= poll->until_ms)
                        end_poll(&handler->remote, poll, WORK_NONE, NULL);
        }
}

void remotes_close(struct handlers *all, uint64_t now_ms)
{
        for (struct lent *lent = all->remotes.all; lent; lent = lent->hh.next) {
                lose_poll(all, lent);
                answer(lent, WORK_UNKNOWN, now_ms);
        }
        for (uint32_t i = 0; i < all->count; i++)
                end_polls(all->list[i], WORK_STOPPING);
}

bool remotes_pass_on(struct handler *handler, const struct work_task *task)
{
        for (struct work_poll *poll = handler->remote.polls; poll; poll = poll->next)
                if (!poll->lent && !poll->is_foreign) {
                        end_poll(&handler->remote, poll, WORK_TASK, task);
                        return true;
                }
        return false;
}

/* --- from the windows to the workers --- */

static void hand_out(struct handlers *all, struct lent *lent, uint64_t now_ms)
{
        const struct claimed *c = lent->claimed;
        struct handler *handler = all->list[lent->slot];
        const struct handler_config *settings = remote_settings(handler);
        struct work_poll *poll = lent->poll;
        struct buffer lines = { 0 };
        struct task_start start = { c, lent->fence.epoch, lent->fence.start };
        struct work_task task = { .id = c->id,
                .key = c->key,
                .handler = c->handler,
                .payload = c->payload,
                .headers = task_trace_headers(all->traces, &start, &lines),
                .checkpoint = { (const char *)c->checkpoint.data, c->checkpoint.size },
                .attempt = c->attempts + 1,
                .attempts_max = c->attempts_max ? c->attempts_max
                                : settings      ? settings->retry.attempts
                                                : 0,
                .crashes = c->crashes,
                .submitted_ms = c->submitted_ms,
                .fence = lent->fence,
                .remaining_ms = lent_remaining_ms(lent, now_ms),
                .ttl_ms = ttl_of(handler, lent),
                .timeout_ms = task_timeout(handler, c),
                .lane = STORE_SEQ_LANE(c->seq),
                .shard = lent->shard->number };
        lent->is_handed = true;
        lent->poll = NULL;
        log_event(LEVEL_DEBUG, "handed-out", "handler=%s task=%s worker=%s", handler->name, c->id.data, lent->worker);
        end_poll(&handler->remote, poll, WORK_TASK, &task);
        buffer_free(&lines);
}

/* The start is recorded or about to be, but nobody gets the task. */
void remote_take_back(struct lent *lent, uint64_t now_ms)
{
        lent->is_ended = true;
        shard_ended(lent->shard, lent->claimed,
                pending_outcome_new(STORE_INTERRUPTED, COST_NONE, "it was about to start, and did not"), now_ms);
}

void remote_lend(
        struct handler *handler, struct work_poll *poll, struct shard *shard, struct claimed *c, uint64_t now_ms)
{
        struct lent *lent = memory_zero(1, sizeof(*lent));
        lent->slot = handler->slot;
        lent->started_ms = now_ms;
        lent->fence = (struct work_fence){ shard->lease.epoch, ++shard->starts, c->seq };
        lent->is_seat = poll->is_seat;
        memcpy(lent->nonce, poll->nonce, sizeof(lent->nonce));
        (void)snprintf(lent->worker, sizeof(lent->worker), "%s", poll->worker);
        lent->for_ms = lent_give_ms(lent, ttl_of(handler, lent), timeout_of(handler, lent, c), now_ms);
        lent->poll = poll;
        poll->lent = lent;
        handler->remote.polls_count--;
        shard_lend(shard, c, lent);
        remote_add(handler->all, lent);
}

struct work_poll *remote_free_poll(const struct remote_handler *remote)
{
        struct work_poll *poll = remote->polls;
        while (poll && poll->lent)
                poll = poll->next;
        return poll;
}

/* A worker takes tasks of any lane. */
static void measure_room(const struct handler *handler, uint64_t now_ms, uint32_t room[LANES])
{
        for (unsigned lane = 0; lane < LANES; lane++)
                room[lane] = remote_room(&handler->remote, remote_settings(handler)->remote.concurrency, now_ms);
}

void remote_feed(struct handler *handler, uint64_t now_ms)
{
        struct dispatch *dispatch = handler->all->dispatch;
        struct remote_handler *remote = &handler->remote;
        struct shard *shard;
        struct claimed *c;
        uint32_t room[LANES];
        enum dispatch_state state = remote_is_served(remote, now_ms) ? DISPATCH_OPEN : DISPATCH_DOWN;
        measure_room(handler, now_ms, room);
        dispatch_begin(dispatch, handler->slot, state, room, now_ms);
        while ((c = dispatch_next(dispatch, handler->slot, room, now_ms, &shard))) {
                if (c->trust == TRUST_DIED_ALONE) {
                        handler_end_died_alone(handler, shard, c, now_ms);
                        continue;
                }
                remote_lend(handler, remote_free_poll(remote), shard, c, now_ms);
                measure_room(handler, now_ms, room);
        }
        remote_expire_polls(handler, now_ms);
}

/* --- outcomes and reports --- */

/* Passes a judged outcome to the shard; the reporter is answered when the outcome is durable. */
void remote_settle(struct handlers *all, struct lent *lent, struct settled *settled)
{
        lent->is_ended = true;
        remote_watch(&all->remotes, lent);
        handler_settle_lent(all->list[lent->slot], lent, settled);
}

static struct ring_reply reply_of(const struct lent *lent, const struct work_report *report, uint64_t now_ms)
{
        return (struct ring_reply){ .outcome = (int32_t)report->outcome,
                .started_ns = lent->started_ms * NS_PER_MS,
                .ended_ns = now_ms * NS_PER_MS,
                .has_result = report->has_result,
                .has_retry_after = report->has_retry_after,
                .retry_after_ms = report->retry_after_ms,
                .error = report->error.size ? (const char *)report->error.data : "",
                .result = report->result.data,
                .result_size = report->result.size,
                .submits = report->follow_ups.data,
                .submits_size = report->follow_ups.size,
                .submits_count = report->follow_ups_count };
}

/* Checks the report against the handler's settings.  A runner checks its own answers. */
bool remote_is_allowed(const struct handler *handler, const struct work_report *report, char text[256])
{
        const struct handler_config *settings = remote_settings(handler);
        if (settings && report->result.size > settings->result_max_bytes) {
                (void)snprintf(text, 256, "result: %zu bytes, at most %" PRIu64 " (handlers.%s.max_result)",
                        report->result.size, settings->result_max_bytes, handler->name);
                return false;
        }
        return true;
}

void remote_apply_outcome(struct handlers *all, struct lent *lent, const struct work_report *report, uint64_t now_ms)
{
        struct handler *handler = all->list[lent->slot];
        struct ring_reply reply = reply_of(lent, report, now_ms);
        struct buffer error = { 0 };
        buffer_put(&error, report->error.data, report->error.size);
        struct settled settled = { .outcome = report->outcome,
                .error = buffer_text(&error),
                .reply = &reply,
                .checkpoint = report->has_checkpoint ? buffer_text((struct buffer *)&report->checkpoint) : NULL,
                .checkpoint_size = report->checkpoint.size };
        remote_pause(&handler->remote, report, now_ms);
        remote_settle(all, lent, &settled);
        buffer_free(&error);
}

void remote_apply_heartbeat(struct handlers *all, struct lent *lent, const struct work_report *report, uint64_t now_ms)
{
        const struct handler *handler = all->list[lent->slot];
        uint64_t ttl_ms = ttl_of(handler, lent);
        uint64_t give_ms = lent_give_ms(lent, ttl_ms, timeout_of(handler, lent, lent->claimed), now_ms);
        if (report->has_progress) {
                lent->progress_done = report->progress_done;
                lent->progress_total = report->progress_total;
        }
        if (report->has_checkpoint)
                shard_save(lent->shard, lent->claimed, report->checkpoint.data, report->checkpoint.size);
        if (lent->is_cancelled || !give_ms || !lent_wants_more(lent, ttl_ms, now_ms))
                return;
        shard_extend(lent->shard, lent, give_ms);
        remote_watch(&all->remotes, lent);
}

bool remote_is_current(const struct lent *lent, const struct work_fence *fence, struct span id)
{
        return lent->claimed && lent->is_handed && !lent->is_ended && lent->fence.epoch == fence->epoch &&
               lent->fence.start == fence->start && span_is(lent->claimed->id, id);
}

static bool is_timeout(const struct handlers *all, const struct lent *lent, uint64_t now_ms)
{
        uint64_t timeout_ms = timeout_of(all->list[lent->slot], lent, lent->claimed);
        return timeout_ms && now_ms >= lent->started_ms + timeout_ms;
}

bool remotes_say(struct handlers *all, struct shards *shards, struct work_saying *saying, uint64_t now_ms)
{
        const struct work_report *report = saying->report;
        struct lent *lent = remote_find(all, saying->shard, report->fence.seq);
        saying->is_stop = false;
        saying->verdict = WORK_STALE;
        /* Reports about borrowed seats come through the control list only. */
        if (!lent || lent->is_seat || !remote_is_current(lent, &report->fence, saying->id)) {
                /* The shard may be still reading its tasks in flight, and the task be one of them. */
                if (saying->shard >= shards->count || shards->list[saying->shard].shard.state != SHARD_OWNED)
                        saying->verdict = WORK_ELSEWHERE;
                return false;
        }
        struct handler *handler = all->list[lent->slot];
        handler->remote.seen_ms = now_ms;
        if (report->kind == REPORT_HEARTBEAT) {
                remote_apply_heartbeat(all, lent, report, now_ms);
                saying->is_stop = lent->is_cancelled || is_timeout(all, lent, now_ms);
                saying->remaining_ms = lent_remaining_ms(lent, now_ms);
                saying->verdict = WORK_TAKEN;
                if (!lent->is_to_tell && !lent->is_telling)
                        return false;
        } else if (!remote_is_allowed(handler, report, saying->text)) {
                saying->verdict = WORK_REFUSED;
                return false;
        } else {
                remote_apply_outcome(all, lent, report, now_ms);
        }
        saying->next = lent->sayings;
        lent->sayings = saying;
        remote_watch(&all->remotes, lent);
        return true;
}

/* --- turns and times --- */

static void look(struct handlers *all, struct lent *lent, uint64_t now_ms)
{
        if (!lent->claimed) {
                if (!lent->is_to_tell && !lent->is_telling)
                        forget(all, lent, now_ms);
                return;
        }
        if (lent->is_ended)
                return;
        if (!lent->is_handed && !lent->poll) {
                remote_take_back(lent, now_ms);
                return;
        }
        if (!lent->told_ms)
                return;
        if (!lent->is_handed)
                hand_out(all, lent, now_ms);
        if (lent->is_to_tell || lent->is_telling)
                return;
        /* Must rest before the answers: a report made from inside answer() puts it on the watched list again. */
        rest(&all->remotes, lent);
        answer(lent, WORK_TAKEN, now_ms);
}

void remotes_look(struct handlers *all, const struct shards *shards, uint64_t now_ms)
{
        const struct shard_set *changed = &shards->schedule.changed;
        for (uint32_t i = 0; (i = shard_set_from(changed, i)) != SHARD_SET_NONE; i++) {
                struct lent *lent = shard_take_adopted(&shards->list[i].shard);
                while (lent) {
                        struct lent *next = lent->next;
                        log_event(LEVEL_INFO, "adopted", "shard=%" PRIu32 " task=%s%s %s=%s left_ms=%" PRIu64, i,
                                lent->claimed->id.data, TASK_TRACE_LOGGED(all->traces, lent->claimed),
                                lent->is_seat ? "host" : "worker", lent->worker, lent->told_for_ms);
                        lent->told_ms = now_ms; /* counted from the store's answer, which gave the duration */
                        remote_add(all, lent);
                        lent = next;
                }
        }
        for (struct lent *lent = all->remotes.watched, *next; lent; lent = next) {
                next = lent->next;
                look(all, lent, now_ms);
        }
        for (uint32_t i = 0; i < all->count; i++) {
                struct handler *handler = all->list[i];
                const struct handler_config *settings = remote_settings(handler);
                if (handler->remote.polls && (all->is_leaving || !settings))
                        end_polls(handler, all->is_leaving ? WORK_STOPPING : WORK_NO_HANDLER);
                else if (handler->remote.polls)
                        end_others(handler, !handler_is_remote(settings));
        }
}

static void fall_silent(struct handlers *all, struct lent *lent, uint64_t now_ms)
{
        char error[160];
        char age[UNITS_TEXT_MAX];
        struct claimed *c = lent->claimed;
        bool is_late = is_timeout(all, lent, now_ms);
        struct settled settled = { .outcome = lent_silence(lent, is_late), .error = error };
        (void)snprintf(error, sizeof(error), "%s%s, after %s%s",
                lent->is_seat ? SEAT_FAILED " fell silent" : WORKER_SILENT, is_late ? " at its timeout" : "",
                units_format_ms(age, now_ms - lent->started_ms),
                settled.outcome == OUTCOME_CRASHED ? ", as those before it" : "");
        log_event(LEVEL_WARN, lent->is_seat ? "seat-silent" : "worker-silent",
                "handler=%s task=%s key=%s%s %s=%s silences=%" PRIu32 " counts_as=%s", all->list[lent->slot]->name,
                c->id.data, LOG_QUOTE(c->key.data), TASK_TRACE_LOGGED(all->traces, c),
                lent->is_seat ? "host" : "worker", lent->worker, c->silences + 1, outcome_name((int)settled.outcome));
        c->is_for_owner |= lent->is_seat;
        remote_settle(all, lent, &settled);
        c->silences += !lent->is_seat;
}

void remotes_tick(struct handlers *all, uint64_t now_ms)
{
        struct remotes *r = &all->remotes;
        if (now_ms < r->due_ms)
                return;
        r->due_ms = UINT64_MAX;
        for (struct lent *lent = r->resting, *next; lent; lent = next) {
                next = lent->next;
                if (now_ms >= lent_due_ms(lent))
                        fall_silent(all, lent, now_ms);
                else
                        r->due_ms = min_u64(r->due_ms, lent_due_ms(lent));
        }
}

uint64_t remotes_due_ms(const struct handlers *all, uint64_t now_ms)
{
        uint64_t due_ms = all->remotes.resting ? all->remotes.due_ms : UINT64_MAX;
        for (uint32_t i = 0; i < all->count; i++) {
                const struct remote_handler *remote = &all->list[i]->remote;
                for (const struct work_poll *poll = remote->polls; poll; poll = poll->next)
                        due_ms = poll->lent ? due_ms : min_u64(due_ms, poll->until_ms);
                if (remote->polls && remote->paused_ms > now_ms)
                        due_ms = min_u64(due_ms, remote->paused_ms);
        }
        return due_ms;
}

/* --- stopping --- */

void remotes_stop_task(struct handlers *all, struct claimed *c, uint64_t now_ms)
{
        struct lent *lent = c->lent;
        if (c->lease_number != lent->shard->lease_number) {
                /* The next owner waits for the worker. */
                remote_watch(&all->remotes, lent);
                shard_again(lent->shard, c, now_ms);
                return;
        }
        if (lent->is_ended)
                return;
        lent->is_cancelled = true;
        /* A host gets a message, a worker hears it at its next heartbeat.  The outcome or the silence then ends the
         * task. */
        if (lent->is_handed && lent->is_seat)
                all->events->stop_seat(all->self, lent);
        if (lent->is_handed)
                return;
        lose_poll(all, lent);
        struct settled settled = { .outcome = OUTCOME_INTERRUPTED, .error = "cancelled before it started" };
        remote_settle(all, lent, &settled);
}

void remotes_recall(struct handlers *all, struct claimed *c, uint64_t now_ms)
{
        struct lent *lent = c->lent;
        if (lent->is_handed || lent->is_ended)
                return;
        lose_poll(all, lent);
        remote_take_back(lent, now_ms);
}

void remotes_free(struct handlers *all)
{
        struct remotes *r = &all->remotes;
        struct lent *lent = r->all;
        HASH_CLEAR(hh, r->all); /* the elements stay, and stay linked */
        while (lent) {
                struct lent *next = lent->hh.next;
                if (lent->claimed)
                        lent->claimed->lent = NULL;
                free(lent);
                lent = next;
        }
}
