#include "host/report/metrics.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/version.h"
#include "host/report/process_figures.h"

/* --- shards --- */

static void put_backlog(const struct backlog_sum *sum, const struct survey *survey, struct metrics *to)
{
        const struct store_counts *c = &sum->counts;
        uint64_t claimed[LANES] = { 0 };
        uint64_t oldest_ms = c->oldest_ms;
        for (uint32_t i = 0; i < survey->handlers_count; i++) {
                oldest_ms = max_u64(oldest_ms, survey->handlers[i].age_ms);
                for (unsigned lane = 0; lane < LANES; lane++)
                        claimed[lane] += survey->handlers[i].waiting_lanes[lane];
        }
        metrics_begin(to, METRIC_TASKS_WAITING);
        for (unsigned lane = 0; lane < LANES; lane++) {
                metrics_put(to, (double)c->queued[lane], "queued", lane_name((enum lane)lane));
                metrics_put(to, (double)claimed[lane], "claimed", lane_name((enum lane)lane));
                metrics_put(to, (double)c->parked[lane], "side_queue", lane_name((enum lane)lane));
        }
        metrics_put(to, (double)sum->unowned_in_flight, "unowned", "");
        metrics_put_one(to, METRIC_TASKS_DELAYED, (double)c->delayed);
        metrics_put_one(to, METRIC_TASKS_DEAD, (double)c->dead);
        metrics_put_one(to, METRIC_OLDEST_TASK_AGE, (double)oldest_ms / 1000);
        metrics_put_one(to, METRIC_KEYS_WAITING, (double)c->keys);
        metrics_put_one(to, METRIC_RESULTS, (double)c->results);
        metrics_put_one(to, METRIC_RESULTS_DROPPED, (double)c->results_dropped);
        metrics_put_one(to, METRIC_OUTBOX_TASKS, (double)c->outbox);
        metrics_put_one(to, METRIC_APP_TASKS_SUBMITTED, (double)c->submitted);
        metrics_put_one(to, METRIC_APP_TASKS_DONE, (double)c->done);
}

static double next_of(const struct shard_schedule *one, uint64_t wall_ms)
{
        (void)wall_ms;
        return (double)one->next_ms / 1000;
}

static double late_of(const struct shard_schedule *one, uint64_t wall_ms)
{
        return (double)(wall_ms - min_u64(wall_ms, one->next_ms)) / 1000;
}

static double fired_of(const struct shard_schedule *one, uint64_t wall_ms)
{
        (void)wall_ms;
        return (double)one->fired;
}

static double skipped_of(const struct shard_schedule *one, uint64_t wall_ms)
{
        (void)wall_ms;
        return (double)one->skipped;
}

/* Schedules of the shards that we own. */
static void put_schedules(const struct shards *all, struct metrics *to)
{
        static const struct {
                enum metric metric;
                double (*of)(const struct shard_schedule *one, uint64_t wall_ms);
        } families[] = { { METRIC_SCHEDULE_NEXT, next_of }, { METRIC_SCHEDULE_LATE, late_of },
                { METRIC_SCHEDULE_FIRED, fired_of }, { METRIC_SCHEDULE_SKIPPED, skipped_of } };
        uint64_t wall_ms = clock_wall_ms();
        for (size_t family = 0; family < sizeof(families) / sizeof(families[0]); family++) {
                metrics_begin(to, families[family].metric);
                for (uint32_t i = 0; i < all->count; i++) {
                        const struct shard *s = &all->list[i].shard;
                        const struct shard_schedules *schedules = shard_is_held(s) ? s->schedules : NULL;
                        for (uint32_t j = 0; schedules && j < schedules->count; j++)
                                if (schedules->list[j].next_ms != STORE_NEVER)
                                        metrics_put(to, families[family].of(&schedules->list[j], wall_ms),
                                                schedules->list[j].name);
                }
        }
}

