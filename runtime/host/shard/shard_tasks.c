/* shard_tasks.c: the life of a shard's claimed tasks: they start, end, go back to the store, or are cancelled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/shard/shard_private.h"

/* Delay before a key is claimed again whose name cannot be waited for in the store. */
#define UNSERVED_MS 5000

void shard_end_task(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms)
{
        c->pending = pending;
        /* Every other outcome means that the task has started or may have. */
        c->may_merge &= pending->outcome.kind == STORE_MERGE;
        if (pending->outcome.kind == STORE_DIVERT) {
                if (c->is_unrecorded) {
                        pending->outcome.cost = COST_INTERRUPTION;
                        pending->outcome.error = SPAN_TEXT(SHARD_MAY_HAVE_RUN);
                }
                /* Divert before other outcomes: one that refills its key must find this task in the side queue. */
                window_divert(&s->window, c);
                /* A merge under way behind it will make its task ready, which must not overtake this one. */
                for (struct claimed *behind = c->next; behind; behind = behind->next)
                        behind->is_to_go_back |= behind->state == CLAIMED_ENDED;
                c->ended_next = s->ended;
                s->ended = c;
                if (!s->ended_last)
                        s->ended_last = c;
        } else {
                window_end(&s->window, c);
                c->ended_next = NULL;
                if (s->ended_last)
                        s->ended_last->ended_next = c;
                else
                        s->ended = c;
                s->ended_last = c;
        }
        c->is_unrecorded = false;
        if (!s->ended_count++)
                s->ended_ms = now_ms;
        /* A task behind it, a person or a timer waits for this outcome: send it soon. */
        if (c->of->live > 0 || pending->outcome.kind != STORE_DONE || c->reply_ms)
                s->is_urgent = true;
}

void shard_divert(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        shard_end_task(s, c, pending_outcome_new(STORE_DIVERT, COST_NONE, ""), now_ms);
}

/* Undoes a recorded start of a task that will not start now: if the host died, the record would count against the
 * task. */
static void take_mark_back(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        struct pending_outcome *pending =
                pending_outcome_new(STORE_INTERRUPTED, COST_NONE, "it was about to start, and did not");
        pending->outcome.is_suspect = c->trust >= TRUST_SUSPECT;
        shard_end_task(s, c, pending, now_ms);
}

void shard_divert_rest(struct shard *s, struct window_key *key, uint64_t now_ms)
{
        window_bar(&s->window, key);
        for (struct claimed *c = key->first; c; c = c->next)
                if (c->state == CLAIMED_WAITING && c->is_marked)
                        take_mark_back(s, c, now_ms);
                else if (c->state == CLAIMED_WAITING)
                        shard_divert(s, c, now_ms);
}

/* No handler here takes the task: it and all tasks behind it wait in the store. */
static void divert_unserved(struct shard *s, struct claimed *unserved, uint64_t now_ms)
{
        char reason[128] = "its handler is paused or down";
        char name[STORE_NAME_MAX + 1];
        bool needs = unserved->needs.size;
        if (needs)
                (void)snprintf(reason, sizeof(reason), "needs a newer Quiver: this host does not know !%.64s",
                        unserved->needs.data);
        else if (unserved->pool == WINDOW_NO_POOL)
                (void)snprintf(reason, sizeof(reason), "no handler %.64s on this host", unserved->handler.data);
        (void)snprintf(name, sizeof(name), needs ? "needs:%.128s" : "handler:%.128s",
                needs ? unserved->needs.data : unserved->handler.data);
        bool is_good = store_name_is_good((struct span){ name, strlen(name) });
        for (struct claimed *c = unserved; c; c = c->next) {
                if (c->state != CLAIMED_WAITING)
                        continue;
                if (c->is_marked) {
                        take_mark_back(s, c, now_ms);
                        continue;
                }
                struct pending_outcome *pending = pending_outcome_divert(reason, is_good ? name : "");
                pending->outcome.delay_ms = is_good ? 0 : UNSERVED_MS;
                shard_end_task(s, c, pending, now_ms);
        }
}

static void cancel(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        struct pending_outcome *pending = pending_outcome_new(STORE_DEAD, COST_NONE, "cancelled before it started");
        pending->outcome.reason = SPAN_TEXT("cancelled");
        shard_end_task(s, c, pending, now_ms);
}

/* Moves a waiting task to another lane; not one whose start is recorded, or with an outcome on its way. */
static void move(struct shard *s, struct claimed *c, struct span name, uint64_t now_ms)
{
        enum lane lane;
        if (c->state != CLAIMED_WAITING || c->is_marked || !lane_parse(name, &lane) || lane == STORE_SEQ_LANE(c->seq))
                return;
        struct pending_outcome *pending = pending_outcome_new(STORE_MOVE, COST_NONE, "");
        pending->outcome.lane = lane;
        shard_end_task(s, c, pending, now_ms);
}

