/* The protocol of several hosts, run with a fake store, tree and clock; QUIVER_SIM_SEED=N repeats one run.
 * QUIVER_SIM_STEPS: events with trouble, over all runs. */
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
        struct sim_counts c = { 0 };
        uint64_t runs = 0;
        log_set_level(LEVEL_ERROR);
        (void)printf("QUIVER_SIM_SEED=%" PRIu64 " and following\n", seed);
        do {
                sim_run(seed + runs, RUN_STEPS, &c);
                runs++;
        } while (!seed_text && c.events < steps);
        (void)printf("%" PRIu64 " runs, %" PRIu64 " events, %" PRIu64 " calls, %" PRIu64 " starts, %" PRIu64
                     " done; %" PRIu64 " kills, %" PRIu64 " pauses, %" PRIu64 " cuts; %" PRIu64 " handovers, %" PRIu64
                     " assignments, %" PRIu64 " times fenced, %" PRIu64 " overlaps under lost leases, %" PRIu64
                     " suspects; %" PRIu64 " handlers paused, %" PRIu64 " keys woken, %" PRIu64
                     " tasks lent to workers, %" PRIu64 " times of schedules fired, %" PRIu64 " tasks merged, %" PRIu64
                     " debounced\n",
                runs, c.events, c.calls, c.starts, c.done, c.kills, c.pauses, c.cuts, c.handovers, c.documents,
                c.fenced, c.overlaps, c.suspects, c.handler_pauses, c.woken, c.workers, c.fired, c.merged, c.debounced);
        /* A run in which nothing goes wrong proves nothing. */
        if (!seed_text &&
                (!c.kills || !c.pauses || !c.cuts || !c.fenced || !c.handovers || !c.suspects || !c.handler_pauses ||
                        !c.woken || !c.workers || !c.fired || !c.merged || !c.debounced)) {
                (void)fprintf(stderr, "there was not enough trouble\n");
                return 1;
        }
        return 0;
}
