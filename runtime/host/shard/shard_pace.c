/* shard_pace.c: when a shard's next advance is due.  A call costs the store about as much as twenty tasks in it do, so
 * while tasks end within moments, outcomes and claims wait for each other to share a call, but never for long. */
#include "host/shard/shard_private.h"

#include "base/numbers.h"

/* How long a claim, or an outcome that blocks its key's next task, waits for other outcomes. */
#define URGENT_GATHER_MS 2
/* With STOCK_TASKS in the window claims may wait longer; with SHARD_STOCK_MAX, or the host's bound for a shard, nothing
 * is claimed if each pool can start a task. */
#define STOCK_TASKS 64
/* A single key must not keep the tasks behind it waiting, several may (shard_goes_on()). */
#define KEYS_ENOUGH 2
/* If keys have this many tasks each, a deeper claim mostly brings more tasks of the same keys. */
#define KEY_TASKS 2
/* Each lane has room for this many tasks, however full the window is. */
#define LANE_ROOM 16
/* Time between two claims while only that room is left. */
#define FULL_PACE_MS 20

/* A claim of FEW_TASKS or fewer was hardly worth a call; one of FULL_TASKS cost little per task. */
#define FEW_TASKS  1
#define FULL_TASKS 48

static uint64_t pace_max_ms(const struct shard *s)
{
        return s->pace_max_ms ? *s->pace_max_ms : s->limits->gather_ms;
}

void shard_pace_ended(struct shard *s, const struct claimed *c, uint64_t now_ms)
{
        uint64_t took_ms = now_ms - c->started_ms;
        s->tasks_are_short = took_ms <= s->limits->gather_ms;
        routes_call_ended(s->routes, c->pool, took_ms);
}

/* With short tasks a few hundred in the window are as good as a thousand, as long as every pool can start some of them;
 * more would only fall out of the processor's caches, here and at the store. */
static uint32_t stock_max(const struct shard *s)
{
        return s->stock_max ? *s->stock_max : SHARD_STOCK_MAX;
}

bool shard_goes_on(const struct shard *s)
{
        uint32_t keys = s->window.keys.count;
        return s->is_store_busy && *s->is_store_busy && keys >= KEYS_ENOUGH && s->window.count >= KEY_TASKS * keys;
}

/* Whether each pool can start a task, or will when outcomes that are on their way are durable. */
static bool has_for_all_pools(const struct shard *s)
{
        bool goes_on = shard_goes_on(s);
        for (uint32_t pool = 0; pool < s->window.pools; pool++)
                if (!window_has_next(&s->window, pool) && !(goes_on && s->window.pool_tasks[pool] >= KEYS_ENOUGH))
                        return false;
        return true;
}

static bool is_stocked(const struct shard *s)
{
        return s->tasks_are_short && s->window.count - shard_telling_count(s) >= stock_max(s) && has_for_all_pools(s);
}

/* What is left of the lane's own room. */
static uint32_t lane_room(const struct shard *s, unsigned lane)
{
        uint32_t room = (uint32_t)min_u64(LANE_ROOM, s->limits->window_tasks / LANES);
        return room > s->window.lanes[lane] ? room - s->window.lanes[lane] : 0;
}

/* Room that all lanes share, besides `others`, the own room of the other lanes; 0 while the window is stocked. */
static uint32_t shared_room(const struct shard *s, uint32_t others)
{
        uint32_t taken = s->window.count + others;
        if (s->window.bytes >= s->limits->window_bytes || taken >= s->limits->window_tasks || is_stocked(s))
                return 0;
        uint32_t room = s->limits->window_tasks - taken;
        if (!s->tasks_are_short || !has_for_all_pools(s))
                return room;
        uint32_t missing = stock_max(s) - (s->window.count - shard_telling_count(s));
        return (uint32_t)min_u64(missing, room);
}

bool shard_is_full(const struct shard *s)
{
        if (s->window.bytes >= s->limits->window_bytes)
                return true;
        uint32_t kept = 0;
        bool has_filled = false;
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t room = lane_room(s, lane);
                kept += room;
                has_filled |= !room;
        }
        return has_filled && s->window.count + kept >= s->limits->window_tasks;
}

