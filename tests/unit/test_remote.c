/* Tasks that workers outside run: what is handed out to whom, for how long, and what becomes of it.  The test plays the
 * store and the workers. */
#include "shard_rig.h"

#include <errno.h>

#include "host/handler/handlers.h"
#include "host/remote/remote.h"
#include "host/shard/shard_io.h"

#define TTL_MS 3000

/* A host with one shard and one remote handler, "a". */
struct world {
        struct config config;
        struct handler_config settings;
        struct dispatch dispatch;
        struct shard_limits limits;
        struct shards shards;
        struct handlers handlers;
        struct shard *shard;
        uint64_t now_ms;
        struct store_acquire acquire;
        struct store_advance advance;
        struct store_task tasks[16];
        uint32_t tasks_count;
        char holders[16][NOTE_HOLDER_MAX + 1];
};

/* A poll, and how it was answered. */
struct asked {
        struct work_poll poll;
        bool is_done;
        enum work_verdict verdict;
        struct work_fence fence;
        uint64_t remaining_ms;
        char id[32];
};

struct told {
        struct work_saying saying;
        struct work_report report;
        bool is_done;
};

static void on_changed(void *self)
{
        (void)self;
}

static const struct handlers_events handlers_events = { .changed = on_changed };
static const struct shards_events shards_events;

static void world_open(struct world *w)
{
        static const uint8_t nonce[STORE_NONCE_SIZE] = { 9 };
        static char *tasks[] = { "a" };
        struct error error = { "" };
        *w = (struct world){ .now_ms = 100000 };
        w->limits = (struct shard_limits){ .ttl_ms = RIG_TTL_MS,
                .drain_ms = RIG_DRAIN_MS,
                .gather_ms = 10,
                .window_tasks = RIG_WINDOW,
                .window_bytes = 1u << 20 };
        w->settings = (struct handler_config){ .name = "a",
                .plugin = "remote",
                .plugin_path = "remote",
                .tasks = { tasks, 1 },
                .retry = { .attempts = 4, .backoff_ms = 10, .factor = 1, .max_ms = 10 },
                .crashes = 2,
                .remote = { .ttl_ms = TTL_MS, .concurrency = 3 },
                .result_max_bytes = 100 };
        dispatch_init(&w->dispatch, 1);
        w->shards = (struct shards){ .dispatch = &w->dispatch, .limits = &w->limits, .events = &shards_events };
        shards_init(&w->shards, 1, RIG_PER_KEY);
        w->shard = &w->shards.list[0].shard;
        w->handlers = (struct handlers){ .dispatch = &w->dispatch, .events = &handlers_events, .host = "host-a" };
        assert_int_equal(handlers_open(&w->handlers, &w->config, &w->settings, &error), 0);
        shard_assign(w->shard, nonce, 40, false);
}

static void world_close(struct world *w)
{
        remotes_close(&w->handlers, w->now_ms);
        generation_free((struct generation *)w->handlers.list[0]->rollout.newest);
        handlers_free(&w->handlers);
        shards_free(&w->shards);
        dispatch_free(&w->dispatch);
}

static struct store_task *hand_task(struct world *w, uint64_t seq, const char *key)
{
        struct store_task *t = &w->tasks[w->tasks_count++];
        *t = (struct store_task){ .seq = seq,
                .key = rig_span(key),
                .envelope = { .id = rig_span(key), .handler = SPAN_TEXT("a"), .payload = SPAN_TEXT("x") } };
        return t;
}

/* As another owner left it: at a worker, for `busy_ms` more. */
static void hand_lent(struct world *w, uint64_t seq, const char *key, const char *holder, uint64_t busy_ms)
{
        struct store_task *t = hand_task(w, seq, key);
        t->note = (struct task_note){ .started_epoch = 7, .holder = rig_span(holder), .until_ms = 1 };
        t->busy_ms = busy_ms;
}

/* One turn of the host's loop, without its calls to the store. */
static void turn(struct world *w)
{
        remotes_tick(&w->handlers, w->now_ms);
        dispatch_look(&w->dispatch, &w->shards.schedule.changed);
        remotes_look(&w->handlers, &w->shards, w->now_ms);
        handler_feed(w->handlers.list[0], w->now_ms);
}