/* The pool for a task.  WINDOW_NO_POOL: no handler here, or the task needs a newer Quiver.  WINDOW_SHUT_POOL: the pool
 * takes no more of this shard's tasks now. */
static uint32_t pool_of(const struct shard *s, struct span handler, struct span needs)
{
        if (needs.size)
                return WINDOW_NO_POOL;
        uint32_t pool = routes_find(s->routes, handler);
        if (pool == ROUTES_NONE)
                return WINDOW_NO_POOL;
        switch (s->routes->states[pool]) {
        case ROUTE_OPEN:
                return pool;
        case ROUTE_DOWN:
                return s->window.count < s->limits->window_tasks / 2 ? pool : WINDOW_SHUT_POOL;
        case ROUTE_SHUT:
                break;
        }
        return WINDOW_SHUT_POOL;
}

/* Makes a task ready again, unless it was cancelled or its key barred meanwhile. */
void shard_put_back(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        window_put_back(&s->window, c);
        c->is_told_to_stop = false; /* applied to its last run */
        if (c->is_cancelled)
                cancel(s, c, now_ms);
        else if (c->is_marked && (c->of->is_barred || s->state == SHARD_LEAVING))
                take_mark_back(s, c, now_ms);
        else if (c->of->is_barred)
                shard_divert(s, c, now_ms);
}

void shard_put_back_merged(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        shard_put_back(s, c, now_ms);
        if (c->state != CLAIMED_WAITING)
                return;
        if (c->is_to_go_back) {
                shard_divert(s, c, now_ms);
                return;
        }
        /* Changes of its handler meanwhile were applied only to tasks that were waiting. */
        window_move(&s->window, c, pool_of(s, c->handler, c->needs));
        if (c->pool >= s->window.pools)
                divert_unserved(s, c, now_ms);
}

void shard_take_marks_back(struct shard *s, uint64_t now_ms)
{
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                if (key->first && key->first->state == CLAIMED_WAITING && key->first->is_marked)
                        take_mark_back(s, key->first, now_ms);
}

/* Forgets a task that ran under a lost lease: its next owner decides what becomes of it.  If we are the owner again,
 * the store still has it in flight, so read the in-flight table again. */
static void forget_stale(struct shard *s, struct claimed *c)
{
        window_drop(&s->window, c);
        window_prune(&s->window);
        if (!shard_is_held(s))
                return;
        s->must_reread = true;
        if (s->state == SHARD_OWNED)
                s->state = SHARD_READING;
}

/* The task has left its pool or its worker; or its worker still runs it, but the next owner will wait for that. */
static void leave_pool(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        bool runs_on = c->lent && c->lent->is_handed && !c->lent->is_ended && c->lease_number != s->lease_number;
        if (c->hold.count && runs_on)
                limits_pass_on(s->routes->limits, &c->hold, now_ms);
        else if (c->hold.count)
                limits_end(s->routes->limits, &c->hold);
        saves_stop(s, c);
        if (!c->lent) {
                s->running--;
                return;
        }
        s->lent--;
        lent_stop(s, c->lent);
}

void shard_ended(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms)
{
        shard_stir(s);
        enum store_outcome_kind kind = pending->outcome.kind;
        uint64_t started_ms = c->started_ms;
        leave_pool(s, c, now_ms);
        shard_run_ended(c, &pending->outcome);
        if (!c->lent)
                shard_pace_ended(s, c, now_ms);
        if (c->lease_number != s->lease_number) {
                pending_outcome_free(pending);
                forget_stale(s, c);
                return;
        }
        shard_end_task(s, c, pending, now_ms);
        if (kind == STORE_RETRY || kind == STORE_HOLD)
                shard_divert_rest(s, c->of, now_ms);
        shard_lease_call_ended(s, started_ms, now_ms);
}

void shard_return_pool(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        shard_stir(s);
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key)) {
                struct claimed *c = key->first;
                while (c && !(c->pool == pool && c->state == CLAIMED_WAITING))
                        c = c->next;
                if (c)
                        divert_unserved(s, c, now_ms);
        }
}

void shard_look_at_names(struct shard *s)
{
        if (shard_names_look(&s->names, s->routes))
                shard_stir(s);
}

bool shard_probe(struct shard *s, uint32_t pool)
{
        if (s->state != SHARD_OWNED || !shard_names_probe(&s->names, s->routes, pool))
                return false;
        shard_stir(s);
        return true;
}

