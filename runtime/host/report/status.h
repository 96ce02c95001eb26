/* status.h: a host's status document: a small JSON document in the store, which `quiver status` merges with those of
 * the other hosts; and a second document, of tasks that have been running for more than a second (survey.h).
 *
 *         {"name":"a","nonce":"5f…","state":"running","weight":1,"pid":7,"version":"0.9","machine":"web-1",
 *          "started_ms":1763256000123,"seats":8,"shards":64,"fenced":0,
 *          "rates":{"done":812.5,"retried":0.0,"failed":0.0},
 *          "handlers":[{"name":"mail","plugin":"mail.so","version":"1.2","generation":1,"hash":"9f…","state":"open",
 *                       "waiting":12,"running":3,"seats":4,…,"done_rate":812.5,"run_p50_ms":0.4,"run_p99_ms":9.1,
 *                       "versions":[{"generation":2,"version":"1.2","at_ms":1763256000123,"outcome":"good",
 *                                    "by":"SIGHUP"},…]}],
 *          "running":[[7,2],[12,1]]}
 *
 *         running       pairs of a shard and the number of tasks that run in it
 *         limits        if present, what the host holds of the app's limits (limit_report.h)
 *         schedules     if the configuration has some: its version and the version in force, conflicts, and how many
 *                       schedules a newer configuration has changed (host/schedule)
 *         wall_ms       the host's wall clock when the document was made; with the document's age it shows clock skew
 *         http_counts   if the server had requests: counts (http/http.h); zeroes are omitted.  Connections and requests
 *                       do not cause a write, refusals do
 *         reload        if present, what became of the latest order to reload (handler/reload_order.h)
 *         unserved      if present, names of tasks that wait because no handler of this host serves them
 *
 * The document is written when it has changed, at most every HOST_STATUS_PACE_MS; an unchanged one only often enough
 * that it does not expire.  Ages (oldest_ms) and run times (run_p50_ms) do not cause a write; the reader adds the
 * document's own age.  Rates cover the time since the last measurement, so the last document of a busy time is followed
 * by one with zeroes.  `versions` is present after a reload.  In the store, a handler's zeroes are omitted, which keeps
 * more than a hundred handlers within the limit; beyond it, `handlers_left_out` counts the missing ones. */
#ifndef QUIVER_HOST_REPORT_STATUS_H
#define QUIVER_HOST_REPORT_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host/handler/handlers.h"
#include "host/handler/reload_order.h"
#include "host/membership/membership.h"
#include "host/report/done_document.h"
#include "host/report/handler_report.h"
#include "host/report/survey.h"
#include "host/schedule/file_schedules.h"
#include "host/shard/shard_io.h"
#include "http/http.h"
#include "store/admin.h"

#define HOST_STATUS_PACE_MS 2000u

/* The parts that a host reports. */
struct host_status_view {
        const struct membership *membership; /* name, nonce and weight, and whether the host is leaving */
        const struct shards *shards;         /* its store is NULL while there is nowhere to write */
        const struct handlers *handlers;
        const struct reload_order *order;
        const struct file_schedules *schedules;
        const char *http;                  /* address of the host's page; NULL: no port */
        struct http_server *const *server; /* *server is NULL while there is no server */
};

/* A counter of a handler, as the store keeps it. */
struct handler_counter {
        char name[NAME_HANDLER_MAX + 16];
        uint64_t before, value;
};

struct host_status {
        struct host_status_view view; /* set by the caller */
        uv_timer_t timer;
        uint64_t due_ms; /* when the timer fires; UINT64_MAX: not set */
        struct store_status_put put;
        char *document; /* the text of the current or latest request */
        char *written;  /* the same without ages, to detect changes */
        uint64_t put_ms, watched_ms;
        bool is_putting, is_leaving, is_withdrawn;
        bool is_urgent;                       /* write again as soon as the current request is answered */
        uint64_t started_ms, started_boot_ms; /* one moment by both clocks */
        char machine[65];
        struct survey survey; /* of the last time a document was made */

        struct store_status_put put_running;
        char *running; /* the document of running tasks as last written; "": none */
        uint64_t put_running_ms;
        bool is_putting_running;

        struct done_report done; /* `host`, `age_ms` and `done` are set by the caller */

        struct handler_counter *counters; /* by slot */
        uint32_t counters_count;
        struct store_counter *put_counters; /* of the current or latest request */

        struct handler_report *reports; /* by slot */
        uint32_t reports_count;

        struct outcome_counts sum; /* at the last measurement */
        uint64_t sum_ms;
        double done_rate, retried_rate, failed_rate; /* per second, between the last two measurements */
};

/* The complete document of this moment.  The caller owns it. */
json_t *host_status_make(struct host_status *r);

void host_status_init(struct host_status *r, uv_loop_t *loop);
/* Called before the loop sleeps: has a change written in time. */
void host_status_watch(struct host_status *r, uint64_t now_ms);
/* Somebody waits for the current state: writes it at once. */
void host_status_hurry(struct host_status *r);
/* The host stops: removes the document.  True once that is done or failed; call it again after the next turn of the
 * loop. */
bool host_status_withdraw(struct host_status *r);
/* Closes the timer.  The memory is freed by host_status_free(), after the loop. */
void host_status_close(struct host_status *r);
void host_status_free(struct host_status *r);

#endif
