#include "host/pool/explainer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include "backtrace/backtrace.h"
#include "base/memory.h"

#define JOBS_MAX 2
#define LIMIT_MS 3000

struct explainer_job {
        struct explainer *explainer; /* NULL: the explainer is closed */
        struct explainer_job *prev, *next;
        struct buffer request;
        explainer_fn *done; /* NULL: called already */
        void *arg;
        int request_fd, answer_fd;
        uv_process_t process;
        uv_timer_t timer;
        unsigned handles; /* libuv handles that are not closed yet */
};

/* --- what was asked before --- */

static struct explained *find(struct explainer *e, const struct buffer *request)
{
        for (size_t i = 0; i < EXPLAINER_CACHE; i++) {
                struct explained *x = &e->cache[i];
                if (x->answer.size && x->request.size == request->size &&
                        !memcmp(x->request.data, request->data, request->size))
                        return x;
        }
        return NULL;
}

struct span explainer_find(struct explainer *e, const struct buffer *request)
{
        struct explained *x = find(e, request);
        if (!x)
                return (struct span){ 0 };
        x->used = ++e->uses;
        return (struct span){ (const char *)x->answer.data, x->answer.size };
}

/* Takes the contents of both, replacing the least recently used entry. */
static void remember(struct explainer *e, struct buffer *request, struct buffer *answer)
{
        struct explained *oldest = &e->cache[0];
        for (size_t i = 1; i < EXPLAINER_CACHE; i++)
                if (e->cache[i].used < oldest->used)
                        oldest = &e->cache[i];
        buffer_free(&oldest->request);
        buffer_free(&oldest->answer);
        *oldest = (struct explained){ .request = *request, .answer = *answer, .used = ++e->uses };
        *request = *answer = (struct buffer){ 0 };
}

/* --- one process --- */

static void close_fd(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

static void on_closed(uv_handle_t *handle)
{
        struct explainer_job *job = handle->data;
        if (--job->handles)
                return;
        close_fd(&job->request_fd);
        close_fd(&job->answer_fd);
        buffer_free(&job->request);
        free(job);
}

static void close_job(struct explainer_job *job)
{
        uv_close((uv_handle_t *)&job->timer, on_closed);
        uv_close((uv_handle_t *)&job->process, on_closed);
}

static void read_answer(const struct explainer_job *job, struct buffer *to)
{
        ssize_t n = pread(job->answer_fd, buffer_reserve(to, BACKTRACE_ANSWER_MAX), BACKTRACE_ANSWER_MAX, 0);
        to->size = n > 0 ? (size_t)n : 0;
}

static void on_exited(uv_process_t *process, int64_t exit_status, int term_signal)
{
        struct explainer_job *job = process->data;
        struct explainer *e = job->explainer;
        struct buffer answer = { 0 };
        /* Kills its whole process group. */
        (void)kill(-process->pid, SIGKILL);
        if (!e) {
                close_job(job);
                return;
        }
        DL_DELETE(e->jobs, job);
        e->jobs_count--;
        if (!exit_status && !term_signal)
                read_answer(job, &answer);
        if (job->done)
                job->done(job->arg, (struct span){ (const char *)answer.data, answer.size });
        if (answer.size)
                remember(e, &job->request, &answer);
        buffer_free(&answer);
        close_job(job);
}

static void on_late(uv_timer_t *timer)
{
        struct explainer_job *job = timer->data;
        (void)kill(-job->process.pid, SIGKILL);
        (void)uv_process_kill(&job->process, SIGKILL);
}

static bool open_files(struct explainer_job *job)
{
        job->request_fd = memfd_create("quiver trace", MFD_CLOEXEC);
        job->answer_fd = memfd_create("quiver trace", MFD_CLOEXEC);
        return job->request_fd >= 0 && job->answer_fd >= 0 &&
               pwrite(job->request_fd, job->request.data, job->request.size, 0) == (ssize_t)job->request.size;
}

static int spawn(struct explainer_job *job)
{
        char parent[24];
        char path[4096];
        const char *folders = getenv("PATH");
        (void)snprintf(parent, sizeof(parent), "%" PRIdMAX, (intmax_t)getpid());
        (void)snprintf(path, sizeof(path), "PATH=%s", folders ? folders : "/usr/local/bin:/usr/bin:/bin");
        char *args[] = { "quiver: trace", "trace", parent, NULL };
        char *variables[] = { path, "LC_ALL=C", NULL };
        uv_stdio_container_t stdio[] = { { .flags = UV_INHERIT_FD, .data.fd = job->request_fd },
                { .flags = UV_INHERIT_FD, .data.fd = job->answer_fd }, { .flags = UV_IGNORE } };
        uv_process_options_t options = { .exit_cb = on_exited,
                .file = "/proc/self/exe",
                .args = args,
                .env = variables,
                .stdio_count = 3,
                .stdio = stdio };
        return uv_spawn(job->explainer->loop, &job->process, &options);
}

bool explainer_ask(struct explainer *e, struct buffer *request, explainer_fn *done, void *arg)
{
        if (e->jobs_count == JOBS_MAX)
                return false;
        struct explainer_job *job = memory_zero(1, sizeof(*job));
        *job = (struct explainer_job){ .explainer = e,
                .request = *request,
                .done = done,
                .arg = arg,
                .request_fd = -1,
                .answer_fd = -1,
                .handles = 2 };
        (void)uv_timer_init(e->loop, &job->timer);
        job->timer.data = job->process.data = job;
        bool has_files = open_files(job);
        if (!has_files || spawn(job) < 0) {
                if (!has_files)
                        job->handles--;
                else
                        uv_close((uv_handle_t *)&job->process, on_closed);
                job->request = (struct buffer){ 0 }; /* returned to the caller */
                uv_close((uv_handle_t *)&job->timer, on_closed);
                return false;
        }
        *request = (struct buffer){ 0 };
        (void)uv_timer_start(&job->timer, on_late, LIMIT_MS, 0);
        DL_APPEND(e->jobs, job);
        e->jobs_count++;
        return true;
}

void explainer_forget(struct explainer *e, void *arg)
{
        for (struct explainer_job *job = e->jobs; job; job = job->next) {
                explainer_fn *done = job->arg == arg ? job->done : NULL;
                if (!done)
                        continue;
                job->done = NULL;
                done(arg, (struct span){ 0 });
        }
}

void explainer_close(struct explainer *e)
{
        struct explainer_job *job;
        struct explainer_job *next;
        DL_FOREACH_SAFE (e->jobs, job, next) {
                job->explainer = NULL;
                on_late(&job->timer);
        }
        e->jobs = NULL;
        e->jobs_count = 0;
        for (size_t i = 0; i < EXPLAINER_CACHE; i++) {
                buffer_free(&e->cache[i].request);
                buffer_free(&e->cache[i].answer);
                e->cache[i] = (struct explained){ 0 };
        }
}