void shard_reroute(struct shard *s, uint64_t now_ms)
{
        shard_stir(s);
        shard_look_at_names(s);
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (struct claimed *c = key->first; c; c = c->next) {
                        uint32_t pool = c->state == CLAIMED_WAITING ? pool_of(s, c->handler, c->needs) : c->pool;
                        if (pool == c->pool)
                                continue;
                        /* A mark is counted in its pool's line: undo it first, then the task can change pools. */
                        if (c->has_mark)
                                take_mark_back(s, c, now_ms);
                        else
                                window_move(&s->window, c, pool);
                        if (c->state == CLAIMED_WAITING && pool >= s->window.pools)
                                divert_unserved(s, c, now_ms);
                }
}

void shard_obey(struct shard *s, const struct store_control *control, uint64_t now_ms)
{
        shard_stir(s);
        if (control->verb == CONTROL_SCHEDULES) {
                shard_schedules_changed(s);
                return;
        }
        if (control->verb == CONTROL_HOLD) {
                struct window_key *key = window_key(&s->window, control->key);
                if (key)
                        shard_divert_rest(s, key, now_ms);
                return;
        }
        bool is_about_task = control->verb == CONTROL_CANCEL || control->verb == CONTROL_MOVE;
        struct claimed *c = is_about_task ? window_find(&s->window, control->key, control->seq) : NULL;
        if (!c)
                return;
        if (control->verb == CONTROL_MOVE)
                move(s, c, control->data, now_ms);
        else if (c->state == CLAIMED_WAITING)
                cancel(s, c, now_ms);
        else if (c->state == CLAIMED_ENDED)
                c->is_cancelled = true;
}

void shard_again(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        shard_stir(s);
        uint64_t started_ms = c->started_ms;
        leave_pool(s, c, now_ms);
        c->of->is_run_over = true;
        if (c->lease_number != s->lease_number)
                forget_stale(s, c);
        else if (c->is_marked)
                take_mark_back(s, c, now_ms);
        else
                shard_put_back(s, c, now_ms);
        shard_lease_call_ended(s, started_ms, now_ms);
}

static void holder_name(const struct shard *s, char to[2 * STORE_NONCE_SIZE + 1])
{
        for (unsigned i = 0; i < STORE_NONCE_SIZE; i++)
                (void)snprintf(to + 2 * i, 3, "%02x", s->lease.nonce[i]);
}

/* Records the task's start before it runs here. */
static void mark(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        char holder[2 * STORE_NONCE_SIZE + 1];
        holder_name(s, holder);
        shard_end_task(s, c, pending_outcome_start(holder), now_ms);
}

/* Whether a worker or another host's seat may be running the task. */
static bool is_busy_elsewhere(const struct shard *s, const struct store_task *task)
{
        char own[2 * STORE_NONCE_SIZE + 1];
        if (!task->busy_ms)
                return false;
        holder_name(s, own);
        return !span_is(task->note.holder, (struct span){ own, strlen(own) });
}

/* The task and all tasks behind it wait in the store until nobody else can be running it. */
static void divert_busy(struct shard *s, struct claimed *busy, uint64_t busy_ms, uint64_t now_ms)
{
        for (struct claimed *c = busy; c; c = c->next) {
                if (c->state != CLAIMED_WAITING)
                        continue;
                struct pending_outcome *pending =
                        pending_outcome_divert("started elsewhere, and may still run there", "");
                pending->outcome.delay_ms = busy_ms;
                shard_end_task(s, c, pending, now_ms);
        }
}

static struct limit_task limit_task(const struct shard *s, const struct claimed *c)
{
        return (struct limit_task){ .pool = c->pool, .key = c->key, .headers = c->headers, .until_ms = s->until_ms };
}

void shard_adopt_shares(struct shard *s, struct claimed *c)
{
        struct limit_task task = limit_task(s, c);
        if (limits_has(s->routes->limits, c->pool))
                limits_adopt(s->routes->limits, &task, &c->hold);
}

/* Whether a limit keeps the task from starting now.  It then waits in the window if its share may come soon, otherwise
 * in the store with all tasks behind it.  A task whose start is recorded waits in the window: the record would have to
 * be undone. */
static bool is_limited(struct shard *s, struct claimed *limited, uint64_t now_ms)
{
        struct limits *limits = s->routes->limits;
        char name[STORE_NAME_MAX + 1];
        if (!limits_has(limits, limited->pool))
                return false;
        struct limit_task task = limit_task(s, limited);
        task.is_to_go = window_count_limited(&s->window) >= s->limits->window_tasks / 4;
        enum limit_verdict verdict = limits_start(limits, &task, now_ms, &limited->hold, name);
        if (verdict == LIMIT_START)
                return false;
        if (verdict == LIMIT_WAIT || limited->is_marked) {
                window_limit(&s->window, limited);
                return true;
        }
        for (struct claimed *c = limited; c; c = c->next)
                if (c == limited || c->state == CLAIMED_WAITING)
                        shard_end_task(s, c, pending_outcome_divert("limited", name), now_ms);
        return true;
}

