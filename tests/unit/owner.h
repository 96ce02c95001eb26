/* owner.h: a small host without runners, for tests: makes a store, owns all its shards, claims and settles.
 *
 * Requests are made one at a time; each runs the loop until it is answered. */
#ifndef QUIVER_TESTS_OWNER_H
#define QUIVER_TESTS_OWNER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "store/store.h"

#define OWNER_SHARDS_MAX 64

struct owner {
        uv_loop_t loop;
        struct store *store;
        uint32_t shards;
        struct store_lease leases[OWNER_SHARDS_MAX];
        uint64_t calls[OWNER_SHARDS_MAX];
        bool is_closed;
};

static inline void owner_die(const char *what, const struct store_request *request)
{
        (void)fprintf(stderr, "owner: %s: %s (%d)\n", what, request->error.text, request->status);
        abort();
}

static _Thread_local bool owner_is_answered;

static inline void owner_on_done(struct store_request *request)
{
        (void)request;
        owner_is_answered = true;
}

/* Call right after starting a request. */
static inline void owner_wait(struct owner *o, struct store_request *request, const char *what)
{
        owner_is_answered = false;
        while (!owner_is_answered)
                (void)uv_run(&o->loop, UV_RUN_ONCE);
        if (request->status < 0)
                owner_die(what, request);
}

static inline void owner_open(struct owner *o, const char *url, const char *app, uint32_t shards)
{
        *o = (struct owner){ 0 };
        (void)uv_loop_init(&o->loop);
        struct store_open open = { .request.done = owner_on_done };
        open.options = (struct store_options){
                .url = url, .app = app, .shards = shards, .may_create = true, .is_host = true, .sync = STORE_SYNC_NORMAL
        };
        store_open(&o->loop, &open);
        owner_wait(o, &open.request, "open");
        o->store = open.store;
        struct store_info info;
        store_info(o->store, &info);
        o->shards = info.shards;
        if (o->shards > OWNER_SHARDS_MAX)
                abort();
}

static inline void owner_on_closed(void *self)
{
        *(bool *)self = true;
}

static inline void owner_close(struct owner *o)
{
        store_close(o->store, owner_on_closed, &o->is_closed);
        while (!o->is_closed)
                (void)uv_run(&o->loop, UV_RUN_ONCE);
        (void)uv_run(&o->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&o->loop);
}

/* Takes every shard, with an epoch above all before. */
static inline void owner_acquire(struct owner *o)
{
        for (uint32_t shard = 0; shard < o->shards; shard++) {
                struct store_acquire acquire = { .request.done = owner_on_done, .page_tasks = 1 };
                acquire.lease = (struct store_lease){ .shard = shard, .epoch = 1, .ttl_ms = 60000 };
                memset(acquire.lease.nonce, 7, STORE_NONCE_SIZE);
                do {
                        acquire.request = (struct store_request){ .done = owner_on_done };
                        store_acquire(o->store, &acquire);
                        owner_wait(o, &acquire.request, "acquire");
                        acquire.lease.epoch = acquire.stored_epoch + 1;
                } while (acquire.grant == STORE_STALE);
                if (acquire.grant != STORE_GRANTED)
                        owner_die("not granted", &acquire.request);
                acquire.lease.epoch--;
                o->leases[shard] = acquire.lease;
                o->calls[shard] = acquire.call;
        }
}

static inline void owner_release(struct owner *o)
{
        for (uint32_t shard = 0; shard < o->shards; shard++) {
                struct store_release release = {
                        .request.done = owner_on_done, .lease = o->leases[shard], .call = ++o->calls[shard]
                };
                store_release(o->store, &release);
                owner_wait(o, &release.request, "release");
        }
}

/* What becomes of a task.  `result` and `error` must live until the next call. */
typedef struct store_outcome owner_verdict(void *self, const struct store_task *task);

/* One call: commits the outcome of the task that the last one claimed, and claims one. */
struct owner_step {
        struct store_advance advance;
        owner_verdict *verdict;
        void *self;
        bool has_outcome;
        struct store_outcome outcome;
        char id[TASK_ID_MAX];
        char key[TASK_KEY_MAX];
        char handler[TASK_HANDLER_MAX];
};

static inline struct span owner_keep(char *to, struct span text)
{
        memcpy(to, text.data, text.size);
        return (struct span){ to, text.size };
}

static inline void owner_on_advanced(struct store_request *request)
{
        struct owner_step *step = (struct owner_step *)request;
        owner_is_answered = true;
        step->has_outcome = !request->status && step->advance.tasks_count;
        if (!step->has_outcome)
                return;
        const struct store_task *task = &step->advance.tasks[0];
        step->outcome = step->verdict(step->self, task);
        step->outcome.task = (struct store_ref){ .seq = task->seq,
                .id = owner_keep(step->id, task->envelope.id),
                .key = owner_keep(step->key, task->key),
                .handler = owner_keep(step->handler, task->envelope.handler),
                .reply_ms = task->envelope.reply_ms };
}

static inline uint32_t owner_work_shard(struct owner *o, uint32_t shard, owner_verdict *verdict, void *self)
{
        struct owner_step step = { .verdict = verdict, .self = self };
        uint32_t worked = 0;
        do {
                struct store_outcome outcome = step.outcome;
                step.advance = (struct store_advance){ .request.done = owner_on_advanced,
                        .lease = o->leases[shard],
                        .call = ++o->calls[shard],
                        .outcomes = &outcome,
                        .outcomes_count = step.has_outcome,
                        .want = { 1, 1, 1 } };
                store_advance(o->store, &step.advance);
                owner_wait(o, &step.advance.request, "advance");
                if (step.advance.verdict != STORE_OK)
                        owner_die("fenced", &step.advance.request);
                worked += step.has_outcome;
        } while (step.has_outcome || store_has_more(&step.advance));
        return worked;
}

/* Works off everything that can be claimed now; returns how many tasks that were.  A task whose verdict leaves it in
 * flight is not claimed again. */
static inline uint32_t owner_work(struct owner *o, owner_verdict *verdict, void *self)
{
        uint32_t worked = 0;
        for (uint32_t shard = 0; shard < o->shards; shard++)
                worked += owner_work_shard(o, shard, verdict, self);
        return worked;
}

#endif
