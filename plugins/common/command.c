#include "command.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_MAX     256
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* --- strings ----------------------------------------------------------------------------------------------------- */

int strings_addf(struct strings *s, const char *format, ...)
{
        char *text;
        va_list args;
        if (s->count + 1 >= s->room) {
                size_t room = s->room ? 2 * s->room : 16;
                char **list = realloc((void *)s->list, room * sizeof(*list));
                if (!list)
                        return -ENOMEM;
                s->list = list;
                s->room = room;
        }
        va_start(args, format);
        int n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        s->list[s->count++] = text;
        s->list[s->count] = NULL;
        return 0;
}

void strings_cut(struct strings *s, size_t count)
{
        while (s->count > count) {
                free(s->list[--s->count]);
                s->list[s->count] = NULL;
        }
}

void strings_free(struct strings *s)
{
        strings_cut(s, 0);
        free((void *)s->list);
        *s = (struct strings){ 0 };
}

static const char *strings_value(const struct strings *env, const char *name)
{
        size_t size = strlen(name);
        for (size_t i = 0; i < env->count; i++)
                if (!strncmp(env->list[i], name, size) && env->list[i][size] == '=')
                        return env->list[i] + size + 1;
        return NULL;
}

/* --- environment ------------------------------------------------------------------------------------------------- */

static int no_memory(const struct qv_host *host)
{
        return qv_init_errorf(host, "out of memory");
}

static const char *list_element(const struct qv_host *host, const char *list, int index)
{
        char name[32];
        (void)snprintf(name, sizeof(name), "%s.%d", list, index);
        return host->config(host, name);
}

/* Inherits one variable of the runner.  Only a few are: those that programs need to find files and choose a language.
 */
static int inherit(struct strings *env, const char *name)
{
        const char *value = getenv(name);
        return value && !strings_value(env, name) ? strings_addf(env, "%s=%s", name, value) : 0;
}

static int add_variable(struct strings *env, const struct qv_host *host, const char *text)
{
        if (!strncmp(text, "QUIVER_", 7))
                return qv_init_errorf(host, "env: %s: names that begin with QUIVER_ are reserved", text);
        if (*text == '=' || !*text)
                return qv_init_errorf(host, "env: \"%s\" has no name; write NAME=value, or NAME to inherit it", text);
        if (!strchr(text, '=') && !getenv(text))
                qv_logf(host, QV_LOG_WARN,
                        "env: %s is not set; the handler's `environment` has to list what is to come from the host",
                        text);
        int r = strchr(text, '=') ? strings_addf(env, "%s", text) : inherit(env, text);
        return r < 0 ? no_memory(host) : 0;
}

static int read_env(struct strings *env, const struct qv_host *host)
{
        static const char *const usual[] = { "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
                "TMPDIR" };
        const char *text;
        for (int i = 0; i < LIST_MAX && (text = list_element(host, "env", i)); i++)
                if (add_variable(env, host, text) < 0)
                        return -1;
        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
                if (inherit(env, usual[i]) < 0)
                        return no_memory(host);
        if (!strings_value(env, "PATH") && strings_addf(env, "PATH=%s", DEFAULT_PATH) < 0)
                return no_memory(host);
        return 0;
}

/* --- what to run ------------------------------------------------------------------------------------------------- */

static int read_argv(struct strings *argv, const struct qv_host *host)
{
        const char *shell = host->config(host, "shell");
        const char *text;
        int r = 0;
        for (int i = 0; i < LIST_MAX && r == 0 && (text = list_element(host, "command", i)); i++)
                r = strings_addf(argv, "%s", text);
        if (shell && argv->count)
                return qv_init_errorf(host, "both `command` and `shell` are set; keep one");
        if (shell && (r = strings_addf(argv, "/bin/sh")) == 0 && (r = strings_addf(argv, "-c")) == 0)
                r = strings_addf(argv, "%s", shell);
        if (r < 0)
                return no_memory(host);
        if (!argv->count || !*argv->list[0])
                return qv_init_errorf(host, "what to run is not set: command = [\"/path/to/program\", \"argument\"]");
        return 0;
}

