#include "cli/vet/vet_random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/try/try.h"
#include "host/pool/pool_io.h"

struct random_tasks_task {
        struct pool_task pool;
        struct random_tasks_task *prev, *next; /* all that are not settled */
        uint64_t number;
        char id[32];
        struct buffer payload;
        char *crash; /* what its first crash said; NULL: none yet */
};

struct random_tasks_run {
        const struct vet_request *request;
        struct random_tasks *random_tasks;
        uv_loop_t loop;
        struct pools pools;
        struct pool_io pool_io;
        struct leases leases;
        struct try_services *services;
        struct random_tasks_task *tasks;
        uint64_t made;
        uint64_t until_ms;
        bool has_enough;   /* offer nothing more */
        bool is_giving_up; /* and wait for nothing either */
        bool is_cancelled;
};

/* --- tasks ------------------------------------------------------------------------------------------------------- */

static struct random_tasks_task *make_task(struct random_tasks_run *run)
{
        struct random_tasks_task *task = calloc(1, sizeof(*task));
        if (!task)
                abort();
        task->number = run->made++;
        (void)snprintf(task->id, sizeof(task->id), "vet-%" PRIu64, task->number);
        vet_generate(run->request->seed, task->number, &task->payload);
        task->pool.owner = task;
        task->pool.task = (struct ring_task){
                .id = task->id,
                .key = task->id,
                .handler = run->request->handler,
                .attempt = 1,
                .fence_epoch = 1,
                .fence_start = run->made,
                .timeout_ms = CROWD_STOP_MS,
                .payload = task->payload.size ? (const char *)task->payload.data : "",
                .payload_size = task->payload.size,
        };
        task->next = run->tasks;
        if (run->tasks)
                run->tasks->prev = task;
        run->tasks = task;
        return task;
}

static void drop_task(struct random_tasks_run *run, struct random_tasks_task *task)
{
        if (task->prev)
                task->prev->next = task->next;
        else
                run->tasks = task->next;
        if (task->next)
                task->next->prev = task->prev;
        buffer_free(&task->payload);
        free(task->crash);
        free(task);
}

static void run_alone(struct random_tasks_run *run, struct random_tasks_task *task)
{
        task->pool.is_suspect = true;
        pool_io_offer(&run->pool_io, &task->pool);
}

/* --- what became of them ----------------------------------------------------------------------------------------- */

static void keep_case(struct random_tasks_case *c, struct random_tasks_task *task, const char *error, bool is_alone)
{
        c->number = task->number;
        buffer_put(&c->payload, task->payload.data, task->payload.size);
        c->error = text_copy(error);
        c->is_alone = is_alone;
}

static void keep_crash(struct random_tasks_run *run, struct random_tasks_task *task, const char *error, bool is_alone)
{
        struct random_tasks *random_tasks = run->random_tasks;
        if (random_tasks->crashes_count < CROWD_CRASHES_MAX)
                keep_case(&random_tasks->crashes[random_tasks->crashes_count++], task, error, is_alone);
        if (random_tasks->crashes_count == CROWD_CRASHES_MAX)
                run->has_enough = true;
}

/* True: the task is on its way again, alone, and what this was about will be known then. */
static bool try_again(struct random_tasks_run *run, struct random_tasks_task *task, const struct settled *settled)
{
        if (run->is_giving_up || task->pool.is_suspect)
                return false;
        if (settled->is_suspect)
                run->random_tasks->suspects++;
        else if (settled->outcome == OUTCOME_CRASHED)
                task->crash = text_copy(settled->error);
        else if (settled->outcome != OUTCOME_INTERRUPTED || settled->why != BLAME_NEIGHBOUR)
                return false;
        run_alone(run, task);
        return true;
}

static void note_stop(struct random_tasks_run *run, struct random_tasks_task *task, const struct settled *settled)
{
        struct random_tasks *random_tasks = run->random_tasks;
        if (!task->pool.stopped_ms)
                return;
        uint64_t took_ms = clock_boot_ms() - task->pool.stopped_ms;
        if (settled->reply && took_ms <= CROWD_STOP_MS) {
                random_tasks->obeyed++;
                if (took_ms > random_tasks->obeyed_ms_max)
                        random_tasks->obeyed_ms_max = took_ms;
                return;
        }
        if (!random_tasks->ignored++)
                keep_case(&random_tasks->deaf, task, settled->error, true);
        if (random_tasks->ignored == CROWD_CRASHES_MAX)
                run->has_enough = true;
}

static void on_settled(void *owner, struct pool_task *pool_task, const struct settled *settled)
{
        struct random_tasks_run *run = owner;
        struct random_tasks *random_tasks = run->random_tasks;
        struct random_tasks_task *task = pool_task->owner;
        if (settled->outcome != OUTCOME_CRASHED && settled->outcome != OUTCOME_INTERRUPTED)
                note_stop(run, task, settled);
        if (try_again(run, task, settled))
                return;
        if (run->is_cancelled) {
                drop_task(run, task);
                return;
        }
        random_tasks->settled++;
        random_tasks->outcomes[settled->outcome]++;
        if (settled->outcome == OUTCOME_CRASHED)
                keep_crash(run, task, settled->error, true);
        else if (task->crash)
                keep_crash(run, task, task->crash, false);
        if (random_tasks->settled == CROWD_IDLE_MAX && random_tasks->outcomes[OUTCOME_UNAVAILABLE] == CROWD_IDLE_MAX) {
                random_tasks->is_unavailable = true;
                run->is_giving_up = true;
        }
        drop_task(run, task);
}

