/* pause.c: start no more tasks of a handler, or of any; and the way back.  Said once, it holds for every host, also for
 * those that start later. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/admin/known.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "task/envelope.h"

struct pause_request {
        const char *config;
        const char *handler; /* NULL: all */
        const char *reason;  /* NULL: resume */
        bool has_json;
};

static void report(const struct pause_request *q, bool is_change)
{
        const char *what = q->handler ? q->handler : "everything";
        if (q->has_json)
                cli_json_print(json_pack(
                        "{s:s?, s:b, s:b}", "handler", q->handler, "paused", q->reason != NULL, "changed", is_change));
        else if (q->reason)
                (void)printf("%s is paused: what runs ends, nothing more is started. Go on: quiver resume%s%s\n", what,
                        q->handler ? " " : "", q->handler ? what : "");
        else
                (void)printf("%s %s\n", what, is_change ? "goes on" : "was not paused");
}

static int set(struct cli_store *s, void *self)
{
        const struct pause_request *q = self;
        char name[sizeof("pause.") + TASK_HANDLER_MAX];
        char *before = NULL;
        (void)snprintf(name, sizeof(name), "pause%s%s", q->handler ? "." : "", q->handler ? q->handler : "");
        int r = qv_client_get_desired(s->client, name, &before);
        if (r == 0 || r == -ENOENT)
                r = qv_client_set_desired(s->client, name, q->reason);
        if (r == 0)
                report(q, (q->reason != NULL) != (before != NULL));
        if (r == 0 && q->handler && !before)
                known_warn_of_handler(s, q->handler);
        free(before);
        return r < 0 ? cli_fail(s->command, r, qv_client_error()) : EXIT_DONE;
}

static int run(struct options *o, struct pause_request *q, int argc, char **argv)
{
        struct error error = { "" };
        int code;
        o->words_max = 1;
        o->hint = "it takes one handler, or none for all";
        if (!options_read(o, argc, argv, &code))
                return code;
        q->handler = o->words[0];
        if (q->handler && task_handler_check((struct span){ q->handler, strlen(q->handler) }, &error) < 0)
                return options_wrong(o, "%s", error.text);
        return cli_act(o, q->config, set, q);
}

int cmd_pause(int argc, char **argv)
{
        struct pause_request q = { .reason = "asked for on the command line" };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_TEXT("--reason TEXT", &q.reason, "why, as quiver status shows it"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "pause [HANDLER] [--reason TEXT]",
                .about = "No host starts a task of the handler, or of any, until it is resumed. Submitting goes on.",
                OPTIONS_TABLE(table),
                .examples = "  quiver pause mail --reason 'provider is down'\n"
                            "  quiver pause\n",
        };
        return run(&o, &q, argc, argv);
}

int cmd_resume(int argc, char **argv)
{
        struct pause_request q = { 0 };
        const struct option table[] = { OPT_CONFIG(&q.config), OPT_JSON(&q.has_json) };
        struct options o = {
                .usage = "resume [HANDLER]",
                .about = "Takes back a pause: that of the handler, or that of everything.",
                OPTIONS_TABLE(table),
                .examples = "  quiver resume mail\n"
                            "  quiver resume\n",
        };
        return run(&o, &q, argc, argv);
}
