/* try.c: `quiver try`: tasks through a plugin in a real runner, with no server.
 *
 * Tasks come from the command line; follow-ups and results are shown. */
#include "cli/try/try.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "cli/command.h"

struct try_run {
        const struct try_request *request;
        struct plugin_session session;
        struct try_source source;
        struct try_counts counts;
        struct try_bench bench;
        uint64_t begun_ns, first_ns;
        pid_t runner_pid; /* of the latest that got ready; 0: none did */
        uv_signal_t signals[2];
        uv_poll_t input; /* standard input, while --lines waits for more */
        int input_flags; /* what it was before libuv made it non-blocking; it may be somebody else's too */
        bool is_refused; /* the plugin was never ready: its tasks are not worth a line */
        bool has_failed;
};

/* --- where tasks come from ---------------------------------------------------------------------------------------- */

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
                (void)uv_poll_init(&t->session.loop, &t->input, STDIN_FILENO);
                t->input.data = t;
                uv_unref((uv_handle_t *)&t->input);
        }
        (void)uv_poll_start(&t->input, UV_READABLE, on_input);
}

static struct pool_task *next_task(void *owner, bool *ret_is_end)
{
        struct try_run *t = owner;
        struct error error = { "" };
        struct try_task *task = try_source_next(&t->source, &error);
        if (task)
                return &task->pool;
        if (t->source.is_waiting)
                wait_for_input(t);
        else
                *ret_is_end = true;
        if (*error.text) {
                try_show_error(t->request, error.text);
                t->has_failed = true;
        }
        return NULL;
}

/* --- what becomes of them ----------------------------------------------------------------------------------------- */

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

/* It was not the task's doing: a host runs it again too, a suspect alone, with the checkpoint it had reached. */
static bool run_again(struct try_run *t, struct try_task *task, const struct settled *settled)
{
        bool is_innocent = settled->is_suspect || settled->why == BLAME_NEIGHBOUR || settled->why == BLAME_SHUTDOWN;
        if (t->session.is_giving_up || !is_innocent)
                return false;
        if (settled->checkpoint)
                try_task_keep_checkpoint(task, settled->checkpoint, settled->checkpoint_size);
        task->pool.is_suspect |= settled->is_suspect;
        pool_io_offer(&t->session.pool_io, &task->pool, clock_boot_ms());
        return true;
}

static void on_settled(void *owner, struct pool_task *pool_task, const struct settled *settled)
{
        struct try_run *t = owner;
        struct try_task *task = pool_task->owner;
        if (run_again(t, task, settled))
                return;
        if (!t->is_refused) {
                try_show_settled(t->request, &t->counts, task, settled);
                t->has_failed |= settled->outcome != OUTCOME_DONE;
                if (t->counts.total == 1) {
                        t->first_ns = clock_boot_ns();
                        t->bench.first_ns = t->first_ns - t->begun_ns;
                }
                if (t->counts.total == t->request->bench) {
                        t->bench.tasks = t->counts.total - 1;
                        t->bench.elapsed_ns = clock_boot_ns() - t->first_ns;
                        t->bench.runner_bytes = resident_bytes(t->runner_pid);
                }
        }
        try_task_free(task);
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

static void on_refused(void *owner, const char *text)
{
        struct try_run *t = owner;
        t->has_failed = true;
        if (t->session.is_giving_up)
                return;
        try_show_error(t->request, text);
        /* A plugin that worked before may work again; one that never did will not. */
        if (!t->runner_pid) {
                t->is_refused = true;
                plugin_session_cut(&t->session);
        }
}

/* The first one stops what runs, with its grace; the second does not wait for that. */
static void on_signal(uv_signal_t *signal, int number)
{
        struct try_run *t = signal->data;
        (void)number;
        t->has_failed = true;
        if (t->session.is_giving_up)
                plugin_session_cut(&t->session);
        else
                plugin_session_give_up(&t->session);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int run_pool(struct try_run *t, struct error *error)
{
        static const struct plugin_session_events events = {
                .next = next_task, .settled = on_settled, .log = on_log, .ready = on_ready, .refused = on_refused
        };
        static const int numbers[] = { SIGINT, SIGTERM };
        const struct try_request *q = t->request;
        struct runner_start *start = &t->session.start;
        const struct pool_policy policy = {
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
        plugin_session_preload(q->args.plugin);
        start->handler = q->args.handler;
        start->settings = q->args.settings.items;
        start->settings_count = q->args.settings.count;
        start->payload_max = q->payload_max;
        start->result_max = max_u64(q->payload_max, start->result_max);
        start->memory_max = q->memory_max;
        start->processes_max = q->processes_max;
        start->core_max = q->core_max;
        for (int i = 0; i < 2; i++) {
                (void)uv_signal_init(&t->session.loop, &t->signals[i]);
                t->signals[i].data = t;
                (void)uv_signal_start(&t->signals[i], on_signal, numbers[i]);
                uv_unref((uv_handle_t *)&t->signals[i]);
        }
        int r = plugin_session_run(&t->session, &policy, &events, t, error);
        for (int i = 0; i < 2; i++)
                uv_close((uv_handle_t *)&t->signals[i], NULL);
        if (t->input.data) {
                uv_close((uv_handle_t *)&t->input, NULL);
                (void)fcntl(STDIN_FILENO, F_SETFL, t->input_flags);
        }
        return r;
}

int cmd_try(int argc, char **argv)
{
        struct try_request q;
        struct try_run t = { .request = &q, .begun_ns = clock_boot_ns() };
        struct error error = { "" };
        int code;
        if (!try_options(&q, argc, argv, &code))
                goto out;
        int r = plugin_args_load(&q.args, &error);
        if (r == 0)
                r = try_source_open(&t.source, &q, &error);
        if (r == 0 && q.is_here) {
                code = try_here(&q, &t.source);
        } else if (r == 0 && (r = plugin_session_open(&t.session, q.args.plugin, PLUGIN_ANYBODYS, &error)) == 0) {
                r = run_pool(&t, &error);
                plugin_session_close(&t.session);
                if (r == 0)
                        try_show_end(&q, &t.counts, t.has_failed ? NULL : &t.bench);
                code = t.has_failed ? EXIT_FAILED : EXIT_DONE;
        }
        if (r < 0) {
                try_show_error(&q, error.text);
                code = EXIT_FAILED;
        }
        try_source_close(&t.source);
out:
        try_request_free(&q);
        return code;
}
