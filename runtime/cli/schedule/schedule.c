/* schedule.c: `quiver schedule`: tasks that are submitted at given times. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/print.h"
#include "cli/schedule/schedule_show.h"
#include "cli/task_options.h"
#include "look/records_look.h"
#include "look/schedule_act.h"
#include "schedule/time_text.h"
#include "schedule/words.h"
#include "view/json.h"
#include "view/text.h"

#define BACKFILL_MAX 100000u

struct schedule_request {
        const char *config;
        const char *verb, *name, *payload;
        const char *cron, *zone, *handler, *key, *at, *start, *end, *from, *to;
        uint64_t every_ms, catchup_ms, jitter_ms, runs_max;
        int32_t overlap, catchup, lane;
        uint32_t times;
        bool has_json, is_dry, is_forced;
        struct buffer bytes; /* of the payload */
};

static int fail(const struct cli_store *s, int r, const struct error *error)
{
        return cli_fail(s->command, r, error->text);
}

/* --- what is asked for ----------------------------------------------------------------------------------------------
 */

static int make(const struct schedule_request *q, struct schedule *ret, struct error *error)
{
        static const enum lane lanes[] = { LANE_LOW, LANE_NORMAL, LANE_HIGH };
        struct schedule_words words = { .cron = q->cron,
                .zone = q->zone,
                .handler = q->handler,
                .key = q->key,
                .at = q->at,
                .start = q->start,
                .end = q->end,
                .payload = { (const char *)q->bytes.data, q->bytes.size },
                .every_ms = q->every_ms,
                .catchup_ms = q->catchup_ms,
                .jitter_ms = q->jitter_ms,
                .runs_max = q->runs_max,
                .overlap = (enum schedule_overlap)q->overlap,
                .catchup = (enum schedule_catchup)q->catchup,
                .lane = lanes[q->lane + 1],
                .from = "command" };
        return schedule_make(&words, ret, error);
}

/* --- verbs ---------------------------------------------------------------------------------------------------------
 */

/* Asks the store; then act->status says what became of it.  0, or an exit code after it said why. */
static int ask(struct cli_store *s, const struct schedule_request *q, struct schedule_act *act)
{
        struct error error = { "" };
        act->name = span_of_text(q->name);
        act->now_ms = clock_wall_ms();
        schedule_act_init(act);
        int r = cli_look(s, &act->look, &error);
        if (r == 0 && act->status < 0) {
                r = act->status;
                error = act->error;
        }
        return r < 0 ? fail(s, r, &error) : EXIT_DONE;
}

static int verb_set(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct schedule schedule = { 0 };
        int r = make(q, &schedule, &error);
        if (r < 0)
                return fail(s, r, &error);
        const char *doubt = schedule.cron ? cron_doubt(&schedule.pattern) : NULL;
        if (doubt)
                (void)fprintf(stderr, "quiver schedule: %s: %s\n", schedule.cron, doubt);
        struct schedule_act act = { .kind = SCHEDULE_ACT_SET, .wanted = &schedule };
        int code = ask(s, q, &act);
        if (code == EXIT_DONE)
                code = schedule_show(s, &act.found, act.shard, q->times, q->has_json);
        schedule_act_free(&act);
        schedule_free(&schedule);
        return code;
}

/* Whose configuration the schedules with "file" come from. */
static int show_in_force(struct cli_store *s)
{
        struct error error = { "" };
        struct records_look look = { .shown_max = 1, .place.shard = s->info->shards };
        static const struct zone utc = { .name = "UTC" };
        records_look_init(&look, RECORDS_SCHEDULES);
        int r = cli_look(s, &look.look, &error);
        if (r == 0 && look.in_force.version) {
                struct buffer text = { 0 };
                text_put_between(&text, "in force: the configuration of ", look.in_force.by, ", written ");
                time_put(&text, look.in_force.version, &utc);
                buffer_printf(&text, "\n");
                cli_text_print(&text);
        }
        records_look_free(&look);
        return r < 0 ? fail(s, r, &error) : EXIT_DONE;
}

static int verb_list(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct kept_schedules kept;
        int code = EXIT_DONE;
        int r = client_schedules(s->client, s->info->shards, NULL, &kept, &error);
        if (r < 0)
                return fail(s, r, &error);
        for (uint32_t i = 0; q->has_json && i < kept.count; i++)
                cli_json_print(schedule_as_json(&kept.list[i].stored, kept.list[i].shard));
        if (!q->has_json && kept.count) {
                schedules_show(&kept);
                code = show_in_force(s);
        }
        if (!q->has_json && !kept.count)
                (void)printf("there is no schedule; make one: quiver schedule set NAME --cron '0 3 * * *' --handler "
                             "HANDLER\n");
        if (kept.unreadable)
                (void)fprintf(stderr, "quiver schedule: %" PRIu32 " records cannot be read; quiver fsck names them\n",
                        kept.unreadable);
        kept_schedules_free(&kept);
        return code;
}

