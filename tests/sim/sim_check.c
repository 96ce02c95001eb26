/* sim_check.c: what must hold, whatever happens. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

static struct sim_seat *find_running(const struct sim *sim, uint32_t shard, uint32_t key, const struct sim_seat *but,
        const struct sim_host **ret_host)
{
        for (uint32_t i = 0; i < HOSTS; i++)
                for (uint32_t j = 0; sim->hosts[i].is_alive && j < SEATS; j++) {
                        const struct sim_seat *s = &sim->hosts[i].seats[j];
                        if (s == but || !s->is_started || s->is_over || s->shard != shard || s->key != key)
                                continue;
                        *ret_host = &sim->hosts[i];
                        return (struct sim_seat *)s;
                }
        return NULL;
}

bool sim_is_running(const struct sim *sim, uint32_t shard, uint32_t key)
{
        const struct sim_host *host;
        return find_running(sim, shard, key, NULL, &host);
}

/* Some renewals may be lost, and answers with them; so many in a row are not. */
#define HEARD_MS (5 * TTL_MS)

static uint64_t latest(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* A host that knows that a handler is paused starts none of its tasks, and one that can reach the store knows. */
static void check_pause(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat, uint32_t pool)
{
        if (h->dispatch.pools[pool].is_paused)
                sim_fail(sim, "host %u starts task %u of shard %u, whose handler is paused", h->index, seat->number,
                        seat->shard);
        uint64_t since_ms =
                latest(sim->pause_ms[pool], latest(h->born_ms, latest(h->paused_until_ms, h->store_cut_until_ms)));
        if (sim->is_paused[pool] && sim->now_ms > since_ms + HEARD_MS)
                sim_fail(sim, "host %u has not heard that pool %u is paused", h->index, pool);
}

/* Suspects start one by one in each pool of a host, and only once their start is recorded. */
void sim_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        const struct sim_task *task = &sim->shards[seat->shard].tasks[seat->number];
        uint32_t pool = (uint32_t)(seat - h->seats) / POOL_SEATS;
        check_pause(sim, h, seat, pool);
        sim_limits_check_seat(sim, h, seat);
        sim_merge_check_seat(sim, h, seat);
        if (!seat->is_suspect)
                return;
        sim->counts.suspects++;
        for (uint32_t i = pool * POOL_SEATS; i < (pool + 1) * POOL_SEATS; i++)
                if (&h->seats[i] != seat && h->seats[i].task && h->seats[i].is_suspect &&
                        h->shards.list[h->seats[i].shard].shard.lease.epoch == h->seats[i].epoch)
                        sim_fail(sim, "host %u has two suspects at once in pool %u", h->index, pool);
        if (sim->shards[seat->shard].epoch == seat->epoch && task->started_epoch != seat->epoch)
                sim_fail(sim, "host %u starts the suspect %u of shard %u, and the store does not know", h->index,
                        seat->number, seat->shard);
}

void sim_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        const struct sim_store_shard *s = &sim->shards[seat->shard];
        const struct sim_host *other;
        sim->counts.starts++;
        sim_limits_check_start(sim, h, seat);
        if (sim_task_is_over(&s->tasks[seat->number]))
                sim_fail(sim, "host %u starts task %u of shard %u, which is done or merged", h->index, seat->number,
                        seat->shard);
        for (uint32_t i = 0; i < seat->number; i++)
                if (s->tasks[i].key == seat->key && !sim_task_is_over(&s->tasks[i]))
                        sim_fail(sim, "host %u starts task %u of shard %u before task %u of the same key is done",
                                h->index, seat->number, seat->shard, i);
        for (uint32_t i = 0; i < SHARD_TASKS && !seat->borrowed; i++)
                if (s->tasks[i].key == seat->key && s->tasks[i].worker_until_ms > sim->now_ms)
                        sim_fail(sim, "host %u starts task %u of shard %u, and a worker may run task %u of its key",
                                h->index, seat->number, seat->shard, i);
        const struct sim_seat *running = find_running(sim, seat->shard, seat->key, seat, &other);
        if (!running)
                return;
        /* The only exception: a call that was running when its host lost the lease. */
        sim->counts.overlaps++;
        /* Or one on a borrowed seat that is past its deadline, and is about to be stopped. */
        if (running->borrowed) {
                sim->counts.late++;
                if (!sim_lend_is_late(sim, running))
                        sim_fail(sim, "host %u starts task %u of shard %u, which host %u may still run", h->index,
                                seat->number, seat->shard, other->index);
                return;
        }
        if (other == h && running->epoch == seat->epoch)
                sim_fail(sim, "host %u runs two tasks of a key of shard %u at once", h->index, seat->shard);
        if (running->epoch >= seat->epoch && other != h && !seat->borrowed)
                sim_fail(sim, "host %u starts under epoch %" PRIu64 " what host %u runs under %" PRIu64, h->index,
                        seat->epoch, other->index, running->epoch);
        if (sim_host_may_start(other, seat->shard) && other != h && !seat->borrowed)
                sim_fail(
                        sim, "host %u starts in shard %u while host %u still may", h->index, seat->shard, other->index);
}

