/* key.c: what a key waits for, and what a person can do about it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/open.h"
#include "cli/show.h"

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

static void key_as_json(const struct store_key_info *key)
{
        json_t *o = json_object();
        cli_json_span(o, "key", key->key);
        cli_json_number(o, "shard", key->shard);
        (void)json_object_set_new(o, "state", json_string(store_key_state_name(key->state)));
        cli_json_span(o, "reason", key->reason);
        cli_json_number(o, "since_ms", key->since_ms);
        cli_json_number(o, "due_in_ms", key->due_in_ms);
        cli_json_number(o, "tasks", key->tasks);
        if (key->head.size)
                cli_json_span(o, "head", key->head);
        cli_json_print(o);
}

static void print_command(const char *verb, struct span key, const char *what)
{
        (void)printf("  quiver key %-6s ", verb);
        show_word(stdout, key);
        (void)printf("   %s\n", what);
}

static void print_commands(const struct store_key_info *key)
{
        (void)printf("\nWhat can be done:\n");
        if (key->state == KEY_HELD)
                print_command("unhold", key->key, "let it go on");
        else
                print_command("hold", key->key, "start no more of its tasks");
        if (key->state == KEY_HELD || key->state == KEY_PARKED)
                print_command("retry", key->key, "try its first task now");
        if (key->head.size && (key->state == KEY_HELD || key->state == KEY_PARKED))
                print_command("skip", key->key, "give its first task up, and go on with the next");
        if (key->head.size)
                (void)printf("  quiver task %.*s   look at its first task\n", (int)key->head.size, key->head.data);
}

static const char *waits_for(const struct store_key_info *key, char text[UNITS_TEXT_MAX + 32])
{
        char due[UNITS_TEXT_MAX];
        switch (key->state) {
        case KEY_PARKED:
                (void)snprintf(text, UNITS_TEXT_MAX + 32, "its first task's retry, in %s",
                        units_format_ms(due, key->due_in_ms));
                return text;
        case KEY_HELD:
                return "a person";
        case KEY_WAITING:
                return "its turn; the reason below says what for";
        default:
                return "nothing";
        }
}

static void key_as_text(const struct store_key_info *key)
{
        char time[SHOW_TIME_MAX];
        char ago[UNITS_TEXT_MAX];
        char what[UNITS_TEXT_MAX + 32];
        uint64_t now = clock_wall_ms();
        (void)printf("%-12s ", "key");
        show_bytes(stdout, key->key, TASK_KEY_MAX);
        (void)printf(" (shard %u)\n%-12s %s\n", key->shard, "state", store_key_state_name(key->state));
        (void)printf("%-12s %s\n", "waits for", waits_for(key, what));
        if (key->reason.size) {
                (void)printf("%-12s ", "reason");
                show_bytes(stdout, key->reason, NOTE_TEXT_MAX);
                (void)putchar('\n');
        }
        if (key->since_ms)
                (void)printf("%-12s %s (%s ago)\n", "since", show_time(time, key->since_ms),
                        units_format_ms(ago, now > key->since_ms ? now - key->since_ms : 0));
        (void)printf("%-12s %" PRIu64 " task%s\n", "waiting", key->tasks, show_plural(key->tasks));
        print_commands(key);
}

static void print_line(const struct store_key_info *key)
{
        char due[UNITS_TEXT_MAX];
        (void)printf("%-8s %8" PRIu64 " waiting  due %-8s ", store_key_state_name(key->state), key->tasks,
                key->state == KEY_HELD ? "-" : units_format_ms(due, key->due_in_ms));
        show_bytes(stdout, key->key, TASK_KEY_MAX);
        (void)printf("  ");
        show_bytes(stdout, key->reason, 100);
        (void)putchar('\n');
}

struct key_show {
        bool has_json;
        bool is_list;
};

static void show_key(void *self, const struct store_key_info *key)
{
        const struct key_show *show = self;
        if (show->has_json)
                key_as_json(key);
        else if (show->is_list)
                print_line(key);
        else
                key_as_text(key);
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
                cli_json_span(o, "key", key);
                (void)json_object_set_new(o, "verb", json_string(verb->name));
                (void)json_object_set_new(o, "pending", json_boolean(is_pending));
                cli_json_print(o);
                return EXIT_DONE;
        }
        (void)printf("key ");
        show_bytes(stdout, key, TASK_KEY_MAX);
        if (is_pending)
                (void)printf(": its owner has been told to %s it\n", verb->name);
        else
                (void)printf(" %s\n", verb->done);
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
