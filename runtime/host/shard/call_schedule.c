#include "host/shard/call_schedule.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"

/* After this many calls in a row for blocked shards, a waiting shard gets its turn. */
#define BLOCKED_IN_A_ROW_MAX 3
/* Blocked shards may have this many calls beyond calls_max: a hot key's next task waits for such a call, and should not
 * also wait for the answers to other shards' calls. */
#define BLOCKED_ROOM 2

/* A costly call counts as many.  Redis answers nobody before it has executed what it has read: with sixteen of them
 * under way a producer would wait five milliseconds for each of its answers. */
#define COSTLY_CALLS 8

/* calls_max applies once more for each TRIP_MS that the shortest call takes: those calls are on the network, not in the
 * store.  FAR_TIMES_MAX bounds it, because calls to a slow store take long, too. */
#define TRIP_MS       2
#define FAR_TIMES_MAX 8
/* The shortest call is over a period of this length and the one before. */
#define TRIPS_KEPT_MS 1000
/* Who submits has to wait until the store has executed all calls that it read before.  With many of them he submits
 * little between two, so that each brings few tasks and costs nearly as much as a full one: the more a host does, the
 * more of the store's time that takes.  So from RATE_CALLS tasks a second on, or fewer large ones, fewer calls are
 * under way, in inverse proportion, but not fewer than one in CALLS_PART: where calls_group applies, and round trips
 * are short. */
#define RATE_CALLS 175000
#define CALLS_PART 4
/* The rate is that of about so long. */
#define RATE_KEPT_MS 64
/* A call that takes longer than this is lost, or its server is down: shards on other servers do not wait for it. */
#define LATE_MS 100

/* The load is computed once per LOAD_LOOK_MS: the percentage of time in which some shard waits for its turn.  Above
 * LOAD_HIGH claims are spaced further apart, above LOAD_FULL much further, otherwise less: so a store with time to
 * spare is called often, and tasks are claimed soon. */
#define LOAD_LOOK_MS 16
#define LOAD_FULL    98
#define LOAD_HIGH    90
#define BOUND_LEAST  4
/* A longer wait hardly reduces the cost per task any more. */
#define PACE_MAX_MS 10

/* Short tasks that all shards together claim ahead: more than a host of two cores does within a call's round trip and
 * the time that outcomes gather.  Each takes about a kilobyte; with four times as many the host takes a fifth longer
 * for a task, because what it claimed has left the processor's caches when it is started. */
#define STOCK_ALL   4096u
#define STOCK_LEAST 64u /* of a shard, however many are busy */
/* With fewer tasks than these in all windows, seats may soon have nothing to do: calls_group applies. */
#define FEW_CLAIMED 1024u
/* calls_group does not apply for so long after a call of a hot shard, one that was blocked at two calls in a row: each
 * answer brings its next call, so that with smaller groups it would take the store's time from the others. */
#define HOT_KEPT_MS 100

void call_schedule_init(struct call_schedule *t, uint32_t count, uint32_t calls_max, uint32_t calls_group)
{
        *t = (struct call_schedule){
                .count = count, .calls_max = calls_max, .calls_group = calls_group, .next_due_ms = STORE_NEVER
        };
        t->trip_ms = t->trip_before_ms = UINT64_MAX;
        t->stock_max = SHARD_STOCK_MAX;
        t->shards = memory_zero(count, sizeof(struct shard *));
        t->due_ms = memory_zero(count, sizeof(*t->due_ms));
        t->claimed = memory_zero(count, sizeof(*t->claimed));
        struct shard_set *const sets[] = { &t->changed, &t->to_ask, &t->is_busy, &t->is_calling, &t->is_costly,
                &t->waiting, &t->blocked, &t->was_blocked };
        for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
                shard_set_init(sets[i], count);
}

void call_schedule_free(struct call_schedule *t)
{
        shard_tellings_free(&t->spare);
        free(t->shards);
        free(t->due_ms);
        free(t->claimed);
        *t = (struct call_schedule){ 0 };
}