static void put_shards(
        const struct host_metrics *from, const struct survey *survey, uint64_t now_ms, struct metrics *to)
{
        const struct shards *all = from->shards;
        struct backlog_sum sum = backlog_sum(from->backlog, now_ms);
        uint64_t fenced = 0;
        uint64_t until_ms = UINT64_MAX;
        for (uint32_t i = 0; i < all->count; i++) {
                const struct shard *s = &all->list[i].shard;
                fenced += s->fenced;
                if (shard_is_held(s))
                        until_ms = min_u64(until_ms, s->until_ms);
        }
        if (sum.is_recent)
                put_backlog(&sum, survey, to);
        metrics_put_one(to, METRIC_SHARDS_OWNED, sum.owned);
        if (sum.is_recent && leader_is_leading(&from->membership->leader))
                metrics_put_one(to, METRIC_SHARDS_UNOWNED, sum.unowned);
        if (until_ms != UINT64_MAX)
                metrics_put_one(to, METRIC_LEASE_MARGIN, ((double)until_ms - (double)now_ms) / 1000);
        metrics_put_one(to, METRIC_FENCED_CALLS, (double)fenced);
        metrics_put_one(to, METRIC_SHARDS_ACQUIRED, (double)all->counts.acquired);
        metrics_put_one(to, METRIC_TAKEOVERS, (double)all->counts.takeovers);
        metrics_put_one(to, METRIC_SHARDS_RELEASED, (double)all->counts.released);
        metrics_begin(to, METRIC_SHARD_MOVES);
        for (enum assign_reason reason = 0; reason < ASSIGN_REASONS; reason++)
                metrics_put(to, (double)from->membership->moves_made[reason], assign_reason_name(reason));
        if (from->membership->load.is_known)
                metrics_put_one(to, METRIC_LOAD, (double)from->membership->load.total / 1000);
        put_schedules(all, to);
}

/* No default case, so that the compiler reports a missing call. */
static const char *call_name(enum shard_call call)
{
        switch (call) {
        case SHARD_CALL_ACQUIRE:
                return "acquire";
        case SHARD_CALL_PAGE:
                return "page";
        case SHARD_CALL_NAMES:
                return "names";
        case SHARD_CALL_SCHEDULES:
                return "schedules";
        case SHARD_CALL_ADVANCE:
                return "advance";
        case SHARD_CALL_WAKE:
                return "wake";
        case SHARD_CALL_FIRES:
                return "fires";
        case SHARD_CALL_RELEASE:
                return "release";
        case SHARD_CALL_NONE:
                break;
        }
        return "none";
}

static void put_store_calls(const struct shards *all, struct metrics *to)
{
        metrics_begin(to, METRIC_STORE_CALL);
        for (unsigned i = SHARD_CALL_ACQUIRE; i < SHARD_CALLS; i++)
                metrics_put_histogram(to, &all->counts.calls[i], call_name((enum shard_call)i));
        metrics_put_histogram(to, &all->counts.renewals, "renew");
        metrics_put_one(to, METRIC_STORE_CALLS_FAILED, (double)all->counts.failed);
}

/* --- handlers --- */

/* One handler's samples of one family. */
typedef void put_handler(const struct handler *handler, const struct survey_handler *held, struct metrics *to);

static void put_waiting(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        for (unsigned lane = 0; lane < LANES; lane++)
                metrics_put(to, (double)held->waiting_lanes[lane], handler->name, lane_name((enum lane)lane));
}

static void put_running(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        for (unsigned lane = 0; lane < LANES; lane++)
                metrics_put(to, (double)held->running_lanes[lane], handler->name, lane_name((enum lane)lane));
}

static void put_age(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        metrics_put(to, (double)held->age_ms / 1000, handler->name);
}

static void put_longest(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        metrics_put(to, (double)held->longest_ms / 1000, handler->name);
}

static void put_seats(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        uint64_t seats = handler_seats(handler);
        uint64_t used = min_u64(held->seated, seats);
        metrics_put(to, (double)used, handler->name, "used");
        metrics_put(to, (double)(seats - used), handler->name, "free");
}

static void put_runners(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        uint32_t runners = 0;
        (void)held;
        for (const struct rollout_version *g = handler->rollout.newest; g; g = g->older)
                if (((const struct generation *)g)->is_open)
                        runners += pool_io_size(&((const struct generation *)g)->pool_io);
        metrics_put(to, runners, handler->name);
}

static void put_state(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        (void)held;
        metrics_put(to, 1, handler->name, handler_state_name(handler));
}

static void put_generation(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        const struct generation *current = handler_current(handler);
        char number[16];
        char hash[17];
        (void)held;
        if (!current)
                return;
        (void)snprintf(number, sizeof(number), "%u", current->version.number);
        (void)snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)current->copy.hash);
        metrics_put(to, 1, handler->name, number, current->plugin_version, hash);
}

