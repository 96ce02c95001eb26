/* generator.h: unique ids of one process, each larger than the one before.
 *
 * A generator has a slot, which makes its ids different from those of other processes, and a horizon: the time up to
 * which it owns the slot, as recorded in the coordination (coord/slot.h).  It gives no id beyond the horizon, and none
 * before the time from which the slot was granted, because the last owner may have given ids up to there.  So two
 * owners of one slot never give the same id, whatever their clocks show.
 *
 * Plain data, no clock, no lock, no sleep: any number of threads take ids from it; a caller that must wait is told how
 * long. */
#ifndef QUIVER_ID_GENERATOR_H
#define QUIVER_ID_GENERATOR_H

#include <stdatomic.h>

#include "id/layout.h"

/* A clock that is behind the last id by at most this is waited for; one further behind is an error. */
#define ID_STEP_MS 1000u

struct id_generator {
        struct id_layout layout;
        _Atomic uint64_t last;     /* the last id given; its sequence is full if its unit is used up */
        _Atomic uint64_t until_ms; /* the horizon; 0: no slot yet */
};

enum id_verdict {
        ID_GIVEN,
        ID_WAIT,     /* wait for wait_ns: the sequence of this unit is used up, or the clock made a small step back */
        ID_BEYOND,   /* move the horizon or get a slot first */
        ID_BACKWARD, /* the clock is behind the last id by more than ID_STEP_MS */
        ID_OVERFLOW, /* the clock is outside the layout's times */
};

/* `count` ids, `step` apart, all of one unit of time. */
struct id_block {
        uint64_t first;
        uint64_t step;
        uint32_t count;
        uint64_t wait_ns; /* ID_WAIT */
        uint64_t back_ms; /* ID_BACKWARD: how far the clock is behind */
};

void id_generator_init(struct id_generator *g, const struct id_layout *layout);

/* We own the slot from from_ms (inclusive) to until_ms (exclusive), unix time.  If the generator already has this slot
 * and from_ms is not after its horizon, this only moves the horizon.  One thread at a time. */
void id_generator_grant(struct id_generator *g, uint32_t slot, uint64_t from_ms, uint64_t until_ms);

/* Takes up to `want` ids (≥ 1) at the time now_ns, unix nanoseconds.  Any thread. */
enum id_verdict id_generator_take(struct id_generator *g, uint64_t now_ns, uint32_t want, struct id_block *ret_block);

/* No id of this time (unix milliseconds) or later was given: the horizon to record when the slot is given back.  No id
 * may be taken afterwards. */
uint64_t id_generator_stop(struct id_generator *g);

#endif
