#include "view/metrics_table.h"

const char *metric_type_name(enum metric_type type)
{
        static const char *const names[] = { "gauge", "counter", "histogram" };
        return names[type];
}

#define GAUGE     METRIC_GAUGE
#define COUNTER   METRIC_COUNTER
#define HISTOGRAM METRIC_HISTOGRAM

const struct metric_family metric_families[METRICS] = {
        [METRIC_TASKS_WAITING] = { "quiver_tasks_waiting", GAUGE, "state lane",
                "Tasks that wait to be started, in the shards that this host exports. state: queued (in the store), "
                "claimed (in a window of the owner), side_queue (their key is parked, held, or has more than its "
                "share), unowned (claimed by an owner that is gone). The last is not divided by lane." },
        [METRIC_TASKS_DELAYED] = { "quiver_tasks_delayed", GAUGE, "", "Tasks whose time has not come yet." },
        [METRIC_TASKS_DEAD] = { "quiver_tasks_dead", GAUGE, "", "Tasks that were given up and are kept." },
        [METRIC_OLDEST_TASK_AGE] = { "quiver_oldest_task_age_seconds", GAUGE, "",
                "Age, since its submission, of the oldest task that is queued, claimed or running. Take max() over "
                "hosts." },
        [METRIC_KEYS_WAITING] = { "quiver_keys_waiting", GAUGE, "",
                "Keys that have a side queue or are held: parked for a retry, held by a person, waiting for a handler, "
                "or with more tasks than their share of a window." },
        [METRIC_RESULTS] = { "quiver_results", GAUGE, "", "Results that wait to be consumed." },
        [METRIC_RESULTS_DROPPED] = { "quiver_results_dropped", GAUGE, "",
                "Results dropped since the app began because they were too many or too old." },
        [METRIC_OUTBOX_TASKS] = { "quiver_outbox_tasks", GAUGE, "", "Follow-up tasks on their way to another shard." },
        [METRIC_APP_TASKS_SUBMITTED] = { "quiver_app_tasks_submitted", GAUGE, "",
                "Tasks submitted since the app began, as the store counts them." },
        [METRIC_APP_TASKS_DONE] = { "quiver_app_tasks_done", GAUGE, "",
                "Tasks done since the app began, as the store counts them." },
        [METRIC_SHARDS_OWNED] = { "quiver_shards_owned", GAUGE, "",
                "Shards whose lease this host holds and that are not past its own deadline." },
        [METRIC_SHARDS_UNOWNED] = { "quiver_shards_unowned", GAUGE, "",
                "Shards that no member holds. Exported by the leader." },
        [METRIC_LEASE_MARGIN] = { "quiver_lease_margin_seconds", GAUGE, "",
                "The shortest time that is left until this host's own deadline of a lease; it starts nothing in that "
                "shard after it. Negative: it has passed. Absent without a lease." },
        [METRIC_SCHEDULE_NEXT] = { "quiver_schedule_next_timestamp_seconds", GAUGE, "schedule",
                "When it fires next, in seconds since 1970; absent while it is paused, or if it fires no more." },
        [METRIC_SCHEDULE_LATE] = { "quiver_schedule_late_seconds", GAUGE, "schedule",
                "For how long its next time has been due without having fired; 0: it is to come." },
        [METRIC_SCHEDULE_FIRED] = { "quiver_schedule_fired", GAUGE, "schedule",
                "Tasks that it has submitted, as the store counts them." },
        [METRIC_SCHEDULE_SKIPPED] = { "quiver_schedule_skipped", GAUGE, "schedule",
                "Times that passed without a task, since the last one's was not over or no host was there, as "
                "the store counts them." },

        [METRIC_HANDLER_TASKS_WAITING] = { "quiver_handler_tasks_waiting", GAUGE, "handler lane",
                "Claimed tasks that have not started, by handler. Tasks in the store are not divided by handler: see "
                "quiver_tasks_waiting." },
        [METRIC_HANDLER_TASKS_RUNNING] = { "quiver_handler_tasks_running", GAUGE, "handler lane",
                "Tasks inside handle()." },
        [METRIC_HANDLER_OLDEST_TASK_AGE] = { "quiver_handler_oldest_task_age_seconds", GAUGE, "handler",
                "Age, since its submission, of the oldest task of the handler that is claimed or running. Take max() "
                "over hosts." },
        [METRIC_LONGEST_RUNNING] = { "quiver_longest_running_seconds", GAUGE, "handler",
                "For how long the task has been running that started first. Take max() over hosts." },
        [METRIC_SEATS] = { "quiver_seats", GAUGE, "handler state",
                "Seats of the handler's current generation. state: used or free. Their sum is all that may run at "
                "once." },
        [METRIC_RUNNERS] = { "quiver_runners", GAUGE, "handler", "Processes of the handler, of all its generations." },
        [METRIC_HANDLER_STATE] = { "quiver_handler_state", GAUGE, "handler state",
                "1 for the state of the handler on this host: open, paused (by a person), unavailable (it said so), "
                "quarantined (its runners only fail), starting, refused (its plugin cannot be loaded), removed." },
        [METRIC_GENERATION_INFO] = { "quiver_generation_info", GAUGE, "handler generation version hash",
                "1; which generation of the handler serves: its number on this host, the plugin's own version, the "
                "hash of its file." },
        [METRIC_TASKS_FINISHED] = { "quiver_tasks_finished_total", COUNTER, "handler outcome",
                "Tasks whose end the store has recorded. outcome: done, merged into another one, or dead as rejected, "
                "exhausted, crashed, timed_out or cancelled." },
        [METRIC_TASKS_LENT] = { "quiver_tasks_lent_total", COUNTER, "handler side",
                "Tasks that ran on a seat, or at a worker, of another host than their owner. side: lent (this host "
                "owns "
                "them), borrowed (they came here). Sums over hosts are equal, but for what did not start." },
        [METRIC_ATTEMPTS] = { "quiver_attempts_total", COUNTER, "handler kind",
                "Starts that have ended. kind: done, retry, later, reject, crash, timeout, unavailable, interruption. "
                "later, unavailable and interruption cost a task nothing." },
        [METRIC_TASK_WAIT] = { "quiver_task_wait_seconds", HISTOGRAM, "handler",
                "From a task's submission to its first start; a delay that was asked for counts." },
        [METRIC_TASK_RUN] = { "quiver_task_run_seconds", HISTOGRAM, "handler",
                "From a task's start to its end, for each start." },
        [METRIC_RUNNER_EXITS] = { "quiver_runner_exits_total", COUNTER, "handler cause",
                "Runners that have ended. cause: retired (no more to do), host (stopped, reloaded or interrupted), "
                "start (never became ready), timeout, crashed (a signal), killed (SIGKILL, not by the host), exited "
                "(the plugin called exit)." },
        [METRIC_UNSERVED_HANDLERS] = { "quiver_unserved_handlers", GAUGE, "",
                "Different names of tasks that were claimed here and that no handler of this host serves; at most "
                "32." },

        [METRIC_LIMIT_STARTED] = { "quiver_limit_started_total", COUNTER, "limit",
                "Tasks that started here under a limit of the app." },
        [METRIC_LIMIT_SHARES] = { "quiver_limit_shares", GAUGE, "limit state",
                "What this host holds of a limit. state: granted (tokens that are not used, or shares in all), used "
                "(shares of tasks that run)." },
        [METRIC_LIMIT_WAITING] = { "quiver_limit_tasks_waiting", GAUGE, "limit",
                "Claimed tasks that wait for the limit. Those that wait in the store are in quiver_keys_waiting." },
        [METRIC_LIMIT_REFUSED] = { "quiver_limit_refused_total", COUNTER, "limit",
                "Requests for a share of which nothing was granted." },
        [METRIC_LIMIT_LOST] = { "quiver_limit_tokens_lost_total", COUNTER, "limit",
                "Tokens of a rate that were granted and not used in time." },
        [METRIC_LIMIT_CLOSED] = { "quiver_limit_closed_total", COUNTER, "limit",
                "Times that a handler here said that it is too much (LIMITED), which closes the limit for a while." },

        [METRIC_STORE_CALL] = { "quiver_store_call_seconds", HISTOGRAM, "call",
                "How long the store took to answer. call: acquire, page, names, schedules, advance, wake, fires, "
                "release, renew." },
        [METRIC_STORE_CALLS_FAILED] = { "quiver_store_calls_failed_total", COUNTER, "",
                "Calls about shards that the store did not answer or could not do. They are made again." },
        [METRIC_STORE_UP] = { "quiver_store_up", GAUGE, "", "1 if the store has answered within lease.ttl." },
        [METRIC_MEMBER] = { "quiver_member", GAUGE, "", "1 if the host is known to the coordination." },
        [METRIC_LEADER] = { "quiver_leader", GAUGE, "", "1 if the host leads: it assigns the shards." },
        [METRIC_SHARDS_ACQUIRED] = { "quiver_shards_acquired_total", COUNTER, "",
                "Leases that this host was granted." },
        [METRIC_TAKEOVERS] = { "quiver_takeovers_total", COUNTER, "",
                "Leases that were granted though their last owner had not released them: it died, or was cut off." },
        [METRIC_SHARDS_RELEASED] = { "quiver_shards_released_total", COUNTER, "", "Leases that this host gave back." },
        [METRIC_SHARD_MOVES] = { "quiver_shard_moves_total", COUNTER, "reason",
                "Shards that this host, as the leader, has assigned to another owner. reason: join, leave, crash, "
                "rebalance, drain, load, restart." },
        [METRIC_LOAD] = { "quiver_load_seats", GAUGE, "",
                "The seats that the tasks of this host's shards keep busy, on average over about 20 seconds, as far as "
                "it has told the other hosts." },
        [METRIC_FENCED_CALLS] = { "quiver_fenced_calls_total", COUNTER, "",
                "Changes that the store refused because another host had taken the shard." },
        [METRIC_RELOADS] = { "quiver_reloads_total", COUNTER, "result",
                "Reloads. result: taken, partly (a handler's new version was refused), refused (nothing was "
                "changed)." },
        [METRIC_HANDLER_VERSIONS] = { "quiver_handler_versions_total", COUNTER, "result",
                "What became of new versions of handlers that reloads brought. result: good, unproven, refused, "
                "held_back, rolled_back, superseded." },
        [METRIC_LOOP_LAG] = { "quiver_loop_lag_seconds", HISTOGRAM, "",
                "How long the host's loop was busy between two sleeps: so long an event may have waited." },
        [METRIC_LOOP_IDLE] = { "quiver_loop_idle_seconds_total", COUNTER, "",
                "How long the host's loop has slept. Its rate is the share of time in which the host has nothing to "
                "do." },
        [METRIC_HTTP_REQUESTS] = { "quiver_http_requests_total", COUNTER, "", "HTTP requests that were read." },
        [METRIC_HTTP_REQUESTS_REFUSED] = { "quiver_http_requests_refused_total", COUNTER, "cause",
                "HTTP requests that were refused. cause: malformed, forbidden (no token, no role, another origin)." },
        [METRIC_HTTP_CONNECTIONS] = { "quiver_http_connections", GAUGE, "", "HTTP connections that are open." },
        [METRIC_HTTP_CONNECTIONS_REFUSED] = { "quiver_http_connections_refused_total", COUNTER, "",
                "HTTP connections beyond http.connections." },
        [METRIC_HTTP_CONNECTIONS_TIMED_OUT] = { "quiver_http_connections_timed_out_total", COUNTER, "",
                "HTTP connections closed because their time was over." },
        [METRIC_HTTP_WAITS] = { "quiver_http_waits", GAUGE, "", "HTTP clients that wait for an outcome." },
        [METRIC_TRACE_SPANS] = { "quiver_trace_spans_total", COUNTER, "result",
                "Spans of tasks. result: exported (the receiver took them), dropped (they found no room in "
                "traces.queue, or the host stopped), failed (the receiver refused them, or took none for too long)." },
        [METRIC_TRACE_MALFORMED] = { "quiver_trace_malformed_total", COUNTER, "",
                "Tasks whose traceparent is none: a new trace began with them." },
        [METRIC_BUILD_INFO] = { "quiver_build_info", GAUGE, "version app host store coordination",
                "1; the version of Quiver, the app, this host's name, and what kind of store and coordination it "
                "uses." },
        [METRIC_PROCESS_CPU] = { "process_cpu_seconds_total", COUNTER, "",
                "User and system time of the host process; its runners have their own." },
        [METRIC_PROCESS_RESIDENT_MEMORY] = { "process_resident_memory_bytes", GAUGE, "",
                "Resident memory of the host process." },
        [METRIC_PROCESS_VIRTUAL_MEMORY] = { "process_virtual_memory_bytes", GAUGE, "",
                "Virtual memory of the host process." },
        [METRIC_PROCESS_OPEN_FDS] = { "process_open_fds", GAUGE, "", "File descriptors that the host has open." },
        [METRIC_PROCESS_MAX_FDS] = { "process_max_fds", GAUGE, "", "File descriptors that the host may have open." },
        [METRIC_PROCESS_START_TIME] = { "process_start_time_seconds", GAUGE, "",
                "When the host started, in unix time." },
};
