/* shard_pace.c: when a shard's next advance is due.  A call costs the store about as much as thirty tasks in it do:
 * while what runs here ends within moments, ends and claims wait for each other, but never for long. */
#include "host/shard/shard_private.h"

#include "base/numbers.h"

/* So long a claim, or an end that keeps its key's next task from starting, waits for others to end. */
#define URGENT_GATHER_MS 2
/* With STOCK_TASKS at hand there is less hurry to claim more; with STOCK_MAX there is no need to, if each pool can
 * start some of them. */
#define STOCK_TASKS 64
#define STOCK_MAX   256

/* A call that brought no more than this was hardly worth it; one that brought this many cost little for each. */
#define FEW_TASKS  1
#define FULL_TASKS 48

void shard_pace_ended(struct shard *s, const struct claimed *c, uint64_t now_ms)
{
        s->tasks_are_short = now_ms - c->started_ms <= s->limits->gather_ms;
}

/* Where tasks end within moments a few hundred are as good as a thousand, as long as every pool finds something to
 * start among them: what lies about for longer only falls out of the processor's caches, here and at the store. */
static bool is_stocked(const struct shard *s)
{
        return s->tasks_are_short && s->window.count - shard_telling_count(s) >= STOCK_MAX &&
               window_is_stocked(&s->window);
}

bool shard_has_room(const struct shard *s)
{
        return s->window.count < s->limits->window_tasks && s->window.bytes < s->limits->window_bytes && !is_stocked(s);
}

uint32_t shard_want_tasks(const struct shard *s)
{
        uint32_t room = s->limits->window_tasks - s->window.count;
        if (!s->tasks_are_short || !window_is_stocked(&s->window))
                return room;
        uint32_t missing = STOCK_MAX - (s->window.count - shard_telling_count(s));
        return min_u64(missing, room);
}

static bool ends_soon(const struct shard *s)
{
        return s->tasks_are_short && s->running;
}

bool shard_is_blocked(const struct shard *s)
{
        return s->is_urgent && !s->running;
}

/* Tasks that come in one by one are claimed as they come.  Where they keep coming, the next one while the last is being
 * claimed, calls are spaced so that each brings some dozen; where there is more than a call can bring, nothing is
 * waited for. */
void shard_pace_claimed(struct shard *s, uint32_t count, bool has_more)
{
        if (has_more)
                s->pace_ms = 0;
        else if (count <= FEW_TASKS && !s->has_rung)
                s->pace_ms /= 2;
        else if (count < FULL_TASKS)
                s->pace_ms = s->pace_ms * 2 < s->limits->gather_ms ? s->pace_ms * 2 + 1 : s->limits->gather_ms;
}

uint64_t shard_claim_due_ms(const struct shard *s, bool can_wait)
{
        if (s->state != SHARD_OWNED || !shard_has_room(s))
                return STORE_NEVER;
        uint64_t due_ms = s->has_work ? 0 : s->due_ms;
        if (!can_wait)
                return due_ms;
        uint64_t wait_ms = s->pace_ms;
        if (ends_soon(s) && s->window.count >= STOCK_TASKS)
                wait_ms = s->limits->gather_ms;
        else if (ends_soon(s) && wait_ms < URGENT_GATHER_MS)
                wait_ms = URGENT_GATHER_MS;
        uint64_t next_ms = wait_ms ? s->sent_ms + wait_ms : 0;
        return max_u64(due_ms, next_ms);
}

uint64_t shard_tell_due_ms(const struct shard *s, bool can_wait)
{
        if (!s->ended)
                return STORE_NEVER;
        if (!can_wait || s->ended_count >= STORE_CALL_TASKS / 2 || (s->is_urgent && !ends_soon(s)))
                return 0;
        return s->ended_ms + (s->is_urgent ? URGENT_GATHER_MS : s->limits->gather_ms);
}
