/* Tries one thing that a runner has no business to do, and says as its result what came of it: "done", or the name of
 * the error that it was refused with.  The payload has an attempt a line, with its argument.
 *
 *   environ PID    reads the environment of a process
 *   memory PID     reads its memory, by /proc and by process_vm_readv()
 *   trace PID      attaches to it
 *   signal PID     may send it signals (sends none)
 *   open PATH      opens a file or folder for reading; write PATH for writing
 *   control PATH   asks the control socket for a reload; http PATH asks the host's HTTP socket for its status
 *   private MIB    has so much memory of its own; shared MIB shared memory; memfd MIB a memfd
 *   fork COUNT     has so many processes at once
 *   leave          leaves a process behind: forked twice, in a session of its own; its result is the pid.
 *                  leave clean: and without its environment
 *   tcp PORT       connects to 127.0.0.1; udp PORT sends there; abstract NAME connects to an abstract Unix socket
 *   join PATH      moves itself to a control group
 *   descriptors    the descriptors that are open, as a list
 *   core           the size of a core dump that it may leave
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quiver/plugin.h>

#define FORKS_MAX 256
#define MIB       ((size_t)1 << 20)

static const char *refused(void)
{
        return strerrorname_np(errno);
}

static const char *opened(const char *path, int flags)
{
        int fd = open(path, flags | O_CLOEXEC);
        if (fd < 0)
                return refused();
        (void)close(fd);
        return "done";
}

/* Only opening it tells nothing: the bytes have to come, too. */
static const char *read_environ(pid_t pid)
{
        char path[64], byte;
        (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return refused();
        const char *word = read(fd, &byte, 1) < 0 ? refused() : "done";
        (void)close(fd);
        return word;
}

static const char *read_memory(pid_t pid)
{
        char path[64], here[8];
        struct iovec to = { here, sizeof(here) };
        struct iovec from = { (void *)(uintptr_t)&environ, sizeof(here) }; /* somewhere */
        (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
        if (!strcmp(opened(path, O_RDWR), "done"))
                return "done";
        return process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 && errno != EFAULT ? refused() : "done";
}

static const char *trace(pid_t pid)
{
        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
                return refused();
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
        return "done";
}

/* Sends `text` to a Unix socket; "done" if the first answer has `expected` in it. */
static const char *ask(const char *path, const char *text, const char *expected)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char answer[512];
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const char *word = "done";
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
                word = refused();
        } else {
                (void)send(fd, text, strlen(text), MSG_NOSIGNAL);
                ssize_t n = recv(fd, answer, sizeof(answer) - 1, 0);
                answer[n > 0 ? n : 0] = 0;
                if (!strstr(answer, expected))
                        word = "refused";
        }
        (void)close(fd);
        return word;
}

static const char *use(void *memory, size_t size)
{
        if (memory == MAP_FAILED)
                return refused();
        memset(memory, 1, size);
        (void)munmap(memory, size);
        return "done";
}

static const char *use_memfd(size_t size)
{
        int fd = memfd_create("villain", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
                return refused();
        const char *word = use(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), size);
        (void)close(fd);
        return word;
}

static const char *use_private(size_t size)
{
        return use(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size);
}

static const char *use_shared(size_t size)
{
        return use(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), size);
}

static const char *fork_many(int count)
{
        pid_t children[FORKS_MAX];
        const char *word = "done";
        int made = 0;
        while (made < count && made < FORKS_MAX) {
                pid_t pid = fork();
                if (pid == 0)
                        for (;;)
                                (void)pause();
                if (pid < 0) {
                        word = refused();
                        break;
                }
                children[made++] = pid;
        }
        for (int i = 0; i < made; i++) {
                (void)kill(children[i], SIGKILL);
                (void)waitpid(children[i], NULL, 0);
        }
        return word;
}

/* A process that nothing connects with the runner any more but its ancestry. */
static void stay(int is_clean)
{
        static char *const words[] = { "sleep", "1000", NULL };
        static char *const nothing[] = { NULL };
        (void)setsid();
        if (is_clean)
                (void)execve("/bin/sleep", words, nothing);
        else
                (void)execv("/bin/sleep", words);
        _exit(1);
}

