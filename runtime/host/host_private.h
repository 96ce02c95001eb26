/* host_private.h: a host's parts, for the files that make one of them: host.c (the loop), host_start.c, host_stop.c,
 * host_events.c (what the parts tell each other) and control_verbs.c.  No part knows its host: each has what it needs
 * in a struct of its own, and tells of what happens through a table of callbacks. */
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

/* A host goes through them in this order, and may leave some out. */
enum host_phase {
        HOST_STARTING,
        HOST_RUNNING,
        HOST_DRAINING, /* It stops: what runs may end, until cut_ms. */
        HOST_CUTTING,  /* What still runs was interrupted; the store is waited for, until give_up_ms. */
        HOST_GIVEN_UP, /* The store did not answer, and is not waited for any more. */
        HOST_CLOSING,  /* No task is left here: what was opened is closed. */
};

#define OUTAGE_REASONS_MAX 8u

/* Calls to the store fail, and since when. */
struct store_outage {
        bool is_on;
        uint64_t since_ms;
        uint64_t calls; /* the first of each shard */
        /* Hashes of the reasons that the log has: a refused password is worth a line though the outage began with a
         * lost connection. */
        uint64_t said[OUTAGE_REASONS_MAX];
        uint32_t said_count;
};

/* How long the loop was busy in a turn: an event that came at its beginning waited for so long. */
struct loop_times {
        uint64_t turned_ns; /* the end of the last turn */
        uint64_t idle_ns;   /* all that the loop has slept until then */
        struct histogram busy;
};

struct host {
        enum host_phase phase;
        uint32_t steps;       /* of the start that were begun */
        uint32_t close_steps; /* of the close that were begun */
        uint64_t cut_ms;
        uint64_t give_up_ms; /* UINT64_MAX: not CUTTING */
        int status;          /* negative: what the host ends with */
        struct error error;

        const struct config *config;  /* in force */
        struct shared_config *shared; /* holds `config`; NULL: it is the one that the host was started with */
        struct config_secrets secrets;
        struct shard_limits limits; /* those of `config` */
        bool is_strict;             /* A plugin that cannot be taken keeps the host from starting. */
        bool is_root_told;          /* The log says which plugins run as root. */

        uv_loop_t loop;
        uv_prepare_t prepare; /* before the loop sleeps: pump() */
        uv_check_t check;     /* after it woke: the runners' answers */
        uv_timer_t timer;
        uint64_t timer_ms; /* what it is set to; UINT64_MAX: nothing */
        uv_signal_t terminate, interrupt, hang_up, rotate;
        struct loop_times times;
        uint64_t renew_at_ms; /* when all leases are renewed next */
        bool was_busy;        /* since memory was last given back */

        struct notify notify;
        struct clock_watch clock_watch;
        bool is_told_busy;         /* The service manager knows of a reload under way. */
        struct control *control;   /* NULL: there is none */
        struct http_server *http;  /* NULL: there is none */
        struct work_services work; /* what it has for workers */
        struct host_status status_doc;
        struct backlog backlog;
        struct hour_report hour;
        struct survey survey; /* for metrics */
        struct guard_client guard;
        bool has_guard;
        struct state_locks locks;
        struct last_run run;            /* what NAME.last says of this host */
        bool has_run;                   /* NAME.last is ours */
        struct last_run last;           /* what it said of the host before it */
        struct copied copied;           /* whether somebody else uses a copy of its folder */
        struct predecessor predecessor; /* that one, while its leases and its session are ended */

        struct store *store; /* NULL: not open */
        struct store_outage outage;
        struct store_open open;
        struct store_bell bell;
        struct store_desired_get desired;
        uint64_t desired_version; /* as last read */
        struct store_app_get app;
        bool is_asking; /* for the desired state and the app's record */

        struct file_schedules file_schedules;
        struct membership membership;
        struct leases leases;
        struct done_tasks done; /* what it did last */
        struct shards shards;
        struct dispatch dispatch;
        struct limits_io fleet_limits; /* shares of the app's limits */
        struct pools pools;
        struct strays strays;                /* what plugins left behind */
        struct cgroups cgroups;              /* of this host and its runners */
        char copies[PLUGIN_COPIES_PATH_MAX]; /* "": not open */
        int copies_fd;                       /* holds its lock */
        struct handlers handlers;
        struct lend lend;         /* tasks on other hosts' seats, and theirs on ours */
        struct services services; /* what runners may ask for */
        struct traces traces;     /* spans of tasks, on their way */
        char instance[NONCE_TEXT_SIZE];
        struct reload reload;
        struct reload_order reload_order;
};

/* --- host.c --- */

/* A step of the start: from now on SIGTERM and SIGINT stop the host, SIGHUP asks for a reload, and SIGUSR1 opens the
 * log file anew.  0. */
int host_catch_signals(struct host *h);

/* --- host_start.c --- */

/* Takes the steps of the start, up to one that has to wait for an answer. */
void host_start(struct host *h);
/* Writes NAME.last anew, with the session `token`. */
void host_write_run(struct host *h, const char *token);
/* What the start of the host `self` waited for has come (0), or not: -errno, and why. */
void host_start_go_on(void *self, int status, const char *text);
/* There is another `config`: what follows from it for the parts, but for the handlers. */
void host_apply_config(struct host *h);
/* The same for traces.  0, or -errno with the text set: they go where they went before. */
int host_apply_traces(struct host *h, struct error *error);
/* Says once which handlers' plugins run as root: a mistake of theirs is then root's. */
void host_warn_of_root(struct host *h);

/* --- host_stop.c --- */

/* Begins to stop: what runs may end within lease.drain. */
void host_stop(struct host *h, int signal_number);
/* The app has a feature switched on that this build does not know: stops, and fails. */
void host_stop_lacking(struct host *h, const char *feature);
/* No more patience: what runs is interrupted, at no cost, and is the next owner's. */
void host_cut(struct host *h);
/* The store has had long enough: says what remains untold, and does not wait for it. */
void host_give_up(struct host *h);
/* While it stops, before the loop sleeps: goes as far as it can now. */
void host_stop_go_on(struct host *h);
/* Closes whatever was opened, and ends the loop. */
void host_close(struct host *h);
/* After the loop. */
void host_free(struct host *h);

/* --- host_events.c --- */

extern const struct shards_events host_shards_events;
extern const struct handlers_events host_handlers_events;
extern const struct membership_events host_membership_events;
extern const struct reload_events host_reload_events;
extern const struct store_bell host_bell; /* without `self` */

/* Reads the desired state again and does what it says; `self` is the host. */
void host_ask_desired(void *self);

/* --- host_http.c --- */

/* A step of the start: the HTTP server.  0, or -errno with the text in the host: its settings are wrong. */
int host_open_http(struct host *h);
/* There is another `config`. */
void host_apply_http(struct host *h);

/* --- control_verbs.c --- */

/* A step of the start: the control socket.  Without one the host goes on, and says so.  0. */
int host_open_control(struct host *h);

#endif
