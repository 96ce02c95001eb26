#include "host/service/task_locks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

/* A seat gives up after five seconds (runner/services.c), so it is answered before that. */
#define ANSWER_MS 4000u
#define RETRY_MS  500u
#define SWEEP_MS  10000u

static void try_next(struct task_lock *l);

static void note_due(struct task_locks *all, uint64_t at_ms)
{
        all->due_ms = min_u64(all->due_ms, at_ms);
}

static void answer(struct task_lock *l, int status, uint64_t number)
{
        struct pool_call *call = l->call;
        l->call = NULL;
        if (call)
                (void)pool_call_answer(call, status, number, 0);
}

/* --- events of the recipe ---------------------------------------------------------------------------------------- */

static void on_released(void *self)
{
        struct task_lock *l = self;
        l->state = TASK_LOCK_REST;
        l->has_failed = false;
        answer(l, 0, 0);
        try_next(l);
}

static void release(struct task_lock *l)
{
        l->state = TASK_LOCK_RELEASING;
        l->token = 0;
        if (!lock_release(&l->lock))
                on_released(l);
}

static void on_acquired(void *self, uint64_t token)
{
        struct task_lock *l = self;
        struct pool_call *call = l->call;
        l->call = NULL;
        l->state = TASK_LOCK_HELD;
        l->token = token;
        l->has_failed = false;
        /* If the seat has given up at this moment, nobody knows that it holds the lock. */
        if (!call || !pool_call_answer(call, 0, token, 0))
                release(l);
}

static void on_busy(void *self)
{
        struct task_lock *l = self;
        l->state = TASK_LOCK_REST;
        answer(l, -EBUSY, 0);
}

static void on_lost(void *self)
{
        struct task_lock *l = self;
        if (l->state != TASK_LOCK_HELD)
                return;
        log_event(LEVEL_WARN, "lock-lost", "lock=%s token=%" PRIu64 " pid=%d hint=%s", l->name, l->token, (int)l->pid,
                LOG_QUOTE("the session is over, or somebody broke the lock; the task learns it at its next trylock or "
                          "unlock"));
        l->state = TASK_LOCK_REST;
        l->token = 0;
}

