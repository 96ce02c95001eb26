/* app.c: what is recorded about the app for all its hosts: look, change it, switch features on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/url.h"
#include "cli/admin/membership_ask.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/app.h"

struct app_request {
        const char *config;
        const char *verb;
        const char *const *words; /* after the verb */
        size_t words_count;
        bool is_all;
        bool is_dry;
        bool has_json;
};

static int fail(const struct cli_store *s, int r, const struct error *error)
{
        return cli_fail(s->command, r, error->text);
}

static int show(struct cli_store *s, const struct app_request *q)
{
        struct error error = { "" };
        struct store_app record;
        char *coordination = NULL;
        int r = client_app(s->client, &record, &coordination, &error);
        if (r < 0)
                return fail(s, r, &error);
        struct app_view view = {
                .app = s->info->app, .driver = s->info->driver, .coordination = coordination, .record = &record
        };
        if (q->has_json) {
                cli_json_print_wide(app_as_json(&view));
        } else {
                struct buffer text = { 0 };
                app_as_text(&text, &view);
                cli_text_print(&text);
        }
        free(coordination);
        return EXIT_DONE;
}

/* --- set ---------------------------------------------------------------------------------------------------------- */

/* Hosts with two coordinations would each take all shards from the other for ever. */
static int check_no_owner(struct cli_store *s, struct error *error)
{
        struct store_counts *counts = memory_zero(s->info->shards, sizeof(*counts));
        int r = client_count(s->client, 0, s->info->shards, counts, error);
        for (uint32_t i = 0; r == 0 && i < s->info->shards; i++)
                if (counts[i].is_held && counts[i].left_ms)
                        r = error_set(error, -EAGAIN,
                                "a host owns shard %u, for %" PRIu64 " ms more unless it renews: stop all hosts of the "
                                "app first (quiver members shows them)",
                                i, counts[i].left_ms);
        free(counts);
        return r;
}

static int read_coordination(const char *value, struct store_app_set *set, struct error *error)
{
        struct url url = { 0 };
        int r = url_parse(value, URL_FOR_COORDINATION, "/", &url, error);
        url_free(&url);
        set->coordination = span_of_text(value);
        return r < 0 ? error_prefix(error, -EINVAL, "coordination") : 0;
}

static int read_max_members(const char *value, struct store_app_set *set, struct error *error)
{
        uint64_t number = 0;
        if (!options_number(value, 0, STORE_MEMBERS_MAX, &number))
                return error_set(error, -EINVAL, "max_members: \"%s\" is not a number from 0 (no limit) to %u", value,
                        STORE_MEMBERS_MAX);
        set->has_max_members = true;
        set->max_members = (uint32_t)number;
        return 0;
}

static int read_setting(const char *word, struct store_app_set *set, struct error *error)
{
        const char *equals = strchr(word, '=');
        size_t size = equals ? (size_t)(equals - word) : strlen(word);
        struct span name = { word, size };
        if (equals && span_is(name, SPAN_TEXT("coordination")))
                return read_coordination(equals + 1, set, error);
        if (equals && span_is(name, SPAN_TEXT("max_members")))
                return read_max_members(equals + 1, set, error);
        return error_set(
                error, -EINVAL, "%s: an app has no such setting; coordination=URL and max_members=N can be set", word);
}