static void own_shard(struct world *w)
{
        shard_fill_acquire(w->shard, &w->acquire, w->now_ms);
        w->acquire.grant = STORE_GRANTED;
        w->acquire.call = 1;
        w->acquire.left_ms = RIG_TTL_MS;
        w->acquire.next_due_ms = w->acquire.next_schedule_ms = STORE_NEVER;
        w->acquire.page = (struct store_page){ w->tasks, w->tasks_count, false };
        shard_acquired(w->shard, &w->acquire, w->now_ms);
        w->tasks_count = 0;
        turn(w);
}

static void send_call(struct world *w)
{
        w->shard->has_work = true;
        assert_int_equal(shard_next_call(w->shard, false, w->now_ms), SHARD_CALL_ADVANCE);
        shard_fill_advance(w->shard, &w->advance, w->now_ms);
}

static void answer_call(struct world *w, enum store_verdict verdict)
{
        w->advance.verdict = verdict;
        w->advance.tasks = w->tasks;
        w->advance.tasks_count = w->tasks_count;
        w->advance.left_ms = RIG_TTL_MS;
        w->advance.next_due_ms = STORE_NEVER;
        shard_advanced(w->shard, &w->advance, w->now_ms);
        w->tasks_count = 0;
        turn(w);
}

static void call_store(struct world *w)
{
        send_call(w);
        answer_call(w, STORE_OK);
}

static const struct store_outcome *outcome_of(const struct world *w, uint64_t seq, enum store_outcome_kind kind)
{
        for (uint32_t i = 0; i < w->advance.outcomes_count; i++)
                if (w->advance.outcomes[i].task.seq == seq && w->advance.outcomes[i].kind == kind)
                        return &w->advance.outcomes[i];
        return NULL;
}

static void on_polled(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task)
{
        struct asked *a = (struct asked *)poll;
        assert_false(a->is_done);
        a->is_done = true;
        a->verdict = verdict;
        if (!task)
                return;
        a->fence = task->fence;
        a->remaining_ms = task->remaining_ms;
        (void)snprintf(a->id, sizeof(a->id), "%.*s", (int)task->id.size, task->id.data);
}

static void ask(struct world *w, struct asked *a, const char *worker, uint64_t wait_ms)
{
        *a = (struct asked){ .poll = { .handler = "a", .worker = worker, .wait_ms = wait_ms, .done = on_polled } };
        remotes_take(&w->handlers, &a->poll, w->now_ms);
        assert_false(a->is_done);
}

/* A worker with that task, handed out and durable. */
static void give(struct world *w, struct asked *a, uint64_t seq, const char *key)
{
        hand_task(w, seq, key);
        call_store(w);
        ask(w, a, "alice", 10000);
        turn(w);
        call_store(w);
        assert_true(a->is_done);
        assert_int_equal(a->verdict, WORK_TASK);
}

static void on_said(struct work_saying *saying)
{
        ((struct told *)saying)->is_done = true;
}

static struct work_report report_of(const struct asked *a, enum report_kind kind, enum outcome outcome)
{
        return (struct work_report){ .kind = kind, .fence = a->fence, .outcome = outcome };
}

static enum work_verdict say_report(struct world *w, struct told *t, const char *id, struct work_report report)
{
        *t = (struct told){ .report = report };
        t->saying = (struct work_saying){ .shard = 0, .id = rig_span(id), .report = &t->report, .done = on_said };
        if (remotes_say(&w->handlers, &w->shards, &t->saying, w->now_ms))
                return WORK_NONE; /* later */
        return t->saying.verdict;
}

static enum work_verdict say(
        struct world *w, struct told *t, const struct asked *a, enum report_kind kind, enum outcome o)
{
        return say_report(w, t, a->id, report_of(a, kind, o));
}

/* --- handing out --- */

