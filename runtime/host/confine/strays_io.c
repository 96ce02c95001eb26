/* strays_io.c: finds, kills and reaps the host's children that it did not start. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/process/process_stat.h"
#include "host/confine/strays.h"

#define CLOSE_ROUNDS   200 /* a stray that forks is found again in the next round */
#define CLOSE_PAUSE_NS 1000000

struct search {
        struct strays *strays;
        bool is_end;
        unsigned found;
        pid_t child;
        bool is_started; /* we started the child */
};

static void compare(uv_handle_t *handle, void *arg)
{
        struct search *search = arg;
        if (handle->type == UV_PROCESS && ((const uv_process_t *)handle)->pid == search->child)
                search->is_started = true;
}

/* Every process that we start has a handle of the loop, which reaps it. */
static bool is_started_by_us(struct search *search, pid_t child)
{
        search->child = child;
        search->is_started = false;
        uv_walk(search->strays->loop, compare, search);
        return search->is_started;
}

/* Whether its process group was sent SIGKILL when the runner ended. */
static bool is_dying(const struct strays *s, pid_t pid)
{
        pid_t group = getpgid(pid);
        for (size_t i = 0; i < STRAY_GROUPS; i++)
                if (s->groups[i] && s->groups[i] == group)
                        return true;
        return false;
}

static void look_at(struct search *search, pid_t pid)
{
        struct strays *s = search->strays;
        struct process_stat stat;
        struct stray_process stray = { 0 };
        if (is_started_by_us(search, pid))
                return;
        if (waitpid(pid, NULL, WNOHANG) == pid) {
                search->found++;
                return;
        }
        if (process_stat_read(pid, &stat) < 0 || stat.parent != getpid() || stat.state == 'Z')
                return;
        stray.started = stat.started;
        stray.has_mark = stray_mark_read(pid, s->run, &stray.number);
        /* When the host ends, no runner is left. */
        size_t runners = search->is_end ? 0 : s->runners_count;
        if (!stray_is_left(&stray, s->runners, runners, s->is_shared))
                return;
        search->found++;
        if (is_dying(s, pid))
                return;
        /* The child was not reaped, and only we can reap it: the pid is still valid. */
        if (kill(pid, SIGKILL) == 0) {
                s->killed++;
                log_event(LEVEL_WARN, "stray", "pid=%d text=%s", (int)pid,
                        LOG_QUOTE("a process that a plugin had started and that outlived its runner was killed"));
        }
}

/* The kernel lists children by the thread that they belong to. */
static void search_thread(struct search *search, const char *thread)
{
        char path[64];
        int pid;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
        FILE *file = fopen(path, "re");
        while (file && fscanf(file, "%d", &pid) == 1)
                look_at(search, (pid_t)pid);
        if (file)
                (void)fclose(file);
}

/* Returns how many strays were killed or reaped. */
static unsigned look(struct strays *s, bool is_end)
{
        struct search search = { .strays = s, .is_end = is_end };
        DIR *threads = opendir("/proc/self/task");
        for (const struct dirent *entry; threads && (entry = readdir(threads));)
                if (isdigit((unsigned char)*entry->d_name))
                        search_thread(&search, entry->d_name);
        if (threads)
                (void)closedir(threads);
        return search.found;
}

static void on_child_ended(uv_signal_t *signal, int number)
{
        struct strays *s = signal->data;
        (void)number;
        (void)look(s, false);
        if (s->ended)
                s->ended(s->self);
}

/* Called before the host starts its first process: children of the program that became the host by exec. */
static bool has_children(void)
{
        return waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void strays_open(struct strays *s, uv_loop_t *loop, const void *nonce, size_t nonce_size)
{
        s->loop = loop;
        stray_run(s->run, nonce, nonce_size);
        s->is_shared = getpid() == 1 || has_children();
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        (void)uv_signal_init(loop, &s->signal);
        s->signal.data = s;
        (void)uv_signal_start(&s->signal, on_child_ended, SIGCHLD);
        uv_unref((uv_handle_t *)&s->signal);
        s->is_open = true;
}

uint64_t strays_mark(struct strays *s, char ret_mark[STRAY_MARK_MAX])
{
        *ret_mark = 0;
        if (!s->is_open)
                return 0;
        stray_mark_put(ret_mark, s->run, ++s->count);
        return s->count;
}

void strays_add(struct strays *s, pid_t pid, uint64_t number)
{
        struct process_stat stat = { 0 };
        if (!s->is_open)
                return;
        (void)process_stat_read(pid, &stat);
        if (s->runners_count == s->runners_room) {
                s->runners_room = s->runners_room ? s->runners_room * 2 : 16;
                s->runners = memory_resize(s->runners, s->runners_room * sizeof(*s->runners));
        }
        s->runners[s->runners_count++] = (struct stray_runner){ .pid = pid, .number = number, .started = stat.started };
}

void strays_remove(struct strays *s, pid_t pid)
{
        s->groups[s->groups_next++ % STRAY_GROUPS] = pid;
        for (size_t i = 0; i < s->runners_count; i++) {
                if (s->runners[i].pid != pid)
                        continue;
                s->runners[i] = s->runners[--s->runners_count];
                break;
        }
        if (s->is_open)
                (void)look(s, false);
}

void strays_close(struct strays *s)
{
        if (!s->is_open)
                return;
        /* Killed processes take a moment to end. */
        for (int i = 0; i < CLOSE_ROUNDS && look(s, true); i++)
                (void)nanosleep(&(struct timespec){ .tv_nsec = CLOSE_PAUSE_NS }, NULL);
        s->is_open = false;
        uv_close((uv_handle_t *)&s->signal, NULL);
}

void strays_free(struct strays *s)
{
        free(s->runners);
        s->runners = NULL;
}
