/* reload.c: `quiver reload`: a host on this machine takes up its changed configuration and plugins. */
#include <errno.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/control_call.h"
#include "cli/json.h"
#include "cli/open.h"

enum { OPTION_WAIT = OPTION_OWN, OPTION_DRY_RUN, OPTION_HOST };

#define ANSWER_MS UINT64_C(60000)    /* to read everything */
#define WAIT_MS   UINT64_C(90000000) /* a probation lasts a day at most */

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_WAIT, "wait", NULL, "until every new version has proved itself, was refused or was rolled back" },
        { OPTION_DRY_RUN, "dry-run", NULL, "only say what would happen" },
        { OPTION_HOST, "host", "NAME", "that one, if several run on this machine (default: host.name)" },
        OPTION_JSON_ROW,
};

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

static void print_plan(const json_t *handlers)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                const char *why = text_of(handler, "why");
                (void)printf("%-24s %s%s%s\n", text_of(handler, "handler"), text_of(handler, "action"),
                        *why ? ": " : "", why);
        }
}

static void print_outcomes(const json_t *outcomes)
{
        size_t i;
        json_t *entry;
        json_array_foreach(outcomes, i, entry)
        {
                const char *why = text_of(entry, "text");
                long long generation = json_integer_value(json_object_get(entry, "generation"));
                if (generation)
                        (void)printf("%-24s generation %lld, version %s: %s%s%s\n", text_of(entry, "handler"),
                                generation, *text_of(entry, "version") ? text_of(entry, "version") : "unknown",
                                text_of(entry, "outcome"), *why ? ": " : "", why);
        }
}

static void print_reply(const json_t *reply, bool is_dry)
{
        size_t i;
        json_t *problem;
        json_array_foreach(json_object_get(reply, "problems"), i, problem)
        {
                (void)fprintf(stderr, "%s\n", json_string_value(problem));
        }
        if (json_object_get(reply, "problems")) {
                (void)fprintf(stderr, "quiver reload: refused; nothing was changed\n");
                return;
        }
        print_plan(json_object_get(reply, "handlers"));
        print_outcomes(json_object_get(reply, "outcomes"));
        if (is_dry)
                (void)printf("(nothing was changed)\n");
}

static int reload(const struct cli_words *w, const char *host, bool is_patient, bool is_dry)
{
        struct error error = { "" };
        struct cli_store s; /* the host's name and folder are in its configuration */
        json_t *reply = NULL;
        int code = cli_load(&s, "reload", w->config);
        if (code != EXIT_DONE)
                return code;
        json_t *request = json_pack("{s:s, s:b, s:b}", "verb", "reload", "wait", is_patient, "dry_run", is_dry);
        int r = control_ask(s.config.state, host ? host : s.config.host.name, request, is_patient ? WAIT_MS : ANSWER_MS,
                &reply, &error);
        config_free(&s.config);
        if (r < 0) {
                (void)fprintf(stderr, "quiver reload: %s\n", error.text);
                return r == -EREMOTEIO || r == -EEXIST ? EXIT_FAILED : EXIT_UNREACHABLE;
        }
        code = json_is_true(json_object_get(reply, "failed")) ? EXIT_FAILED : EXIT_DONE;
        if (w->has_json) {
                cli_json_print_wide(reply);
                return code;
        }
        print_reply(reply, is_dry);
        json_decref(reply);
        return code;
}

int cmd_reload(int argc, char **argv)
{
        struct options o = {
                .usage = "reload [-c FILE] [--wait] [--dry-run] [--host NAME] [--json]",
                .about =
                        "The host of this configuration, on this machine, takes up what has changed: settings, and the "
                        "files of plugins.\n"
                        "Says what happens to each handler. Exit code 1: something was refused, or rolled back.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples =
                        "  quiver reload --dry-run\n"
                        "  cp build/mail.so plugins/mail.so.new && mv plugins/mail.so.new plugins/mail.so && quiver "
                        "reload --wait\n",
        };
        struct cli_words w = { 0 };
        const char *host = NULL;
        bool is_patient = false;
        bool is_dry = false;
        options_start(&o, argc, argv);
        for (int option; (option = cli_words_next(&w, &o)) != OPTIONS_END;) {
                is_patient |= option == OPTION_WAIT;
                is_dry |= option == OPTION_DRY_RUN;
                if (option == OPTION_HOST)
                        host = o.value;
        }
        if (!w.is_over && w.count) {
                w.is_over = true;
                w.code = options_wrong(&o, "what is %s?", w.words[0]);
        }
        int code = w.is_over ? w.code : reload(&w, host, is_patient, is_dry);
        cli_words_free(&w);
        return code;
}
