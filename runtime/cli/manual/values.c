#include "cli/manual/values.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "cli/command.h"

#define ASK_MAX_MS     2000
#define ANSWER_MAX     ((size_t)1 << 20)
#define VALUES_AT_MOST 200

/* A command that knows: what it prints with --json has the names in `member` of each object; the objects are the array
 * `list` of one document, or, if NULL, documents of their own. */
struct value_source {
        const char *command, *option, *value; /* whose value; NULL: any */
        const char *words[3];
        const char *list, *member;
};

static const struct value_source sources[] = {
        { NULL, NULL, "HANDLER", { "status", "--json" }, "handlers", "name" },
        { NULL, "handler", NULL, { "status", "--json" }, "handlers", "name" },
        { NULL, "host", NULL, { "status", "--json" }, "members", "name" },
        { "members", NULL, "NAME", { "status", "--json" }, "members", "name" },
        { NULL, NULL, "KEY", { "key", "list", "--json" }, NULL, "key" },
        { "schedule", NULL, "NAME", { "schedule", "list", "--json" }, "schedules", "name" },
        { "limit", NULL, "NAME", { "limit", "list", "--json" }, "limits", "name" },
        { "room", NULL, "NAME", { "room", "list", "--json" }, NULL, "name" },
        { "dead", NULL, "ID", { "dead", "list", "--json" }, NULL, "id" },
};

static bool is_same(const char *wanted, const char *given)
{
        return !wanted || (given && !strcmp(wanted, given));
}

/* --- asking --- */

/* Appends what the process writes to `fd`, until it ends, says too much, or its time is over. */
static void hear(int fd, struct buffer *answer)
{
        uint64_t until_ms = clock_boot_ms() + ASK_MAX_MS;
        for (uint64_t now_ms; (now_ms = clock_boot_ms()) < until_ms && answer->size < ANSWER_MAX;) {
                struct pollfd readable = { .fd = fd, .events = POLLIN };
                char part[4096];
                if (poll(&readable, 1, (int)(until_ms - now_ms)) <= 0)
                        return;
                ssize_t n = read(fd, part, sizeof(part));
                if (n <= 0)
                        return;
                buffer_put(answer, part, (size_t)n);
        }
}

static void ask(char *const *words, struct buffer *answer)
{
        int ends[2];
        pid_t pid;
        posix_spawn_file_actions_t files;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return;
        (void)posix_spawn_file_actions_init(&files);
        (void)posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        int r = posix_spawn(&pid, "/proc/self/exe", &files, NULL, words, environ);
        (void)posix_spawn_file_actions_destroy(&files);
        (void)close(ends[1]);
        if (r == 0) {
                hear(ends[0], answer);
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
        }
        (void)close(ends[0]);
}

static void add_member(const json_t *object, const char *member, struct strings *values)
{
        const char *text = json_string_value(json_object_get(object, member));
        if (text && *text && !strchr(text, '\n') && values->count < VALUES_AT_MOST && !strings_has(values, text))
                strings_add(values, text);
}

static void read_answer(const struct value_source *source, const char *text, struct strings *values)
{
        json_error_t where;
        for (const char *at = text; *at;) {
                json_t *document = json_loads(at, JSON_DISABLE_EOF_CHECK, &where);
                if (!document)
                        return;
                const json_t *list = source->list ? json_object_get(document, source->list) : NULL;
                for (size_t i = 0; i < json_array_size(list); i++)
                        add_member(json_array_get(list, i), source->member, values);
                if (!source->list)
                        add_member(document, source->member, values);
                json_decref(document);
                at += where.position;
                at += strspn(at, " \n");
        }
}

static void ask_source(const struct value_source *source, const char *config, struct strings *values)
{
        struct buffer answer = { 0 };
        const char *words[8] = { "quiver" };
        size_t n = 1;
        for (size_t i = 0; i < 3 && source->words[i]; i++)
                words[n++] = source->words[i];
        if (config) {
                words[n++] = "-c";
                words[n++] = config;
        }
        ask((char *const *)words, &answer);
        read_answer(source, buffer_text(&answer), values);
        buffer_free(&answer);
}

/* --- what needs nobody --- */

static void add_commands(struct strings *values)
{
        size_t count;
        const struct command *commands = commands_all(&count);
        for (size_t i = 0; i < count; i++)
                if (commands[i].about)
                        strings_add(values, commands[i].name);
}

static bool is_path(const char *value)
{
        return !strcmp(value, "FILE") || !strcmp(value, "FOLDER") || !strncmp(value, "PLUGIN", 6);
}

void values_of(
        const char *command, const char *option, const char *value, const char *config, struct strings *ret_values)
{
        if (is_path(value)) {
                strings_add(ret_values, VALUES_FILES);
        } else if (!strcmp(command, "help") && !strcmp(value, "COMMAND")) {
                add_commands(ret_values);
        } else if (!strcmp(value, "SHELL")) {
                strings_add(ret_values, "bash");
                strings_add(ret_values, "fish");
                strings_add(ret_values, "zsh");
        } else {
                for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
                        const struct value_source *s = &sources[i];
                        /* NAME behind an option of its own is that option's. */
                        bool is_free = s->option || !s->value || !option || strcmp(s->value, "NAME") != 0;
                        if (is_same(s->command, command) && is_same(s->option, option) && is_same(s->value, value) &&
                                is_free) {
                                ask_source(s, config, ret_values);
                                return;
                        }
                }
        }
}
