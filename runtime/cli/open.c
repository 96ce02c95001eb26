#include "cli/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What the store said about the request; anything else is about the store. */
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
        case EAGAIN:
        case ENOSPC:
                return true;
        default:
                return false;
        }
}

int cli_fail(const char *command, int r, const char *text)
{
        (void)fprintf(stderr, "quiver %s: %s\n", command, text);
        return is_answer(r) ? EXIT_FAILED : EXIT_UNREACHABLE;
}

int cli_load(struct cli_store *s, const char *command, const char *given_config)
{
        *s = (struct cli_store){ .command = command };
        struct problems problems = { 0 };
        struct error error = { "" };
        const char *how = NULL;
        char *path = NULL;
        char text[2048];
        if (config_find(given_config, &path, &how, &error) < 0)
                return cli_fail(s->command, -EINVAL, error.text);
        int r = config_load(path, &s->config, &problems);
        for (size_t i = 0; r < 0 && i < problems.count; i++)
                (void)fprintf(stderr, "%s\n", problem_format(&problems.items[i], text, sizeof(text)));
        if (r < 0)
                (void)fprintf(stderr, "quiver %s: %s (%s) is not valid; see: quiver check -c %s\n", s->command, path,
                        how, path);
        problems_free(&problems);
        free(path);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

int cli_open(struct cli_store *s, const char *command, const char *given_config)
{
        struct error error = { "" };
        int code = cli_load(s, command, given_config);
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

int cli_words_next(struct cli_words *w, struct options *o)
{
        for (;;) {
                int id = options_next(o);
                switch (id) {
                case 'c':
                        w->config = o->value;
                        break;
                case OPTION_JSON:
                        w->has_json = true;
                        break;
                case OPTIONS_WORD:
                        if (!w->words)
                                w->words = calloc((size_t)o->argc, sizeof(*w->words));
                        if (!w->words)
                                abort();
                        w->words[w->count++] = o->value;
                        break;
                case OPTIONS_HELP:
                case OPTIONS_WRONG:
                        w->is_over = true;
                        w->code = id == OPTIONS_HELP ? EXIT_DONE : EXIT_USAGE;
                        return OPTIONS_END;
                default:
                        return id;
                }
        }
}

void cli_words_free(struct cli_words *w)
{
        free(w->words);
}