static void put_finished(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        static const char *const outcomes[FINISHED_KINDS] = { "done", "rejected", "exhausted", "crashed", "timed_out",
                "cancelled" };
        const struct finished_counts *finished = &handler->all->dispatch->routes.finished[handler->slot];
        (void)held;
        for (unsigned i = 0; i < FINISHED_KINDS; i++)
                metrics_put(to, (double)finished->counts[i], handler->name, outcomes[i]);
        metrics_put(to, (double)handler->counts.merged, handler->name, "merged");
}

static void put_lent(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        (void)held;
        metrics_put(to, (double)handler->counts.lent, handler->name, "lent");
        metrics_put(to, (double)handler->counts.borrowed, handler->name, "borrowed");
}

static void put_attempts(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        const struct outcome_counts *c = &handler->counts;
        (void)held;
        metrics_put(to, (double)c->done, handler->name, "done");
        metrics_put(to, (double)c->retried, handler->name, "retry");
        metrics_put(to, (double)c->later, handler->name, "later");
        metrics_put(to, (double)c->rejected, handler->name, "reject");
        metrics_put(to, (double)c->crashed, handler->name, "crash");
        metrics_put(to, (double)c->timed_out, handler->name, "timeout");
        metrics_put(to, (double)c->unavailable, handler->name, "unavailable");
        metrics_put(to, (double)c->interrupted, handler->name, "interruption");
}

static void put_wait(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        (void)held;
        metrics_put_histogram(to, &handler->times.wait, handler->name);
}

static void put_run(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        (void)held;
        metrics_put_histogram(to, &handler->times.run, handler->name);
}

static void put_exits(const struct handler *handler, const struct survey_handler *held, struct metrics *to)
{
        static const char *const causes[RUNNER_EXITS] = { [EXIT_RETIRED] = "retired",
                [EXIT_HOST] = "host",
                [EXIT_START] = "start",
                [EXIT_TIMEOUT] = "timeout",
                [EXIT_CRASHED] = "crashed",
                [EXIT_KILLED] = "killed",
                [EXIT_EXITED] = "exited" };
        (void)held;
        for (unsigned i = 0; i < RUNNER_EXITS; i++)
                metrics_put(to, (double)handler->exits[i], handler->name, causes[i]);
}

static void put_handlers(const struct handlers *all, const struct survey *survey, struct metrics *to)
{
        static const struct {
                enum metric metric;
                put_handler *put;
        } families[] = {
                { METRIC_HANDLER_TASKS_WAITING, put_waiting },
                { METRIC_HANDLER_TASKS_RUNNING, put_running },
                { METRIC_HANDLER_OLDEST_TASK_AGE, put_age },
                { METRIC_LONGEST_RUNNING, put_longest },
                { METRIC_SEATS, put_seats },
                { METRIC_RUNNERS, put_runners },
                { METRIC_HANDLER_STATE, put_state },
                { METRIC_GENERATION_INFO, put_generation },
                { METRIC_TASKS_FINISHED, put_finished },
                { METRIC_TASKS_LENT, put_lent },
                { METRIC_ATTEMPTS, put_attempts },
                { METRIC_TASK_WAIT, put_wait },
                { METRIC_TASK_RUN, put_run },
                { METRIC_RUNNER_EXITS, put_exits },
        };
        for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
                metrics_begin(to, families[f].metric);
                for (uint32_t i = 0; i < all->count; i++)
                        if (handler_is_there(all->list[i]))
                                families[f].put(all->list[i], &survey->handlers[i], to);
        }
        metrics_put_one(to, METRIC_UNSERVED_HANDLERS, all->dispatch->routes.unserved_count);
}

/* --- limits --- */

static void put_limit(const struct limits *limits, const struct limit *limit, int family, struct metrics *to)
{
        struct limit_sums sums = limit_sum(limits, limit, clock_boot_ms());
        switch (family) {
        case METRIC_LIMIT_STARTED:
                metrics_put(to, (double)limit->counts.started, limit->name);
                break;
        case METRIC_LIMIT_SHARES:
                metrics_put(to, (double)sums.granted, limit->name, "granted");
                metrics_put(to, (double)sums.in_use, limit->name, "used");
                break;
        case METRIC_LIMIT_WAITING:
                metrics_put(to, (double)sums.waiting, limit->name);
                break;
        case METRIC_LIMIT_REFUSED:
                metrics_put(to, (double)limit->counts.refused, limit->name);
                break;
        case METRIC_LIMIT_LOST:
                metrics_put(to, (double)limit->counts.lost, limit->name);
                break;
        default:
                metrics_put(to, (double)limit->counts.closed, limit->name);
                break;
        }
}

