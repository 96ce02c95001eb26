/* outage.h: since when a handler answers UNAVAILABLE, and when to log it.
 *
 * The pool pauses and probes, perhaps for hours, perhaps several times a second.  The beginning and the end are logged,
 * at most once per OUTAGE_PACE_MS; outages in between are counted, and logged if they last.  No I/O. */
#ifndef QUIVER_HOST_HANDLER_OUTAGE_H
#define QUIVER_HOST_HANDLER_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define OUTAGE_PACE_MS  10000
#define OUTAGE_TEXT_MAX 160

/* Zero-initialised: no outage. */
struct outage {
        bool is_on;
        bool is_told;               /* the beginning of this outage was logged */
        bool has_told;              /* some outage was logged before */
        uint64_t since_ms;          /* valid if is_on */
        uint64_t told_ms;           /* when a beginning was last logged */
        uint32_t untold;            /* outages since told_ms that were not logged, this one included */
        char text[OUTAGE_TEXT_MAX]; /* valid if is_on: the reason, in the handler's words */
};

/* The handler answered UNAVAILABLE, for the first time or again.  True: log it, where `untold` is the number of outages
 * since the last line; then call outage_told(). */
bool outage_goes_on(struct outage *o, const char *text, uint64_t now_ms);
void outage_told(struct outage *o, uint64_t now_ms);

/* A task of the handler had another outcome.  True: an outage that was logged is over; log how long it lasted. */
bool outage_over(struct outage *o, uint64_t now_ms, uint64_t *ret_lasted_ms);

#endif