static int leave_behind(int is_clean, char *text, size_t size)
{
        int ends[2];
        pid_t left = 0;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return snprintf(text, size, "%s", refused());
        pid_t child = fork();
        if (child == 0) {
                (void)setsid();
                pid_t grandchild = fork();
                if (grandchild == 0)
                        stay(is_clean);
                ssize_t n = write(ends[1], &grandchild, sizeof(grandchild));
                _exit(n < 0);
        }
        (void)waitpid(child, NULL, 0);
        if (read(ends[0], &left, sizeof(left)) != sizeof(left))
                left = 0;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return snprintf(text, size, "%d", (int)left);
}

static const char *network(int type, int port)
{
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return refused();
        const char *word = connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? refused() : "done";
        if (type == SOCK_DGRAM && !strcmp(word, "done") && send(fd, "x", 1, MSG_NOSIGNAL) < 0)
                word = refused();
        (void)close(fd);
        return word;
}

static const char *connect_abstract(const char *name)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        (void)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s", name);
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const char *word = connect(fd, (const struct sockaddr *)&to, size) < 0 ? refused() : "done";
        (void)close(fd);
        return word;
}

static const char *join(const char *group)
{
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return refused();
        const char *word = write(fd, "0", 1) < 0 ? refused() : "done";
        (void)close(fd);
        return word;
}

static int list_descriptors(char *text, size_t size)
{
        char path[64], target[256];
        int used = 0;
        DIR *all = opendir("/proc/self/fd");
        for (const struct dirent *entry; all && (entry = readdir(all));) {
                (void)snprintf(path, sizeof(path), "/proc/self/fd/%.20s", entry->d_name);
                ssize_t n = *entry->d_name == '.' ? -1 : readlink(path, target, sizeof(target) - 1);
                target[n > 0 ? n : 0] = 0;
                if (n > 0 && (size_t)used < size)
                        used += snprintf(text + used, size - (size_t)used, "%.20s=%.60s\n", entry->d_name, target);
        }
        if (all)
                (void)closedir(all);
        return used;
}

static int describe_core(char *text, size_t size)
{
        struct rlimit core = { 0 };
        (void)getrlimit(RLIMIT_CORE, &core);
        return snprintf(text, size, "%llu", (unsigned long long)core.rlim_max);
}

static const char *attempt(const char *what, const char *about)
{
        int number = atoi(about);
        if (!strcmp(what, "environ"))
                return read_environ(number);
        if (!strcmp(what, "memory"))
                return read_memory(number);
        if (!strcmp(what, "trace"))
                return trace(number);
        if (!strcmp(what, "signal"))
                return kill(number, 0) < 0 ? refused() : "done";
        if (!strcmp(what, "open"))
                return opened(about, O_RDONLY);
        if (!strcmp(what, "write"))
                return opened(about, O_WRONLY);
        if (!strcmp(what, "control"))
                return ask(about, "{\"verb\":\"reload\"}\n", "\"ok\":true");
        if (!strcmp(what, "http"))
                return ask(about, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ");
        if (!strcmp(what, "private"))
                return use_private((size_t)number * MIB);
        if (!strcmp(what, "shared"))
                return use_shared((size_t)number * MIB);
        if (!strcmp(what, "memfd"))
                return use_memfd((size_t)number * MIB);
        if (!strcmp(what, "fork"))
                return fork_many(number);
        if (!strcmp(what, "tcp") || !strcmp(what, "udp"))
                return network(*what == 't' ? SOCK_STREAM : SOCK_DGRAM, number);
        if (!strcmp(what, "abstract"))
                return connect_abstract(about);
        return !strcmp(what, "join") ? join(about) : "unknown";
}

static int try_one(const char *line, char *text, size_t size)
{
        char what[32] = "";
        (void)sscanf(line, "%31s", what);
        const char *about = line + strlen(what);
        about += strspn(about, " ");
        if (!strcmp(what, "leave"))
                return leave_behind(!strcmp(about, "clean"), text, size);
        if (!strcmp(what, "descriptors"))
                return list_descriptors(text, size);
        if (!strcmp(what, "core"))
                return describe_core(text, size);
        return snprintf(text, size, "%s\n", attempt(what, about));
}

static int32_t handle(void *self, const struct qv_task *task)
{
        char text[8192];
        char *lines = strdup((const char *)task->payload), *rest = NULL;
        int used = 0;
        (void)self;
        for (const char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                used += try_one(line, text + used, sizeof(text) - (size_t)used);
        free(lines);
        return task->host->result(task->host, task, text, (size_t)used) ? QV_RETRY : QV_DONE;
}

QV_PLUGIN("breaks_out", "1", 0, NULL, handle, NULL, NULL)
