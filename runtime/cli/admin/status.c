/* status.c: `quiver status`: once, again and again, or as a check. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/control_call.h"
#include "cli/look.h"
#include "cli/open.h"
#include "cli/print.h"
#include "look/status_look.h"
#include "view/alarm.h"

#define WATCH_S      2
#define LINES        24u
#define HOST_WAIT_MS 5000

/* --- fail-if --- */

#define ALARMS_MAX 64u

struct alarms {
        struct alarm list[ALARMS_MAX];
        size_t count;
};

static int take_alarm(void *self, const char *text, struct error *error)
{
        struct alarms *alarms = self;
        if (alarms->count == ALARMS_MAX)
                return error_set(error, -EINVAL, "%s: %u conditions are the most", text, ALARMS_MAX);
        int r = alarm_parse(text, &alarms->list[alarms->count], error);
        alarms->count += r == 0;
        return r;
}

static int check(const struct alarms *alarms, const struct status *status)
{
        int code = EXIT_DONE;
        for (size_t i = 0; i < alarms->count; i++) {
                struct buffer why = { 0 };
                if (alarm_is_reached(&alarms->list[i], status, &why)) {
                        (void)fprintf(stderr, "quiver status: %s", buffer_text(&why));
                        code = EXIT_FAILED;
                }
                buffer_free(&why);
        }
        return code;
}

/* --- showing --- */

/* In a pipe everything is shown; on a terminal, what fits. */
static struct status_screen screen_of(void)
{
        struct winsize size = { 0 };
        bool is_terminal = isatty(STDOUT_FILENO);
        if (is_terminal && (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < LINES))
                size.ws_row = LINES;
        return (struct status_screen){ .lines = is_terminal ? size.ws_row : 0, .has_color = cli_has_color() };
}

static int show(struct cli_store *s, bool is_json, bool is_watch, const struct alarms *alarms)
{
        struct status_look look = { 0 };
        const struct status *status = &look.status;
        struct buffer text = { 0 };
        struct error error = { "" };
        struct status_screen screen = screen_of();
        status_look_init(&look, s->config.store.url.text, clock_wall_ms());
        int r = cli_look(s, &look.look, &error);
        if (is_watch && !is_json)
                cli_clear_screen();
        int code = r < 0 ? cli_fail("status", r, error.text) : check(alarms, status);
        if (r == 0 && is_json)
                (is_watch ? cli_json_print : cli_json_print_wide)(status_as_json(status));
        else if (r == 0)
                status_as_text(&text, status, &screen);
        cli_text_print(&text);
        status_look_free(&look);
        return code;
}

static int watch(struct cli_store *s, bool is_json, const struct alarms *alarms)
{
        static const struct timespec pause = { WATCH_S, 0 };
        for (;;) {
                int code = show(s, is_json, true, alarms);
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
        int code = cli_load(&s, "status", config, READER_COMMAND);
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
        struct alarms alarms;
        bool is_watch;
        bool has_json;
};

static int act(struct cli_store *s, void *self)
{
        const struct status_request *q = self;
        return q->is_watch ? watch(s, q->has_json, &q->alarms) : show(s, q->has_json, false, &q->alarms);
}

int cmd_status(int argc, char **argv)
{
        struct status_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_JSON(&q.has_json),
                OPT_FLAG("--watch", &q.is_watch, "again every 2 s, until it is interrupted"),
                OPT_CALL("--fail-if WHAT=N", take_alarm, &q.alarms, "exit 1 if it is that much; see above"),
                OPT_TEXT("--host NAME", &q.host, "ask a host on this machine instead: its own document, as JSON"),
        };
        struct options o = {
                .usage = "status [-c FILE] [--json] [--watch] [--fail-if WHAT=N]… [--host NAME]",
                .about = "Says what waits and what runs, who owns which shard, how the handlers do, and what is "
                         "paused.\n"
                         "With --fail-if it is a check: exit 1, saying why, if one of the limits is reached.\n\n"
                         "  oldest=5m            a task has been waiting or running for so long\n"
                         "  waiting=1000         so many tasks wait: queued, claimed but not started, parked or held\n"
                         "  dead=1               tasks that were given up\n"
                         "  parked=100, held=1   keys that wait for a retry, for a person\n"
                         "  hosts=3              fewer hosts than that\n"
                         "  unowned=1            shards that no host owns\n"
                         "  unavailable=1, quarantined=1, refused=1   handlers in that state\n"
                         "  versions=1           handlers of which hosts have different versions\n"
                         "  dropped_results=1    results that nobody fetched in time\n"
                         "Of one handler: oldest@mail=5m; also waiting, dead, unavailable, quarantined, refused, "
                         "versions.",
                OPTIONS_TABLE(table),
                .examples = "  quiver status\n"
                            "  quiver status --watch\n"
                            "  quiver status --fail-if oldest=5m --fail-if dead=1\n"
                            "  quiver status --fail-if oldest@mail=5m --fail-if hosts=2\n"
                            "  quiver status --json | jq .totals.waiting\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        return q.host ? ask_host(q.config, q.host) : cli_act(&o, q.config, act, &q);
}
