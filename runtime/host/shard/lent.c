#include "host/shard/lent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/shard/shard_private.h"

/* --- recording starts --- */

static void queue(struct shard *s, struct lent *lent)
{
        shard_stir(s);
        if (lent->is_to_tell)
                return;
        lent->is_to_tell = true;
        lent->tell_next = s->starts_waiting;
        s->starts_waiting = lent;
}

void shard_lend(struct shard *s, struct claimed *c, struct lent *lent)
{
        c->lent = lent;
        c->worker_epoch = lent->fence.epoch;
        c->worker_start = lent->fence.start;
        lent->claimed = c;
        lent->shard = s;
        s->running--;
        s->lent++;
        queue(s, lent);
}

void shard_extend(struct shard *s, struct lent *lent, uint64_t for_ms)
{
        lent->for_ms = for_ms;
        queue(s, lent);
}

void lents_tell(struct shard *s)
{
        struct shard_telling *telling = s->telling;
        while (s->starts_waiting && telling->starts_count < SHARD_STARTS_MAX) {
                struct lent *lent = s->starts_waiting;
                char holder[NOTE_HOLDER_MAX + 1];
                s->starts_waiting = lent->tell_next;
                lent->is_to_tell = false;
                lent->is_telling = true;
                lent->telling_ms = s->sent_ms;
                if (lent->is_seat)
                        seat_holder_put(holder, &lent->fence, lent->nonce, lent->worker);
                else
                        holder_put(holder, &lent->fence, lent->worker);
                struct pending_outcome *pending = pending_outcome_start(holder);
                pending->outcome.until_ms = lent->for_ms;
                (void)shard_add_outcome(s, lent->claimed, &pending->outcome);
                telling->start_outcomes[telling->starts_count] = pending;
                telling->starts[telling->starts_count++] = lent;
        }
}

void lents_told(struct shard *s, uint64_t now_ms)
{
        const struct shard_telling *telling = s->telling;
        for (uint32_t i = 0; telling && i < telling->starts_count; i++) {
                struct lent *lent = telling->starts[i];
                lent->told_for_ms = telling->start_outcomes[i]->outcome.until_ms;
                lent->sent_ms = lent->telling_ms;
                lent->told_ms = now_ms;
        }
}

void lent_stop(struct shard *s, struct lent *lent)
{
        struct lent **at = &s->starts_waiting;
        while (lent->is_to_tell && *at != lent)
                at = &(*at)->tell_next;
        if (lent->is_to_tell)
                *at = lent->tell_next;
        lent->is_to_tell = false;
}

void lents_drop(struct shard *s)
{
        for (struct lent *lent = s->starts_waiting; lent; lent = lent->tell_next)
                lent->is_to_tell = false;
        s->starts_waiting = NULL;
}

/* --- adopting what a previous owner lent --- */

static void adopt(struct shard *s, struct claimed *c, struct lent *lent, uint64_t now_ms)
{
        lent->claimed = c;
        lent->shard = s;
        lent->slot = c->pool;
        lent->is_handed = lent->is_adopted = true;
        lent->started_ms = lent->sent_ms = lent->told_ms = now_ms;
        window_adopt(&s->window, c);
        shard_adopt_shares(s, c);
        c->lent = lent;
        c->started_ms = now_ms;
        c->worker_epoch = lent->fence.epoch;
        c->worker_start = lent->fence.start;
        s->lent++;
}

void shard_adopt_silent(struct shard *s, struct claimed *c, struct lent *lent, uint64_t now_ms)
{
        shard_stir(s);
        adopt(s, c, lent, now_ms);
}

bool shard_adopt(struct shard *s, struct claimed *c, const struct store_task *task, uint64_t now_ms)
{
        struct work_fence fence;
        struct span worker;
        uint8_t nonce[STORE_NONCE_SIZE] = { 0 };
        if (!task->note.started_epoch || c->pool >= s->window.pools || c->of->is_busy)
                return false;
        bool is_seat = seat_holder_parse(task->note.holder, &fence, nonce, &worker);
        if (!is_seat && !holder_parse(task->note.holder, &fence, &worker))
                return false;
        struct lent *lent = memory_zero(1, sizeof(*lent));
        lent->is_seat = is_seat;
        memcpy(lent->nonce, nonce, sizeof(nonce));
        lent->fence = (struct work_fence){ fence.epoch, fence.start, c->seq };
        memcpy(lent->worker, worker.data, worker.size);
        lent->for_ms = lent->told_for_ms = task->busy_ms;
        adopt(s, c, lent, now_ms);
        lent->next = s->adopted;
        s->adopted = lent;
        return true;
}

struct lent *shard_take_adopted(struct shard *s)
{
        struct lent *list = s->adopted;
        s->adopted = NULL;
        return list;
}
