#include "host/shard/shard_telling.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "host/shard/shard_private.h"

/* A key fetches the rest of its tasks with its outcomes.  If it does not, the rest is due after this long. */
#define REST_MS 30000

/* Takes an unused one from the list, or allocates one. */
static struct shard_telling *take(struct shard_telling **list)
{
        struct shard_telling *telling = list ? *list : NULL;
        if (telling)
                *list = telling->next;
        else
                telling = memory_alloc(sizeof(*telling));
        telling->tasks_count = telling->saves_count = telling->starts_count = telling->outcomes_count = 0;
        return telling;
}

void shard_drop_telling(struct shard *s)
{
        struct shard_telling *telling = s->telling;
        if (!telling)
                return;
        while (telling->saves_count)
                pending_outcome_free(telling->saves[--telling->saves_count]);
        while (telling->starts_count) {
                telling->starts[--telling->starts_count]->is_telling = false;
                pending_outcome_free(telling->start_outcomes[telling->starts_count]);
        }
        s->telling = NULL;
        if (!s->spare) {
                free(telling);
                return;
        }
        telling->next = *s->spare;
        *s->spare = telling;
}

void shard_tellings_free(struct shard_telling **list)
{
        while (*list) {
                struct shard_telling *telling = *list;
                *list = telling->next;
                free(telling);
        }
}

/* Bytes that the store has to move for an outcome: its own, and those of a task that it keeps in another place. */
static uint64_t outcome_bytes(const struct claimed *c)
{
        uint64_t merged = 0;
        for (const struct claimed *m = c->next; m && m->merges_into == c; m = m->next)
                merged += m->payload.size;
        enum store_outcome_kind kind = c->pending->outcome.kind;
        bool is_moved = kind == STORE_RETRY || kind == STORE_HOLD || kind == STORE_DEAD || kind == STORE_DIVERT ||
                        kind == STORE_MOVE;
        return c->pending->size + (is_moved ? c->payload.size : 0) + merged;
}

/* Whether the call would exceed its limits with this outcome.  An outcome that is too large by itself goes alone. */
static bool is_too_much(
        const struct shard *s, const struct claimed *c, uint64_t bytes, uint32_t follow_ups, uint32_t merged)
{
        const struct shard_telling *telling = s->telling;
        if (!telling->tasks_count)
                return false;
        return telling->outcomes_count + 2 > STORE_CALL_TASKS || bytes + outcome_bytes(c) > STORE_CALL_BYTES ||
               follow_ups + c->pending->outcome.follow_ups_count > STORE_CALL_FOLLOW_UPS ||
               merged + c->pending->outcome.merged_count > STORE_CALL_MERGED;
}

/* Whether the next task of the key ran in the same call and has ended, too.  Then this one asks for no refill: each
 * done task of the run would ask for as many, and nothing may come behind a task that is to run again. */
static bool run_goes_on(const struct claimed *c)
{
        const struct claimed *next = c->next;
        if (!next || next->state != CLAIMED_ENDED || !next->pending)
                return false;
        enum store_outcome_kind kind = next->pending->outcome.kind;
        return kind == STORE_DONE || kind == STORE_RETRY || kind == STORE_HOLD;
}

/* Fills in the fields that depend on the key's current state. */
static void complete(const struct shard *s, const struct claimed *c, struct store_outcome *o)
{
        uint32_t live = c->of->live;
        uint32_t per_key = shard_per_key(s, c->pool);
        bool ends = o->kind == STORE_DONE || o->kind == STORE_DEAD || o->kind == STORE_MERGE || o->kind == STORE_MOVE;
        bool is_last = !run_goes_on(c);
        /* Ask even if we know of no more: a previous owner may have diverted tasks of the key that we have not seen.
         * Only ask when half are gone: fetching nothing is much cheaper for the store. */
        if (ends && is_last && live <= per_key / 2)
                o->refill = per_key - live;
        if (o->kind == STORE_DIVERT && !o->delay_ms && live)
                o->delay_ms = REST_MS;
}

struct store_outcome *shard_add_outcome(struct shard *s, const struct claimed *c, const struct store_outcome *outcome)
{
        struct store_outcome *o = &s->telling->outcomes[s->telling->outcomes_count++];
        *o = *outcome;
        o->task = (struct store_ref){
                .seq = c->seq, .id = c->id, .key = c->key, .handler = c->handler, .reply_ms = c->reply_ms
        };
        return o;
}

/* Adds the task's unsaved checkpoint, unless the task is finished, and its outcome. */
static void say(struct shard *s, struct claimed *c)
{
        const struct store_outcome *ended = &c->pending->outcome;
        if (c->has_saved && ended->kind != STORE_DONE && ended->kind != STORE_DEAD) {
                struct span saved = { (const char *)c->checkpoint.data, c->checkpoint.size };
                shard_add_outcome(s, c, &(struct store_outcome){ .kind = STORE_CHECKPOINT, .checkpoint = saved });
        }
        c->has_saved = false;
        complete(s, c, shard_add_outcome(s, c, ended));
}

void shard_gather(struct shard *s)
{
        uint64_t bytes = 0;
        uint32_t follow_ups = 0;
        uint32_t merged = 0;
        assert(!s->telling);
        if (!s->ended && !s->saves.waiting && !s->starts_waiting)
                return;
        s->telling = take(s->spare);
        lents_tell(s);
        saves_tell(s);
        while (s->ended && !is_too_much(s, s->ended, bytes, follow_ups, merged)) {
                struct claimed *c = s->ended;
                bytes += outcome_bytes(c);
                follow_ups += c->pending->outcome.follow_ups_count;
                merged += c->pending->outcome.merged_count;
                s->ended = c->ended_next;
                c->ended_next = NULL;
                s->ended_count--;
                say(s, c);
                s->telling->tasks[s->telling->tasks_count++] = c;
        }
        if (!s->ended) {
                s->ended_last = NULL;
                s->is_urgent = false;
        }
}
