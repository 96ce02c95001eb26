/* Looks where it has no business: its result says, word by word, what it was let do and what it was refused.
 *
 *   who         its user and group
 *   open PATH   whether a file can be read, or a folder listed
 *   get NAME    a variable of its environment
 *   host        the processes that it could take the host's secrets from: its parent, and the parent's other children
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quiver/plugin.h>

static const char *open_as(const char *path, int flags)
{
        int fd = open(path, flags | O_CLOEXEC);
        if (fd < 0)
                return strerrorname_np(errno);
        (void)close(fd);
        return "OPEN";
}

/* Only opening it tells nothing: the bytes have to come, too. */
static const char *read_as(const char *path)
{
        char byte;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return strerrorname_np(errno);
        ssize_t n = read(fd, &byte, 1);
        const char *word = n > 0 ? "OPEN" : n == 0 ? "EMPTY" : strerrorname_np(errno);
        (void)close(fd);
        return word;
}

static const char *trace(pid_t pid)
{
        if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
                return strerrorname_np(errno);
        (void)waitpid(pid, NULL, __WALL);
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
        return "OPEN";
}

static const char *peek(pid_t pid)
{
        char here[8];
        struct iovec to = { here, sizeof(here) };
        struct iovec from = { (void *)(uintptr_t)&environ, sizeof(here) }; /* somewhere */
        return process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 && errno != EFAULT ? strerrorname_np(errno) : "OPEN";
}

static int spy_on(pid_t pid, char *to, size_t size)
{
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        const char *variables = read_as(path);
        (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
        return snprintf(to, size, "environ=%s mem=%s ptrace=%s peek=%s\n", variables, open_as(path, O_RDWR), trace(pid),
                peek(pid));
}

static pid_t parent_of(pid_t pid)
{
        char path[64];
        int parent = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        /* The name may hold blanks, and ends with the last parenthesis. */
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
                parent = 0;
        (void)fclose(file);
        return parent;
}

static int spy_on_host(char *to, size_t size)
{
        pid_t host = getppid();
        int used = spy_on(host, to, size);
        DIR *all = opendir("/proc");
        for (const struct dirent *entry; all && (entry = readdir(all));) {
                pid_t pid = isdigit((unsigned char)*entry->d_name) ? (pid_t)atoi(entry->d_name) : 0;
                if (pid && pid != getpid() && parent_of(pid) == host)
                        used += spy_on(pid, to + used, size - (size_t)used);
        }
        if (all)
                (void)closedir(all);
        return used;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        char text[4096];
        const char *what = (const char *)task->payload;
        int size = 0;
        (void)self;
        if (!strcmp(what, "who"))
                size = snprintf(text, sizeof(text), "%d %d", (int)getuid(), (int)getgid());
        else if (!strncmp(what, "open ", 5))
                size = snprintf(text, sizeof(text), "%s", open_as(what + 5, O_RDONLY));
        else if (!strncmp(what, "get ", 4))
                size = snprintf(text, sizeof(text), "%s", getenv(what + 4) ? getenv(what + 4) : "(none)");
        else if (!strcmp(what, "host"))
                size = spy_on_host(text, sizeof(text));
        else if (!strcmp(what, "crash"))
                *(volatile int *)8 = 1;
        return task->host->result(task->host, task, text, (size_t)size) ? QV_RETRY : QV_DONE;
}

QV_PLUGIN("spies", "1", 0, NULL, handle, NULL, NULL)