static int verb_show(struct cli_store *s, struct schedule_request *q)
{
        struct schedule_act act = { .kind = SCHEDULE_ACT_SHOW };
        int code = ask(s, q, &act);
        if (code == EXIT_DONE)
                code = schedule_show(s, &act.found, act.shard, q->times, q->has_json);
        schedule_act_free(&act);
        return code;
}

static int change(struct cli_store *s, const struct schedule_request *q, enum schedule_act_kind kind, const char *done)
{
        struct schedule_act act = { .kind = kind, .is_forced = q->is_forced };
        int code = ask(s, q, &act);
        if (code == EXIT_DONE && q->has_json)
                cli_json_print(json_pack("{s:s, s:b}", "name", q->name, "changed", act.is_changed));
        else if (code == EXIT_DONE)
                (void)printf("schedule %s %s%s\n", q->name, act.is_changed ? "" : "was so already: it ", done);
        schedule_act_free(&act);
        return code;
}

static int verb_pause(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_ACT_PAUSE, "is paused; go on: quiver schedule resume");
}

static int verb_resume(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_ACT_RESUME, "goes on");
}

static int verb_delete(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_ACT_DELETE, "is deleted");
}

static int verb_run(struct cli_store *s, struct schedule_request *q)
{
        struct schedule_act act = { .kind = SCHEDULE_ACT_RUN };
        int code = ask(s, q, &act);
        if (code == EXIT_DONE && q->has_json)
                cli_json_print(json_pack("{s:s}", "id", act.id));
        else if (code == EXIT_DONE)
                (void)printf("%s\n", act.id);
        schedule_act_free(&act);
        return code;
}

/* A step at a time, each from where the last one ended. */
static int verb_backfill(struct cli_store *s, struct schedule_request *q)
{
        static const struct zone utc = { .name = "UTC" };
        struct buffer from = { 0 };
        uint64_t count = 0, more_ms;
        int code;
        buffer_printf(&from, "%s", q->from);
        do {
                struct schedule_act act = { .kind = SCHEDULE_ACT_BACKFILL,
                        .from_text = buffer_text(&from),
                        .to_text = q->to,
                        .tasks_max = SCHEDULE_BACKFILL_STEP,
                        .is_dry = q->is_dry };
                code = ask(s, q, &act);
                more_ms = act.more_ms;
                count += act.tasks;
                schedule_act_free(&act);
                buffer_clear(&from);
                time_put(&from, more_ms, &utc);
        } while (code == EXIT_DONE && more_ms && count < BACKFILL_MAX);
        buffer_free(&from);
        if (code == EXIT_DONE && q->has_json)
                cli_json_print(json_pack("{s:I, s:b}", "tasks", (json_int_t)count, "more", more_ms != 0));
        else if (code == EXIT_DONE)
                (void)printf("%" PRIu64 " task%s%s\n", count, text_plural(count),
                        q->is_dry ? " would be submitted" : " submitted; each time once, also if this is repeated");
        return code;
}

/* --- words ---------------------------------------------------------------------------------------------------------
 */

static const struct schedule_verb {
        const char *name;
        int (*act)(struct cli_store *s, struct schedule_request *q);
} verbs[] = { { "set", verb_set }, { "list", verb_list }, { "show", verb_show }, { "pause", verb_pause },
        { "resume", verb_resume }, { "run", verb_run }, { "delete", verb_delete }, { "backfill", verb_backfill } };

static int act(struct cli_store *s, void *self)
{
        struct schedule_request *q = self;
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, q->verb))
                        return verbs[i].act(s, q);
        return EXIT_USAGE;
}

/* Times of a pattern, without a store. */
static int show_times(const struct options *o, const struct schedule_request *q)
{
        struct error error = { "" };
        struct schedule schedule = { 0 };
        uint64_t after_ms = clock_wall_ms();
        int r = make(q, &schedule, &error);
        if (r == 0 && q->from)
                r = time_parse(q->from, &schedule.zone, &after_ms, &error);
        if (r < 0)
                return options_wrong(o, "%s", error.text);
        uint64_t times[SCHEDULE_TIMES_MAX];
        uint32_t found = schedule_times(&schedule, span_of_text(""), after_ms, 0, q->times, times);
        if (q->has_json) {
                cli_json_print(schedule_times_as_json(times, found));
        } else {
                struct buffer text = { 0 };
                schedule_put_times(&text, &schedule, times, found, q->times);
                cli_text_print(&text);
        }
        schedule_free(&schedule);
        return EXIT_DONE;
}

static bool is_verb(const char *word)
{
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, word))
                        return true;
        return false;
}

