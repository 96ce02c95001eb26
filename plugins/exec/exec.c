/* exec: runs a command for each task.  README.md has the settings and what exit codes mean.
 *
 *         config = { command = ["/usr/bin/jq", "-c", ".total"]; };        payload on stdin, stdout is the result
 *
 * Read exec_handle() at the bottom first. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "../common/base64.h"
#include "../common/bytes.h"
#include "../common/child.h"
#include "../common/stderr_log.h"

#define READ_SIZE     65536u
#define LAST_READS    16 /* of 64 KiB: enough for a dead child's pipe, and a limit on what a grandchild may add */
#define KILL_AFTER_MS 2000
#define MAX_STDOUT    (1u << 20)
/* sysexits.h has no word for "not now, and not the task's fault": the first number after its own. */
#define EXIT_LATER 79

/* One instance per seat. */
struct exec {
        const struct qv_host *host;
        struct command command;
        size_t env_count; /* variables of the command itself; those of a task follow them */
        struct guard guard;
        uint64_t kill_after_ms;
        uint64_t max_stdout;
        struct bytes out;
        struct stderr_log err;
};

/* One start of the command. */
struct run {
        struct exec *exec;
        const struct qv_task *task;
        struct child child;
        struct halt halt;
        size_t sent; /* bytes of the payload that were written */
        bool is_over_limit;
};

/* --- environment ------------------------------------------------------------------------------------------------- */

/* As in CGI: X-Trace-Id becomes QUIVER_HEADER_X_TRACE_ID, or QUIVER_HEADER64_… if it is bytes. */
static int add_header(struct strings *env, const char *prefix, const char *header, const char *value)
{
        char name[256];
        size_t i;
        for (i = 0; i < sizeof(name) - 1 && header[i]; i++) {
                char c = header[i];
                if (c >= 'a' && c <= 'z')
                        c = (char)(c - 'a' + 'A');
                name[i] = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
        }
        name[i] = 0;
        int r = strings_addf(env, "%s_%s=%s", prefix, name, value);
        /* Tools that trace look for these two by their own names. */
        if (!r && (!strcmp(name, "TRACEPARENT") || !strcmp(name, "TRACESTATE")) && !strcmp(prefix, "QUIVER_HEADER"))
                r = strings_addf(env, "%s=%s", name, value);
        return r;
}

static int add_header64(struct strings *env, const struct qv_header2 *header)
{
        struct bytes text = { 0 };
        base64_put(&text, header->value, header->value_size);
        bytes_put(&text, "", 1);
        int r = text.is_broken ? -ENOMEM : add_header(env, "QUIVER_HEADER64", header->name, text.data);
        bytes_free(&text);
        return r;
}

static int add_task(struct strings *env, const struct qv_task *task)
{
        int r = strings_addf(env, "QUIVER_ID=%s", task->id);
        r = r ? r : strings_addf(env, "QUIVER_KEY=%s", task->key);
        r = r ? r : strings_addf(env, "QUIVER_HANDLER=%s", task->handler);
        r = r ? r : strings_addf(env, "QUIVER_ATTEMPT=%" PRIu32, task->attempt);
        r = r ? r : strings_addf(env, "QUIVER_FENCE_EPOCH=%" PRIu64, task->fence_epoch);
        r = r ? r : strings_addf(env, "QUIVER_FENCE_START=%" PRIu64, task->fence_start);
        if (!r && task->deadline_ns) {
                uint64_t deadline_ms = task->deadline_ns / 1000000;
                uint64_t now = now_ms();
                r = strings_addf(env, "QUIVER_DEADLINE_MS=%" PRIu64, deadline_ms > now ? deadline_ms - now : 0);
        }
        for (size_t i = 0; !r && i < task->headers_count; i++)
                r = add_header(env, "QUIVER_HEADER", task->headers[i].name, task->headers[i].value);
        const struct qv_header2 *header;
        for (size_t i = 0; !r && (header = qv_header_at(task, i)); i++)
                if (header->is_bytes)
                        r = add_header64(env, header);
        return r;
}

/* --- while it runs ----------------------------------------------------------------------------------------------- */

static void write_payload(struct run *run)
{
        /* EPIPE is no error, because a command need not read its input. */
        if (child_write(&run->child, run->task->payload, run->task->payload_size, &run->sent) < 0 ||
                run->sent == run->task->payload_size)
                child_close_fd(&run->child.in);
}

static bool read_stdout(struct run *run)
{
        struct exec *exec = run->exec;
        long n = bytes_read(&exec->out, run->child.out, READ_SIZE);
        if (n == 0 || (n < 0 && n != -EAGAIN))
                child_close_fd(&run->child.out);
        if (n == -ENOMEM || exec->out.size > exec->max_stdout) {
                run->is_over_limit = true;
                child_signal(&run->child, SIGKILL);
        }
        return n > 0 && !run->is_over_limit;
}

static void read_stderr(struct run *run)
{
        if (!stderr_log_read(&run->exec->err, run->child.err))
                child_close_fd(&run->child.err);
}

/* Waits until the command itself has ended, not until its pipes are closed: processes that it left behind may hold them
 * open for ever. */