void shard_look_at_limits(struct shard *s, unsigned lane, uint64_t now_ms)
{
        struct window_key *next;
        for (struct window_key *key = s->window.limited[lane].first; key; key = next) {
                struct limit_task task = limit_task(s, key->first);
                next = key->ready_next;
                if (limits_look(s->routes->limits, &task, now_ms) == LIMIT_WAIT)
                        continue;
                window_unlimit(&s->window, key->first);
                shard_stir(s);
        }
}

struct claimed *shard_next(struct shard *s, uint32_t pool, enum lane lane, uint64_t now_ms)
{
        if (s->state != SHARD_OWNED || now_ms >= s->until_ms)
                return NULL;
        if (s->is_to_leave && !routes_is_short(s->routes, pool))
                return NULL;
        struct claimed *c;
        while ((c = window_next(&s->window, pool, lane))) {
                shard_stir(s);
                if (shard_debounce(s, c, now_ms))
                        continue;
                bool is_told = !c->hosts_died || c->is_marked;
                if (is_told && c->trust != TRUST_DIED_ALONE && is_limited(s, c, now_ms))
                        continue;
                if (is_told || c->trust == TRUST_DIED_ALONE) {
                        s->running++;
                        c->started_ms = now_ms;
                        c->may_merge = false;
                        return c;
                }
                mark(s, c, now_ms);
        }
        return NULL;
}

struct claimed *shard_next_to_lend(struct shard *s, uint32_t pool, enum lane lane, uint64_t before_ms, uint64_t now_ms)
{
        struct claimed *c;
        /* A shard that is to move lends nothing, so that its next owner gets everything sooner. */
        if (s->state != SHARD_OWNED || s->is_to_leave || now_ms >= s->until_ms)
                return NULL;
        while ((c = window_next_to_lend(&s->window, pool, lane, before_ms))) {
                shard_stir(s);
                if (is_limited(s, c, now_ms))
                        continue;
                s->running++;
                c->started_ms = now_ms;
                return c;
        }
        return NULL;
}

bool shard_mark_next(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        shard_stir(s);
        if (s->state != SHARD_OWNED || s->is_to_leave || now_ms >= s->until_ms)
                return false;
        struct claimed *c = window_mark_next(&s->window, pool);
        if (c)
                mark(s, c, now_ms);
        return c;
}

struct claimed **shard_add_tasks(struct shard *s, const struct store_task *tasks, uint32_t count, uint64_t now_ms)
{
        struct claimed **added = memory_alloc((count + 1) * sizeof(struct claimed *));
        for (uint32_t i = 0; i < count; i++) {
                const struct envelope *e = &tasks[i].envelope;
                added[i] = window_add(&s->window, &tasks[i], pool_of(s, e->handler, envelope_needs(e)));
                if (added[i]) {
                        added[i]->lease_number = s->lease_number;
                        added[i]->claimed_ms = now_ms;
                        /* An earlier task of the key ended while this one was on its way, so this one waits for that
                         * outcome. */
                        s->is_urgent |= s->ended && added[i]->of->count > added[i]->of->live;
                }
        }
        return added;
}

void shard_trim_tasks(
        struct shard *s, struct claimed **added, const struct store_task *tasks, uint32_t count, uint64_t now_ms)
{
        /* Adopt first, so that a lent task is not returned with the rest of its key. */
        for (uint32_t i = 0; i < count; i++)
                if (added[i] && added[i]->state == CLAIMED_WAITING)
                        (void)shard_adopt(s, added[i], &tasks[i], now_ms);
        /* From the last on: a key returns its newest tasks. */
        for (uint32_t i = count; i-- > 0;) {
                struct claimed *c = added[i];
                if (!c || c->state != CLAIMED_WAITING)
                        continue;
                if (tasks[i].is_key_waiting)
                        shard_divert_rest(s, c->of, now_ms);
                else if (is_busy_elsewhere(s, &tasks[i]))
                        divert_busy(s, c, tasks[i].busy_ms, now_ms);
                else if (c->pool >= s->window.pools)
                        divert_unserved(s, c, now_ms);
                else if (window_must_return(&s->window, c))
                        shard_divert(s, c, now_ms);
        }
        shard_return_excess(s, now_ms);
}