void call_schedule_add(struct call_schedule *t, struct shard *shard)
{
        t->shards[shard->number] = shard;
        t->due_ms[shard->number] = STORE_NEVER;
        shard->changed = &t->changed;
        shard->spare = &t->spare;
        shard->pace_max_ms = &t->pace_max_ms;
        shard->stock_max = &t->stock_max;
        shard->is_store_busy = &t->is_store_busy;
        shard_set_add(&t->changed, shard->number);
}

bool call_schedule_is_busy(const struct call_schedule *t)
{
        return !shard_set_is_empty(&t->is_busy);
}

bool call_schedule_expects_task(const struct call_schedule *t)
{
        return t->turn_calls && !t->claimed_all && !min_u64(t->trip_ms, t->trip_before_ms);
}

uint64_t call_schedule_due_ms(const struct call_schedule *t)
{
        return t->next_due_ms;
}

static void set_due(struct call_schedule *t, uint32_t shard, uint64_t due_ms)
{
        t->due_ms[shard] = due_ms;
        if (due_ms < t->next_due_ms)
                t->next_due_ms = due_ms;
}

/* Marks the shards that are due by `until_ms` as changed, and computes next_due_ms from the others. */
static void ask_due(struct call_schedule *t, uint64_t until_ms)
{
        t->next_due_ms = STORE_NEVER;
        for (uint32_t i = 0; i < t->count; i++)
                if (t->due_ms[i] == STORE_NEVER)
                        continue;
                else if (t->due_ms[i] <= until_ms)
                        shard_set_add(&t->changed, i);
                else
                        set_due(t, i, t->due_ms[i]);
}

/* Whether calls_max applies to the call.  It applies to wakes because otherwise all shards would wake keys before any
 * of them claims, and nothing would start until the last wake. */
static bool is_counted(enum shard_call call)
{
        return call == SHARD_CALL_ADVANCE || call == SHARD_CALL_WAKE;
}

static void note_trip(struct call_schedule *t, uint64_t took_ms, uint64_t now_ms)
{
        if (now_ms >= t->trip_since_ms + TRIPS_KEPT_MS) {
                t->trip_before_ms = t->trip_ms;
                t->trip_ms = UINT64_MAX;
                t->trip_since_ms = now_ms;
        }
        if (took_ms < t->trip_ms)
                t->trip_ms = took_ms;
}

/* Updates the sets that depend on the shard's state, and has it asked. */
static void take_note(struct call_schedule *t, struct shard *s, uint64_t now_ms)
{
        bool was_calling = shard_set_has(&t->is_calling, s->number);
        bool is_calling = s->is_calling && is_counted(s->last_call);
        if (was_calling && !is_calling)
                note_trip(t, now_ms - s->sent_ms, now_ms);
        shard_set_put(&t->is_calling, s->number, is_calling);
        shard_set_put(&t->is_costly, s->number, is_calling && s->is_costly);
        shard_set_put(&t->is_busy, s->number, s->running || s->pace_ms);
        shard_set_add(&t->to_ask, s->number);
        t->claimed_all -= t->claimed[s->number];
        t->claimed[s->number] = s->window.count;
        t->claimed_all += s->window.count;
        t->brought += s->brought;
        s->brought = 0;
}

static void take_changed(struct call_schedule *t, uint64_t now_ms)
{
        for (uint32_t i = 0; (i = shard_set_from(&t->changed, i)) != SHARD_SET_NONE; i++) {
                shard_tick(t->shards[i], now_ms);
                shard_set_remove(&t->changed, i);
                take_note(t, t->shards[i], now_ms);
        }
}

/* Whether most shards with work wait for the store: for their turn to call it, or for its answer.  Fewer than
 * BOUND_LEAST do not load a store. */
static bool is_bound_by_store(const struct call_schedule *t)
{
        uint32_t wait = shard_set_count(&t->is_calling) + shard_set_count(&t->waiting) + shard_set_count(&t->blocked);
        return wait >= BOUND_LEAST && 2 * wait >= shard_set_count(&t->is_busy);
}

