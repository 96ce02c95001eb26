/* seat.h: one thread of a runner with its own instance of the plugin.
 *
 * All of these are called on the seat's own thread, in this order. */
#ifndef QUIVER_RUNNER_SEAT_H
#define QUIVER_RUNNER_SEAT_H

#include <stdbool.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "base/error.h"
#include "runner/runner.h"
#include "runner/seat_task.h"

struct seat {
        struct qv_host host; /* first, so that a service finds its seat */
        struct runner *runner;
        uint32_t number;
        struct ring_seat *shown; /* its place in the shared memory */
        void *self;              /* the plugin's instance */

        uint32_t room;   /* tasks it can hold: batch_max */
        uint32_t active; /* tasks it holds now: tasks[0 … active) */
        struct seat_task *tasks;
        struct ring_taken *taken;
        const struct qv_task **together; /* for handle_many */
        int32_t *outcomes;
        char init_error[QV_ERROR_MAX];
};

/* Makes the plugin's instance.  0, or -errno with the text set; then only seat_free() may follow. */
int seat_open(struct seat *s, struct runner *runner, uint32_t number, struct error *error);

/* Takes, handles and answers tasks until the runner retires and none is left. */
void seat_serve(struct seat *s);

/* The plugin's close(). */
void seat_close(struct seat *s);
void seat_free(struct seat *s);

/* The task's place on the seat; NULL if the seat does not hold it, or another thread asks. */
struct seat_task *seat_find_work(struct seat *s, const struct qv_task *task);
/* Whether the calling thread is the seat's own. */
bool seat_is_mine(const struct seat *s);

#endif