/* Each lane has room for a few tasks of its own, so that a full lane keeps no other waiting.  The shared room is
 * offered to every lane, so one call may bring more tasks than it, of several lanes. */
struct shard_want shard_want(const struct shard *s)
{
        struct shard_want want = { .bytes = s->window.bytes < s->limits->window_bytes ? 0 : 1 };
        uint32_t kept = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
                kept += lane_room(s, lane);
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t own = lane_room(s, lane);
                want.tasks[lane] = (uint32_t)max_u64(own, shared_room(s, kept - own));
        }
        return want;
}

uint32_t shard_wake_max(const struct shard *s)
{
        return (uint32_t)min_u64(shared_room(s, 0), STORE_CALL_TASKS);
}

static bool ends_soon(const struct shard *s)
{
        return s->tasks_are_short && s->running;
}

bool shard_is_blocked(const struct shard *s)
{
        return s->is_urgent && !s->running;
}

/* Tasks that come one by one are claimed as they come.  If new ones arrive while the last are being claimed, claims are
 * spaced so that each brings some dozen.  If the store has more than a call can bring, the next claim does not wait. */
void shard_pace_claimed(struct shard *s, uint32_t count, bool has_more)
{
        if (has_more)
                s->pace_ms = 0;
        else if (count <= FEW_TASKS && !s->has_rung)
                s->pace_ms /= 2;
        else if (count < FULL_TASKS)
                s->pace_ms = min_u64(s->pace_ms * 2 + 1, pace_max_ms(s));
}

uint64_t shard_claim_due_ms(const struct shard *s, bool can_wait)
{
        if (s->state != SHARD_OWNED)
                return STORE_NEVER;
        struct shard_want want = shard_want(s);
        uint64_t due_ms = s->has_work ? 0 : s->due_ms;
        uint64_t wait_ms = min_u64(s->pace_ms, pace_max_ms(s));
        bool has_room = false;
        bool has_known = false;
        for (unsigned lane = 0; lane < LANES; lane++) {
                has_room |= want.tasks[lane] > 0;
                has_known |= want.tasks[lane] && s->has_more[lane];
        }
        if (!has_room)
                return STORE_NEVER;
        /* Tasks may have come without a ring. */
        if (s->is_unrung)
                due_ms = min_u64(s->sent_ms + URGENT_GATHER_MS, due_ms);
        if (has_known)
                due_ms = 0;
        else if (!shared_room(s, 0))
                /* The ring was probably for the full lane: looking for tasks of other lanes is not worth a call per
                 * ring. */
                return max_u64(due_ms, s->sent_ms + FULL_PACE_MS);
        if (!can_wait)
                return due_ms;
        if (ends_soon(s) && s->window.count >= STOCK_TASKS)
                wait_ms = s->limits->gather_ms;
        else if (ends_soon(s) && wait_ms < URGENT_GATHER_MS)
                wait_ms = URGENT_GATHER_MS;
        uint64_t next_ms = wait_ms ? s->sent_ms + wait_ms : 0;
        return max_u64(due_ms, next_ms);
}

/* Recent tasks were short and others are in the window, so their outcomes need a call within moments.  Only outcomes in
 * this call prove that: a call without any asks to be rung, so a task that takes long after all costs one extra
 * call. */
bool shard_calls_again(const struct shard *s)
{
        return s->limits->ring_costs && s->state == SHARD_OWNED && s->tasks_are_short && shard_telling_count(s) &&
               s->window.count > shard_telling_count(s);
}

uint64_t shard_look_due_ms(const struct shard *s)
{
        if (!s->is_unrung || (s->state != SHARD_OWNED && s->state != SHARD_LEAVING))
                return STORE_NEVER;
        return s->sent_ms + s->limits->gather_ms;
}

uint64_t shard_tell_due_ms(const struct shard *s, bool can_wait)
{
        if (!s->ended)
                return STORE_NEVER;
        if (!can_wait || s->ended_count >= STORE_CALL_TASKS / 2 || (s->is_urgent && !ends_soon(s)))
                return 0;
        return s->ended_ms + (s->is_urgent ? URGENT_GATHER_MS : s->limits->gather_ms);
}
