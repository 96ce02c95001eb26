#include "host/turns.h"

#include <errno.h>
#include <stdlib.h>

/* After so many calls of standing shards in a row it is another's turn. */
#define FAVOURS_MAX 3

/* For each so many milliseconds that the shortest call takes there may be as many more at once: they are on the way.
 * Not without end, for one that stands in line at a slow store takes long, too. */
#define TRIP_MS       2
#define FAR_TIMES_MAX 8
/* A shortest call is forgotten after so long, at most twice that. */
#define TRIPS_KEPT_MS 1000
/* A call that takes longer than this is lost, or its server is away: shards of other servers do not wait for it. */
#define LATE_MS 100

int turns_init(struct turns *t, uint32_t count, uint32_t calls_max)
{
        *t = (struct turns){ .count = count, .calls_max = calls_max, .next_due_ms = STORE_NEVER };
        t->trip_ms = t->trip_before_ms = UINT64_MAX;
        t->shards = calloc(count, sizeof(*t->shards));
        t->due_ms = calloc(count, sizeof(*t->due_ms));
        struct shard_set *const sets[] = { &t->stirred, &t->asking, &t->is_ready, &t->is_suspect, &t->is_busy,
                &t->is_calling, &t->waiting, &t->standing };
        for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
                shard_set_init(sets[i], count);
        if (t->shards && t->due_ms)
                return 0;
        turns_free(t);
        return -ENOMEM;
}

void turns_free(struct turns *t)
{
        free(t->shards);
        free(t->due_ms);
        *t = (struct turns){ 0 };
}

void turns_add(struct turns *t, struct shard *shard)
{
        t->shards[shard->number] = shard;
        t->due_ms[shard->number] = STORE_NEVER;
        shard->stirred = &t->stirred;
        shard_set_add(&t->stirred, shard->number);
}

bool turns_is_busy(const struct turns *t)
{
        return !shard_set_is_empty(&t->is_busy);
}

uint64_t turns_due_ms(const struct turns *t)
{
        return t->next_due_ms;
}

void turns_begin(struct turns *t)
{
        shard_set_join(&t->is_ready, &t->stirred);
        shard_set_join(&t->is_suspect, &t->stirred);
}

static void set_due(struct turns *t, uint32_t shard, uint64_t due_ms)
{
        t->due_ms[shard] = due_ms;
        if (due_ms < t->next_due_ms)
                t->next_due_ms = due_ms;
}

/* Asks those whose time has come by `until_ms`, and finds out when the next one's comes. */
static void ask_due(struct turns *t, uint64_t until_ms)
{
        t->next_due_ms = STORE_NEVER;
        for (uint32_t i = 0; i < t->count; i++)
                if (t->due_ms[i] == STORE_NEVER)
                        continue;
                else if (t->due_ms[i] <= until_ms)
                        shard_set_add(&t->stirred, i);
                else
                        set_due(t, i, t->due_ms[i]);
}

static void note_trip(struct turns *t, uint64_t took_ms, uint64_t now_ms)
{
        if (now_ms >= t->trip_since_ms + TRIPS_KEPT_MS) {
                t->trip_before_ms = t->trip_ms;
                t->trip_ms = UINT64_MAX;
                t->trip_since_ms = now_ms;
        }
        if (took_ms < t->trip_ms)
                t->trip_ms = took_ms;
}

/* What happened to it, as far as others have to know. */
static void take_note(struct turns *t, struct shard *s, uint64_t now_ms)
{
        bool was_calling = shard_set_has(&t->is_calling, s->number);
        bool is_calling = s->is_calling && s->last_call == SHARD_CALL_ADVANCE;
        if (was_calling && !is_calling)
                note_trip(t, now_ms - s->sent_ms, now_ms);
        shard_set_put(&t->is_calling, s->number, is_calling);
        shard_set_put(&t->is_busy, s->number, s->running || s->pace_ms);
        shard_set_add(&t->asking, s->number);
}

static void take_stirred(struct turns *t, uint64_t now_ms)
{
        for (uint32_t i = 0; (i = shard_set_from(&t->stirred, i)) != SHARD_SET_NONE; i++) {
                shard_tick(t->shards[i], now_ms);
                shard_set_remove(&t->stirred, i);
                take_note(t, t->shards[i], now_ms);
        }
}

