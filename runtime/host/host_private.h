/* host_private.h: struct host, shared by the files that make a host: host.c (the loop), host_start.c, host_stop.c,
 * host_events.c (the parts' callbacks), host_http.c and control_verbs.c.  No part knows its host: each part has its own
 * struct and reports through a table of callbacks. */
#ifndef QUIVER_HOST_HOST_PRIVATE_H
#define QUIVER_HOST_HOST_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/histogram.h"
#include "config/shared.h"
#include "host/clock_watch.h"
#include "host/confine/cgroups.h"
#include "host/confine/strays.h"
#include "host/control.h"
#include "host/copied.h"
#include "host/guard_client.h"
#include "host/handler/dispatch.h"
#include "host/handler/handlers.h"
#include "host/handler/plugin_copies.h"
#include "host/handler/reload.h"
#include "host/handler/reload_order.h"
#include "host/last_run.h"
#include "host/lend/lend_io.h"
#include "host/limit/limit_io.h"
#include "host/membership/membership.h"
#include "host/notify.h"
#include "host/predecessor.h"
#include "host/report/backlog.h"
#include "host/report/hour_report.h"
#include "host/report/status.h"
#include "host/report/survey.h"
#include "host/schedule/file_schedules.h"
#include "host/service/services.h"
#include "host/shard/shard_io.h"
#include "host/state_locks.h"
#include "http/http.h"
#include "ring/leases.h"
#include "store/admin.h"
#include "store/app.h"
#include "store/store.h"
#include "trace/traces.h"
#include "worker/work.h"

/* In this order; a host may skip some. */
enum host_phase {
        HOST_STARTING,
        HOST_RUNNING,
        HOST_DRAINING, /* stopping: running tasks may end until cut_ms */
        HOST_CUTTING,  /* running tasks were interrupted; the host waits for the store until give_up_ms */
        HOST_GIVEN_UP, /* the store did not answer in time, and the host no longer waits for it */
        HOST_CLOSING,  /* no task is left here; everything that was opened is closed */
};

#define OUTAGE_REASONS_MAX 8u

/* Whether calls to the store fail, and since when. */
struct store_outage {
        bool is_on;
        uint64_t since_ms;
        uint64_t calls; /* the first failed call of each shard */
        /* Hashes of the reasons that were logged: a refused password gets its own line even if the outage began with a
         * lost connection. */
        uint64_t said[OUTAGE_REASONS_MAX];
        uint32_t said_count;
};

/* How long the loop was busy per turn, which is how long an event may have waited. */
struct loop_times {
        uint64_t turned_ns; /* end of the last turn */
        uint64_t idle_ns;   /* total time that the loop had slept by then */
        struct histogram busy;
};

struct host {
        enum host_phase phase;
        uint32_t steps;       /* start steps that were begun */
        uint32_t close_steps; /* close steps that were begun */
        uint64_t cut_ms;
        uint64_t give_up_ms; /* UINT64_MAX: not CUTTING */
        int status;          /* the exit status of the host if negative */
        struct error error;

        const struct config *config;  /* the configuration in force */
        struct shared_config *shared; /* owns `config`; NULL: `config` is the one that the host was started with */
        struct config_secrets secrets;
        struct shard_limits limits; /* from `config` */
        bool is_strict;             /* a plugin that cannot be loaded keeps the host from starting */
        bool is_root_told;          /* the log says which plugins run as root */

        uv_loop_t loop;
        uv_prepare_t prepare; /* before the loop sleeps: pump() */
        uv_check_t check;     /* after the loop woke: reads the runners' answers */
        uv_timer_t timer;
        uint64_t timer_ms; /* when the timer fires; UINT64_MAX: it is stopped */
        uv_signal_t terminate, interrupt, hang_up, rotate;
        struct loop_times times;
        uint64_t renew_at_ms; /* when all leases are renewed next */
        bool was_busy;        /* there was work since free memory was last returned to the system */

