/* fence.h: which start of which task a worker speaks of.
 *
 * A start is named by the epoch of the shard under which it was recorded, and its number within that epoch.  The store
 * keeps it as the holder of the start, with the worker's name: "worker/12.345/NAME".  The worker is told a text that it
 * gives back with everything it says: "12.345.281474976710657", the third number being the task's in its shard.
 *
 * A start on a borrowed seat has another holder, which says whose mailbox reaches it: "seat/12.345/NONCE/HOST".
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
        uint64_t epoch, start; /* both grow; a later start of a task has a larger one: compare epoch, then start */
        uint64_t seq;
};

/* "12.345.281474976710657" */
void fence_put(char text[FENCE_TEXT_MAX], const struct work_fence *fence);
/* 0 or -EINVAL. */
int fence_parse(struct span text, struct work_fence *ret_fence, struct error *error);

/* 1 to 64 letters, digits, and any of . _ : @ -; 0 or -EINVAL. */
int worker_name_check(struct span name, struct error *error);

/* "worker/12.345/NAME"; without a name what every holder of that start begins with. */
void holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence, const char *worker);
/* The epoch and start that a holder names, and the worker; false: the holder is no worker. */
bool holder_parse(struct span holder, struct work_fence *ret_fence, struct span *ret_worker);

/* The same of a start on a seat of the host with that nonce and name. */
void seat_holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence,
        const uint8_t nonce[STORE_NONCE_SIZE], const char *host);
bool seat_holder_parse(
        struct span holder, struct work_fence *ret_fence, uint8_t ret_nonce[STORE_NONCE_SIZE], struct span *ret_host);
/* What every holder of that start on a seat begins with: "seat/12.345/". */
void seat_start_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence);
/* Whether it is the beginning of such a holder, and no worker's. */
bool seat_start_is(struct span start);

#endif
