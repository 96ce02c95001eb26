/* fence.h: identifies a start of a task that a worker reports about.
 *
 * A start is identified by the epoch of the shard in which it was recorded, and its number within that epoch.  The
 * store keeps it in the holder of the start, with the worker's name: "worker/12.345/NAME".  The worker gets a text that
 * it sends with every report: "12.345.281474976710657"; the third number is the task's seq in its shard.
 *
 * A start on a borrowed seat has another form of holder, which names the mailbox of the borrower:
 * "seat/12.345/NONCE/HOST".
 *
 * Plain functions, no I/O. */
#ifndef QUIVER_WORKER_FENCE_H
#define QUIVER_WORKER_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"
#include "store/store.h"
#include "task/note.h"

#define WORKER_NAME_MAX 64u
#define FENCE_TEXT_MAX  64u /* with its NUL */
#define SEAT_HOST_MAX   56u /* bytes of a host's name in a holder; longer ones are cut */

struct work_fence {
        uint64_t epoch, start; /* a later start of a task has a larger pair: compare epoch, then start */
        uint64_t seq;
};

/* "12.345.281474976710657" */
void fence_put(char text[FENCE_TEXT_MAX], const struct work_fence *fence);
/* 0 or -EINVAL. */
int fence_parse(struct span text, struct work_fence *ret_fence, struct error *error);

/* 1 to 64 letters, digits, and any of . _ : @ -; 0 or -EINVAL. */
int worker_name_check(struct span name, struct error *error);

/* "worker/12.345/NAME"; without a name, the prefix of every holder of that start. */
void holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence, const char *worker);
/* The epoch, start and worker of a holder; false: the holder is not a worker. */
bool holder_parse(struct span holder, struct work_fence *ret_fence, struct span *ret_worker);

/* The same for a start on a seat of the host with that nonce and name. */
void seat_holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence,
        const uint8_t nonce[STORE_NONCE_SIZE], const char *host);
bool seat_holder_parse(
        struct span holder, struct work_fence *ret_fence, uint8_t ret_nonce[STORE_NONCE_SIZE], struct span *ret_host);
/* The prefix of every holder of that start on a seat: "seat/12.345/". */
void seat_start_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence);
/* Whether it is such a prefix, and not a worker's. */
bool seat_start_is(struct span start);

#endif
