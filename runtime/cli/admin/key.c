/* key.c: what a key waits for, and what a person can do about it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/open.h"
#include "cli/print.h"
#include "look/keys_look.h"
#include "view/json.h"
#include "view/key.h"
#include "view/text.h"

#define KEYS_SHOWN 1000u

static const struct verb {
        const char *name;
        enum store_control_verb verb;
        const char *done;
} verbs[] = {
        { "hold", CONTROL_HOLD, "is held: no more of its tasks are started" },
        { "unhold", CONTROL_UNHOLD, "is not held any more" },
        { "retry", CONTROL_RETRY, "is tried again now" },
        { "skip", CONTROL_SKIP, "goes on without its first task, which is dead now" },
};

/* --- looking ------------------------------------------------------------------------------------------------------ */

static int show_one(struct cli_store *s, bool has_json, struct span key)
{
        struct error error = { "" };
        struct key_look look = { 0 };
        key_look_init(&look, key);
        int r = cli_look(s, &look.look, &error);
        if (r == 0 && has_json) {
                cli_json_print(key_look_as_json(&look));
        } else if (r == 0) {
                struct buffer text = { 0 };
                struct key_more more = { .w = &look.where.w, .claimed = look.claimed, .first = look.first };
                key_as_text(&text, &look.found.key, &more, clock_wall_ms());
                cli_text_print(&text);
        }
        key_look_free(&look);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static bool show_as_json(void *self, const struct store_key_info *key)
{
        (void)self;
        cli_json_print(key_as_json(key));
        return true;
}

static bool show_as_line(void *self, const struct store_key_info *key)
{
        struct buffer text = { 0 };
        (void)self;
        key_as_line(&text, key);
        cli_text_print(&text);
        return true;
}

static int list(struct cli_store *s, bool has_json)
{
        struct error error = { "" };
        struct keys_look look = {
                .shown_max = KEYS_SHOWN, .looked_max = KEYS_SHOWN, .show = has_json ? show_as_json : show_as_line
        };
        keys_look_init(&look);
        int r = cli_look(s, &look.look, &error);
        keys_look_free(&look);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!has_json && !look.shown)
                (void)printf("no key waits for a retry, a person or its turn\n");
        if (!has_json && look.has_more)
                (void)printf("… only the first %u are shown\n", KEYS_SHOWN);
        return EXIT_DONE;
}

/* --- acting ------------------------------------------------------------------------------------------------------- */

static int act(struct cli_store *s, const struct verb *verb, struct span key, const char *reason, bool has_json)
{
        struct error error = { "" };
        bool is_pending = false;
        struct span why = { reason, reason ? strlen(reason) : 0 };
        int r = client_key_act(s->client, verb->verb, key, why, &is_pending, &error);
        if (r == -ENOENT)
                (void)error_set(&error, r,
                        "key %.*s is neither parked nor held, nor does it wait for a name; there is nothing to %s",
                        (int)key.size, key.data, verb->name);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (has_json) {
                json_t *o = json_object();
                view_json_span(o, "key", key);
                (void)json_object_set_new(o, "verb", json_string(verb->name));
                (void)json_object_set_new(o, "pending", json_boolean(is_pending));
                cli_json_print(o);
                return EXIT_DONE;
        }
        struct buffer text = { 0 };
        buffer_printf(&text, "key ");
        text_put_bytes(&text, key, TASK_KEY_MAX);
        if (is_pending)
                buffer_printf(&text, ": its owner has been told to %s it\n", verb->name);
        else
                buffer_printf(&text, " %s\n", verb->done);
        cli_text_print(&text);
        return EXIT_DONE;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

struct key_request {
        const char *config;
        const char *reason;
        bool has_json;
        const struct verb *verb; /* NULL: look at it, or at all */
        bool is_list;
        struct span key;
};

static int run(struct cli_store *s, void *self)
{
        const struct key_request *q = self;
        if (q->is_list)
                return list(s, q->has_json);
        return q->verb ? act(s, q->verb, q->key, q->reason, q->has_json) : show_one(s, q->has_json, q->key);
}

int cmd_key(int argc, char **argv)
{
        struct key_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_TEXT("--reason TEXT", &q.reason, "hold: why, as quiver key shows it"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "key [show] KEY | list | hold KEY | unhold KEY | retry KEY | skip KEY",
                .about = "Says what a key waits for, since when and why; holds it, lets it go on, tries its first task "
                         "now,\nor gives that one up. list: all keys that wait for a retry, a person or their turn.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver key user-17\n"
                            "  quiver key hold user-17 --reason 'being migrated'\n"
                            "  quiver key skip user-17\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        const char *first = o.words_count ? o.words[0] : "";
        q.is_list = o.words_count == 1 && !strcmp(first, "list");
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, first))
                        q.verb = &verbs[i];
        bool has_verb = q.verb || !strcmp(first, "show");
        if (!q.is_list && o.words_count != 1u + has_verb)
                return options_wrong(&o, "which key? quiver key %s%sKEY", has_verb ? first : "", has_verb ? " " : "");
        if (q.reason && (!q.verb || q.verb->verb != CONTROL_HOLD))
                return options_wrong(&o, "--reason is for hold only: quiver key hold KEY --reason TEXT");
        q.key = (struct span){ o.words[has_verb], strlen(o.words[has_verb]) };
        if (!q.is_list && task_key_check(q.key, &error) < 0)
                return options_wrong(&o, "%s", error.text);
        return cli_act(&o, q.config, run, &q);
}