void turns_look(struct turns *t, uint64_t now_ms)
{
        if (now_ms >= t->next_due_ms)
                ask_due(t, now_ms);
        take_stirred(t, now_ms);
        bool could_wait = t->can_wait;
        t->can_wait = turns_is_busy(t);
        /* Nothing is left to be waited for. */
        if (could_wait && !t->can_wait) {
                ask_due(t, STORE_NEVER - 1);
                take_stirred(t, now_ms);
        }
}

static bool has_room(const struct turns *t)
{
        uint64_t trip_ms = t->trip_ms < t->trip_before_ms ? t->trip_ms : t->trip_before_ms;
        uint64_t times = trip_ms == UINT64_MAX ? 1 : 1 + trip_ms / TRIP_MS;
        times = times < FAR_TIMES_MAX ? times : FAR_TIMES_MAX;
        return !t->calls_max || shard_set_count(&t->is_calling) < t->calls_max * times;
}

/* Calls that are late count no more; when the next one is, there is to be another look. */
static void forget_late(struct turns *t, uint64_t now_ms)
{
        for (uint32_t i = 0; (i = shard_set_from(&t->is_calling, i)) != SHARD_SET_NONE; i++) {
                uint64_t late_ms = t->shards[i]->sent_ms + LATE_MS;
                if (late_ms > now_ms) {
                        t->next_due_ms = late_ms < t->next_due_ms ? late_ms : t->next_due_ms;
                        continue;
                }
                shard_set_remove(&t->is_calling, i);
                note_trip(t, LATE_MS, now_ms);
        }
}

static bool may_advance(struct turns *t, uint64_t now_ms)
{
        if (has_room(t))
                return true;
        if (shard_set_is_empty(&t->waiting) && shard_set_is_empty(&t->standing))
                return false;
        forget_late(t, now_ms);
        return has_room(t);
}

/* What the shard wants now: if it may have to wait for that it does. */
static enum shard_call ask(struct turns *t, uint32_t shard, uint64_t now_ms)
{
        struct shard *s = t->shards[shard];
        enum shard_call call = shard_next_call(s, t->can_wait, now_ms);
        bool is_standing = call == SHARD_CALL_ADVANCE && shard_is_standing(s);
        shard_set_remove(&t->asking, shard);
        shard_set_put(&t->standing, shard, is_standing);
        shard_set_put(&t->waiting, shard, call == SHARD_CALL_ADVANCE && !is_standing);
        set_due(t, shard, call == SHARD_CALL_NONE ? shard_due_ms(s) : STORE_NEVER);
        return call == SHARD_CALL_ADVANCE ? SHARD_CALL_NONE : call;
}

static uint32_t take_turn(struct shard_set *set, uint32_t *next, uint32_t shard)
{
        shard_set_remove(set, shard);
        *next = shard + 1;
        return shard;
}

/* Whose turn it is; SHARD_SET_NONE. */
static uint32_t pick(struct turns *t)
{
        uint32_t standing = shard_set_round(&t->standing, t->next_standing);
        uint32_t waiting = shard_set_round(&t->waiting, t->next_waiting);
        if (standing != SHARD_SET_NONE && (waiting == SHARD_SET_NONE || t->favours < FAVOURS_MAX)) {
                t->favours++;
                return take_turn(&t->standing, &t->next_standing, standing);
        }
        t->favours = 0;
        return waiting == SHARD_SET_NONE ? waiting : take_turn(&t->waiting, &t->next_waiting, waiting);
}

struct shard *turns_next(struct turns *t, uint64_t now_ms, enum shard_call *ret_call)
{
        uint32_t shard;
        take_stirred(t, now_ms);
        while ((shard = shard_set_from(&t->asking, 0)) != SHARD_SET_NONE) {
                *ret_call = ask(t, shard, now_ms);
                if (*ret_call != SHARD_CALL_NONE)
                        return t->shards[shard];
        }
        while (may_advance(t, now_ms) && (shard = pick(t)) != SHARD_SET_NONE) {
                *ret_call = shard_next_call(t->shards[shard], t->can_wait, now_ms);
                if (*ret_call != SHARD_CALL_NONE)
                        return t->shards[shard];
                set_due(t, shard, shard_due_ms(t->shards[shard]));
        }
        return NULL;
}
