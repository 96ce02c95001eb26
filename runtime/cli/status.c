/* status.c: `quiver status`: once, again and again, or as a check. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/control_call.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/status.h"

#define WATCH_S      2
#define LINES        24u
#define HOST_WAIT_MS 5000

/* --- fail-if --- */

/* 0: not asked for. */
struct limits {
        uint64_t oldest_ms, dead, queued, parked;
};

static int take_limit(void *self, const char *text, struct error *error)
{
        struct limits *limits = self;
        struct {
                const char *name;
                uint64_t *to;
        } const known[] = {
                { "dead=", &limits->dead },
                { "queued=", &limits->queued },
                { "parked=", &limits->parked },
        };
        if (!strncmp(text, "oldest=", 7)) {
                if (units_duration_ms(text + 7, &limits->oldest_ms, error) < 0 || !limits->oldest_ms)
                        return error_set(error, -EINVAL, "oldest: a time above 0, such as oldest=5m");
                return 0;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                size_t size = strlen(known[i].name);
                if (strncmp(text, known[i].name, size) != 0)
                        continue;
                if (!options_number(text + size, 1, UINT64_MAX, known[i].to))
                        return error_set(error, -EINVAL, "%s: a number from 1", text);
                return 0;
        }
        return error_set(error, -EINVAL, "%s: it is oldest=TIME, dead=N, queued=N or parked=N", text);
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
        struct store_counts *counts = memory_zero(s->info->shards, sizeof(*counts));
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
        int code = cli_load(&s, "status", config, READER_ANYBODY);
        if (code != EXIT_DONE)
                return code;
        int r = control_ask(s.config.state, name, json_pack("{s:s}", "verb", "status"), HOST_WAIT_MS, &reply, &error);
        config_free(&s.config);
        if (r < 0)
                return control_fail("status", r, &error);
        (void)json_object_del(reply, "ok");
        cli_json_print_wide(reply);
        return EXIT_DONE;
}

/* --- the command --- */

struct status_request {
        const char *config;
        const char *host;
        struct limits limits;
        bool is_watch;
        bool has_json;
};

static int act(struct cli_store *s, void *self)
{
        const struct status_request *q = self;
        return q->is_watch ? watch(s, q->has_json, &q->limits) : show(s, q->has_json, false, &q->limits);
}

int cmd_status(int argc, char **argv)
{
        struct status_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_JSON(&q.has_json),
                OPT_FLAG("--watch", &q.is_watch, "again every 2 s, until it is interrupted"),
                OPT_CALL("--fail-if WHAT=N", take_limit, &q.limits,
                        "exit 1 if it is that much: oldest=5m, dead=1, queued=1000, parked=1"),
                OPT_TEXT("--host NAME", &q.host, "ask a host on this machine instead: its own document, as JSON"),
        };
        struct options o = {
                .usage = "status [-c FILE] [--json] [--watch] [--fail-if WHAT=N]… [--host NAME]",
                .about = "Says what the store holds, who owns which shard, how the handlers do, and what is paused.\n"
                         "With --fail-if it is a check: exit 1, saying why, if one of the limits is reached.",
                OPTIONS_TABLE(table),
                .examples = "  quiver status\n"
                            "  quiver status --watch\n"
                            "  quiver status --fail-if oldest=5m --fail-if dead=1\n"
                            "  quiver status --json | jq .totals.queued\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        return q.host ? ask_host(q.config, q.host) : cli_act(&o, q.config, act, &q);
}
