/* try.c: `quiver try`: tasks through a plugin in a real runner, with no server.
 *
 * The same pool, ring and runner as in a host; only the queue is missing: tasks come from the command line, follow-ups
 * and results are shown, locks and ids live in memory. */
#include "cli/try/try.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/plugin_args.h"
#include "host/handler/plugin_copy.h"

#define LEASES     1
#define LOG_RATE   10000
#define RESULT_MAX (UINT64_C(1) << 20)

struct try_run {
        const struct try_request *request;
        uv_loop_t loop;
        struct pools pools;
        struct pool_io pool_io;
        struct leases leases;
        struct plugin_copy copy;
        struct try_source source;
        struct try_services *services;
        struct try_counts counts;
        struct try_bench bench;
        uint64_t begun_ns, first_ns;
        pid_t runner_pid;
        uv_signal_t signals[2];
        uv_poll_t input;   /* standard input, while --lines waits for more */
        int input_flags;   /* what it was before libuv made it non-blocking; it may be somebody else's too */
        bool is_exhausted; /* no more tasks to come */
        bool is_refused;   /* the plugin was never ready: its tasks are not worth a line */
        bool is_cut;       /* everything was told to end */
        bool has_failed;
};

/* --- the run ----------------------------------------------------------------------------------------------------- */

