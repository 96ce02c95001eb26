/* hour.h: a host's last hour, one point per minute, as a document in the store and as JSON.
 *
 *         {"name":"host-a","points":[[1763256000123,60,812.5,0,12,3,0.004,0.09,0.001,0.02,3,8],…]}
 *
 * The numbers of a point are in the order of hour_columns; the oldest point comes first.  No I/O and no clock.  A
 * document is input: a malformed one is refused as a whole. */
#ifndef QUIVER_VIEW_HOUR_H
#define QUIVER_VIEW_HOUR_H

#include <jansson.h>
#include <stdint.h>

#include "base/span.h"
#include "store/admin.h"

#define HOUR_POINTS  60u
#define HOUR_MS      UINT64_C(3600000)
#define HOUR_NAME    64u /* bytes of a host's name */
#define HOUR_COLUMNS 12u

/* The names of a point's numbers, in base units, as in metrics. */
extern const char *const hour_columns[HOUR_COLUMNS];

struct hour_point {
        uint64_t at_ms; /* unix time of its end */
        double seconds; /* its length; a host's first point and its last one before it stops are shorter than a
                         * minute */
        double done;    /* done tasks per second, as committed */
        double failed;  /* tasks that died per second */
        double waiting; /* at its end, in the shards that the host exports (etc/METRICS.md) */
        double running;
        double wait_p50, wait_p99; /* of tasks that started in that time, in seconds; 0: none */
        double run_p50, run_p99;
        double seats_used, seats;
};

/* Zero-initialised is empty. */
struct hour {
        char name[HOUR_NAME + 1];
        struct hour_point points[HOUR_POINTS]; /* oldest first, strictly ascending */
        uint32_t count;
};

/* Adds a point.  Drops points more than an hour older, and points that are not older, because the clock was set
 * back. */
void hour_add(struct hour *hour, const struct hour_point *point);

/* The document, at most STORE_HISTORY_MAX bytes.  The caller frees it. */
char *hour_document(const struct hour *hour);
/* 0, or -EBADMSG: it does not have the form of hour_document(). */
int hour_read(struct hour *ret_hour, struct span document);

/* {"columns":[…],"hosts":[{"name":…,"age_ms":…,"points":[[…],…]},…]}: the readable documents, sorted by name. */
json_t *hours_as_json(const struct store_status *documents, uint32_t count);

#endif
