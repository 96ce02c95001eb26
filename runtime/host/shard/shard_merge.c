/* shard_merge.c: merges claimed tasks of a key (`merge`).
 *
 * Neighbours in a key's order can be merged if they ask for it, have the same handler and lane, and none of them was
 * ever started.  The first keeps its place and gets the payload of the last; the others end.  The store does that in
 * one step (STORE_MERGE); until it is durable, none of them starts.  Only neighbours are merged, so no task of the key
 * is overtaken. */
#include <stdlib.h>

#include "base/numbers.h"
#include "host/shard/shard_private.h"

/* If tasks of a key keep coming, merging would never let its first task start: after this many merges in a row it
 * starts. */
#define MERGE_ROUNDS 32u

static bool may_merge(const struct claimed *c)
{
        return c && c->may_merge && c->state == CLAIMED_WAITING && !c->of->is_barred;
}

/* How many of the tasks behind `into` can be merged into it. */
static uint32_t count_run(const struct shard *s, struct claimed *into)
{
        uint32_t count = 0;
        /* A task behind a diverted one must be diverted, too: once merged it would be ready and overtake that one. */
        if (!may_merge(into) || window_is_behind_diverted(into))
                return 0;
        if (into->merge_call != s->call || into->of->first != into || into->of->is_busy)
                into->merge_rounds = 0; /* it could have started since, or is not the first of its key */
        if (into->merge_rounds >= MERGE_ROUNDS)
                return 0;
        uint64_t bytes = into->payload.size;
        for (const struct claimed *c = into->next; may_merge(c) && count < STORE_CALL_MERGED; c = c->next, count++) {
                bytes += c->payload.size;
                if (STORE_SEQ_LANE(c->seq) != STORE_SEQ_LANE(into->seq) || !span_is(c->handler, into->handler) ||
                        (count && bytes > STORE_CALL_BYTES))
                        break;
        }
        return count;
}

static void merge_run(struct shard *s, struct claimed *into, uint32_t count, uint64_t now_ms)
{
        struct pending_outcome *pending = pending_outcome_merge(count);
        struct claimed *c = into;
        for (uint32_t i = 0; i < count; i++) {
                c = c->next;
                pending->merged[i] = (struct store_ref){
                        .seq = c->seq, .id = c->id, .key = c->key, .handler = c->handler, .reply_ms = c->reply_ms
                };
                c->merges_into = into;
                window_end(&s->window, c);
        }
        shard_end_task(s, into, pending, now_ms);
}

static void merge_key(struct shard *s, struct window_key *key, uint64_t now_ms)
{
        for (struct claimed *into = key->first; into; into = into->next) {
                uint32_t count = count_run(s, into);
                if (count)
                        merge_run(s, into, count, now_ms);
        }
}

/* While the in-flight table is being read, tasks between two known neighbours may still be missing. */
static bool is_to_merge(const struct shard *s)
{
        return s->limits->can_merge && s->state == SHARD_OWNED && !s->must_reread;
}

void shard_merge_all(struct shard *s, uint64_t now_ms)
{
        if (!is_to_merge(s))
                return;
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                merge_key(s, key, now_ms);
}

void shard_merge_tasks(struct shard *s, struct claimed *const *added, uint32_t count, uint64_t now_ms)
{
        if (!is_to_merge(s))
                return;
        for (uint32_t i = 0; i < count; i++)
                if (may_merge(added[i]))
                        merge_key(s, added[i]->of, now_ms);
}

/* The store's tasks are not the ones that we merged: forgets them and reads the in-flight table again. */
static void forget(struct shard *s, struct claimed *c)
{
        while (c->next && c->next->merges_into == c)
                window_drop(&s->window, c->next);
        window_drop(&s->window, c);
        s->must_reread = true;
        if (s->state == SHARD_OWNED)
                s->state = SHARD_READING;
}

void shard_merged(struct shard *s, struct claimed *c, bool is_sure, uint64_t now_ms)
{
        if (!is_sure) {
                forget(s, c);
                return;
        }
        while (c->next && c->next->merges_into == c) {
                struct claimed *m = c->next;
                c->reply_ms = max_u64(c->reply_ms, m->reply_ms);
                if (m->next && m->next->merges_into == c)
                        window_drop(&s->window, m);
                else
                        window_merge(&s->window, c, m);
        }
        pending_outcome_free(c->pending);
        c->pending = NULL;
        c->merge_rounds++;
        c->merge_call = s->call;
        shard_put_back_merged(s, c, now_ms);
        /* One call may not have merged all of them. */
        if (is_to_merge(s))
                merge_key(s, c->of, now_ms);
}

bool shard_is_to_debounce(const struct shard *s, const struct claimed *c, uint64_t now_ms)
{
        return c->may_merge && !c->is_debounced && s->limits->can_merge && c->claimed_ms + c->debounce_ms > now_ms;
}

bool shard_debounce(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        uint64_t until_ms = c->claimed_ms + c->debounce_ms;
        if (!shard_is_to_debounce(s, c, now_ms))
                return false;
        for (struct claimed *behind = c; behind; behind = behind->next) {
                if (behind != c && behind->state != CLAIMED_WAITING)
                        continue;
                struct pending_outcome *pending = pending_outcome_divert("debounced: others may join it", "");
                pending->outcome.delay_ms = until_ms - now_ms;
                pending->outcome.is_debounce = behind == c;
                shard_end_task(s, behind, pending, now_ms);
        }
        return true;
}