static void a_task_goes_out_once_its_start_is_durable(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_open(&w);
        own_shard(&w);
        hand_task(&w, 1, "k");
        call_store(&w);
        ask(&w, &a, "alice", 10000);
        turn(&w);
        assert_false(a.is_done);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_START);
        assert_non_null(o);
        assert_true(span_is(o->holder, SPAN_TEXT("worker/40.1/alice")));
        assert_int_equal(o->until_ms, TTL_MS);
        turn(&w);
        assert_false(a.is_done);
        w.now_ms += 100;
        answer_call(&w, STORE_OK);
        assert_true(a.is_done);
        assert_int_equal(a.verdict, WORK_TASK);
        assert_string_equal(a.id, "k");
        /* It counts from before the call was sent, and less than was recorded. */
        assert_int_equal(a.remaining_ms, TTL_MS - TTL_MS / 10 - 100);
        world_close(&w);
}

static void polls_are_served_in_order_and_end_in_time(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct asked c;
        world_open(&w);
        own_shard(&w);
        ask(&w, &a, "alice", 1000);
        ask(&w, &b, "bob", 5000);
        ask(&w, &c, "carl", 0);
        turn(&w);
        assert_true(c.is_done);
        assert_int_equal(c.verdict, WORK_NONE);
        assert_int_equal(remotes_due_ms(&w.handlers, w.now_ms), w.now_ms + 1000);
        hand_task(&w, 1, "k");
        call_store(&w);
        w.now_ms += 1000;
        turn(&w); /* its time is over, but a task is being started for it */
        call_store(&w);
        assert_int_equal(a.verdict, WORK_TASK);
        assert_false(b.is_done);
        w.now_ms += 4000;
        turn(&w);
        assert_int_equal(b.verdict, WORK_NONE);
        world_close(&w);
}

static void a_task_of_a_busy_key_is_not_handed_out(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        hand_task(&w, 2, "k");
        call_store(&w);
        ask(&w, &b, "bob", 10000);
        turn(&w);
        send_call(&w);
        assert_null(outcome_of(&w, 2, STORE_START));
        answer_call(&w, STORE_OK);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        turn(&w);
        send_call(&w);
        assert_non_null(outcome_of(&w, 1, STORE_DONE));
        assert_false(t.is_done);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        call_store(&w);
        assert_int_equal(b.verdict, WORK_TASK);
        world_close(&w);
}

static void no_task_goes_to_a_worker_that_has_left(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        world_open(&w);
        own_shard(&w);
        ask(&w, &a, "alice", 10000);
        remotes_leave(&w.handlers, &a.poll);
        hand_task(&w, 1, "k");
        call_store(&w);
        turn(&w);
        send_call(&w);
        assert_null(outcome_of(&w, 1, STORE_START));
        answer_call(&w, STORE_OK);
        /* It leaves while its start is being recorded: the record is taken back, and the next one gets the task. */
        ask(&w, &a, "alice", 10000);
        turn(&w);
        send_call(&w);
        assert_non_null(outcome_of(&w, 1, STORE_START));
        remotes_leave(&w.handlers, &a.poll);
        answer_call(&w, STORE_OK);
        ask(&w, &b, "bob", 10000);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_INTERRUPTED);
        assert_non_null(o);
        assert_int_equal(o->cost, COST_NONE);
        answer_call(&w, STORE_OK);
        turn(&w);
        call_store(&w);
        assert_false(a.is_done);
        assert_int_equal(b.verdict, WORK_TASK);
        assert_int_equal(b.fence.start, 2);
        world_close(&w);
}

