/* status.c: `quiver status`: once, again and again, or as a check. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/control_call.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/status.h"

#define WATCH_S      2
#define LINES        24u
#define HOST_WAIT_MS 5000

enum { OPTION_WATCH = OPTION_OWN, OPTION_FAIL_IF, OPTION_HOST };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        OPTION_JSON_ROW,
        { OPTION_WATCH, "watch", NULL, "again every 2 s, until it is interrupted" },
        { OPTION_FAIL_IF, "fail-if", "WHAT=N", "exit 1 if it is that much: oldest=5m, dead=1, queued=1000, parked=1" },
        { OPTION_HOST, "host", "NAME", "ask a host on this machine instead: its own document, as JSON" },
};

/* --- fail-if --- */

/* 0: not asked for. */
struct limits {
        uint64_t oldest_ms, dead, queued, parked;
};

static int parse_limit(const struct options *o, const char *text, struct limits *limits)
{
        struct {
                const char *name;
                uint64_t *to;
        } const known[] = {
                { "dead=", &limits->dead },
                { "queued=", &limits->queued },
                { "parked=", &limits->parked },
        };
        struct error error = { "" };
        if (!strncmp(text, "oldest=", 7)) {
                if (units_duration_ms(text + 7, &limits->oldest_ms, &error) < 0 || !limits->oldest_ms)
                        return options_wrong(o, "--fail-if oldest: a time above 0, such as oldest=5m");
                return EXIT_DONE;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                size_t size = strlen(known[i].name);
                if (strncmp(text, known[i].name, size) != 0)
                        continue;
                if (!options_number(text + size, 1, UINT64_MAX, known[i].to))
                        return options_wrong(o, "--fail-if %s: a number from 1", text);
                return EXIT_DONE;
        }
        return options_wrong(o, "--fail-if %s: it is oldest=TIME, dead=N, queued=N or parked=N", text);
}

static bool is_over(const char *what, uint64_t found, uint64_t limit)
{
        if (!limit || found < limit)
                return false;
        (void)fprintf(stderr, "quiver status: %" PRIu64 " %s, and %" PRIu64 " is the limit\n", found, what, limit);
        return true;
}

static int check(const struct limits *limits, const struct store_counts *c)
{
        char found[UNITS_TEXT_MAX];
        char limit[UNITS_TEXT_MAX];
        bool is_bad = is_over("dead", c->dead, limits->dead);
        is_bad |= is_over("queued", store_counts_queued(c), limits->queued);
        is_bad |= is_over("parked", c->parked, limits->parked);
        if (limits->oldest_ms && c->oldest_ms >= limits->oldest_ms) {
                (void)fprintf(stderr, "quiver status: the oldest waits for %s, and %s is the limit\n",
                        units_format_ms(found, c->oldest_ms), units_format_ms(limit, limits->oldest_ms));
                is_bad = true;
        }
        return is_bad ? EXIT_FAILED : EXIT_DONE;
}

/* --- showing --- */

static unsigned screen_lines(void)
{
        struct winsize size;
        if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < LINES)
                return LINES;
        return size.ws_row;
}

static void add_desired(void *self, const struct store_desired *item)
{
        status_add_desired(self, item);
}

static void add_document(void *self, const struct store_status *found)
{
        status_add_document(self, found);
}

/* Asks for everything that a store can say at once.  `counts` has room for all its shards, and stays as long as the
 * status.  0 or -errno with the text; status_free() either way. */
static int ask(struct cli_store *s, struct store_counts *counts, struct status *ret_status, struct error *error)
{
        int r = client_count(s->client, 0, s->info->shards, counts, error);
        status_init(ret_status, s->info, s->config.store.url.text, counts);
        if (r == 0)
                r = client_desired(s->client, add_desired, ret_status, NULL, error);
        if (r == 0)
                r = client_statuses(s->client, add_document, ret_status, error);
        return r;
}

