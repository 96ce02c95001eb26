/* The protocol of several hosts, run with a fake store, tree and clock; QUIVER_SIM_SEED=N repeats one run.
 * QUIVER_SIM_STEPS: events with trouble, over all runs; with both, runs from that seed on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "sim.h"

#define RUN_STEPS 8000

int main(void)
{
        const char *seed_text = getenv("QUIVER_SIM_SEED");
        const char *steps_text = getenv("QUIVER_SIM_STEPS");
        uint64_t steps = steps_text ? strtoull(steps_text, NULL, 10) : 400000;
        uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL) * 100000;
        bool is_one = seed_text && !steps_text;
        struct sim_counts c = { 0 };
        uint64_t runs = 0;
        log_set_level(LEVEL_ERROR);
        (void)printf("QUIVER_SIM_SEED=%" PRIu64 " and following\n", seed);
        do {
                /* What goes wrong with shares takes longer than a lease. */
                sim_run(seed + runs, (seed + runs) % 3 == 1 ? 3 * RUN_STEPS : RUN_STEPS, &c);
                runs++;
        } while (!is_one && c.events < steps);
        (void)printf("%" PRIu64 " runs, %" PRIu64 " events, %" PRIu64 " calls, %" PRIu64 " starts, %" PRIu64
                     " done; %" PRIu64 " kills, %" PRIu64 " pauses, %" PRIu64 " cuts, %" PRIu64
                     " requests of hosts that were dead or stopped; %" PRIu64 " handovers, %" PRIu64
                     " assignments, %" PRIu64 " times fenced, %" PRIu64 " overlaps under lost leases, %" PRIu64
                     " suspects; %" PRIu64 " handlers paused, %" PRIu64 " keys woken, %" PRIu64
                     " tasks lent to workers, %" PRIu64 " times of schedules fired, %" PRIu64 " tasks merged, %" PRIu64
                     " debounced, %" PRIu64 " shards exchanged for load, %" PRIu64
                     " behind another in one call; %" PRIu64 " tasks went to wait for a limit, %" PRIu64
                     " shares, %" PRIu64 " starts that made a concurrency full, %" PRIu64
                     " beside calls of hosts that stood still, %" PRIu64 " calls stopped without a share, %" PRIu64
                     " times closed, %" PRIu64 " changed; %" PRIu64 " tasks lent to other hosts' seats, %" PRIu64
                     " done there, %" PRIu64 " silent, %" PRIu64 " declined, %" PRIu64 " adopted, %" PRIu64
                     " overlaps past their deadline; %" PRIu64 " runners killed\n",
                runs, c.events, c.calls, c.starts, c.done, c.kills, c.pauses, c.cuts, c.kept, c.handovers, c.documents,
                c.fenced, c.overlaps, c.suspects, c.handler_pauses, c.woken, c.workers, c.fired, c.merged, c.debounced,
                c.exchanged, c.followed, c.limited, c.shares, c.full, c.left_over, c.lost, c.closed, c.changed, c.lent,
                c.borrowed_done, c.seats_silent, c.declined, c.adopted, c.late, c.runners_killed);
        /* A run in which nothing goes wrong proves nothing. */
        if (!is_one &&
                (!c.kills || !c.pauses || !c.cuts || !c.kept || !c.fenced || !c.handovers || !c.suspects ||
                        !c.handler_pauses || !c.woken || !c.workers || !c.fired || !c.merged || !c.debounced ||
                        !c.exchanged || !c.followed || !c.limited || !c.full || !c.closed || !c.changed || !c.lent ||
                        !c.borrowed_done || !c.seats_silent || !c.declined || !c.adopted || !c.runners_killed)) {
                (void)fprintf(stderr, "there was not enough trouble\n");
                return 1;
        }
        return 0;
}