static void workers_have_no_more_than_they_may_at_once(void **state)
{
        (void)state;
        struct world w;
        struct asked a[4];
        static const char *const keys[] = { "k", "l", "m", "n" };
        struct told t;
        world_open(&w);
        own_shard(&w);
        for (unsigned i = 0; i < 4; i++)
                hand_task(&w, i + 1, keys[i]);
        call_store(&w);
        for (unsigned i = 0; i < 4; i++)
                ask(&w, &a[i], "alice", 10000);
        turn(&w);
        call_store(&w);
        assert_true(a[0].is_done && a[1].is_done && a[2].is_done);
        assert_false(a[3].is_done);
        assert_int_equal(say(&w, &t, &a[1], REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        call_store(&w);
        turn(&w);
        call_store(&w);
        assert_true(a[3].is_done);
        world_close(&w);
}

static void a_handler_without_workers_leaves_the_windows_to_others(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_open(&w);
        own_shard(&w);
        turn(&w);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_DOWN);
        ask(&w, &a, "alice", 100);
        turn(&w);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_OPEN);
        w.now_ms += 1000; /* it has got its answer, and asks again within a moment */
        turn(&w);
        assert_true(a.is_done);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_OPEN);
        w.now_ms += 60000;
        turn(&w);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_DOWN);
        world_close(&w);
}

/* --- heartbeats --- */

static void a_heartbeat_makes_the_time_later_at_most_every_third_of_it(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += 900;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_TAKEN); /* at once: the store hears nothing */
        assert_int_equal(t.saying.remaining_ms, TTL_MS - TTL_MS / 10 - 900);
        w.now_ms += 100;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_START);
        assert_non_null(o);
        assert_true(span_is(o->holder, SPAN_TEXT("worker/40.1/alice"))); /* it is the same start */
        assert_int_equal(o->until_ms, TTL_MS);
        assert_false(t.is_done);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(t.saying.remaining_ms, TTL_MS - TTL_MS / 10);
        w.now_ms += TTL_MS - 1;
        turn(&w);
        assert_int_equal(w.shard->lent, 1);
        w.now_ms += 1;
        turn(&w);
        assert_int_equal(w.shard->lent, 0);
        world_close(&w);
}

static void a_heartbeat_in_time_counts_though_the_store_is_slow(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += TTL_MS - 1;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        send_call(&w);
        w.now_ms += 2000;
        turn(&w);
        assert_int_equal(w.shard->lent, 1);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(w.shard->lent, 1);
        world_close(&w);
}

static void a_checkpoint_of_a_heartbeat_is_kept(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        struct work_report r = report_of(&a, REPORT_HEARTBEAT, 0);
        buffer_put(&r.checkpoint, "row 7", 5);
        r.has_checkpoint = r.has_progress = true;
        r.progress_done = 7;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_TAKEN);
        buffer_free(&r.checkpoint);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_CHECKPOINT);
        assert_non_null(o);
        assert_true(span_is(o->checkpoint, SPAN_TEXT("row 7")));
        assert_int_equal(w.handlers.remotes.all->progress_done, 7);
        answer_call(&w, STORE_OK);
        world_close(&w);
}

static void past_its_timeout_a_task_gets_no_more_time(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        w.settings.timeout_ms = 4000;
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += 2000;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        send_call(&w);
        assert_int_equal(outcome_of(&w, 1, STORE_START)->until_ms, 2000);
        answer_call(&w, STORE_OK);
        assert_false(t.saying.is_stop);
        w.now_ms += 1999;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        call_store(&w);
        w.now_ms += 1;
        turn(&w);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_RETRY);
        assert_non_null(o);
        assert_int_equal(o->cost, COST_CRASH);
        assert_non_null(memmem(o->error.data, o->error.size, "timeout", strlen("timeout")));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* --- outcomes --- */

