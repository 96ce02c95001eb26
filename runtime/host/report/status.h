/* status.h: a host's status document: a small JSON document in the store, which `quiver status` merges with those of
 * the other hosts; and a second one, of what has been running for more than a second (survey.h).
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
 * `running` says how many tasks run in which shard; `limits`, if present, what the host has of the app's limits
 * (limit_report.h).
 * `schedules`, if the host's configuration has some: its version and that of the configuration in force, conflicts, and
 * how many a newer one has otherwise (host/schedule).
 * `wall_ms` is the host's wall clock when the document was made: with the document's age it tells by how much clocks
 * differ. `http_counts`, if somebody has asked there, counts what came (http/http.h); zeroes are omitted.  How many
 * connections and requests there were does not cause a write; what was refused does. `reload`, if present, says what
 * became of the latest order to reload (handler/reload_order.h). `unserved`, if present, lists names of tasks that wait
 * because no handler of this host serves them.
 *
 * The document is written when it has changed, at most every HOST_STATUS_PACE_MS; unchanged, only often enough that it
 * does not expire.  Ages (oldest_ms) change all the time and do not cause a write; the reader adds the document's own
 * age.  The rates cover the time since the last measurement, so that the last document of a busy time is followed by
 * one with zeroes; how long tasks ran (run_p50_ms) is told of the last minutes, and causes no write.  `versions`, after
 * a reload, has what became of a handler's latest ones.  In the store, a handler's numbers that are zero are omitted,
 * which keeps more than a hundred handlers within the limit; beyond it, `handlers_left_out` counts the missing ones. */
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

/* What a host reports of. */
struct host_status_view {
        const struct membership *membership; /* its name, nonce and weight, and whether it leaves */
        const struct shards *shards; /* without a store: there is nowhere to write to, not yet or not any more */
        const struct handlers *handlers;
        const struct reload_order *order;
        const struct file_schedules *schedules;
        const char *http;                  /* where its page is; NULL: it has no port */
        struct http_server *const *server; /* NULL there: it has none, not yet or not any more */
};

/* One of a handler's counts, as the store knows it. */
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
        bool is_urgent;                       /* it is due as soon as the current request is answered */
        uint64_t started_ms, started_boot_ms; /* the same moment, as both clocks say */
        char machine[65];
        struct survey survey; /* when a document was last thought about */

        struct store_status_put put_running;
        char *running; /* the document of what runs, as it was put last; "": there is none */
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

/* The document as it is now, with everything in it.  The caller's. */
json_t *host_status_make(struct host_status *r);

void host_status_init(struct host_status *r, uv_loop_t *loop);
/* Before the loop sleeps: sees to it that a change is written in time. */
void host_status_watch(struct host_status *r, uint64_t now_ms);
/* Somebody waits for what it says now: it is written at once. */
void host_status_hurry(struct host_status *r);
/* Leaving: removes the document.  True once that is done, or cannot be; ask again after the next turn of the loop. */
bool host_status_withdraw(struct host_status *r);
/* Closes the timer.  The memory is freed by host_status_free(), after the loop. */
void host_status_close(struct host_status *r);
void host_status_free(struct host_status *r);

#endif
