#include "backtrace/backtrace_command.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backtrace/backtrace.h"
#include "base/memory.h"

#define CPU_SECONDS_MAX 3
#define MEMORY_MAX      ((rlim_t)1 << 30) /* debug information of a large plugin */
#define OUTPUT_MAX      ((size_t)1 << 20) /* of addr2line's output */
#define PLACES_MAX      BACKTRACE_LINES_MAX

/* The input may be hostile: a name or a file that makes its reader loop or grow only ends this process.  The parent
 * kills it if it takes too long. */
static void limit_myself(pid_t parent)
{
        const struct rlimit cpu = { CPU_SECONDS_MAX, CPU_SECONDS_MAX };
        const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
        const struct rlimit output = { BACKTRACE_ANSWER_MAX, BACKTRACE_ANSWER_MAX };
        const struct rlimit none = { 0, 0 };
        (void)setpgid(0, 0); /* so that addr2line is killed with it */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)close_range(3, ~0U, 0);
        (void)setrlimit(RLIMIT_CPU, &cpu);
        (void)setrlimit(RLIMIT_DATA, &memory);
        (void)setrlimit(RLIMIT_FSIZE, &output);
        (void)setrlimit(RLIMIT_CORE, &none);
}

static int read_all(int fd, size_t max, struct buffer *to)
{
        for (;;) {
                ssize_t n = read(fd, buffer_reserve(to, 4096), 4096);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                to->size += (size_t)n;
                if (to->size > max)
                        return -EMSGSIZE;
        }
}

/* --- names --- */

typedef char *cxa_demangle_fn(const char *name, char *to, size_t *size, int *status);
static cxa_demangle_fn *cxa_demangle; /* NULL: no C++ library on this machine */

/* Loaded at run time: Quiver is not linked with the C++ library, and a host never loads it. */
static void find_demangler(void)
{
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        if (library)
                cxa_demangle = (cxa_demangle_fn *)dlsym(library, "__cxa_demangle");
}

static char *demangle(const char *name)
{
        int status = 0;
        return cxa_demangle ? cxa_demangle(name, NULL, NULL, &status) : NULL;
}

/* --- file and line --- */

static _Noreturn void exec_addr2line(int out, char *const *args)
{
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
                dup2(nothing, STDERR_FILENO) < 0)
                _exit(127);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execvp(args[0], args);
        _exit(errno == ENOENT ? 127 : 126);
}

/* Asks addr2line about each line with a place.  0 with its output; -ENOENT: it is not installed. */
static int ask_addr2line(const struct backtrace_request *request, struct buffer *output)
{
        static char numbers[PLACES_MAX][24];
        char *args[PLACES_MAX + 8] = { "addr2line", "-a", "-f", "-i", "-e" };
        char plugin[PATH_MAX];
        size_t count = 5;
        int ends[2];
        int status = 0;
        if (request->plugin.size >= sizeof(plugin))
                return -ENAMETOOLONG;
        memcpy(plugin, request->plugin.data, request->plugin.size);
        plugin[request->plugin.size] = 0;
        args[count++] = plugin;
        for (size_t i = 0; i < request->count; i++)
                if (request->lines[i].place) {
                        (void)snprintf(
                                numbers[i], sizeof(numbers[i]), "0x%llx", (unsigned long long)request->lines[i].place);
                        args[count++] = numbers[i];
                }
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        pid_t child = fork();
        if (child == 0)
                exec_addr2line(ends[1], args);
        (void)close(ends[1]);
        int r = child < 0 ? -errno : read_all(ends[0], OUTPUT_MAX, output);
        (void)close(ends[0]);
        if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 127)
                r = -ENOENT;
        return r;
}

/* --- the command --- */

static const char *what_is_missing(bool has_places, bool has_lines, int asked)
{
        if (!has_places || has_lines)
                return "";
        if (asked == -ENOENT)
                return "file and line are unknown: install addr2line (package binutils) on this machine";
        if (asked < 0)
                return "file and line are unknown: addr2line failed";
        return "file and line are unknown: the plugin has no debug information; compile and link it with -g";
}

static void answer(const struct backtrace_request *request, struct buffer *to)
{
        static const struct backtrace_source nowhere = { { 0 } };
        static struct backtrace_source sources[PLACES_MAX];
        struct buffer output = { 0 };
        size_t places = 0;
        bool has_lines = false;
        for (size_t i = 0; i < request->count; i++)
                places += request->lines[i].place != 0;
        int asked = places ? ask_addr2line(request, &output) : 0;
        backtrace_divide((struct span){ (const char *)output.data, output.size }, sources, places);
        for (size_t i = 0, at = 0; i < request->count; i++) {
                const struct backtrace_line *line = &request->lines[i];
                has_lines |= backtrace_put_line(to, line->text, line->place ? &sources[at++] : &nowhere, demangle);
                buffer_put(to, "", 1);
        }
        const char *missing = what_is_missing(places, has_lines, asked);
        buffer_put(to, missing, strlen(missing) + 1);
        buffer_free(&output);
}

int cmd_trace(int argc, char **argv)
{
        static struct backtrace_request request;
        struct buffer bytes = { 0 };
        struct buffer text = { 0 };
        long parent = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
        if (parent <= 0 || parent > INT_MAX) {
                (void)fprintf(stderr, "quiver trace: a host starts this, never a person; try: quiver try PLUGIN.so\n");
                return 2;
        }
        limit_myself((pid_t)parent);
        if (read_all(STDIN_FILENO, BACKTRACE_REQUEST_MAX, &bytes) < 0 ||
                backtrace_parse((struct span){ (const char *)bytes.data, bytes.size }, &request) < 0)
                _exit(EXIT_FAILURE);
        find_demangler();
        answer(&request, &text);
        ssize_t n = text.size <= BACKTRACE_ANSWER_MAX ? write(STDOUT_FILENO, text.data, text.size) : -1;
        /* Skips the destructors of the C++ library. */
        _exit(n == (ssize_t)text.size ? EXIT_SUCCESS : EXIT_FAILURE);
}