static void only_the_current_start_is_listened_to(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        struct work_report r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.start++;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.epoch--;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.seq++;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        assert_int_equal(say_report(&w, &t, "other", report_of(&a, REPORT_OUTCOME, OUTCOME_DONE)), WORK_STALE);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        struct told twice;
        assert_int_equal(say(&w, &twice, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_STALE);
        call_store(&w);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        world_close(&w);
}

static void an_outcome_is_judged_as_a_runners_is(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        struct work_report r = report_of(&a, REPORT_OUTCOME, OUTCOME_RETRY);
        buffer_put(&r.error, "no route", 8);
        r.has_retry_after = true;
        r.retry_after_ms = 1234;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_NONE);
        buffer_free(&r.error);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_RETRY);
        assert_non_null(o);
        assert_int_equal(o->cost, COST_ATTEMPT);
        assert_int_equal(o->delay_ms, 1234);
        assert_true(span_is(o->error, SPAN_TEXT("no route\n@worker alice (via host-a)")));
        answer_call(&w, STORE_OK);
        give(&w, &a, 2, "l");
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_REJECT), WORK_NONE);
        send_call(&w);
        assert_true(span_is(outcome_of(&w, 2, STORE_DEAD)->reason, SPAN_TEXT("rejected")));
        answer_call(&w, STORE_OK);
        give(&w, &a, 3, "m");
        char result[101] = "";
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.has_result = true;
        buffer_put(&r.result, result, sizeof(result));
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_REFUSED);
        assert_non_null(strstr(t.saying.text, "max_result"));
        buffer_free(&r.result);
        world_close(&w);
}

static void unavailable_pauses_the_handler_and_costs_nothing(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_UNAVAILABLE), WORK_NONE);
        send_call(&w);
        assert_int_equal(outcome_of(&w, 1, STORE_INTERRUPTED)->cost, COST_NONE);
        answer_call(&w, STORE_OK);
        ask(&w, &a, "alice", 60000);
        turn(&w);
        assert_int_equal(remotes_due_ms(&w.handlers, w.now_ms), w.now_ms + 1000);
        w.now_ms += 999;
        turn(&w);
        assert_null(w.shard->starts_waiting);
        w.now_ms += 1;
        turn(&w);
        assert_non_null(w.shard->starts_waiting);
        call_store(&w);
        assert_true(a.is_done);
        world_close(&w);
}

static void a_cancelled_task_is_told_to_stop_and_is_dead_unless_it_was_done(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        give(&w, &b, 2, "l");
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("l"), 2), w.now_ms);
        w.now_ms += 1500;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_TAKEN); /* and it gets no more time */
        assert_true(t.saying.is_stop);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_RETRY), WORK_NONE);
        struct told done;
        assert_int_equal(say(&w, &done, &b, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        send_call(&w);
        assert_true(span_is(outcome_of(&w, 1, STORE_DEAD)->reason, SPAN_TEXT("cancelled")));
        assert_non_null(outcome_of(&w, 2, STORE_DONE));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* --- silence --- */

static void silence_is_an_interruption_and_the_fourth_in_a_row_a_crash(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        hand_task(&w, 1, "k");
        call_store(&w);
        for (unsigned i = 1; i <= 4; i++) {
                ask(&w, &a, "alice", 10000);
                turn(&w);
                call_store(&w);
                assert_int_equal(a.verdict, WORK_TASK);
                w.now_ms += TTL_MS;
                turn(&w);
                assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_STALE);
                send_call(&w);
                const struct store_outcome *o = outcome_of(&w, 1, i < 4 ? STORE_INTERRUPTED : STORE_RETRY);
                assert_non_null(o);
                assert_int_equal(o->cost, i < 4 ? COST_INTERRUPTION : COST_CRASH);
                assert_memory_equal(o->error.data, WORKER_SILENT, strlen(WORKER_SILENT));
                answer_call(&w, STORE_OK);
        }
        world_close(&w);
}

/* What an owner before us has counted stands in the history. */
static void silences_are_counted_over_owners(void **state)
{
        (void)state;
        static const struct {
                const char *events;
                uint32_t silences;
        } cases[] = {
                { "event:1 interruption its worker fell silent, after 3s\nevent:2 interruption its worker fell "
                  "silent\n",
                        2 },
                { "event:1 interruption its worker fell silent\nevent:2 attempt refused\n", 0 },
                { "event:1 interruption its worker fell silent\nevent:2 waited it was about to start, and did not\n",
                        1 },
                { "event:1 attempt x\nevent:2 crash its worker fell silent, as those before it\n", 1 },
                { "event:1 interruption its worker fell silent\nevent:2 interruption its host died\n", 0 },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct world w;
                world_open(&w);
                own_shard(&w);
                hand_task(&w, 1, "k")->note.events = rig_span(cases[i].events);
                call_store(&w);
                assert_int_equal(window_find(&w.shard->window, SPAN_TEXT("k"), 1)->silences, cases[i].silences);
                world_close(&w);
        }
}

/* --- other owners --- */

static void a_new_owner_waits_for_the_worker_of_the_old_one(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 2000);
        hand_task(&w, 2, "k");
        hand_task(&w, 3, "l");
        own_shard(&w);
        assert_int_equal(w.shard->lent, 1);
        ask(&w, &a, "alice", 10000);
        turn(&w);
        call_store(&w);
        assert_string_equal(a.id, "l"); /* nobody starts key k */
        struct work_report r = { .kind = REPORT_HEARTBEAT, .fence = { 7, 3, 1 } };
        w.now_ms += 1000;
        assert_int_equal(say_report(&w, &t, "k", r), WORK_NONE);
        send_call(&w);
        assert_true(span_is(outcome_of(&w, 1, STORE_START)->holder, SPAN_TEXT("worker/7.3/zoe")));
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        r = (struct work_report){ .kind = REPORT_OUTCOME, .outcome = OUTCOME_DONE, .fence = { 7, 3, 1 } };
        assert_int_equal(say_report(&w, &t, "k", r), WORK_NONE);
        call_store(&w);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        world_close(&w);
}

