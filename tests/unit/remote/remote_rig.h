/* remote_rig.h: a host whose tasks workers outside run, for tests: the test plays the store and the workers. */
#ifndef QUIVER_TESTS_REMOTE_RIG_H
#define QUIVER_TESTS_REMOTE_RIG_H

#include "shard_rig.h"

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

static inline void on_changed(void *self)
{
        (void)self;
}

static const struct handlers_events handlers_events = { .changed = on_changed };
static const struct shards_events shards_events;

static inline void world_open(struct world *w)
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
        shards_init(&w->shards, 1, 0, RIG_PER_KEY);
        w->shard = &w->shards.list[0].shard;
        w->handlers = (struct handlers){ .dispatch = &w->dispatch, .events = &handlers_events, .host = "host-a" };
        assert_int_equal(handlers_open(&w->handlers, &w->config, &w->settings, &error), 0);
        shard_assign(w->shard, nonce, 40, false);
}

static inline void world_close(struct world *w)
{
        remotes_close(&w->handlers, w->now_ms);
        generation_free((struct generation *)w->handlers.list[0]->rollout.newest);
        handlers_free(&w->handlers);
        shards_free(&w->shards);
        dispatch_free(&w->dispatch);
}

/* --- the store -------------------------------------------------------------------------------------------------- */

static inline struct store_task *hand_task(struct world *w, uint64_t seq, const char *key)
{
        struct store_task *t = &w->tasks[w->tasks_count++];
        *t = (struct store_task){ .seq = seq,
                .key = rig_span(key),
                .envelope = { .id = rig_span(key), .handler = SPAN_TEXT("a"), .payload = SPAN_TEXT("x") } };
        return t;
}

/* As another owner left it: at a worker, for `busy_ms` more. */
static inline void hand_lent(struct world *w, uint64_t seq, const char *key, const char *holder, uint64_t busy_ms)
{
        struct store_task *t = hand_task(w, seq, key);
        t->note = (struct task_note){ .started_epoch = 7, .holder = rig_span(holder), .until_ms = 1 };
        t->busy_ms = busy_ms;
}

/* One turn of the host's loop, without its calls to the store. */
static inline void turn(struct world *w)
{
        remotes_tick(&w->handlers, w->now_ms);
        dispatch_look(&w->dispatch, &w->shards.schedule.changed);
        remotes_look(&w->handlers, &w->shards, w->now_ms);
        handler_feed(w->handlers.list[0], w->now_ms);
}

/* The time passes, and the host looks. */
static inline void pass(struct world *w, uint64_t ms)
{
        w->now_ms += ms;
        turn(w);
}

static inline void own_shard(struct world *w)
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

/* A host that owns its shard. */
static inline void world_own(struct world *w)
{
        world_open(w);
        own_shard(w);
}

static inline void send_call(struct world *w)
{
        w->shard->has_work = true;
        assert_int_equal(shard_next_call(w->shard, false, w->now_ms), SHARD_CALL_ADVANCE);
        shard_fill_advance(w->shard, &w->advance, w->now_ms);
}

static inline void answer_call(struct world *w, enum store_verdict verdict)
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

static inline void call_store(struct world *w)
{
        send_call(w);
        answer_call(w, STORE_OK);
}

static inline const struct store_outcome *outcome_of(const struct world *w, uint64_t seq, enum store_outcome_kind kind)
{
        for (uint32_t i = 0; i < w->advance.outcomes_count; i++)
                if (w->advance.outcomes[i].task.seq == seq && w->advance.outcomes[i].kind == kind)
                        return &w->advance.outcomes[i];
        return NULL;
}

/* Sends a call, which must say this about that task. */
static inline const struct store_outcome *call_telling(struct world *w, uint64_t seq, enum store_outcome_kind kind)
{
        send_call(w);
        const struct store_outcome *o = outcome_of(w, seq, kind);
        assert_non_null(o);
        return o;
}

/* --- the workers ------------------------------------------------------------------------------------------------ */

static inline void on_polled(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task)
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

static inline void ask(struct world *w, struct asked *a, const char *worker, uint64_t wait_ms)
{
        *a = (struct asked){ .poll = { .handler = "a", .worker = worker, .wait_ms = wait_ms, .done = on_polled } };
        remotes_take(&w->handlers, &a->poll, w->now_ms);
        assert_false(a->is_done);
}

/* A worker that waits for long, and the host has seen it. */
static inline void ask_now(struct world *w, struct asked *a, const char *worker)
{
        ask(w, a, worker, 10000);
        turn(w);
}

/* A worker with that task, handed out and durable. */
static inline void give(struct world *w, struct asked *a, uint64_t seq, const char *key)
{
        hand_task(w, seq, key);
        call_store(w);
        ask_now(w, a, "alice");
        call_store(w);
        assert_true(a->is_done);
        assert_int_equal(a->verdict, WORK_TASK);
}

/* A host that owns its shard, and a worker with its task 1 of key k. */
static inline void world_give(struct world *w, struct asked *a)
{
        world_own(w);
        give(w, a, 1, "k");
}

static inline void on_said(struct work_saying *saying)
{
        ((struct told *)saying)->is_done = true;
}

static inline struct work_report report_of(const struct asked *a, enum report_kind kind, enum outcome outcome)
{
        return (struct work_report){ .kind = kind, .fence = a->fence, .outcome = outcome };
}

static inline enum work_verdict say_report(struct world *w, struct told *t, const char *id, struct work_report report)
{
        *t = (struct told){ .report = report };
        t->saying = (struct work_saying){ .shard = 0, .id = rig_span(id), .report = &t->report, .done = on_said };
        if (remotes_say(&w->handlers, &w->shards, &t->saying, w->now_ms))
                return WORK_NONE; /* later */
        return t->saying.verdict;
}

static inline enum work_verdict say(
        struct world *w, struct told *t, const struct asked *a, enum report_kind kind, enum outcome o)
{
        return say_report(w, t, a->id, report_of(a, kind, o));
}

#endif
