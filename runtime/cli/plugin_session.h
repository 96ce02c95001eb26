/* plugin_session.h: one plugin in throw-away runners, for the commands that look at a plugin without a host.
 *
 * The same private copy, pool, ring and runner as in a host, and the same answers to its services; only the queue is
 * missing.  Each function blocks, with the session's own loop. */
#ifndef QUIVER_CLI_PLUGIN_SESSION_H
#define QUIVER_CLI_PLUGIN_SESSION_H

#include "cli/try/try_services.h"
#include "host/handler/plugin_copy.h"
#include "host/pool/pool_io.h"

#define PLUGIN_REPORT_MAX 4096

/* The result of loading a plugin once.  Texts are cut to fit. */
struct plugin_report {
        bool is_ready;                 /* every seat's init succeeded */
        bool is_whole;                 /* it was ready, and after every close the process ended by itself and in time */
        char error[PLUGIN_REPORT_MAX]; /* the first error; a backtrace may follow the first line */

        /* Only if it was ready. */
        char name[128];
        char version[128];
        uint32_t flags;
        bool has_many;
        char unread[PLUGIN_REPORT_MAX]; /* settings that init never asked for, comma-separated */
        char notes[PLUGIN_REPORT_MAX];
        struct rehearsal rehearsal;
};

/* Callbacks that supply tasks and receive their outcomes.  `ready` and `log` may be NULL. */
struct plugin_session_events {
        /* The next task, called whenever there is room.  NULL: none now; with *ret_is_end set: no more at all. */
        struct pool_task *(*next)(void *owner, bool *ret_is_end);
        /* As in struct pool_io_events. */
        void (*settled)(void *owner, struct pool_task *task, const struct settled *settled);
        void (*log)(void *owner, const struct runner_log *log, const struct pool_task *task);
        void (*ready)(void *owner, const struct runner_ready *ready, pid_t pid);
        void (*refused)(void *owner, const char *text);
};

struct plugin_session {
        struct plugin_copy copy;
        struct runner_start start; /* the caller may change it before each run, but for `leases` */
        struct leases leases;
        uv_loop_t loop;

        /* Of the current run. */
        struct pools pools;
        struct pool_io pool_io;
        const struct plugin_session_events *events;
        void *owner;
        struct try_services services;
        bool is_exhausted;  /* next() has no more tasks */
        bool is_giving_up;  /* waiting and running tasks are to be cancelled */
        bool has_cancelled; /* they have been cancelled */
};

/* Makes the private copy of the plugin.  Sets `start` to the defaults: one seat, no limits, no services beyond a
 * host's.  0, or -errno with the text set. */
int plugin_session_open(
        struct plugin_session *s, const char *plugin, enum plugin_copy_source source, struct error *error);
/* For a plugin that was built with a sanitizer: lets the runners of this process load its runtime first. */
void plugin_session_preload(const char *plugin);
/* The caller must have begun to close its own handles on the loop. */
void plugin_session_close(struct plugin_session *s);

/* Starts one runner to test that it starts and ends properly: load, init, READY within `init_ms`; close and the end of
 * the process within `close_ms`. */
void plugin_session_probe(struct plugin_session *s, uint64_t init_ms, uint64_t close_ms, struct plugin_report *ret);

/* Passes tasks through a pool until there are no more.  0, or -errno with the text set. */
int plugin_session_run(struct plugin_session *s, const struct pool_policy *policy,
        const struct plugin_session_events *events, void *owner, struct error *error);

/* "2 DONE, 1 RETRY": how often each outcome was reached. */
void plugin_session_put_outcomes(
        const uint64_t outcomes[OUTCOME_INTERRUPTED + 1], const char *separator, struct buffer *to);

/* Call from an event: takes no more tasks, and cancels waiting and running ones; each is settled. */
void plugin_session_give_up(struct plugin_session *s);
/* Call from an event: like plugin_session_give_up(), but kills every runner at once. */
void plugin_session_cut(struct plugin_session *s);

#endif