static void a_new_owner_finds_a_silence_that_is_over(void **state)
{
        (void)state;
        struct world w;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 0);
        own_shard(&w);
        turn(&w);
        send_call(&w);
        const struct store_outcome *o = outcome_of(&w, 1, STORE_INTERRUPTED);
        assert_non_null(o);
        assert_int_equal(o->cost, COST_INTERRUPTION);
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* Held by a person meanwhile: what the worker has stays where it is, the rest goes back. */
static void a_lent_task_is_adopted_though_its_key_waits(void **state)
{
        (void)state;
        struct world w;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 2000);
        hand_task(&w, 2, "k");
        w.tasks[0].is_key_waiting = w.tasks[1].is_key_waiting = true;
        own_shard(&w);
        assert_int_equal(w.shard->lent, 1);
        send_call(&w);
        assert_null(outcome_of(&w, 1, STORE_DIVERT));
        assert_non_null(outcome_of(&w, 2, STORE_DIVERT));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

static void a_shard_is_left_though_workers_have_its_tasks(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        hand_task(&w, 2, "l");
        call_store(&w);
        ask(&w, &b, "bob", 10000);
        turn(&w);
        assert_non_null(w.shard->starts_waiting);
        shard_leave(w.shard, w.now_ms);
        /* What has not been handed out is taken back. */
        remotes_recall(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        remotes_recall(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("l"), 2), w.now_ms);
        turn(&w);
        send_call(&w);
        assert_non_null(outcome_of(&w, 2, STORE_INTERRUPTED));
        assert_null(outcome_of(&w, 1, STORE_INTERRUPTED));
        answer_call(&w, STORE_OK);
        assert_false(b.is_done);
        assert_int_equal(shard_next_call(w.shard, false, w.now_ms), SHARD_CALL_RELEASE);
        struct store_release release;
        shard_fill_release(w.shard, &release, w.now_ms);
        shard_released(w.shard);
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        turn(&w);
        assert_null(w.handlers.remotes.all);
        assert_int_equal(w.shard->lent, 0);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_ELSEWHERE);
        world_close(&w);
}

/* The lease is lost before the outcome is durable: whoever said it is not told that it was taken. */
static void an_outcome_that_was_not_recorded_is_not_confirmed(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        send_call(&w);
        answer_call(&w, STORE_FENCED);
        turn(&w);
        assert_true(t.is_done);
        assert_int_equal(t.saying.verdict, WORK_UNKNOWN);
        world_close(&w);
}

static void obey(struct world *w, enum store_control_verb verb, const char *id, uint64_t seq, const char *data)
{
        struct store_control control = { .verb = verb, .id = rig_span(id), .seq = seq, .data = rig_span(data) };
        remotes_obey(&w->handlers, w->shard, &control, w->now_ms);
}

