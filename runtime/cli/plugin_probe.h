/* probe.h: one runner, started only to see whether it starts and ends as it should.
 *
 * Load, init, READY, close.  Blocks, with a loop of its own: for commands, never for a host. */
#ifndef QUIVER_CLI_PLUGIN_PROBE_H
#define QUIVER_CLI_PLUGIN_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ring/layout.h"
#include "ring/message.h"

#define PLUGIN_REPORT_MAX 1024

struct plugin_probe_request {
        const struct runner_start *start; /* start->plugin is a staged copy */
        uint64_t init_ms;                 /* from the start to READY */
        uint64_t close_ms;                /* from READY to the end of the process */
        /* As in struct pool_io_events; what start->can_call allows. */
        int (*call)(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number);
        void *owner;
};

/* What came of it.  Texts are cut to fit. */
struct plugin_report {
        bool is_ready;                 /* every seat's init succeeded */
        bool is_whole;                 /* … and the process ended by itself, in time, after every close */
        char error[PLUGIN_REPORT_MAX]; /* what went wrong first; a backtrace may follow the first line */

        char name[128]; /* from here on: only if it got ready */
        char version[128];
        uint32_t flags;
        bool has_many;
        char unread[PLUGIN_REPORT_MAX]; /* settings that init never asked for, comma-separated */
        char notes[PLUGIN_REPORT_MAX];
        struct rehearsal rehearsal;
};

void plugin_probe_run(const struct plugin_probe_request *request, struct plugin_report *ret);

#endif