/* The runner's own memory while it still runs: resident, with what it shares with us. */
static uint64_t resident_bytes(pid_t pid)
{
        char path[64];
        unsigned long long total = 0;
        unsigned long long resident = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        if (fscanf(file, "%llu %llu", &total, &resident) != 2)
                resident = 0;
        (void)fclose(file);
        return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void finish_if_done(struct try_run *t)
{
        if (!t->is_exhausted || !pool_is_idle(&t->pool_io.pool) || t->pool_io.is_stopping)
                return;
        t->bench.elapsed_ns = clock_boot_ns() - t->first_ns;
        t->bench.runner_bytes = resident_bytes(t->runner_pid);
        pool_io_stop(&t->pool_io);
}

static void on_input(uv_poll_t *input, int status, int events)
{
        (void)status;
        (void)events;
        /* It is read before the loop sleeps again. */
        (void)uv_poll_stop(input);
}

static void wait_for_input(struct try_run *t)
{
        if (!t->input.data) {
                t->input_flags = fcntl(STDIN_FILENO, F_GETFL);
                (void)uv_poll_init(&t->loop, &t->input, STDIN_FILENO);
                t->input.data = t;
        }
        (void)uv_poll_start(&t->input, UV_READABLE, on_input);
}

static void close_input(struct try_run *t)
{
        if (!t->input.data)
                return;
        uv_close((uv_handle_t *)&t->input, NULL);
        (void)fcntl(STDIN_FILENO, F_SETFL, t->input_flags);
}

static void offer_more(struct try_run *t)
{
        struct error error = { "" };
        while (!t->is_exhausted && pool_io_has_room(&t->pool_io)) {
                struct try_task *task = try_source_next(&t->source, &error);
                if (!task && t->source.is_waiting) {
                        wait_for_input(t);
                        break;
                }
                if (!task) {
                        t->is_exhausted = true;
                        break;
                }
                pool_io_offer(&t->pool_io, &task->pool);
        }
        if (*error.text) {
                try_show_error(t->request, error.text);
                t->has_failed = true;
        }
        finish_if_done(t);
}

/* It was not the task's doing: a host runs it again too, a suspect alone, with the checkpoint it had reached. */
static bool run_again(struct try_run *t, struct try_task *task, const struct settled *settled)
{
        bool is_innocent = settled->is_suspect || settled->why == BLAME_NEIGHBOUR || settled->why == BLAME_SHUTDOWN;
        if (t->is_cut || !is_innocent)
                return false;
        if (settled->checkpoint)
                try_task_keep_checkpoint(task, settled->checkpoint, settled->checkpoint_size);
        task->pool.is_suspect |= settled->is_suspect;
        pool_io_offer(&t->pool_io, &task->pool);
        return true;
}

static void on_settled(void *owner, struct pool_task *pool_task, const struct settled *settled)
{
        struct try_run *t = owner;
        struct try_task *task = pool_task->owner;
        if (run_again(t, task, settled))
                return;
        if (t->is_refused) {
                try_source_done(&t->source, task);
                return;
        }
        t->counts.total++;
        t->counts.outcomes[settled->outcome]++;
        if (settled->outcome != OUTCOME_DONE)
                t->has_failed = true;
        if (!t->bench.first_ns) {
                t->first_ns = clock_boot_ns();
                t->bench.first_ns = t->first_ns - t->begun_ns;
        }
        if (!t->request->bench || settled->outcome != OUTCOME_DONE)
                try_show_task(t->request, task, settled);
        try_source_done(&t->source, task);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        const struct try_run *t = owner;
        const struct try_task *mine = task ? task->owner : NULL;
        try_show_log(t->request, log, mine ? mine->id : NULL);
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        struct try_run *t = owner;
        bool is_first = !t->runner_pid;
        t->runner_pid = pid;
        if (!is_first)
                return;
        if (*ready->unread)
                (void)fprintf(stderr, "warning: settings that the plugin never read (misspelt?): %s\n", ready->unread);
        if (*ready->notes)
                (void)fprintf(stderr, "note: %s\n", ready->notes);
        if (t->request->batch > 1 && !ready->has_many)
                (void)fprintf(stderr, "note: the plugin has no handle_many, so --batch does nothing\n");
}

static void cut(struct try_run *t)
{
        t->is_cut = true;
        t->is_exhausted = true;
        pool_io_cut(&t->pool_io);
}

/* The first one stops what runs, with its grace; the second does not wait for that. */
static void on_signal(uv_signal_t *signal, int number)
{
        struct try_run *t = signal->data;
        (void)number;
        t->has_failed = true;
        if (t->is_cut) {
                cut(t);
                return;
        }
        t->is_cut = true;
        t->is_exhausted = true;
        pool_io_cancel_all(&t->pool_io);
}

static void on_refused(void *owner, const char *text)
{
        struct try_run *t = owner;
        t->has_failed = true;
        if (t->is_cut)
                return;
        try_show_error(t->request, text);
        /* A plugin that worked before may work again; one that never did will not. */
        if (!t->runner_pid) {
                t->is_refused = true;
                cut(t);
        }
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        struct try_run *t = owner;
        return try_services_call(t->services, service, holder, name, number);
}

static void on_quarantined(void *owner, const char *text)
{
        struct try_run *t = owner;
        (void)text; /* a person is watching: the runner's own words, shown already, say more */
        t->has_failed = true;
        cut(t);
}

static void on_stopped(void *owner)
{
        struct try_run *t = owner;
        uv_stop(&t->loop);
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

static void on_prepare(uv_prepare_t *prepare)
{
        struct try_run *t = prepare->data;
        offer_more(t);
        pools_flush(&t->pools);
}

static void on_check(uv_check_t *check)
{
        struct try_run *t = check->data;
        pools_collect(&t->pools);
}

static int open_pool(struct try_run *t, struct error *error)
{
        const struct try_request *q = t->request;
        struct pool_policy policy = {
                .processes = q->processes,
                .threads = q->threads,
                .batch_max = q->batch,
                .batch_wait_ms = q->batch > 1 ? 1 : 0,
                .grace_ms = q->grace_ms,
                .abort_ms = 1000,
                .init_ms = q->init_ms,
                .backoff_ms = 10,
                .backoff_max_ms = 1000,
                .quarantine_after = 8,
                .ring_entries = 256,
        };
        struct runner_start start = {
                .has_all_variables = true,
                .handler = q->handler,
                .plugin = t->copy.path,
                .label = t->copy.label,
                .seats = q->threads,
                .batch_max = q->batch,
                .leases = LEASES,
                .log_level = LEVEL_DEBUG,
                .log_rate = LOG_RATE,
                .result_max = q->payload_max > RESULT_MAX ? q->payload_max : RESULT_MAX,
                .payload_max = q->payload_max,
                .can_call = 1u << SERVICE_NEXT_ID | 1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK,
                .memory_max = q->memory_max,
                .processes_max = q->processes_max,
                .user = "",
                .settings = q->settings.items,
                .settings_count = q->settings.count,
        };
        int r = leases_create(&t->leases, LEASES);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        /* Nobody can take this lease away. */
        leases_set(&t->leases, 0, 1, UINT64_MAX);
        r = pool_io_init(&t->pool_io, &t->pools, &policy, &start, &t->leases, &pool_io_events, t);
        return r < 0 ? error_set(error, r, "cannot set up the pool: %s", strerror(-r)) : 0;
}

static void watch_signals(struct try_run *t)
{
        static const int numbers[] = { SIGINT, SIGTERM };
        for (int i = 0; i < 2; i++) {
                (void)uv_signal_init(&t->loop, &t->signals[i]);
                t->signals[i].data = t;
                (void)uv_signal_start(&t->signals[i], on_signal, numbers[i]);
        }
}

static int run(struct try_run *t)
{
        struct error error = { "" };
        uv_prepare_t prepare;
        uv_check_t check;
        pools_init(&t->pools, &t->loop);
        int r = plugin_copy_make_temporary(t->request->plugin, PLUGIN_ANYBODYS, &t->copy, &error);
        bool is_staged = r == 0;
        if (is_staged)
                r = open_pool(t, &error);
        if (r < 0) {
                try_show_error(t->request, error.text);
                if (is_staged)
                        plugin_copy_remove_temporary(&t->copy);
                pools_close(&t->pools);
                (void)uv_run(&t->loop, UV_RUN_DEFAULT);
                return EXIT_FAILED;
        }
        (void)uv_prepare_init(&t->loop, &prepare);
        (void)uv_check_init(&t->loop, &check);
        prepare.data = check.data = t;
        (void)uv_prepare_start(&prepare, on_prepare);
        (void)uv_check_start(&check, on_check);
        watch_signals(t);
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&prepare, NULL);
        uv_close((uv_handle_t *)&check, NULL);
        close_input(t);
        uv_close((uv_handle_t *)&t->signals[0], NULL);
        uv_close((uv_handle_t *)&t->signals[1], NULL);
        pool_io_close(&t->pool_io);
        pools_close(&t->pools);
        while (uv_run(&t->loop, UV_RUN_DEFAULT))
                ;
        plugin_copy_remove_temporary(&t->copy);
        leases_free(&t->leases);
        if (t->request->bench && !t->has_failed) {
                t->bench.tasks = t->counts.total - 1;
                try_show_bench(t->request, &t->bench);
        } else {
                try_show_total(t->request, &t->counts);
        }
        return t->has_failed ? EXIT_FAILED : EXIT_DONE;
}

/* --- the command ------------------------------------------------------------------------------------------------- */

static int load_settings(struct try_request *q, struct error *error)
{
        bool is_named = q->handler != q->handler_text;
        return plugin_args_load(&q->settings, q->config, is_named ? q->handler : q->plugin, error);
}

int cmd_try(int argc, char **argv)
{
        struct try_request q;
        struct try_run t = { .request = &q, .begun_ns = clock_boot_ns() };
        struct error error = { "" };
        int r = try_options(&q, argc, argv);
        if (r != 0)
                goto out;
        if ((q.config && load_settings(&q, &error) < 0) || try_source_open(&t.source, &q, &error) < 0) {
                try_show_error(&q, error.text);
                r = EXIT_FAILED;
                goto out;
        }
        if (q.is_here) {
                r = try_here(&q, &t.source);
        } else {
                t.services = try_services_new();
                (void)uv_loop_init(&t.loop);
                r = run(&t);
                (void)uv_loop_close(&t.loop);
                try_services_free(t.services);
        }
        try_source_close(&t.source);
out:
        setting_list_free(&q.settings);
        return r < 0 ? EXIT_DONE : r;
}
