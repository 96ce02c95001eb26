/* sim_merge.c: tasks that are merged into others, as a store does it, and what must hold of it: see "Merging" in
 * runtime/store/README.md. */
#include "sim.h"

bool sim_task_is_over(const struct sim_task *t)
{
        return t->state == TASK_DONE || t->state == TASK_MERGED;
}

void sim_merge_start(struct sim *sim)
{
        for (uint32_t i = 0; i < SHARDS * SHARD_TASKS; i++) {
                struct sim_task *t = &sim->shards[i / SHARD_TASKS].tasks[i % SHARD_TASKS];
                t->payload = i % SHARD_TASKS;
                t->may_merge = t->key != LEND_KEY && sim_draw(sim, 3) != 0;
                if (t->may_merge && sim_draw(sim, 4) == 0)
                        t->debounce_ms = 1 + sim_draw(sim, 200);
        }
}

static bool is_among(const struct sim_call *call, uint32_t outcome, uint32_t number)
{
        for (uint32_t i = 0; i < call->outcomes[outcome].merged_count; i++)
                if (call->merged[call->merged_from[outcome] + i] == number)
                        return true;
        return false;
}

/* Nobody has started it, as far as the store knows, and whoever says so does not run it. */
static void check_unstarted(struct sim *sim, const struct sim_call *call, uint32_t number)
{
        const struct sim_store_shard *s = &sim->shards[call->shard];
        const struct sim_task *t = &s->tasks[number];
        if (t->state != TASK_FLIGHT || !t->may_merge)
                sim_fail(sim, "shard %u: task %u is merged, and is not in flight or does not ask for it", call->shard,
                        number);
        if (t->started_epoch || t->worker_until_ms)
                sim_fail(sim, "shard %u: task %u is merged, and its start is recorded", call->shard, number);
        for (uint32_t i = 0; i < HOSTS * SEATS; i++) {
                const struct sim_seat *seat = &sim->hosts[i / SEATS].seats[i % SEATS];
                if (sim->hosts[i / SEATS].is_alive && seat->task && !seat->is_over && seat->shard == call->shard &&
                        (seat->number == number || sim_batch_has(seat, number)) && seat->epoch == s->epoch)
                        sim_fail(sim, "shard %u: task %u is merged while its owner runs it", call->shard, number);
        }
}

void sim_merge_apply(struct sim *sim, struct sim_store_shard *s, struct sim_call *call, uint32_t outcome)
{
        const struct store_outcome *o = &call->outcomes[outcome];
        uint32_t into = (uint32_t)o->task.seq - 1;
        uint32_t last = into;
        check_unstarted(sim, call, into);
        for (uint32_t i = 0; i < o->merged_count; i++) {
                uint32_t number = call->merged[call->merged_from[outcome] + i];
                check_unstarted(sim, call, number);
                if (number <= last || s->tasks[number].key != s->tasks[into].key)
                        sim_fail(sim, "shard %u: task %u is merged into %u, which is not before it in its key's order",
                                call->shard, number, into);
                last = number;
        }
        for (uint32_t i = into + 1; i < last; i++)
                if (s->tasks[i].key == s->tasks[into].key && !sim_task_is_over(&s->tasks[i]) &&
                        !is_among(call, outcome, i))
                        sim_fail(sim, "shard %u: task %u is merged into %u over task %u of its key", call->shard, last,
                                into, i);
        for (uint32_t i = 0; i < o->merged_count; i++) {
                struct sim_task *t = &s->tasks[call->merged[call->merged_from[outcome] + i]];
                t->state = TASK_MERGED;
                t->into = into;
                sim->counts.merged++;
        }
        /* What the last one was to do, and how: also how long others may join it. */
        s->tasks[into].payload = s->tasks[last].payload;
        s->tasks[into].debounce_ms = s->tasks[last].debounce_ms;
        sim_key_refill(sim, s, s->tasks[into].key, o->refill);
}

/* What stands behind it waits no longer than until it is claimed: it becomes one with it before that starts. */
void sim_merge_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        const struct sim_store_shard *s = &sim->shards[seat->shard];
        const struct sim_task *t = &s->tasks[seat->number];
        const struct claimed *c = seat->task;
        if (c->may_merge && c->next && c->next->may_merge && c->next->state == CLAIMED_WAITING)
                sim_fail(sim, "host %u starts task %u of shard %u, and another waits that should be merged into it",
                        h->index, seat->number, seat->shard);
        /* It is put off once, and not if it may have run at a death.  For how long depends on what else is given back.
         */
        if (!t->is_debounced && !t->is_suspect && !t->started_epoch && sim->now_ms < t->arrived_ms + t->debounce_ms)
                sim_fail(sim, "host %u starts task %u of shard %u before others could join it", h->index, seat->number,
                        seat->shard);
        uint32_t payload = 0;
        for (size_t i = 0; i < c->payload.size; i++)
                payload = 10 * payload + (uint32_t)(c->payload.data[i] - '0');
        if (seat->epoch == s->epoch && payload != t->payload)
                sim_fail(sim, "host %u starts task %u of shard %u with the payload of task %u, not of %u", h->index,
                        seat->number, seat->shard, payload, t->payload);
}

/* Who waits for a merged task gets the outcome of the one that it became part of. */
void sim_merge_done(struct sim *sim, uint32_t shard, uint32_t number)
{
        struct sim_store_shard *s = &sim->shards[shard];
        for (uint32_t i = number + 1; i < SHARD_TASKS; i++) {
                uint32_t end = i;
                while (s->tasks[end].state == TASK_MERGED)
                        end = s->tasks[end].into;
                if (s->tasks[i].state == TASK_MERGED && end == number)
                        s->tasks[i].replies++;
        }
}

void sim_merge_check_end(struct sim *sim)
{
        uint64_t merged = 0;
        for (uint32_t i = 0; i < SHARDS * SHARD_TASKS; i++) {
                const struct sim_task *t = &sim->shards[i / SHARD_TASKS].tasks[i % SHARD_TASKS];
                merged += t->state == TASK_MERGED;
                if (t->state == TASK_MERGED && (t->replies != 1 || t->done_count))
                        sim_fail(sim, "task %u of shard %u was merged, has %u replies and was done %u times",
                                i % SHARD_TASKS, i / SHARD_TASKS, t->replies, t->done_count);
        }
        if (merged != sim->counts.merged)
                sim_fail(sim, "a task was merged twice");
}