static bool is_program(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* An absolute path, because `cwd` must not change which program is run. */
static char *find_beside(const char *name)
{
        char here[PATH_MAX];
        char *path = NULL;
        if (*name == '/')
                return strdup(name);
        if (!getcwd(here, sizeof(here)) || asprintf(&path, "%s/%s", here, name) < 0)
                return NULL;
        return path;
}

static char *find_in_path(const char *name, const char *folders)
{
        while (*folders) {
                size_t size = strcspn(folders, ":");
                char *path;
                /* An empty entry of PATH, which means the working directory, is skipped. */
                if (size && asprintf(&path, "%.*s/%s", (int)size, folders, name) >= 0) {
                        if (is_program(path))
                                return path;
                        free(path);
                }
                folders += size + (folders[size] == ':');
        }
        return NULL;
}

static int find_program(struct command *c, const struct qv_host *host)
{
        const char *name = c->argv.list[0];
        const char *folders = strings_value(&c->env, "PATH");
        if (!strchr(name, '/')) {
                c->path = find_in_path(name, folders);
                return c->path ? 0 : qv_init_errorf(host, "command %s: not found in PATH=%s", name, folders);
        }
        c->path = find_beside(name);
        if (!c->path)
                return no_memory(host);
        if (is_program(c->path))
                return 0;
        int error = access(c->path, X_OK) < 0 ? errno : EACCES;
        return qv_init_errorf(host, "command %s: %s; is it there, and does it have the x bit?", c->path,
                error == EACCES ? "not an executable file" : strerror(error));
}

static int read_cwd(struct command *c, const struct qv_host *host)
{
        const char *cwd = host->config(host, "cwd");
        struct stat st;
        if (!cwd)
                return 0;
        if (stat(cwd, &st) < 0 || access(cwd, X_OK) < 0)
                return qv_init_errorf(host, "cwd %s: %s", cwd, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return qv_init_errorf(host, "cwd %s: not a folder", cwd);
        c->cwd = strdup(cwd);
        return c->cwd ? 0 : no_memory(host);
}

int command_read(struct command *c, const struct qv_host *host)
{
        *c = (struct command){ 0 };
        if (read_env(&c->env, host) == 0 && read_argv(&c->argv, host) == 0 && find_program(c, host) == 0 &&
                read_cwd(c, host) == 0)
                return 0;
        command_free(c);
        return -1;
}

void command_free(struct command *c)
{
        strings_free(&c->argv);
        strings_free(&c->env);
        free(c->path);
        free(c->cwd);
        *c = (struct command){ 0 };
}

/* --- numbers with units ------------------------------------------------------------------------------------------ */

struct unit {
        const char *name;
        uint64_t factor;
};

static int read_number(const struct qv_host *host, const char *name, const struct unit *units, const char *example,
        uint64_t fallback, uint64_t most, uint64_t *ret)
{
        const char *text = host->config(host, name);
        char *end;
        if (!text) {
                *ret = fallback;
                return 0;
        }
        errno = 0;
        unsigned long long number = strtoull(text, &end, 10);
        bool is_number = *text >= '0' && *text <= '9' && errno == 0;
        while (units->name && strcmp(units->name, end) != 0)
                units++;
        if (!is_number || !units->name || !number || number > most / units->factor)
                return qv_init_errorf(
                        host, "%s = \"%s\" is not in range or has an unknown unit (try %s)", name, text, example);
        *ret = number * units->factor;
        return 0;
}

int command_read_ms(const struct qv_host *host, const char *name, uint64_t fallback_ms, uint64_t most, uint64_t *ret)
{
        static const struct unit units[] = { { "", 1 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { NULL, 0 } };
        return read_number(host, name, units, "500ms, 2s", fallback_ms, most, ret);
}

int command_read_bytes(const struct qv_host *host, const char *name, uint64_t fallback, uint64_t most, uint64_t *ret)
{
        static const struct unit units[] = { { "", 1 }, { "B", 1 }, { "KiB", 1024 }, { "MiB", UINT64_C(1) << 20 },
                { "GiB", UINT64_C(1) << 30 }, { NULL, 0 } };
        return read_number(host, name, units, "64KiB, 1MiB", fallback, most, ret);
}
