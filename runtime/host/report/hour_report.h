/* hour_report.h: measures this host once a minute, and writes its last hour to the store (view/hour.h).
 *
 * The document is stored under the host's name, not its nonce: a restarted host continues it.  It is read once, before
 * the first write. */
#ifndef QUIVER_HOST_REPORT_HOUR_REPORT_H
#define QUIVER_HOST_REPORT_HOUR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/waiter.h"
#include "host/handler/handlers.h"
#include "host/report/backlog.h"
#include "host/report/survey.h"
#include "host/shard/shard_io.h"
#include "store/admin.h"
#include "view/hour.h"

#define HOUR_STEP_MS 60000u

/* Counts up to a moment. */
struct hour_sums {
        uint64_t at_ms; /* boot time; 0: never */
        uint64_t done, failed;
        struct histogram wait, run;
};

struct hour_report {
        /* set by the caller */
        const char *host;
        const struct shards *shards;
        const struct handlers *handlers;
        struct backlog *backlog;

        uv_timer_t timer;
        struct waiter waiter; /* waits for the backlog */
        struct survey survey;
        struct hour hour;
        struct hour_sums before; /* at the last point, or at the start */
        uint8_t place[STORE_NONCE_SIZE];
        struct store_status_list list;
        struct store_status_put put;
        char *document;            /* of the current or latest request */
        bool is_reading, has_read; /* the document of the previous host of this name */
        bool is_waiting;           /* waits for the backlog */
        bool is_putting;
        bool has_flushed; /* the last point was sent */
};

/* The store is open: reads the previous document, and measures from now on. */
void hour_report_start(struct hour_report *r, uv_loop_t *loop);
/* The host stops: writes a last point, if the store takes it.  True once nothing is under way; call it again after the
 * next turn of the loop. */
bool hour_report_flush(struct hour_report *r);
/* Closes the timer.  The memory is freed by hour_report_free(), after the loop. */
void hour_report_close(struct hour_report *r);
void hour_report_free(struct hour_report *r);

#endif
