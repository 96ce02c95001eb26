/* sim_runner.c: the process that a pool's seats are in.  A pool under a limit has no room before its runner is ready;
 * one without a limit is given tasks at once, as they wait for the runner in the pool.  Runners are killed from
 * outside: nobody knows which task did it, so all that ran are suspects. */
#include <stdlib.h>

#include "sim.h"

bool sim_runner_takes_tasks(const struct sim_host *h, uint32_t pool)
{
        return !h->sim->has_limits || h->runners[pool].is_ready;
}

/* Which start of which runner an event is about. */
struct start {
        struct sim_host *host;
        uint32_t pool;
        uint64_t stamp;
};

static void on_ready(struct sim *sim, void *arg)
{
        const struct start *start = arg;
        struct sim_runner *runner = &start->host->runners[start->pool];
        (void)sim;
        if (runner->stamp != start->stamp)
                return;
        runner->is_ready = true;
        sim_host_turn(start->host);
}

void sim_runner_start(struct sim_host *h, uint32_t pool)
{
        struct sim_runner *runner = &h->runners[pool];
        if (runner->stamp)
                return;
        runner->stamp = ++h->sim->next_number;
        struct start *start = malloc(sizeof(*start));
        if (!start)
                abort();
        *start = (struct start){ h, pool, runner->stamp };
        sim_at_host(h, 1 + sim_draw(h->sim, 30), on_ready, start);
}

void sim_runner_kill(struct sim_host *h, uint32_t pool)
{
        h->sim->counts.runners_killed++;
        h->runners[pool] = (struct sim_runner){ 0 };
        sim_host_end_seats(h, pool);
}