        struct notify notify;
        struct clock_watch clock_watch;
        bool is_told_busy;         /* the service manager was told of a reload under way */
        struct control *control;   /* NULL: there is none */
        struct http_server *http;  /* NULL: there is none */
        struct work_services work; /* the HTTP server's calls for workers */
        struct host_status status_doc;
        struct backlog backlog;
        struct hour_report hour;
        struct survey survey; /* for metrics */
        struct guard_client guard;
        bool has_guard;
        struct state_locks locks;
        struct last_run run;            /* the content of NAME.last */
        bool has_run;                   /* NAME.last exists and is ours */
        struct last_run last;           /* what NAME.last said about the previous host */
        struct copied copied;           /* whether another host uses a copy of our `local` folder */
        struct predecessor predecessor; /* ends the previous host's leases and session */

        struct store *store; /* NULL: not open */
        struct store_outage outage;
        struct store_open open;
        struct store_bell bell;
        struct store_desired_get desired;
        uint64_t desired_version; /* of the desired state last read */
        struct store_app_get app;
        bool is_asking; /* a request for the desired state or the app's record is under way */

        struct file_schedules file_schedules;
        struct membership membership;
        struct leases leases;
        struct done_tasks done; /* the latest tasks that this host finished */
        struct shards shards;
        struct dispatch dispatch;
        struct limits_io fleet_limits; /* our shares of the app's limits */
        struct pools pools;
        struct strays strays;                /* processes that plugins left behind */
        struct cgroups cgroups;              /* of this host and its runners */
        char copies[PLUGIN_COPIES_PATH_MAX]; /* folder of the plugin copies; "": not open */
        int copies_fd;                       /* holds the lock of `copies` */
        struct handlers handlers;
        struct lend lend;         /* our tasks on other hosts' seats, and other hosts' tasks on ours */
        struct services services; /* what runners may call */
        struct traces traces;     /* spans on their way to the receiver */
        char instance[NONCE_TEXT_SIZE];
        struct reload reload;
        struct reload_order reload_order;
};

/* --- host.c --- */

/* A start step: from now on SIGTERM and SIGINT stop the host, SIGHUP asks for a reload, and SIGUSR1 reopens the log
 * file.  Always 0. */
int host_catch_signals(struct host *h);

/* --- host_start.c --- */

/* Takes start steps until one has to wait for an answer. */
void host_start(struct host *h);
/* Writes NAME.last again, with the session `token`. */
void host_write_run(struct host *h, const char *token);
/* A start step's answer has come.  `self` is the host; a negative status with its text fails the start. */
void host_start_go_on(void *self, int status, const char *text);
/* Applies a new `config` to all parts except the handlers. */
void host_apply_config(struct host *h);
/* Applies a new `config` to the traces.  On failure (-errno with the text set) they go where they went before. */
int host_apply_traces(struct host *h, struct error *error);
/* Logs once which handlers' plugins run as root, because a bug in one of them then has root's rights. */
void host_warn_of_root(struct host *h);

/* --- host_stop.c --- */

/* Begins to stop: running tasks may end within lease.drain. */
void host_stop(struct host *h, int signal_number);
/* Stops and fails, because the app has a feature switched on that this build does not know. */
void host_stop_lacking(struct host *h, const char *feature);
/* Interrupts running tasks, at no cost to them: the next owner runs them again. */
void host_cut(struct host *h);
/* The store did not answer in time: logs which outcomes were not committed, and no longer waits for it. */
void host_give_up(struct host *h);
/* Called before the loop sleeps while the host stops: takes each step that is possible now. */
void host_stop_go_on(struct host *h);
/* Closes everything that was opened, then the loop ends. */
void host_close(struct host *h);
/* Call after the loop has ended. */
void host_free(struct host *h);

/* --- host_events.c --- */

extern const struct shards_events host_shards_events;
extern const struct handlers_events host_handlers_events;
extern const struct membership_events host_membership_events;
extern const struct reload_events host_reload_events;
extern const struct store_bell host_bell; /* `self` is unset */

/* Reads the desired state again and carries it out.  `self` is the host. */
void host_ask_desired(void *self);

/* --- host_http.c --- */

/* A start step: opens the HTTP server.  0, or -errno with the text in the host if its settings are wrong. */
int host_open_http(struct host *h);
/* Applies a new `config` to the HTTP server. */
void host_apply_http(struct host *h);

/* --- control_verbs.c --- */

/* A start step: opens the control socket.  A host works without one, so a failure is only logged.  Always 0. */
int host_open_control(struct host *h);

#endif
