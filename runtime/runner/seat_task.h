/* seat_task.h: one task on a seat: the task that the handler sees, and what the handler has staged for its answer. */
#ifndef QUIVER_RUNNER_SEAT_TASK_H
#define QUIVER_RUNNER_SEAT_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "base/buffer.h"
#include "ring/runner_side.h"

/* Zero-initialised holds no task.  Its memory is reused for the next task. */
struct seat_task {
        struct qv_task task; /* points into shared memory, and to `headers` and `headers2` */
        uint64_t ticket;
        struct qv_header *headers;
        struct qv_header2 *headers2;
        size_t headers_room; /* of both arrays */

        bool has_result;
        bool has_retry_after;
        bool has_checkpoint;
        uint64_t retry_after_ms;
        uint32_t submits_count;
        struct buffer result;
        struct buffer submits; /* follow-ups, in the form of ring_put_submit() */
        struct buffer checkpoint;
        char error[QV_ERROR_MAX];
};

/* Fills in the task for the handler, with nothing staged.  The caller sets `host`, stop word and deadline. */
void seat_task_begin(struct seat_task *w, const struct ring_taken *taken);

/* Sets the error text, cut to fit. */
void seat_task_set_error(struct seat_task *w, const char *text);

/* Fills in the answer for `outcome`; it borrows from `w`.  Result and follow-ups are included only with DONE. */
void seat_task_reply(const struct seat_task *w, int32_t outcome, struct ring_reply *ret);

/* The size of the answer if the task were DONE now. */
size_t seat_task_size(const struct seat_task *w);

/* Call after the task was answered: frees buffers that have grown unusually large. */
void seat_task_end(struct seat_task *w);
void seat_task_free(struct seat_task *w);

#endif
