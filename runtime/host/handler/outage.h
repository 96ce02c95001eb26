/* outage.h: since when a handler says UNAVAILABLE, and which of it is worth a line in the log.
 *
 * Its pool pauses and probes, perhaps for hours, perhaps several times a second.  Told are the beginning and the end,
 * but not more often than every OUTAGE_PACE_MS: what comes in between is counted, and told if it lasts.  No I/O. */
#ifndef QUIVER_HOST_HANDLER_OUTAGE_H
#define QUIVER_HOST_HANDLER_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define OUTAGE_PACE_MS  10000
#define OUTAGE_TEXT_MAX 160

/* Zero-initialised: all is well. */
struct outage {
        bool is_on;
        bool is_told;               /* its beginning was */
        bool has_told;              /* ever */
        uint64_t since_ms;          /* is_on */
        uint64_t told_ms;           /* the latest beginning that was told */
        uint32_t untold;            /* outages since then, this one too */
        char text[OUTAGE_TEXT_MAX]; /* is_on: why, in the handler's words */
};

/* The handler said UNAVAILABLE, for the first time or again.  True: tell, and `untold` is how many began since the last
 * line; then outage_told(). */
bool outage_goes_on(struct outage *o, const char *text, uint64_t now_ms);
void outage_told(struct outage *o, uint64_t now_ms);

/* It works again, or always did.  True: tell how long it lasted. */
bool outage_over(struct outage *o, uint64_t now_ms, uint64_t *ret_lasted_ms);

#endif
