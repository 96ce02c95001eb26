/* key.c: what a key waits for, and what a person can do about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/key.h"
#include "view/text.h"

#define KEYS_SHOWN 1000u

enum { OPTION_REASON = OPTION_OWN };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_REASON, "reason", "TEXT", "hold: why, for whoever looks" },
        OPTION_JSON_ROW,
};

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

struct key_show {
        bool has_json;
        bool is_list;
};

static void show_key(void *self, const struct store_key_info *key)
{
        const struct key_show *show = self;
        struct buffer text = { 0 };
        if (show->has_json)
                cli_json_print(key_as_json(key));
        else if (show->is_list)
                key_as_line(&text, key);
        else
                key_as_text(&text, key, clock_wall_ms());
        cli_text_print(&text);
}

static int show_one(struct cli_store *s, bool has_json, struct span key)
{
        struct error error = { "" };
        struct key_show show = { .has_json = has_json };
        uint32_t shard = shard_of_key(key, s->info->shards);
        int n = client_keys(s->client, shard, key, 1, show_key, &show, &error);
        if (n < 0)
                return cli_fail(s->command, n, error.text);
        if (n == 0) {
                struct store_key_info unknown = { .shard = shard, .key = key, .state = KEY_FREE };
                show_key(&show, &unknown);
        }
        return EXIT_DONE;
}

static int list(struct cli_store *s, bool has_json)
{
        struct error error = { "" };
        struct key_show show = { .has_json = has_json, .is_list = true };
        uint32_t left = KEYS_SHOWN;
        struct store_counts *counts = calloc(s->info->shards, sizeof(*counts));
        if (!counts)
                abort();
        int r = client_count(s->client, 0, s->info->shards, counts, &error);
        for (uint32_t i = 0; r >= 0 && left && i < s->info->shards; i++) {
                if (!counts[i].keys)
                        continue;
                r = client_keys(s->client, i, (struct span){ 0 }, left, show_key, &show, &error);
                left -= r > 0 ? (uint32_t)r : 0;
        }
        free(counts);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!has_json && left == KEYS_SHOWN)
                (void)printf("no key waits for a retry, a person or its turn\n");
        if (!has_json && !left)
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
                (void)error_set(&error, r, "key %.*s is neither parked nor held; there is nothing to %s", (int)key.size,
                        key.data, verb->name);
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

static const struct verb *find_verb(const char *name)
{
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, name))
                        return &verbs[i];
        return NULL;
}

static int run(struct options *o, const struct cli_words *w, const char *reason)
{
        struct cli_store s;
        struct error error = { "" };
        bool is_list = w->count == 1 && !strcmp(w->words[0], "list");
        const struct verb *verb = w->count ? find_verb(w->words[0]) : NULL;
        bool has_verb = verb || (w->count && !strcmp(w->words[0], "show"));
        if (!is_list && w->count != 1u + has_verb)
                return options_wrong(
                        o, "which key? quiver key %s%sKEY", has_verb ? w->words[0] : "", has_verb ? " " : "");
        if (reason && (!verb || verb->verb != CONTROL_HOLD))
                return options_wrong(o, "--reason goes with hold");
        struct span key = { w->words[has_verb], strlen(w->words[has_verb]) };
        if (!is_list && task_key_check(key, &error) < 0)
                return options_wrong(o, "%s", error.text);
        int code = cli_open(&s, "key", w->config);
        if (code != EXIT_DONE)
                return code;
        if (is_list)
                code = list(&s, w->has_json);
        else if (verb)
                code = act(&s, verb, key, reason, w->has_json);
        else
                code = show_one(&s, w->has_json, key);
        cli_close(&s);
        return code;
}

int cmd_key(int argc, char **argv)
{
        struct options o = {
                .usage = "key [show] KEY | list | hold KEY | unhold KEY | retry KEY | skip KEY",
                .about = "Says what a key waits for, since when and why; holds it, lets it go on, tries its first task "
                         "now,\nor gives that one up. list: all keys that wait for more than their turn.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver key user-17\n"
                            "  quiver key hold user-17 --reason 'being migrated'\n"
                            "  quiver key skip user-17\n",
        };
        struct cli_words w = { 0 };
        const char *reason = NULL;
        options_start(&o, argc, argv);
        while (cli_words_next(&w, &o) == OPTION_REASON)
                reason = o.value;
        int code = w.is_over ? w.code : run(&o, &w, reason);
        cli_words_free(&w);
        return code;
}
