/* seat.h: one thread of a runner with its own instance of the plugin.
 *
 * All functions are called on the seat's own thread, in the order of this file. */
#ifndef QUIVER_RUNNER_SEAT_H
#define QUIVER_RUNNER_SEAT_H

#include <stdbool.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "base/error.h"
#include "runner/runner.h"
#include "runner/seat_task.h"

struct seat {
        struct qv_host host; /* the first member: a service casts its host pointer to the seat */
        struct runner *runner;
        uint32_t number;
        struct ring_seat *shown; /* the seat's record in the shared memory */
        void *self;              /* the plugin's instance */

        uint32_t room;   /* the most tasks that the seat can hold: batch_max */
        uint32_t active; /* tasks that it holds now: tasks[0 … active) */
        uint64_t ticket; /* of the task being handled, or of the first of those handled together; 0: none */
        struct seat_task *tasks;
        struct ring_taken *taken;
        const struct qv_task **together; /* the argument of handle_many() */
        int32_t *outcomes;
        char init_error[QV_ERROR_MAX];
};

/* Calls the plugin's load(), before any seat is opened and on the caller's thread.  0, or -errno with the text set. */
int seat_load(struct runner *runner, struct error *error);
/* Calls the plugin's unload(), after the last seat was closed; on the thread of seat_load(). */
void seat_unload(struct runner *runner);

/* Creates the plugin's instance.  0, or -errno with the text set; then only seat_free() may follow. */
int seat_open(struct seat *s, struct runner *runner, uint32_t number, struct error *error);

/* Takes, handles and answers tasks until the runner retires and no task is left. */
void seat_serve(struct seat *s);

/* Calls the plugin's close(). */
void seat_close(struct seat *s);
void seat_free(struct seat *s);

/* The seat's record of the task; NULL if the seat does not hold it, or on another thread than the seat's. */
struct seat_task *seat_find_work(struct seat *s, const struct qv_task *task);
/* Whether the calling thread is the seat's own. */
bool seat_is_mine(const struct seat *s);

#endif