static void attend(struct run *run)
{
        for (;;) {
                struct pollfd polls[] = {
                        { .fd = run->child.pidfd, .events = POLLIN },
                        { .fd = run->child.in, .events = POLLOUT },
                        { .fd = run->child.out, .events = POLLIN },
                        { .fd = run->child.err, .events = POLLIN },
                };
                int n = poll(polls, 4, halt_step(&run->halt, &run->child, run->task));
                if (n <= 0)
                        continue;
                if (polls[1].revents)
                        write_payload(run);
                if (polls[2].revents)
                        (void)read_stdout(run);
                if (polls[3].revents)
                        read_stderr(run);
                if (polls[0].revents)
                        return;
        }
}

/* Reads what the command wrote just before its end, which is still in the pipes. */
static void read_the_rest(struct run *run)
{
        for (int i = 0; i < LAST_READS && run->child.out >= 0 && read_stdout(run); i++)
                ;
        if (run->child.err >= 0)
                read_stderr(run);
        stderr_log_end(&run->exec->err);
}

/* --- the outcome ------------------------------------------------------------------------------------------------- */

/* A crash of the command counts as a crash of the task, which has its own budget.  The ABI has no outcome for that, so
 * the runner ends itself in this seat: by the same signal if runners record its cause, else by abort(). */
__attribute__((noinline)) static _Noreturn void die_as_the_command_did(const struct qv_task *task, int status)
{
        char text[64];
        qv_logf(task->host, QV_LOG_ERROR, "the command was %s; its task is charged with a crash",
                child_status_text(status, text, sizeof(text)));
        switch (WTERMSIG(status)) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGSYS:
        case SIGTRAP:
                (void)raise(WTERMSIG(status));
                break;
        default:
                break;
        }
        abort();
}

static int32_t give_result(const struct run *run)
{
        const struct bytes *out = &run->exec->out;
        if (!out->size)
                return QV_DONE;
        int32_t r = run->task->host->result(run->task->host, run->task, out->data, out->size);
        if (r < 0)
                return qv_errorf(run->task, "result of %zu bytes refused: %s", out->size, strerror(-r)), QV_REJECT;
        return QV_DONE;
}

static int32_t judge(struct run *run, int status)
{
        struct exec *exec = run->exec;
        char ended[64];
        char tail[STDERR_TAIL_MAX + 2];
        if (run->is_over_limit) {
                qv_errorf(run->task, "the command wrote more than max_stdout = %" PRIu64 " bytes; killed",
                        exec->max_stdout);
                return QV_REJECT;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == EX_OK)
                return give_result(run);
        (void)child_status_text(status, ended, sizeof(ended));
        if (run->halt.term_ms) {
                qv_errorf(run->task, "stopped before it was done, %s%s", ended, stderr_log_tail(&exec->err, tail));
                return QV_RETRY;
        }
        if (WIFSIGNALED(status))
                die_as_the_command_did(run->task, status);
        qv_errorf(run->task, "%s%s", ended, stderr_log_tail(&exec->err, tail));
        switch (WEXITSTATUS(status)) {
        case EX_DATAERR:
                return QV_REJECT;
        case EX_UNAVAILABLE:
                return QV_UNAVAILABLE;
        case EXIT_LATER:
                return QV_LATER;
        default:
                return QV_RETRY;
        }
}

/* --- the plugin -------------------------------------------------------------------------------------------------- */

static int32_t exec_handle(void *self, const struct qv_task *task)
{
        struct exec *exec = self;
        struct run run = { .exec = exec, .task = task, .child = CHILD_NONE, .halt.kill_after_ms = exec->kill_after_ms };
        struct strings *env = &exec->command.env;
        bytes_clear(&exec->out);
        stderr_log_begin(&exec->err, exec->host);
        int r = add_task(env, task);
        if (r == 0)
                r = child_start(&run.child, &exec->guard, &exec->command);
        strings_cut(env, exec->env_count);
        if (r < 0) {
                qv_errorf(task, "cannot start %s: %s", exec->command.path, strerror(-r));
                /* Too many headers are the task's fault; other failures are not. */
                return r == -E2BIG ? QV_REJECT : QV_UNAVAILABLE;
        }
        attend(&run);
        read_the_rest(&run);
        return judge(&run, child_end(&run.child, &exec->guard));
}

static void exec_close(void *self)
{
        struct exec *exec = self;
        guard_close(&exec->guard);
        command_free(&exec->command);
        bytes_free(&exec->out);
        free(exec);
}

static int32_t exec_init(const struct qv_host *host, void **ret_self)
{
        struct exec *exec = calloc(1, sizeof(*exec));
        if (!exec)
                return qv_init_errorf(host, "out of memory");
        exec->host = host;
        if (command_read(&exec->command, host) < 0 ||
                command_read_ms(host, "kill_after", KILL_AFTER_MS, COMMAND_MS_MAX, &exec->kill_after_ms) < 0 ||
                command_read_bytes(host, "max_stdout", MAX_STDOUT, COMMAND_BYTES_MAX, &exec->max_stdout) < 0)
                goto fail;
        exec->env_count = exec->command.env.count;
        int r = guard_open(&exec->guard);
        if (r < 0) {
                (void)qv_init_errorf(host, "cannot start a guard: %s", strerror(-r));
                goto fail;
        }
        *ret_self = exec;
        return 0;
fail:
        exec_close(exec);
        return -1;
}

/* QV_THREADS: all state of a seat is in its own struct exec. */
QV_PLUGIN("exec", "1.0", QV_THREADS, exec_init, exec_handle, exec_close, NULL)
