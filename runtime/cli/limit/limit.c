/* limit.c: `quiver limit`: how much the whole app may start or run at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/print.h"
#include "look/limit_act.h"
#include "task/envelope.h"
#include "view/limits.h"

#define VALUES_SHOWN 100u

struct limit_request {
        const char *config;
        const char *verb, *name;
        struct limit_override wanted;
        bool has_json;
};

static void print(struct buffer *text)
{
        (void)fwrite(text->data, 1, text->size, stdout);
        buffer_free(text);
}

static int list(struct cli_store *s, const struct limit_request *q)
{
        struct status_look look = { 0 };
        struct error error = { "" };
        struct buffer text = { 0 };
        status_look_init(&look, s->config.store.url.text, clock_wall_ms());
        int r = cli_look(s, &look.look, &error);
        if (r == 0 && q->has_json)
                cli_json_print(json_pack("{s:O}", "limits", look.status.limits));
        else if (r == 0 && !json_array_size(look.status.limits))
                (void)printf("no host has a limit; they are defined in runtime.cfg: limits = { NAME = { … }; }\n");
        else if (r == 0) {
                limits_as_text(&text, look.status.limits, isatty(STDOUT_FILENO));
                print(&text);
        }
        status_look_free(&look);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static void report(const struct limit_request *q, const struct limit_act *act)
{
        struct buffer text = { 0 };
        if (q->has_json) {
                cli_json_print(json_incref(act->found));
                return;
        }
        if (act->kind == LIMIT_ACT_SHOW)
                limit_as_text(&text, act->found, isatty(STDOUT_FILENO), clock_wall_ms());
        else if (act->kind == LIMIT_ACT_SET)
                buffer_printf(&text,
                        "limit %s is set on every host%s. Back to the configuration: quiver limit clear %s\n", q->name,
                        q->wanted.until_ms ? " for that time" : "", q->name);
        else
                buffer_printf(&text,
                        act->is_changed ? "limit %s is as the configuration says\n"
                                        : "limit %s was as the configuration says\n",
                        q->name);
        print(&text);
}

static int act_on(struct cli_store *s, void *self)
{
        const struct limit_request *q = self;
        struct error error = { "" };
        if (!strcmp(q->verb, "list"))
                return list(s, q);
        struct limit_act act = { .kind = !strcmp(q->verb, "show")  ? LIMIT_ACT_SHOW
                                         : !strcmp(q->verb, "set") ? LIMIT_ACT_SET
                                                                   : LIMIT_ACT_CLEAR,
                .name = q->name,
                .wanted = q->wanted,
                .shown_max = VALUES_SHOWN };
        limit_act_init(&act, s->config.store.url.text, clock_wall_ms());
        int r = cli_look(s, &act.status.look, &error);
        if (r == 0 && act.result < 0) {
                r = act.result;
                error = act.error;
        }
        if (r == 0)
                report(q, &act);
        limit_act_free(&act);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static int read_words(const struct options *o, struct limit_request *q, struct error *error)
{
        static const char *const verbs[] = { "show", "set", "clear" };
        bool has_amount = q->wanted.rate || q->wanted.per_ms || q->wanted.burst || q->wanted.concurrency;
        q->verb = o->words[0] ? o->words[0] : "list";
        q->name = o->words[0] ? o->words[1] : NULL;
        bool is_known = !strcmp(q->verb, "list");
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                is_known |= !strcmp(q->verb, verbs[i]);
        if (!is_known)
                return error_set(error, -EINVAL, "there are list, show, set and clear, not \"%.64s\"", q->verb);
        if (!strcmp(q->verb, "list") && q->name)
                return error_set(error, -EINVAL, "list takes no name; one limit: quiver limit show %.64s", q->name);
        if (strcmp(q->verb, "list") != 0 && !q->name)
                return error_set(error, -EINVAL, "%s which limit? quiver limit list names them", q->verb);
        if (!strcmp(q->verb, "set") ? !has_amount : has_amount || q->wanted.until_ms)
                return error_set(error, -EINVAL,
                        has_amount || q->wanted.until_ms ? "only set takes an amount"
                                                         : "set takes --rate or --concurrency");
        return q->name ? task_handler_check(span_of_text(q->name), error) : 0;
}

int cmd_limit(int argc, char **argv)
{
        struct limit_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_NUMBER("--rate N", &q.wanted.rate, 1, STORE_LIMIT_MAX, "set: starts in the time --per"),
                OPT_DURATION("--per TIME", &q.wanted.per_ms, 1, "set: the time that the rate is about"),
                OPT_NUMBER(
                        "--burst N", &q.wanted.burst, 1, STORE_LIMIT_MAX, "set: starts beyond the rate after a rest"),
                OPT_NUMBER("--concurrency N", &q.wanted.concurrency, 1, STORE_LIMIT_MAX, "set: tasks at once"),
                OPT_DURATION("--for TIME", &q.wanted.until_ms, 1, "set: only for so long; else until it is cleared"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "limit [list] | show NAME | set NAME --rate N [--for TIME] | clear NAME",
                .about = "How much the whole app may start or run at once, as runtime.cfg says (limits), and how much "
                         "of it is used.\n"
                         "set changes it on every host, without a reload; what is set stays until its time is over or "
                         "it is cleared.",
                OPTIONS_TABLE(table),
                .words_max = 2,
                .examples = "  quiver limit\n"
                            "  quiver limit show api\n"
                            "  quiver limit set api --rate 20 --for 10m\n"
                            "  quiver limit clear api\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (read_words(&o, &q, &error) < 0)
                return options_wrong(&o, "%s", error.text);
        return cli_act(&o, q.config, act_on, &q);
}