static void what_came_through_another_host_is_applied_once(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += 2000;
        obey(&w, CONTROL_HEARTBEAT, "k", 1, "{\"fence\":\"40.1.1\"}");
        send_call(&w);
        assert_non_null(outcome_of(&w, 1, STORE_START));
        answer_call(&w, STORE_OK);
        obey(&w, CONTROL_OUTCOME, "k", 1, "not JSON");
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.2.1\",\"outcome\":\"done\"}");
        obey(&w, CONTROL_OUTCOME, "other", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        assert_int_equal(w.shard->lent, 1);
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"reject\"}");
        send_call(&w);
        assert_non_null(outcome_of(&w, 1, STORE_DONE));
        assert_null(outcome_of(&w, 1, STORE_DEAD));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* Said in time, and read with the call that told of the silence. */
static void an_outcome_that_was_in_time_counts_if_nobody_has_started_the_task_since(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += TTL_MS;
        turn(&w);
        call_store(&w);
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        send_call(&w);
        assert_non_null(outcome_of(&w, 1, STORE_DONE));
        answer_call(&w, STORE_OK);
        /* But not if somebody has. */
        give(&w, &a, 2, "l");
        w.now_ms += TTL_MS;
        turn(&w);
        struct asked b;
        ask(&w, &b, "bob", 1000);
        call_store(&w);
        turn(&w);
        call_store(&w);
        assert_string_equal(b.id, "l");
        obey(&w, CONTROL_OUTCOME, "l", 2, "{\"fence\":\"40.2.2\",\"outcome\":\"done\"}");
        assert_int_equal(w.shard->lent, 1);
        world_close(&w);
}

static void a_host_that_stops_sends_its_workers_away(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_open(&w);
        own_shard(&w);
        ask(&w, &a, "alice", 10000);
        w.handlers.is_leaving = true;
        remotes_look(&w.handlers, &w.shards, w.now_ms);
        assert_true(a.is_done);
        assert_int_equal(a.verdict, WORK_STOPPING);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_task_goes_out_once_its_start_is_durable),
                cmocka_unit_test(polls_are_served_in_order_and_end_in_time),
                cmocka_unit_test(a_task_of_a_busy_key_is_not_handed_out),
                cmocka_unit_test(no_task_goes_to_a_worker_that_has_left),
                cmocka_unit_test(workers_have_no_more_than_they_may_at_once),
                cmocka_unit_test(a_handler_without_workers_leaves_the_windows_to_others),
                cmocka_unit_test(a_heartbeat_makes_the_time_later_at_most_every_third_of_it),
                cmocka_unit_test(a_heartbeat_in_time_counts_though_the_store_is_slow),
                cmocka_unit_test(a_checkpoint_of_a_heartbeat_is_kept),
                cmocka_unit_test(past_its_timeout_a_task_gets_no_more_time),
                cmocka_unit_test(only_the_current_start_is_listened_to),
                cmocka_unit_test(an_outcome_is_judged_as_a_runners_is),
                cmocka_unit_test(unavailable_pauses_the_handler_and_costs_nothing),
                cmocka_unit_test(a_cancelled_task_is_told_to_stop_and_is_dead_unless_it_was_done),
                cmocka_unit_test(silence_is_an_interruption_and_the_fourth_in_a_row_a_crash),
                cmocka_unit_test(silences_are_counted_over_owners),
                cmocka_unit_test(a_new_owner_waits_for_the_worker_of_the_old_one),
                cmocka_unit_test(a_new_owner_finds_a_silence_that_is_over),
                cmocka_unit_test(a_lent_task_is_adopted_though_its_key_waits),
                cmocka_unit_test(a_shard_is_left_though_workers_have_its_tasks),
                cmocka_unit_test(an_outcome_that_was_not_recorded_is_not_confirmed),
                cmocka_unit_test(what_came_through_another_host_is_applied_once),
                cmocka_unit_test(an_outcome_that_was_in_time_counts_if_nobody_has_started_the_task_since),
                cmocka_unit_test(a_host_that_stops_sends_its_workers_away),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