static void on_refused(void *owner, const char *text)
{
        struct random_tasks_run *run = owner;
        if (!run->random_tasks->refusal)
                run->random_tasks->refusal = text_copy(text);
        run->is_giving_up = true;
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        struct random_tasks_run *run = owner;
        return try_services_call(run->services, service, holder, name, number);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        (void)owner;
        (void)log;
        (void)task;
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        (void)owner;
        (void)ready;
        (void)pid;
}

static void on_quarantined(void *owner, const char *text)
{
        (void)owner;
        (void)text; /* never: the policy allows any number of failures */
}

static void on_stopped(void *owner)
{
        struct random_tasks_run *run = owner;
        uv_stop(&run->loop);
}

static const struct pool_io_events pool_io_events = {
        .settled = on_settled,
        .log = on_log,
        .ready = on_ready,
        .refused = on_refused,
        .call = on_call,
        .quarantined = on_quarantined,
        .stopped = on_stopped,
};

/* --- the run ----------------------------------------------------------------------------------------------------- */

static void cancel_all(struct random_tasks_run *run)
{
        struct random_tasks_task *task = run->tasks;
        run->is_cancelled = true;
        while (task) {
                /* One that waits is settled, and gone, before this returns. */
                struct random_tasks_task *next = task->next;
                pool_io_cancel(&run->pool_io, &task->pool);
                task = next;
        }
}

/* Before the loop sleeps, and so never inside one of the pool_io's own steps. */
static void offer_more(struct random_tasks_run *run)
{
        if (run->pool_io.is_stopping)
                return;
        if (run->is_giving_up && !run->is_cancelled)
                cancel_all(run);
        if (clock_boot_ms() >= run->until_ms && run->made < run->request->payloads && !run->has_enough)
                run->random_tasks->is_late = run->has_enough = true;
        bool is_done = run->has_enough || run->is_giving_up;
        while (!is_done && run->made < run->request->payloads && pool_io_has_room(&run->pool_io))
                pool_io_offer(&run->pool_io, &make_task(run)->pool);
        if ((is_done || run->made == run->request->payloads) && pool_is_idle(&run->pool_io.pool))
                pool_io_stop(&run->pool_io);
}

static void on_prepare(uv_prepare_t *prepare)
{
        struct random_tasks_run *run = prepare->data;
        offer_more(run);
        pools_flush(&run->pools);
}

static void on_check(uv_check_t *check)
{
        struct random_tasks_run *run = check->data;
        pools_collect(&run->pools);
}

static int open_pool(struct random_tasks_run *run, uint32_t seats, uint32_t batch_max, struct error *error)
{
        struct pool_policy policy = {
                .processes = 1,
                .threads = seats,
                .batch_max = batch_max,
                .batch_wait_ms = batch_max > 1 ? 1 : 0,
                .grace_ms = CROWD_STOP_MS,
                .abort_ms = 1000,
                .init_ms = run->request->init_ms,
                .backoff_ms = 1,
                .backoff_max_ms = 10,
                .ring_entries = 256,
        };
        struct runner_start start;
        vet_start(run->request, seats, batch_max, &start);
        int r = leases_create(&run->leases, 1);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        leases_set(&run->leases, 0, 1, UINT64_MAX);
        r = pool_io_init(&run->pool_io, &run->pools, &policy, &start, &run->leases, &pool_io_events, run);
        return r < 0 ? error_set(error, r, "cannot set up the pool: %s", strerror(-r)) : 0;
}

int random_tasks_run(const struct vet_request *request, uint32_t seats, uint32_t batch_max, struct random_tasks *ret,
        struct error *error)
{
        struct random_tasks_run run = {
                .request = request, .random_tasks = ret, .until_ms = clock_boot_ms() + CROWD_MS
        };
        uv_prepare_t prepare;
        uv_check_t check;
        *ret = (struct random_tasks){ 0 };
        (void)uv_loop_init(&run.loop);
        pools_init(&run.pools, &run.loop);
        run.services = try_services_new();
        int r = open_pool(&run, seats, batch_max, error);
        if (r == 0) {
                (void)uv_prepare_init(&run.loop, &prepare);
                (void)uv_check_init(&run.loop, &check);
                prepare.data = check.data = &run;
                (void)uv_prepare_start(&prepare, on_prepare);
                (void)uv_check_start(&check, on_check);
                (void)uv_run(&run.loop, UV_RUN_DEFAULT);
                uv_close((uv_handle_t *)&prepare, NULL);
                uv_close((uv_handle_t *)&check, NULL);
                pool_io_close(&run.pool_io);
        }
        pools_close(&run.pools);
        while (uv_run(&run.loop, UV_RUN_DEFAULT))
                ;
        try_services_free(run.services);
        leases_free(&run.leases);
        (void)uv_loop_close(&run.loop);
        return r;
}

static void free_case(struct random_tasks_case *c)
{
        buffer_free(&c->payload);
        free(c->error);
}

void random_tasks_free(struct random_tasks *random_tasks)
{
        for (size_t i = 0; i < random_tasks->crashes_count; i++)
                free_case(&random_tasks->crashes[i]);
        free_case(&random_tasks->deaf);
        free(random_tasks->refusal);
        *random_tasks = (struct random_tasks){ 0 };
}