static int read_words(struct options *o, struct schedule_request *q, struct error *error)
{
        q->verb = o->words_count ? o->words[0] : "list";
        q->name = o->words_count > 1 ? o->words[1] : NULL;
        q->payload = o->words_count > 2 ? o->words[2] : NULL;
        bool is_set = !strcmp(q->verb, "set"), is_list = !strcmp(q->verb, "list"), is_times = !strcmp(q->verb, "next");
        if (!is_verb(q->verb) && !is_times)
                return error_set(error, -EINVAL,
                        "there is no \"quiver schedule %s\"; there are set, list, show, pause, resume, run, delete, "
                        "backfill and next",
                        q->verb);
        if (!is_list && !is_times && !q->name)
                return error_set(error, -EINVAL, "which schedule? quiver schedule %s NAME", q->verb);
        if ((q->payload && !is_set) || o->words_count > 3 || (q->name && (is_list || is_times)))
                return error_set(error, -EINVAL, "what is %s?", o->words[o->words_count - 1]);
        if (q->name && schedule_name_check(q->name, error) < 0)
                return -EINVAL;
        if (!strcmp(q->verb, "backfill") && (!q->from || !q->to))
                return error_set(error, -EINVAL, "say which times: --from TIME --to TIME");
        return 0;
}

static const struct option_choice overlaps[] = { { "skip", OVERLAP_SKIP }, { "queue-one", OVERLAP_QUEUE_ONE },
        { "queue-all", OVERLAP_QUEUE_ALL }, { "replace", OVERLAP_REPLACE }, { "allow", OVERLAP_ALLOW }, { 0 } };
static const struct option_choice catchups[] = { { "last", CATCHUP_LAST }, { "all", CATCHUP_ALL },
        { "none", CATCHUP_NONE }, { 0 } };

int cmd_schedule(int argc, char **argv)
{
        struct schedule_request q = { .catchup_ms = SCHEDULE_CATCHUP_MS, .times = SCHEDULE_TIMES_SHOWN };
        struct task_options payload = TASK_OPTIONS_INIT;
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_TEXT("--cron PATTERN", &q.cron, "minute hour day month weekday, or @daily, @hourly, …"),
                OPT_DURATION("--every TIME", &q.every_ms, 1000, "so often, counted from --start"),
                OPT_TEXT("--at TIME", &q.at, "once: 2026-12-01T03:00:00Z, or 2026-12-01 03:00 by the zone's clock"),
                OPT_TEXT("--zone NAME", &q.zone, "whose clock it goes by: Europe/Berlin (default: UTC)"),
                OPT_TEXT("--handler NAME", &q.handler, "whose task it submits"),
                OPT_TEXT("-k, --key KEY", &q.key, "the task's key (default: the schedule's name)"),
                OPT_CHOICE("--lane LANE", &q.lane, task_lanes, "high, normal or low"),
                OPT_CHOICE("--overlap WHAT", &q.overlap, overlaps,
                        "while the last task is not over: skip, queue-one, queue-all, replace, allow"),
                OPT_CHOICE("--catchup WHAT", &q.catchup, catchups, "of times that were missed: last, all, none"),
                OPT_DURATION(
                        "--catchup-for TIME", &q.catchup_ms, 0, "those that were missed longer ago pass (default: 1h)"),
                OPT_DURATION("--jitter TIME", &q.jitter_ms, 0, "later by up to this, always the same for a name"),
                OPT_TEXT("--start TIME", &q.start, "no time before"),
                OPT_TEXT("--end TIME", &q.end, "no time from then on"),
                OPT_NUMBER("--runs N", &q.runs_max, 1, INT64_MAX, "so many tasks in all"),
                OPT_TEXT("--from TIME", &q.from, "backfill, next: from then on"),
                OPT_TEXT("--to TIME", &q.to, "backfill: before then"),
                OPT_FLAG("--dry-run", &q.is_dry, "backfill: only say how many"),
                OPT_FLAG("--force", &q.is_forced, "delete: also one that stands in a configuration"),
                OPT_NUMBER("-n, --times N", &q.times, 1, SCHEDULE_TIMES_MAX, "how many times are shown (default: 10)"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "schedule [list] | set NAME WHEN --handler HANDLER [PAYLOAD] | show NAME | pause NAME | "
                         "resume NAME |\n"
                         "                       run NAME | delete NAME | backfill NAME --from TIME --to TIME | next "
                         "WHEN",
                .about = "Submits a task at given times: each time once, whichever hosts die. A time that the clocks "
                         "skip in spring\n"
                         "comes right after, one that they show twice in autumn comes the first time; patterns with * "
                         "go by elapsed time.\n"
                         "next: the times of a pattern, without a store.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples =
                        "  quiver schedule set nightly --cron '0 3 * * *' --zone Europe/Berlin --handler report\n"
                        "  quiver schedule set poll --every 90s --handler fetch --overlap skip '{\"what\": \"news\"}'\n"
                        "  quiver schedule next --cron '30 2 * * sun' --zone Europe/Berlin --handler x\n"
                        "  quiver schedule backfill nightly --from 2026-11-01 --to 2026-11-08\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (read_words(&o, &q, &error) < 0)
                return options_wrong(&o, "%s", error.text);
        if (!strcmp(q.verb, "next"))
                return show_times(&o, &q);
        if (q.payload && task_options_take_payload(&payload, q.payload, &error) < 0)
                return options_wrong(&o, "%s", error.text);
        buffer_put(&q.bytes, payload.task.payload, payload.task.payload_size);
        code = cli_act(&o, q.config, act, &q);
        buffer_free(&q.bytes);
        task_options_free(&payload);
        return code;
}