static void on_failed(void *self, int status, const char *text)
{
        struct task_lock *l = self;
        log_event(LEVEL_WARN, "lock-failed", "lock=%s status=%d text=%s", l->name, status, LOG_QUOTE(text));
        l->has_failed = true;
        note_due(l->all, l->all->now_ms + RETRY_MS);
        if (l->state == TASK_LOCK_TRYING) {
                answer(l, -EIO, 0);
                release(l);
        }
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

/* Whether the name can be a node's name in the tree. */
static bool is_name(const char *name)
{
        size_t size = strlen(name);
        return size && size <= QV_LOCK_NAME_MAX && name[0] != '.' && strspn(name, LOCK_NAME_BYTES) == size;
}

static struct task_lock *ensure(struct task_locks *all, const char *name)
{
        const struct lock_events events = {
                .acquired = on_acquired, .busy = on_busy, .lost = on_lost, .released = on_released, .failed = on_failed
        };
        struct task_lock *l;
        HASH_FIND_STR(all->by_name, name, l);
        if (l || HASH_COUNT(all->by_name) >= TASK_LOCKS_MAX)
                return l;
        l = memory_zero(1, sizeof(*l));
        l->all = all;
        (void)snprintf(l->name, sizeof(l->name), "%s", name);
        struct lock_events own = events;
        own.self = l;
        lock_init(&l->lock, all->coord, name, all->nonce, &own);
        if (all->session)
                lock_session(&l->lock, COORD_ALIVE, all->session);
        HASH_ADD_STR(all->by_name, name, l);
        return l;
}

static void begin_try(struct task_lock *l, struct pool_call *call, const char *who, uint64_t now_ms)
{
        l->state = TASK_LOCK_TRYING;
        l->pid = call->pid;
        l->ticket = call->ticket;
        l->call = call;
        l->until_ms = now_ms + call->number;
        l->give_up_ms = min_u64(l->until_ms, now_ms + ANSWER_MS);
        note_due(l->all, l->give_up_ms);
        (void)snprintf(l->lock.queue.says, sizeof(l->lock.queue.says), "%s", who);
        lock_try(&l->lock);
}

/* A trylock that came during the release goes to the tree now: the next task often wants the lock that the last one
 * held. */
static void try_next(struct task_lock *l)
{
        struct pool_call *next = l->next;
        l->next = NULL;
        if (next)
                begin_try(l, next, l->next_who, l->next_ms);
}

static bool is_holder(const struct task_lock *l, const struct pool_call *call)
{
        return l->pid == call->pid && l->ticket == call->ticket;
}

void task_locks_try(struct task_locks *all, struct pool_call *call, const char *who, uint64_t now_ms)
{
        int status = -EBUSY;
        uint64_t token = 0;
        struct task_lock *l = NULL;
        all->now_ms = now_ms;
        if (!is_name(call->name) || !call->number || call->number > QV_LOCK_TTL_MAX_MS)
                status = -EINVAL;
        else if (!all->coord || !(l = ensure(all, call->name)))
                status = -EAGAIN;
        else if (l->state == TASK_LOCK_REST) {
                begin_try(l, call, who, now_ms);
                return;
        } else if (l->state == TASK_LOCK_HELD && is_holder(l, call) && now_ms < l->until_ms) {
                l->until_ms = now_ms + call->number;
                token = l->token;
                status = 0;
        } else if (l->state == TASK_LOCK_RELEASING && !l->next) {
                l->next = call;
                l->next_ms = now_ms;
                note_due(all, now_ms + ANSWER_MS);
                (void)snprintf(l->next_who, sizeof(l->next_who), "%s", who);
                return;
        }
        (void)pool_call_answer(call, status, token, 0);
}

void task_locks_unlock(struct task_locks *all, struct pool_call *call, uint64_t now_ms)
{
        struct task_lock *l;
        all->now_ms = now_ms;
        HASH_FIND_STR(all->by_name, call->name, l);
        if (!l || l->state != TASK_LOCK_HELD || !is_holder(l, call) || l->token != call->number) {
                (void)pool_call_answer(call, -ENOENT, 0, 0);
                return;
        }
        l->call = call;
        l->give_up_ms = now_ms + ANSWER_MS;
        note_due(all, l->give_up_ms);
        release(l);
}

/* --- ends -------------------------------------------------------------------------------------------------------- */

static void drop(struct task_lock *l)
{
        answer(l, -ECANCELED, 0);
        if (l->state == TASK_LOCK_TRYING || l->state == TASK_LOCK_HELD)
                release(l);
}

/* `ticket` UINT64_MAX: all locks of the runner. */
static void drop_all_of(struct task_locks *all, pid_t pid, uint64_t ticket)
{
        struct task_lock *l, *next;
        for (l = all->by_name; l; l = next) {
                next = l->hh.next;
                struct pool_call *waiting = l->next;
                if (waiting && waiting->pid == pid && (ticket == UINT64_MAX || waiting->ticket == ticket)) {
                        l->next = NULL;
                        (void)pool_call_answer(waiting, -ECANCELED, 0, 0);
                }
                if (l->state != TASK_LOCK_REST && l->pid == pid && (ticket == UINT64_MAX || l->ticket == ticket))
                        drop(l);
        }
}

void task_locks_task_ended(struct task_locks *all, pid_t pid, uint64_t ticket)
{
        if (all->by_name)
                drop_all_of(all, pid, ticket);
}

void task_locks_runner_gone(struct task_locks *all, pid_t pid)
{
        drop_all_of(all, pid, UINT64_MAX);
}

/* --- the tree and the time --------------------------------------------------------------------------------------- */

void task_locks_session(struct task_locks *all, enum coord_state state, uint64_t session)
{
        if (state == COORD_ALIVE || state == COORD_EXPIRED)
                all->session = state == COORD_ALIVE ? session : 0;
        for (struct task_lock *l = all->by_name; l; l = l->hh.next)
                lock_session(&l->lock, state, session);
}

void task_locks_changed(struct task_locks *all, const char *path)
{
        for (struct task_lock *l = all->by_name; l; l = l->hh.next)
                lock_changed(&l->lock, path);
}

void task_locks_look(struct task_locks *all)
{
        for (struct task_lock *l = all->by_name; l; l = l->hh.next)
                lock_look(&l->lock);
}

/* An unused lock is freed after SWEEP_MS. */
static uint64_t due_of(const struct task_lock *l, uint64_t now_ms)
{
        uint64_t due = now_ms + (l->has_failed ? RETRY_MS : SWEEP_MS);
        if (l->call)
                due = min_u64(due, l->give_up_ms);
        if (l->next)
                due = min_u64(due, l->next_ms + ANSWER_MS);
        if (l->state == TASK_LOCK_HELD)
                due = min_u64(due, l->until_ms);
        return due;
}

static void tick(struct task_lock *l, uint64_t now_ms)
{
        if (l->has_failed) {
                l->has_failed = false;
                lock_look(&l->lock);
        }
        if (l->next && now_ms >= l->next_ms + ANSWER_MS) {
                struct pool_call *call = l->next;
                l->next = NULL;
                (void)pool_call_answer(call, -ETIMEDOUT, 0, 0);
        }
        if (l->call && now_ms >= l->give_up_ms) {
                answer(l, -ETIMEDOUT, 0);
                if (l->state == TASK_LOCK_TRYING)
                        release(l);
        } else if (l->state == TASK_LOCK_HELD && now_ms >= l->until_ms) {
                log_event(
                        LEVEL_INFO, "lock-expired", "lock=%s token=%" PRIu64 " pid=%d", l->name, l->token, (int)l->pid);
                release(l);
        }
}

void task_locks_tick(struct task_locks *all, uint64_t now_ms)
{
        struct task_lock *l, *next;
        all->now_ms = now_ms;
        for (l = all->by_name; l; l = next) {
                next = l->hh.next;
                tick(l, now_ms);
                if (l->state != TASK_LOCK_REST || !lock_is_idle(&l->lock))
                        continue;
                HASH_DEL(all->by_name, l);
                free(l);
        }
        all->due_ms = UINT64_MAX;
        for (l = all->by_name; l; l = l->hh.next)
                note_due(all, due_of(l, now_ms)); /* NOLINT(clang-analyzer-unix.Malloc): what was freed is not in it */
}

void task_locks_open(struct task_locks *all, struct coord *coord, const char *nonce, uint64_t session)
{
        *all = (struct task_locks){ .coord = coord, .session = session, .due_ms = UINT64_MAX };
        (void)snprintf(all->nonce, sizeof(all->nonce), "%s", nonce);
}

void task_locks_free(struct task_locks *all)
{
        struct task_lock *l, *next;
        for (l = all->by_name; l; l = next) {
                next = l->hh.next;
                HASH_DEL(all->by_name, l); /* NOLINT(clang-analyzer-unix.Malloc): what was freed is not in it */
                answer(l, -ECANCELED, 0);
                if (l->next)
                        (void)pool_call_answer(l->next, -ECANCELED, 0, 0);
                free(l);
        }
        all->coord = NULL;
}