/* `passed_ms`: since it was called last. */
static void note_rate(struct call_schedule *t, uint64_t passed_ms)
{
        uint64_t weight = min_u64(passed_ms, RATE_KEPT_MS);
        t->rate = (t->rate * (RATE_KEPT_MS - weight) + 1000 * t->brought / passed_ms * weight) / RATE_KEPT_MS;
        t->brought = 0;
}

/* If shards were waiting at the last look, they have waited until now: the answer that lets the next one call also
 * makes the loop turn. */
static void note_load(struct call_schedule *t, uint64_t now_ms)
{
        if (!shard_set_is_empty(&t->waiting) || !shard_set_is_empty(&t->blocked))
                t->waiting_ms += now_ms - t->looked_ms;
        if (now_ms != t->looked_ms && is_bound_by_store(t))
                t->bound_ms += now_ms - t->looked_ms;
        t->looked_ms = now_ms;
        uint64_t passed_ms = now_ms - t->load_since_ms;
        if (passed_ms < LOAD_LOOK_MS)
                return;
        uint64_t load = 100 * t->waiting_ms / passed_ms;
        if (load > LOAD_HIGH)
                t->pace_max_ms = min_u64(load > LOAD_FULL ? 2 * t->pace_max_ms + 1 : t->pace_max_ms + 1, PACE_MAX_MS);
        else
                t->pace_max_ms -= min_u64(t->pace_max_ms, passed_ms / LOAD_LOOK_MS);
        note_rate(t, passed_ms);
        t->is_store_busy = 2 * t->bound_ms >= passed_ms;
        t->waiting_ms = t->bound_ms = 0;
        t->load_since_ms = now_ms;
        uint32_t busy = shard_set_count(&t->is_busy);
        uint64_t share = STOCK_ALL / max_u64(busy, 1);
        t->stock_max = (uint32_t)max_u64(min_u64(share, SHARD_STOCK_MAX), STOCK_LEAST);
}

void call_schedule_look(struct call_schedule *t, uint64_t now_ms)
{
        t->turn_calls = 0;
        note_load(t, now_ms);
        if (now_ms >= t->next_due_ms)
                ask_due(t, now_ms);
        take_changed(t, now_ms);
        bool could_wait = t->can_wait;
        /* A loaded store is not called for a single outcome: the next claim soon takes it along. */
        t->can_wait = call_schedule_is_busy(t) || t->pace_max_ms;
        /* The host has become idle: shards that were waiting to fill their calls are asked again. */
        if (could_wait && !t->can_wait) {
                ask_due(t, STORE_NEVER - 1);
                take_changed(t, now_ms);
        }
}

/* This turn has made enough calls.  Their answers make the loop turn again; if none comes, the time does. */
static bool has_made_enough(struct call_schedule *t, uint64_t now_ms)
{
        if (!t->calls_group || t->turn_calls < t->calls_group || t->claimed_all >= FEW_CLAIMED ||
                now_ms < t->hot_until_ms)
                return false;
        t->next_due_ms = min_u64(now_ms + 1, t->next_due_ms);
        return true;
}

/* The most calls under way at once, if the round trip is that long. */
static uint64_t most_calls(const struct call_schedule *t, uint64_t trip_ms)
{
        if (t->calls_group && !trip_ms && t->rate > RATE_CALLS)
                return max_u64(1 + (t->calls_max - 1) / CALLS_PART, t->calls_max * (uint64_t)RATE_CALLS / t->rate);
        uint64_t times = trip_ms == UINT64_MAX ? 1 : 1 + trip_ms / TRIP_MS;
        return t->calls_max * min_u64(times, FAR_TIMES_MAX);
}

static bool has_room(const struct call_schedule *t)
{
        bool is_blocked_next = !shard_set_is_empty(&t->blocked) && t->blocked_in_a_row < BLOCKED_IN_A_ROW_MAX;
        uint32_t extra = is_blocked_next ? BLOCKED_ROOM : 0;
        uint32_t calls = shard_set_count(&t->is_calling) + (COSTLY_CALLS - 1) * shard_set_count(&t->is_costly);
        return !t->calls_max || calls < most_calls(t, min_u64(t->trip_ms, t->trip_before_ms)) + extra;
}

