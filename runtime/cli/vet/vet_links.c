/* vet_links.c: which symbols and libraries a plugin is missing.
 *
 * dlopen() stops at the first; the dynamic linker's own tracing mode (what `ldd -r` uses) lists them all, and runs no
 * constructor.  It does run in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/vet/vet.h"
#include "runner/elf.h"

#define TRACE_MS       10000
#define TRACE_SIZE_MAX ((size_t)1 << 20)

/* This program's dynamic linker.  False: it has none. */
static bool find_linker(char *path, size_t size)
{
        struct elf elf;
        Elf64_Phdr segment;
        bool is_found = false;
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        if (elf_open(&elf, fd) == ELF_FINE)
                for (unsigned i = 0; !is_found && elf_segment(&elf, i, &segment); i++)
                        is_found = segment.p_type == PT_INTERP && elf_text_at(&elf, segment.p_offset, path, size);
        (void)close(fd);
        return is_found;
}

/* Starts it with both outputs in one pipe. */
static int spawn_linker(const char *linker, const char *plugin, int output, pid_t *ret_pid)
{
        char *argv[] = { (char *)linker, (char *)plugin, NULL };
        char *environment[] = { "LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=yes", "LD_BIND_NOW=yes", NULL, NULL };
        char path[4096];
        posix_spawn_file_actions_t actions;
        const char *libraries = getenv("LD_LIBRARY_PATH");
        if (libraries) {
                (void)snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s", libraries);
                environment[3] = path;
        }
        (void)posix_spawn_file_actions_init(&actions);
        (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
        int r = -posix_spawn(ret_pid, linker, &actions, NULL, argv, environment);
        (void)posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* All that it says until it ends, or the time is over. */
static void read_all(int fd, struct buffer *to)
{
        uint64_t until_ms = clock_boot_ms() + TRACE_MS;
        for (;;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                uint64_t now_ms = clock_boot_ms();
                if (now_ms >= until_ms || to->size > TRACE_SIZE_MAX)
                        return;
                if (poll(&poll_fd, 1, (int)(until_ms - now_ms)) < 0 && errno != EINTR)
                        return;
                if (!poll_fd.revents)
                        continue;
                ssize_t n = read(fd, buffer_reserve(to, 4096), 4096);
                if (n <= 0)
                        return;
                to->size += (size_t)n;
        }
}

static int trace(const char *plugin, struct buffer *ret_said)
{
        char linker[256];
        int ends[2];
        pid_t pid = 0;
        if (!find_linker(linker, sizeof(linker)))
                return -ENOENT;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        int r = spawn_linker(linker, plugin, ends[1], &pid);
        (void)close(ends[1]);
        if (r == 0) {
                read_all(ends[0], ret_said);
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
        }
        (void)close(ends[0]);
        return r;
}

/* "undefined symbol: NAME<tab>(FILE)", "<tab>LIBRARY => not found", and what it has to say about versions. */
static void read_line(char *line, struct strings *symbols, struct strings *libraries)
{
        static const char undefined[] = "undefined symbol: ";
        char *end = strstr(line, " => not found");
        if (end) {
                *end = 0;
                const char *name = line + strspn(line, "\t ");
                if (!strings_has(libraries, name))
                        strings_add(libraries, name);
        } else if (!strncmp(line, undefined, sizeof(undefined) - 1)) {
                char *name = line + sizeof(undefined) - 1;
                name[strcspn(name, ",\t ")] = 0;
                if (!strings_has(symbols, name))
                        strings_add(symbols, name);
        }
}

static void put_names(const struct strings *names, struct buffer *to)
{
        for (size_t i = 0; i < names->count && i < 8; i++)
                buffer_printf(to, "%s%s", i ? ", " : "", names->items[i]);
        if (names->count > 8)
                buffer_printf(to, " and %zu more", names->count - 8);
}

static void report_missing(
        const struct strings *symbols, const struct strings *libraries, bool is_loaded, struct vet_report *report)
{
        struct buffer names = { 0 };
        if (libraries->count) {
                put_names(libraries, &names);
                vet_find(report, VET_ERROR, "libraries",
                        "install them, or link with -Wl,-rpath; $ORIGIN does not work: a runner opens a private copy",
                        "not found: %s", buffer_text(&names));
                buffer_clear(&names);
        }
        if (symbols->count) {
                put_names(symbols, &names);
                if (is_loaded)
                        vet_find(report, VET_WARNING, "symbols",
                                "link with the library that has them; -Wl,-z,defs finds this at link time",
                                "only this program's own libraries happen to provide: %s", buffer_text(&names));
                else
                        vet_find(report, VET_ERROR, "symbols",
                                "link with the library that has them; -Wl,-z,defs finds this at link time",
                                "nothing provides: %s", buffer_text(&names));
        }
        if (!symbols->count && !libraries->count)
                vet_find(report, VET_OK, "symbols", NULL, "every symbol and library that it needs is there");
        buffer_free(&names);
}

void vet_links(const struct vet_request *request, bool is_loaded, struct vet_report *report)
{
        struct buffer said = { 0 };
        struct strings symbols = { 0 };
        struct strings libraries = { 0 };
        char *rest = NULL;
        if (trace(request->session.copy.path, &said) < 0) {
                vet_find(report, VET_NOTE, "symbols", NULL,
                        "this system's dynamic linker cannot be asked what is missing");
                return;
        }
        (void)buffer_text(&said);
        for (char *line = strtok_r((char *)said.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                read_line(line, &symbols, &libraries);
        report_missing(&symbols, &libraries, is_loaded, report);
        strings_free(&symbols);
        strings_free(&libraries);
        buffer_free(&said);
}
