/* sim_batch.c: ordered batches.  The seats of one pool get runs: a task and those of its key right behind it. */
#include "sim.h"

void sim_batch_take(struct sim_host *h, uint32_t pool, struct shard *s, struct sim_seat *seat)
{
        uint32_t max = pool == BATCH_POOL ? RUN_MAX : 1;
        uint32_t left = shard_run_max(seat->task, max);
        struct claimed *last = seat->task;
        while (--left && (last = dispatch_follow(&h->dispatch, pool, s, last, h->sim->now_ms)))
                seat->followers[seat->followers_count++] = last;
}

bool sim_batch_has_task(const struct sim_seat *seat, const struct claimed *c)
{
        bool has = seat->task == c;
        for (uint32_t i = 0; i < seat->followers_count; i++)
                has |= seat->followers[i] == c;
        return has;
}

bool sim_batch_has(const struct sim_seat *seat, uint32_t number)
{
        for (uint32_t i = 0; i < seat->followers_count; i++)
                if (seat->followers[i]->seq - 1 == number)
                        return true;
        return false;
}

/* A run starts only together, in order, with nothing of its key left out, and what is suspect keeps to itself. */
void sim_batch_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        const struct sim_store_shard *s = &sim->shards[seat->shard];
        uint32_t before = seat->number;
        for (uint32_t i = 0; i < seat->followers_count; i++) {
                uint32_t number = (uint32_t)seat->followers[i]->seq - 1;
                if (number <= before || s->tasks[number].key != seat->key)
                        sim_fail(sim, "host %u has task %u of shard %u behind task %u in a run", h->index, number,
                                seat->shard, before);
                if (sim_task_is_over(&s->tasks[number]))
                        sim_fail(sim, "host %u starts task %u of shard %u in a run, which is done or merged", h->index,
                                number, seat->shard);
                for (uint32_t k = before + 1; k < number; k++)
                        if (s->tasks[k].key == seat->key && !sim_task_is_over(&s->tasks[k]))
                                sim_fail(sim, "host %u leaves out task %u of shard %u in a run", h->index, k,
                                        seat->shard);
                if ((seat->followers[i]->trust == TRUST_SUSPECT) != seat->is_suspect)
                        sim_fail(
                                sim, "host %u has a suspect beside others in a run of shard %u", h->index, seat->shard);
                before = number;
                sim->counts.followed++;
        }
}

/* The answers of those behind the first one, which ended so.  A runner may say DONE of what it had no right to start.
 */
void sim_batch_end(struct sim_host *h, const struct sim_seat *seat, struct shard *s, const struct store_outcome *first)
{
        struct sim *sim = h->sim;
        enum store_outcome_kind kind = first->kind;
        for (uint32_t i = 0; i < seat->followers_count; i++) {
                struct claimed *c = seat->followers[i];
                if (kind == STORE_DIVERT) {
                        shard_again(s, c, sim->now_ms);
                        continue;
                }
                bool is_answer = kind != STORE_INTERRUPTED || !first->is_suspect;
                if (is_answer && shard_refuse_answer(s, c, sim->now_ms))
                        continue;
                if (kind == STORE_DONE && sim_happens(sim, 20))
                        kind = STORE_INTERRUPTED;
                struct pending_outcome *pending = pending_outcome_new(kind, COST_NONE, "");
                pending->outcome.is_suspect = kind == STORE_INTERRUPTED && first->is_suspect;
                shard_ended(s, c, pending, sim->now_ms);
        }
}
