/* seat_task.h: one task on a seat: as the handler sees it, and what the handler has staged for its answer. */
#ifndef QUIVER_RUNNER_SEAT_TASK_H
#define QUIVER_RUNNER_SEAT_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "base/buffer.h"
#include "ring/runner_side.h"

/* Zero-initialised is one that holds no task.  Its memory is used again for the next task. */
struct seat_task {
        struct qv_task task; /* points into shared memory, and to `headers` */
        uint64_t ticket;
        struct qv_header *headers;
        size_t headers_room;

        bool has_result;
        bool has_retry_after;
        bool has_checkpoint;
        uint64_t retry_after_ms;
        uint32_t submits_count;
        struct buffer result;
        struct buffer submits; /* as ring_put_submit() writes them */
        struct buffer checkpoint;
        char error[QV_ERROR_MAX];
};

/* Shows the task to the handler, with nothing staged.  `host`, stop word and deadline are the caller's to set. */
void seat_task_begin(struct seat_task *w, const struct ring_taken *taken);

/* Cut to fit. */
void seat_task_set_error(struct seat_task *w, const char *text);

/* The answer for `outcome`, borrowed from `w`.  What is committed only with DONE is left out otherwise. */
void seat_task_reply(const struct seat_task *w, int32_t outcome, struct ring_reply *ret);

/* The bytes that its answer would take if it were DONE now. */
size_t seat_task_size(const struct seat_task *w);

/* The task is answered: gives back what an unusually large one took. */
void seat_task_end(struct seat_task *w);
void seat_task_free(struct seat_task *w);

#endif