static int show(struct cli_store *s, bool is_json, bool is_watch, const struct limits *limits)
{
        struct status status;
        struct buffer text = { 0 };
        struct error error = { "" };
        struct store_counts *counts = calloc(s->info->shards, sizeof(*counts));
        if (!counts)
                abort();
        int r = ask(s, counts, &status, &error);
        if (is_watch && !is_json)
                cli_clear_screen();
        int code = r < 0 ? cli_fail("status", r, error.text) : check(limits, &status.total);
        if (r == 0 && is_json)
                (is_watch ? cli_json_print : cli_json_print_wide)(status_as_json(&status));
        else if (r == 0)
                status_as_text(&text, &status, screen_lines());
        cli_text_print(&text);
        status_free(&status);
        free(counts);
        return code;
}

static int watch(struct cli_store *s, bool is_json, const struct limits *limits)
{
        static const struct timespec pause = { WATCH_S, 0 };
        for (;;) {
                int code = show(s, is_json, true, limits);
                if (code != EXIT_DONE)
                        return code;
                if (!is_json && !isatty(STDOUT_FILENO))
                        (void)putchar('\n');
                /* Nobody reads any more. */
                if (fflush(stdout) != 0)
                        return EXIT_DONE;
                (void)nanosleep(&pause, NULL);
        }
}

/* --- one host --- */

static int ask_host(const char *config, const char *name)
{
        struct cli_store s;
        struct error error = { "" };
        json_t *reply;
        int code = cli_load(&s, "status", config);
        if (code != EXIT_DONE)
                return code;
        int r = control_ask(s.config.state, name, json_pack("{s:s}", "verb", "status"), HOST_WAIT_MS, &reply, &error);
        config_free(&s.config);
        if (r < 0) {
                (void)fprintf(stderr, "quiver status: %s\n", error.text);
                return r == -EREMOTEIO || r == -EEXIST ? EXIT_FAILED : EXIT_UNREACHABLE;
        }
        (void)json_object_del(reply, "ok");
        cli_json_print_wide(reply);
        return EXIT_DONE;
}

/* --- the command --- */

struct wishes {
        struct cli_words words;
        struct limits limits;
        bool is_watch;
        const char *host;
};

static int read_wishes(struct options *o, struct wishes *w)
{
        int id;
        while ((id = cli_words_next(&w->words, o)) != OPTIONS_END) {
                if (id == OPTION_WATCH)
                        w->is_watch = true;
                else if (id == OPTION_HOST)
                        w->host = o->value;
                else if (parse_limit(o, o->value, &w->limits) != EXIT_DONE)
                        return EXIT_USAGE;
        }
        if (!w->words.is_over && w->words.count)
                return options_wrong(o, "what is %s?", w->words.words[0]);
        return w->words.code;
}

int cmd_status(int argc, char **argv)
{
        struct options o = {
                .usage = "status [-c FILE] [--json] [--watch] [--fail-if WHAT=N]… [--host NAME]",
                .about = "Says what the store holds, who owns which shard, how the handlers do, and what is paused.\n"
                         "With --fail-if it is a check: exit 1, saying why, if one of the limits is reached.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver status\n"
                            "  quiver status --watch\n"
                            "  quiver status --fail-if oldest=5m --fail-if dead=1\n"
                            "  quiver status --json | jq .totals.queued\n",
        };
        struct wishes w = { 0 };
        struct cli_store s;
        options_start(&o, argc, argv);
        int code = read_wishes(&o, &w);
        if (code != EXIT_DONE || w.words.is_over)
                goto out;
        if (w.host) {
                code = ask_host(w.words.config, w.host);
                goto out;
        }
        code = cli_open(&s, "status", w.words.config);
        if (code != EXIT_DONE)
                goto out;
        code = w.is_watch ? watch(&s, w.words.has_json, &w.limits) : show(&s, w.words.has_json, false, &w.limits);
        cli_close(&s);
out:
        cli_words_free(&w.words);
        return code;
}