void sim_check_done(struct sim *sim, uint32_t shard, uint32_t number, uint64_t epoch)
{
        const struct sim_store_shard *s = &sim->shards[shard];
        if (s->tasks[number].done_count != 1)
                sim_fail(sim, "task %u of shard %u is done twice", number, shard);
        if (epoch != s->epoch)
                sim_fail(sim, "shard %u: an effect of epoch %" PRIu64 " under %" PRIu64, shard, epoch, s->epoch);
        for (uint32_t i = 0; i < number; i++)
                if (s->tasks[i].key == s->tasks[number].key && !sim_task_is_over(&s->tasks[i]))
                        sim_fail(sim, "task %u of shard %u is done before task %u of its key", number, shard, i);
}

static void check_assign(struct sim *sim)
{
        struct span text;
        struct assignment a = { 0 };
        struct error error;
        if (!sim_tree_read(sim, "assign", &text))
                return;
        if (assign_doc_parse(text, &a, &error) < 0)
                sim_fail(sim, "the assignment cannot be read: %s", error.text);
        if (a.generation < sim->generation)
                sim_fail(sim, "the generation goes back from %" PRIu64 " to %" PRIu64, sim->generation, a.generation);
        sim->counts.documents += a.generation != sim->generation;
        sim->generation = a.generation;
        assignment_free(&a);
}

/* Long enough for everything that takes its time: a session to end, a leader to be found, a lease to run out. */
#define HEALED_MS (SESSION_MS + TTL_MS * 3 / 2)

/* Since when nothing goes wrong.  A request that was sent before may arrive up to three sessions later.  If its host is
 * dead or stopped by then, its session has as long as ever from there on, and with it what it has in the tree: the
 * leadership, or membership with shards.  Nobody can replace the host before the session ends. */
static uint64_t well_since_ms(const struct sim *sim)
{
        return latest(sim->calm_ms, sim->kept_ms);
}

/* Nothing is paused: nobody waits for that any more.  Who waits for a limit is woken unless others start under it. */
static void check_names(const struct sim *sim)
{
        for (uint32_t i = 0; sim->is_calm && i < SHARDS * SHARD_KEYS; i++) {
                const struct sim_key *k = &sim->shards[i / SHARD_KEYS].keys[i % SHARD_KEYS];
                uint64_t since_ms = latest(k->since_ms, well_since_ms(sim));
                if (k->state == SIM_KEY_NAMED && k->name >= POOLS)
                        since_ms = latest(since_ms, sim_limits_started_ms(sim, k->name));
                if (k->state == SIM_KEY_NAMED && sim->now_ms > since_ms + HEALED_MS + HEARD_MS)
                        sim_fail(sim, "%.*s is open for %" PRIu64 " ms, and key %u of shard %u is not woken",
                                (int)sim_store_name(k->name).size, sim_store_name(k->name).data, sim->now_ms - since_ms,
                                i % SHARD_KEYS, i / SHARD_KEYS);
        }
}

void sim_check_always(struct sim *sim)
{
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
                struct sim_store_shard *s = &sim->shards[shard];
                uint32_t count = 0;
                for (uint32_t i = 0; i < HOSTS; i++)
                        count += sim->hosts[i].is_alive && sim_host_may_start(&sim->hosts[i], shard);
                if (count > 1)
                        sim_fail(sim, "%u hosts may start handlers of shard %u", count, shard);
                if (s->epoch < sim->epochs[shard])
                        sim_fail(sim, "the epoch of shard %u goes back", shard);
                sim->epochs[shard] = s->epoch;
                bool is_owned = s->is_held && s->until_ms > sim->now_ms;
                s->unowned_ms = is_owned ? 0 : s->unowned_ms ? s->unowned_ms : sim->now_ms;
                uint64_t since_ms = latest(s->unowned_ms, well_since_ms(sim));
                if (sim->is_calm && !is_owned && sim->now_ms > since_ms + HEALED_MS)
                        sim_fail(sim, "all is well for %" PRIu64 " ms and nobody owns shard %u", sim->now_ms - since_ms,
                                shard);
        }
        if (sim->counts.events % 16 == 0) {
                check_assign(sim);
                check_names(sim);
                sim_schedule_check(sim);
        }
}

void sim_check_end(struct sim *sim)
{
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                for (uint32_t i = 0; i < SHARD_TASKS; i++)
                        if (sim->shards[shard].tasks[i].state != TASK_MERGED &&
                                sim->shards[shard].tasks[i].done_count != 1)
                                sim_fail(sim, "task %u of shard %u was done %u times", i, shard,
                                        sim->shards[shard].tasks[i].done_count);
        sim_merge_check_end(sim);
        if (sim->counts.done + sim->counts.merged != SHARDS * SHARD_TASKS)
                sim_fail(sim, "%" PRIu64 " tasks done", sim->counts.done);
}