/* Late calls no longer count against calls_max.  Wakes up again when the next call becomes late. */
static void forget_late(struct call_schedule *t, uint64_t now_ms)
{
        for (uint32_t i = 0; (i = shard_set_from(&t->is_calling, i)) != SHARD_SET_NONE; i++) {
                uint64_t late_ms = t->shards[i]->sent_ms + LATE_MS;
                if (late_ms > now_ms) {
                        t->next_due_ms = min_u64(late_ms, t->next_due_ms);
                        continue;
                }
                shard_set_remove(&t->is_calling, i);
                shard_set_remove(&t->is_costly, i);
                note_trip(t, LATE_MS, now_ms);
        }
}

static bool may_advance(struct call_schedule *t, uint64_t now_ms)
{
        if (shard_set_is_empty(&t->waiting) && shard_set_is_empty(&t->blocked))
                return false;
        if (has_made_enough(t, now_ms))
                return false;
        if (has_room(t))
                return true;
        forget_late(t, now_ms);
        return has_room(t);
}

/* Returns the call that the shard wants.  If calls_max applies to it, the shard is queued instead and the result is
 * NONE. */
static enum shard_call ask(struct call_schedule *t, uint32_t shard, uint64_t now_ms)
{
        struct shard *s = t->shards[shard];
        enum shard_call call = shard_next_call(s, t->can_wait, now_ms);
        bool is_blocked = is_counted(call) && shard_is_blocked(s);
        shard_set_remove(&t->to_ask, shard);
        shard_set_put(&t->blocked, shard, is_blocked);
        shard_set_put(&t->waiting, shard, is_counted(call) && !is_blocked);
        set_due(t, shard, call == SHARD_CALL_NONE ? shard_due_ms(s) : STORE_NEVER);
        return is_counted(call) ? SHARD_CALL_NONE : call;
}

static uint32_t take_next(struct shard_set *set, uint32_t *next, uint32_t shard)
{
        shard_set_remove(set, shard);
        *next = shard + 1;
        return shard;
}

static void note_hot(struct call_schedule *t, uint32_t shard, bool is_blocked, uint64_t now_ms)
{
        if (is_blocked && shard_set_has(&t->was_blocked, shard))
                t->hot_until_ms = now_ms + HOT_KEPT_MS;
        shard_set_put(&t->was_blocked, shard, is_blocked);
}

/* Takes the shard whose turn it is off its set; SHARD_SET_NONE. */
static uint32_t pick(struct call_schedule *t, uint64_t now_ms)
{
        uint32_t blocked = shard_set_round(&t->blocked, t->next_blocked);
        uint32_t waiting = shard_set_round(&t->waiting, t->next_waiting);
        if (blocked != SHARD_SET_NONE && (waiting == SHARD_SET_NONE || t->blocked_in_a_row < BLOCKED_IN_A_ROW_MAX)) {
                t->blocked_in_a_row++;
                note_hot(t, blocked, true, now_ms);
                return take_next(&t->blocked, &t->next_blocked, blocked);
        }
        t->blocked_in_a_row = 0;
        if (waiting == SHARD_SET_NONE)
                return SHARD_SET_NONE;
        note_hot(t, waiting, false, now_ms);
        return take_next(&t->waiting, &t->next_waiting, waiting);
}

struct shard *call_schedule_next(struct call_schedule *t, uint64_t now_ms, enum shard_call *ret_call)
{
        uint32_t shard;
        take_changed(t, now_ms);
        while ((shard = shard_set_from(&t->to_ask, 0)) != SHARD_SET_NONE) {
                *ret_call = ask(t, shard, now_ms);
                if (*ret_call != SHARD_CALL_NONE)
                        return t->shards[shard];
        }
        while (may_advance(t, now_ms) && (shard = pick(t, now_ms)) != SHARD_SET_NONE) {
                *ret_call = shard_next_call(t->shards[shard], t->can_wait, now_ms);
                if (*ret_call != SHARD_CALL_NONE) {
                        t->turn_calls++;
                        return t->shards[shard];
                }
                set_due(t, shard, shard_due_ms(t->shards[shard]));
        }
        return NULL;
}