static void put_limits(const struct limits *limits, struct metrics *to)
{
        for (int family = METRIC_LIMIT_STARTED; family <= METRIC_LIMIT_CLOSED; family++) {
                metrics_begin(to, (enum metric)family);
                for (uint32_t i = 0; limits && i < limits->count; i++)
                        if (limits->list[i]->is_defined)
                                put_limit(limits, limits->list[i], family, to);
        }
}

/* --- the host --- */

static void put_reloads(const struct reload *reload, struct metrics *to)
{
        static const char *const results[HISTORY_OUTCOMES] = { "good", "unproven", "refused", "held_back",
                "rolled_back", "superseded" };
        metrics_begin(to, METRIC_RELOADS);
        metrics_put(to, (double)reload->counts.taken, "taken");
        metrics_put(to, (double)reload->counts.partly, "partly");
        metrics_put(to, (double)reload->counts.refused, "refused");
        metrics_begin(to, METRIC_HANDLER_VERSIONS);
        for (unsigned i = 0; i < HISTORY_OUTCOMES; i++)
                metrics_put(to, (double)reload->handlers->history.ended[i], results[i]);
}

static void put_process(uint64_t started_ms, struct metrics *to)
{
        struct process_figures figures;
        process_figures_read(&figures);
        if (figures.cpu_s >= 0)
                metrics_put_one(to, METRIC_PROCESS_CPU, figures.cpu_s);
        if (figures.resident_bytes >= 0)
                metrics_put_one(to, METRIC_PROCESS_RESIDENT_MEMORY, (double)figures.resident_bytes);
        if (figures.virtual_bytes >= 0)
                metrics_put_one(to, METRIC_PROCESS_VIRTUAL_MEMORY, (double)figures.virtual_bytes);
        if (figures.open_fds >= 0)
                metrics_put_one(to, METRIC_PROCESS_OPEN_FDS, (double)figures.open_fds);
        if (figures.max_fds >= 0)
                metrics_put_one(to, METRIC_PROCESS_MAX_FDS, (double)figures.max_fds);
        metrics_put_one(to, METRIC_PROCESS_START_TIME, (double)started_ms / 1000);
}

static void put_build(const struct host_metrics *from, struct metrics *to)
{
        struct store_info info = { .driver = "", .app = "" };
        struct coord_info coordination = { .driver = "" };
        if (from->shards->store)
                store_info(from->shards->store, &info);
        if (from->membership->coord)
                coord_info(from->membership->coord, &coordination);
        metrics_begin(to, METRIC_BUILD_INFO);
        metrics_put(to, 1, QUIVER_VERSION, info.app, from->membership->name, info.driver, coordination.driver);
}

static void put_traces(const struct trace_counts *counts, struct metrics *to)
{
        metrics_begin(to, METRIC_TRACE_SPANS);
        metrics_put(to, (double)counts->exported, "exported");
        metrics_put(to, (double)counts->dropped, "dropped");
        metrics_put(to, (double)counts->failed, "failed");
        metrics_put_one(to, METRIC_TRACE_MALFORMED, (double)counts->malformed);
}

void host_metrics_put(const struct host_metrics *from, struct survey *survey, struct metrics *to)
{
        uint64_t now_ms = clock_boot_ms();
        survey_take(survey, from->handlers, from->shards, now_ms, clock_wall_ms());
        put_shards(from, survey, now_ms, to);
        put_handlers(from->handlers, survey, to);
        put_limits(from->handlers->dispatch->routes.limits, to);
        put_store_calls(from->shards, to);
        metrics_put_one(to, METRIC_STORE_UP, !from->membership->has_lost_store);
        metrics_put_one(to, METRIC_MEMBER, membership_is_in(from->membership));
        metrics_put_one(to, METRIC_LEADER, leader_is_leading(&from->membership->leader));
        put_reloads(from->reload, to);
        metrics_begin(to, METRIC_LOOP_LAG);
        metrics_put_histogram(to, from->loop_busy, "");
        metrics_put_one(to, METRIC_LOOP_IDLE, (double)from->loop_idle_ns * 1e-9);
        put_traces(&from->traces->export.counts, to);
        put_build(from, to);
        put_process(from->started_ms, to);
}
