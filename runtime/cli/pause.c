/* pause.c: start no more tasks of a handler, or of any; and the way back.  Said once, it holds for every host, also for
 * those that start later. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/open.h"
#include "task/envelope.h"

enum { OPTION_REASON = OPTION_OWN };

static const struct option_spec pause_specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_REASON, "reason", "TEXT", "why, for whoever looks" },
        OPTION_JSON_ROW,
};
static const struct option_spec resume_specs[] = { OPTION_CONFIG_ROW, OPTION_JSON_ROW };

static int check_handler(struct options *o, const struct cli_words *w)
{
        struct error error = { "" };
        if (w->count > 1)
                return options_wrong(o, "one handler at a time, or none for all; what is %s?", w->words[1]);
        if (w->count && task_handler_check((struct span){ w->words[0], strlen(w->words[0]) }, &error) < 0)
                return options_wrong(o, "%s", error.text);
        return EXIT_DONE;
}

static void report(const struct cli_words *w, bool is_pause, bool is_change)
{
        const char *what = w->count ? w->words[0] : "everything";
        if (w->has_json) {
                json_t *json = json_object();
                (void)json_object_set_new(json, "handler", w->count ? json_string(w->words[0]) : json_null());
                (void)json_object_set_new(json, "paused", json_boolean(is_pause));
                (void)json_object_set_new(json, "changed", json_boolean(is_change));
                cli_json_print(json);
                return;
        }
        if (is_pause)
                (void)printf("%s is paused: what runs ends, nothing more is started. Go on: quiver resume%s%s\n", what,
                        w->count ? " " : "", w->count ? what : "");
        else
                (void)printf("%s %s\n", what, is_change ? "goes on" : "was not paused");
}

static int set(struct options *o, const struct cli_words *w, bool is_pause, const char *reason)
{
        struct cli_store s;
        char name[sizeof("pause.") + TASK_HANDLER_MAX];
        char *before = NULL;
        int code = check_handler(o, w);
        if (code == EXIT_DONE)
                code = cli_open(&s, o->argv[0], w->config);
        if (code != EXIT_DONE)
                return code;
        (void)snprintf(name, sizeof(name), "pause%s%s", w->count ? "." : "", w->count ? w->words[0] : "");
        int r = qv_client_get_desired(s.client, name, &before);
        if (r == 0 || r == -ENOENT)
                r = qv_client_set_desired(s.client, name, is_pause ? reason : NULL);
        if (r < 0)
                code = cli_fail(s.command, r, qv_client_error());
        else
                report(w, is_pause, is_pause != (before != NULL));
        free(before);
        cli_close(&s);
        return code;
}

int cmd_pause(int argc, char **argv)
{
        struct options o = {
                .usage = "pause [HANDLER] [--reason TEXT]",
                .about = "No host starts a task of the handler, or of any, until it is resumed. Submitting goes on.",
                .specs = pause_specs,
                .count = sizeof(pause_specs) / sizeof(pause_specs[0]),
                .examples = "  quiver pause mail --reason 'provider is down'\n"
                            "  quiver pause\n",
        };
        struct cli_words w = { 0 };
        const char *reason = "asked for on the command line";
        options_start(&o, argc, argv);
        while (cli_words_next(&w, &o) == OPTION_REASON)
                reason = o.value;
        int code = w.is_over ? w.code : set(&o, &w, true, reason);
        cli_words_free(&w);
        return code;
}

int cmd_resume(int argc, char **argv)
{
        struct options o = {
                .usage = "resume [HANDLER]",
                .about = "Takes back a pause: that of the handler, or that of everything.",
                .specs = resume_specs,
                .count = sizeof(resume_specs) / sizeof(resume_specs[0]),
                .examples = "  quiver resume mail\n"
                            "  quiver resume\n",
        };
        struct cli_words w = { 0 };
        options_start(&o, argc, argv);
        (void)cli_words_next(&w, &o);
        int code = w.is_over ? w.code : set(&o, &w, false, NULL);
        cli_words_free(&w);
        return code;
}