static int set(struct cli_store *s, const struct app_request *q)
{
        struct error error = { "" };
        struct store_app_set set = { 0 };
        int r = 0;
        for (size_t i = 0; r == 0 && i < q->words_count; i++)
                r = read_setting(q->words[i], &set, &error);
        if (r == 0 && set.coordination.size)
                r = check_no_owner(s, &error);
        if (r == 0)
                r = client_app_set(s->client, &set, &error);
        return r < 0 ? fail(s, r, &error) : show(s, q);
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static int check_members(struct cli_store *s, const char *const *names, size_t count)
{
        struct membership_view members;
        struct error error = { "" };
        struct buffer text = { 0 };
        int code = EXIT_DONE;
        if (membership_ask(&s->config, "app", &members, NULL, &error) < 0) {
                (void)fprintf(stderr, "quiver app: %s: %s\n", s->config.coordination.url.text, error.text);
                code = EXIT_UNREACHABLE;
        } else if (app_put_lacking(&text, &members, names, count)) {
                (void)fprintf(stderr, "quiver app: not switched on; upgrade or stop these hosts first:\n%s",
                        buffer_text(&text));
                code = EXIT_FAILED;
        }
        membership_view_free(&members);
        buffer_free(&text);
        return code;
}

static void report(const struct app_request *q, const char *const *names, size_t count)
{
        if (q->has_json) {
                cli_json_print(app_upgrade_as_json(names, count, q->is_dry));
                return;
        }
        for (size_t i = 0; i < count; i++)
                (void)printf("%s %s\n", names[i], q->is_dry ? "would be switched on" : "is on");
        if (!count)
                (void)printf("nothing to do: all of it is on\n");
}

static int upgrade(struct cli_store *s, const struct app_request *q)
{
        struct error error = { "" };
        struct store_app record;
        char *coordination = NULL;
        const char *names[STORE_FEATURES_MAX];
        struct span spans[STORE_FEATURES_MAX];
        size_t count = 0;
        int r = client_app(s->client, &record, &coordination, &error);
        free(coordination);
        if (r == 0)
                r = app_choose_features(&record, q->words, q->words_count, q->is_all, names, &count, &error);
        if (r < 0)
                return fail(s, r, &error);
        int code = count ? check_members(s, names, count) : EXIT_DONE;
        if (code != EXIT_DONE)
                return code;
        for (size_t i = 0; i < count; i++)
                spans[i] = span_of_text(names[i]);
        struct store_app_set set = { .features = spans, .features_count = (uint32_t)count };
        if (count && !q->is_dry)
                r = client_app_set(s->client, &set, &error);
        if (r < 0)
                return fail(s, r, &error);
        report(q, names, count);
        return EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int act(struct cli_store *s, void *self)
{
        const struct app_request *q = self;
        if (!strcmp(q->verb, "set"))
                return set(s, q);
        return !strcmp(q->verb, "upgrade") ? upgrade(s, q) : show(s, q);
}

int cmd_app(int argc, char **argv)
{
        struct app_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--all", &q.is_all, "upgrade: every feature that this Quiver knows"),
                OPT_FLAG("--dry-run", &q.is_dry,
                        "upgrade: only say what would be switched on, or which hosts do not know it"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "app [show] | set NAME=VALUE… | upgrade FEATURE…|--all [--dry-run]",
                .about = "What is recorded about the app and holds for all its hosts.\n"
                         "set: coordination=URL (while no host runs) or max_members=N.\n"
                         "upgrade: switches features on, for good; refused while a host runs that does not know them.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver app show\n"
                            "  quiver app set max_members=3\n"
                            "  quiver app set coordination=zookeeper://a,b,c/quiver\n"
                            "  quiver app upgrade --all --dry-run\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        q.verb = o.words_count ? o.words[0] : "show";
        q.words = (const char *const *)o.words + 1;
        q.words_count = o.words_count ? o.words_count - 1 : 0;
        bool is_set = !strcmp(q.verb, "set");
        bool is_upgrade = !strcmp(q.verb, "upgrade");
        if (!is_set && !is_upgrade && strcmp(q.verb, "show") != 0)
                return options_wrong(&o, "there is no \"quiver app %s\"; there are show, set and upgrade", q.verb);
        if (!is_set && !is_upgrade && q.words_count)
                return options_wrong(&o, "unexpected argument %s; show takes none", q.words[0]);
        if (is_set && !q.words_count)
                return options_wrong(&o, "set needs a setting: quiver app set NAME=VALUE");
        if (is_upgrade && !q.words_count && !q.is_all)
                return options_wrong(&o, "upgrade needs names of features, or --all; see: quiver app show");
        return cli_act(&o, q.config, act, &q);
}
