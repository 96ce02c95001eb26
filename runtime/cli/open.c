#include "cli/open.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct strings cli_set;

/* Whether the error is the store's answer to the request, and not a failure to reach the store. */
static bool is_answer(int r)
{
        switch (-r) {
        case EINVAL:
        case ENOENT:
        case EEXIST:
        case EALREADY:
        case EMSGSIZE:
        case EDQUOT:
        case E2BIG:
        case ENOTUNIQ:
        case EBADMSG:
        case ENOBUFS:
        case EAGAIN:
        case ENOSPC:
        case ENOTSUP: /* the app lacks a feature that is not switched on yet */
        case EPERM:   /* the user lacks a right, or the task must not be changed so */
                return true;
        default:
                return false;
        }
}

int cli_read_all(int fd, size_t max, struct buffer *to)
{
        for (;;) {
                ssize_t n = read(fd, buffer_reserve(to, 65536), 65536);
                if (n == 0 || (n < 0 && errno != EINTR))
                        return n < 0 ? -errno : 0;
                to->size += n > 0 ? (size_t)n : 0;
                if (to->size > max)
                        return -EMSGSIZE;
        }
}

int cli_exit_code(int r)
{
        return is_answer(r) ? EXIT_FAILED : EXIT_UNREACHABLE;
}

int cli_fail(const char *command, int r, const char *text)
{
        (void)fprintf(stderr, "quiver %s: %s\n", command, text);
        return cli_exit_code(r);
}

char *cli_stock_plugin(const char *name)
{
        static const char *const places[] = { "../lib/quiver/plugins", "../plugins", "../../plugins" };
        char binary[PATH_MAX];
        char *found = NULL;
        ssize_t size = readlink("/proc/self/exe", binary, sizeof(binary) - 1);
        binary[size > 0 ? size : 0] = 0;
        char *slash = strrchr(binary, '/');
        if (!slash)
                return NULL;
        *slash = 0;
        for (size_t i = 0; !found && i < sizeof(places) / sizeof(places[0]); i++) {
                char *path = text_printf("%s/%s/%s", binary, places[i], name);
                found = realpath(path, NULL);
                free(path);
        }
        return found;
}

void cli_say_waiting(const char *command, const char *what, const struct url *url)
{
        (void)fprintf(stderr, "quiver %s: waiting for %s %s, which does not answer\n", command, what, url->text);
}

static void say_slow(void *self)
{
        struct cli_store *s = self;
        if (!s->has_said_slow)
                cli_say_waiting(s->command, "the store", &s->config.store.url);
        s->has_said_slow = true;
}

int cli_load(struct cli_store *s, const char *command, const char *given_config, enum config_reader reader)
{
        *s = (struct cli_store){ .command = command };
        struct problems problems = { .reader = reader };
        struct error error = { "" };
        char *path = NULL;
        char text[2048];
        if (config_find(given_config, &path, &s->how, &error) < 0)
                return cli_fail(s->command, -EINVAL, error.text);
        int r = config_load(path, &cli_set, &s->config, &problems);
        for (size_t i = 0; (r < 0 || reader == READER_HOST) && i < problems.count; i++)
                (void)fprintf(stderr, "%s\n", problem_format(&problems.items[i], text, sizeof(text)));
        if (r < 0)
                (void)fprintf(stderr, "quiver %s: %s (%s) is not valid; see: quiver check -c %s\n", s->command, path,
                        s->how, path);
        problems_free(&problems);
        free(path);
        client_when_slow(say_slow, s);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

int cli_open(struct cli_store *s, const char *command, const char *given_config)
{
        struct error error = { "" };
        int code = cli_load(s, command, given_config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        int r = client_open_config(&s->config, &s->client, &error);
        if (r < 0) {
                config_free(&s->config);
                code = cli_fail(command, r, error.text);
                return r == -ENOENT ? EXIT_UNREACHABLE : code;
        }
        s->info = client_store_info(s->client);
        return EXIT_DONE;
}

void cli_close(struct cli_store *s)
{
        qv_client_close(s->client);
        config_free(&s->config);
}

int cli_act(const struct options *o, const char *given_config, int (*act)(struct cli_store *s, void *self), void *self)
{
        struct cli_store s;
        int code = cli_open(&s, o->command, given_config);
        if (code != EXIT_DONE)
                return code;
        code = act(&s, self);
        cli_close(&s);
        return code;
}
