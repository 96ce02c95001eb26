/* metrics_table.h: every metric of a host: its name, type, labels and meaning.
 *
 * The one list: the tests compare the exported metrics (metrics.h), the documentation (etc/METRICS.md), the alert rules
 * and the dashboard with it.  A family is written at most once per answer, with all its samples. */
#ifndef QUIVER_VIEW_METRICS_TABLE_H
#define QUIVER_VIEW_METRICS_TABLE_H

enum metric {
        /* per shard: exported by the owner, or by the leader if there is none */
        METRIC_TASKS_WAITING,
        METRIC_TASKS_DELAYED,
        METRIC_TASKS_DEAD,
        METRIC_OLDEST_TASK_AGE,
        METRIC_KEYS_WAITING,
        METRIC_RESULTS,
        METRIC_RESULTS_DROPPED,
        METRIC_OUTBOX_TASKS,
        METRIC_APP_TASKS_SUBMITTED,
        METRIC_APP_TASKS_DONE,
        METRIC_SHARDS_OWNED,
        METRIC_SHARDS_UNOWNED,
        METRIC_LEASE_MARGIN,
        METRIC_SCHEDULE_NEXT,
        METRIC_SCHEDULE_LATE,
        METRIC_SCHEDULE_FIRED,
        METRIC_SCHEDULE_SKIPPED,
        /* per handler of this host */
        METRIC_HANDLER_TASKS_WAITING,
        METRIC_HANDLER_TASKS_RUNNING,
        METRIC_HANDLER_OLDEST_TASK_AGE,
        METRIC_LONGEST_RUNNING,
        METRIC_SEATS,
        METRIC_RUNNERS,
        METRIC_HANDLER_STATE,
        METRIC_GENERATION_INFO,
        METRIC_TASKS_FINISHED,
        METRIC_TASKS_LENT,
        METRIC_ATTEMPTS,
        METRIC_TASK_WAIT,
        METRIC_TASK_RUN,
        METRIC_RUNNER_EXITS,
        METRIC_UNSERVED_HANDLERS,

        METRIC_LIMIT_STARTED,
        METRIC_LIMIT_SHARES,
        METRIC_LIMIT_WAITING,
        METRIC_LIMIT_REFUSED,
        METRIC_LIMIT_LOST,
        METRIC_LIMIT_CLOSED,
        /* of this host */
        METRIC_STORE_CALL,
        METRIC_STORE_CALLS_FAILED,
        METRIC_STORE_UP,
        METRIC_MEMBER,
        METRIC_LEADER,
        METRIC_SHARDS_ACQUIRED,
        METRIC_TAKEOVERS,
        METRIC_SHARDS_RELEASED,
        METRIC_SHARD_MOVES,
        METRIC_LOAD,
        METRIC_FENCED_CALLS,
        METRIC_RELOADS,
        METRIC_HANDLER_VERSIONS,
        METRIC_LOOP_LAG,
        METRIC_LOOP_IDLE,
        METRIC_HTTP_REQUESTS,
        METRIC_HTTP_REQUESTS_REFUSED,
        METRIC_HTTP_CONNECTIONS,
        METRIC_HTTP_CONNECTIONS_REFUSED,
        METRIC_HTTP_CONNECTIONS_TIMED_OUT,
        METRIC_HTTP_WAITS,
        METRIC_TRACE_SPANS,
        METRIC_TRACE_MALFORMED,
        METRIC_BUILD_INFO,
        METRIC_PROCESS_CPU,
        METRIC_PROCESS_RESIDENT_MEMORY,
        METRIC_PROCESS_VIRTUAL_MEMORY,
        METRIC_PROCESS_OPEN_FDS,
        METRIC_PROCESS_MAX_FDS,
        METRIC_PROCESS_START_TIME,
        METRICS
};

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric_family {
        const char *name;
        enum metric_type type;
        const char *labels; /* separated by spaces; "": none */
        const char *help;   /* one or more sentences, no line break */
};

extern const struct metric_family metric_families[METRICS];

/* "gauge", "counter", "histogram". */
const char *metric_type_name(enum metric_type type);

#endif
