/* reports.h: what a worker says about a task that it runs, on its way to the owner of the task's shard.
 *
 * A worker may talk to any host.  If that host does not own the shard, what the worker says goes on the shard's control
 * list: the owner's next advance returns it, and the owner does what follows from it.  Only the worker of the current
 * start is listened to: what it says names its start, and is refused if the store has recorded another one, or none. */
#ifndef QUIVER_STORE_REPORTS_H
#define QUIVER_STORE_REPORTS_H

#include "store/store.h"

#define STORE_REPORT_MAX  STORE_CALL_BYTES /* bytes of one report */
#define STORE_REPORTS_MAX 1024u            /* entries of a control list beyond which it takes no more reports */

/* Puts a report on the control list of the task's shard and rings its owner.  Whether the shard is owned does not
 * matter: the next owner finds it.
 *
 * -ESTALE: the task is not in flight, or its recorded start is another one.  -EMSGSIZE: longer than STORE_REPORT_MAX.
 * -EDQUOT: the list is full, for nobody reads it.  Repeating a report is harmless: the owner does what it says once.
 * SQLite: 3 rows.  Redis: one script. */
struct store_report {
        struct store_request request;
        enum store_control_verb verb; /* CONTROL_HEARTBEAT or CONTROL_OUTCOME */
        struct span id;               /* the task's; the shard follows from it */
        uint64_t seq;
        struct span start; /* how the holder of the recorded start must begin, to its last character or to a '/' */
        struct span data;  /* handed to the owner as it is */
        /* HEARTBEAT: nothing goes on the list while the start lasts for longer than this; 0: always. */
        uint64_t enough_ms;

        uint64_t left_ms; /* so long the recorded start lasts from now */
        bool is_put;      /* it is on the list */
};
void store_report(struct store *store, struct store_report *report);

#endif
