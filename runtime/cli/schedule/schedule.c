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
#include "cli/print.h"
#include "cli/schedule/schedule_show.h"
#include "cli/task_options.h"
#include "schedule/time_text.h"
#include "view/json.h"
#include "view/records.h"
#include "view/text.h"

#define TIMES_SHOWN    10u
#define BACKFILL_MAX   100000u
#define CATCHUP_FOR_MS UINT64_C(3600000)

struct schedule_request {
        const char *config;
        const char *verb, *name, *payload;
        const char *cron, *zone, *handler, *key, *at, *start, *end, *from, *to;
        uint64_t every_ms, catchup_ms, jitter_ms, runs_max;
        int32_t overlap, catchup, lane;
        uint32_t times;
        bool has_json, is_dry;
        struct buffer bytes; /* of the payload */
};

static int fail(const struct cli_store *s, int r, const struct error *error)
{
        return cli_fail(s->command, r, error->text);
}

/* --- what is asked for ----------------------------------------------------------------------------------------------
 */

/* The definition that the options make.  The texts are copies. */
static int make(const struct schedule_request *q, struct schedule *ret, struct error *error)
{
        static const enum lane lanes[] = { LANE_LOW, LANE_NORMAL, LANE_HIGH };
        struct schedule made = { .every_ms = q->every_ms,
                .overlap = (enum schedule_overlap)q->overlap,
                .catchup = (enum schedule_catchup)q->catchup,
                .catchup_ms = q->catchup_ms,
                .jitter_ms = q->jitter_ms,
                .runs_max = q->runs_max,
                .lane = lanes[q->lane + 1],
                .cron = q->cron ? text_copy(q->cron) : NULL,
                .handler = q->handler ? text_copy(q->handler) : NULL,
                .key = q->key ? text_copy(q->key) : NULL,
                .from = text_copy("command") };
        if (q->bytes.size) {
                char *bytes = text_copy_part((const char *)q->bytes.data, q->bytes.size);
                made.payload = (struct span){ bytes, q->bytes.size };
        }
        int r = 0;
        if (q->zone && strlen(q->zone) > ZONE_NAME_MAX)
                r = error_set(error, -EINVAL, "--zone: is too long");
        else if (q->zone)
                memcpy(made.zone_name, q->zone, strlen(q->zone));
        if (r == 0)
                r = schedule_read_zone(&made, error);
        if (r == 0 && q->at)
                r = time_parse(q->at, &made.zone, &made.at_ms, error);
        if (r == 0 && q->start)
                r = time_parse(q->start, &made.zone, &made.start_ms, error);
        if (r == 0 && q->end)
                r = time_parse(q->end, &made.zone, &made.end_ms, error);
        if (r == 0)
                r = schedule_check(&made, error);
        if (r < 0)
                schedule_free(&made);
        else
                *ret = made;
        return r;
}

/* --- verbs ---------------------------------------------------------------------------------------------------------
 */

static int find(struct cli_store *s, const char *name, struct kept_schedules *ret, struct error *error)
{
        int r = client_schedules(s->client, s->info->shards, name, ret, error);
        if (r == 0 && !ret->count)
                r = error_set(error, -ENOENT,
                        "there is no schedule %s; quiver schedule list names those that there are", name);
        return r;
}

/* Versions grow with time, so that what was set last wins, whoever set it. */
static uint64_t next_version(const struct kept_schedules *known)
{
        uint64_t version = clock_wall_ms();
        for (uint32_t i = 0; i < known->count; i++)
                if (known->list[i].stored.version >= version)
                        version = known->list[i].stored.version + 1;
        return version;
}

/* One whose key has changed stands in another shard: the old record goes. */
static int remove_elsewhere(
        struct cli_store *s, const struct kept_schedules *known, uint32_t shard, uint64_t version, struct error *error)
{
        for (uint32_t i = 0; i < known->count; i++) {
                if (known->list[i].shard == shard)
                        continue;
                struct store_schedule_set set = { .verb = SCHEDULE_DELETE,
                        .shard = known->list[i].shard,
                        .name = known->list[i].stored.name,
                        .version = version };
                int r = client_schedule_set(s->client, &set, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int set_schedule(struct cli_store *s, const struct schedule_request *q, const struct schedule *schedule)
{
        struct error error = { "" };
        struct kept_schedules known = { 0 };
        struct span name = span_of_text(q->name);
        char *definition = schedule_text(schedule);
        struct store_schedule_set set = { .verb = SCHEDULE_PUT,
                .shard = shard_of_key(schedule_key(schedule, name), s->info->shards),
                .name = name,
                .definition = span_of_text(definition),
                .next_ms = schedule_next_ms(schedule, name, clock_wall_ms(), 0) };
        if (set.next_ms == SCHEDULE_NEVER)
                set.next_ms = STORE_NEVER;
        int r = client_schedules(s->client, s->info->shards, q->name, &known, &error);
        set.version = next_version(&known);
        if (r == 0)
                r = client_schedule_set(s->client, &set, &error);
        if (r == 0)
                r = remove_elsewhere(s, &known, set.shard, set.version, &error);
        kept_schedules_free(&known);
        free(definition);
        if (r < 0)
                return fail(s, r, &error);
        int code = EXIT_DONE;
        r = find(s, q->name, &known, &error);
        if (r == 0)
                code = schedule_show(s, &known.list[0], q->times, q->has_json);
        kept_schedules_free(&known);
        return r < 0 ? fail(s, r, &error) : code;
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
        int code = set_schedule(s, q, &schedule);
        schedule_free(&schedule);
        return code;
}

static int verb_list(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct kept_schedules kept;
        int r = client_schedules(s->client, s->info->shards, NULL, &kept, &error);
        if (r < 0)
                return fail(s, r, &error);
        for (uint32_t i = 0; q->has_json && i < kept.count; i++)
                cli_json_print(schedule_as_json(&kept.list[i].stored, kept.list[i].shard));
        if (!q->has_json && kept.count)
                schedules_show(&kept);
        if (!q->has_json && !kept.count)
                (void)printf("there is no schedule; make one: quiver schedule set NAME --cron '0 3 * * *' --handler "
                             "HANDLER\n");
        if (kept.unreadable)
                (void)fprintf(stderr, "quiver schedule: %" PRIu32 " records cannot be read; quiver fsck names them\n",
                        kept.unreadable);
        kept_schedules_free(&kept);
        return EXIT_DONE;
}

static int verb_show(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct kept_schedules kept;
        int r = find(s, q->name, &kept, &error);
        if (r < 0)
                return fail(s, r, &error);
        int code = schedule_show(s, &kept.list[0], q->times, q->has_json);
        kept_schedules_free(&kept);
        return code;
}

/* From when on it fires again: a time that passed meanwhile is not caught up. */
static int resume_time(const struct store_schedule *stored, uint64_t *ret_ms, struct error *error)
{
        struct schedule schedule;
        int r = schedule_parse(&schedule, stored->definition, error);
        if (r < 0)
                return r;
        r = schedule_read_zone(&schedule, error);
        if (r == 0)
                *ret_ms = schedule_next_ms(&schedule, stored->name, clock_wall_ms(), stored->fired);
        if (*ret_ms == SCHEDULE_NEVER)
                *ret_ms = STORE_NEVER;
        schedule_free(&schedule);
        return r;
}

static int change(
        struct cli_store *s, const struct schedule_request *q, enum store_schedule_verb verb, const char *done)
{
        struct error error = { "" };
        struct kept_schedules kept;
        int r = find(s, q->name, &kept, &error);
        if (r < 0)
                return fail(s, r, &error);
        const struct kept_schedule *one = &kept.list[0];
        struct store_schedule_set set = {
                .verb = verb, .shard = one->shard, .name = one->stored.name, .version = one->stored.version + 1
        };
        if (verb == SCHEDULE_RESUME)
                r = resume_time(&one->stored, &set.next_ms, &error);
        if (r == 0)
                r = client_schedule_set(s->client, &set, &error);
        if (r == 0 && q->has_json)
                cli_json_print(json_pack("{s:s, s:b}", "name", q->name, "changed", set.change == SCHEDULE_CHANGED));
        else if (r == 0)
                (void)printf(
                        "schedule %s %s%s\n", q->name, set.change == SCHEDULE_SAME ? "was so already: it " : "", done);
        kept_schedules_free(&kept);
        return r < 0 ? fail(s, r, &error) : EXIT_DONE;
}

static int verb_pause(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_PAUSE, "is paused; go on: quiver schedule resume");
}

static int verb_resume(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_RESUME, "goes on");
}

static int verb_delete(struct cli_store *s, struct schedule_request *q)
{
        return change(s, q, SCHEDULE_DELETE, "is deleted");
}

/* Submits the task of one time.  Under a name of its own, so that a repeat submits nothing twice. */
static int submit_time(struct cli_store *s, const struct schedule *schedule, const char *name, uint64_t at_ms,
        char id[QV_CLIENT_ID_SIZE])
{
        static const int lanes[] = { [LANE_HIGH] = 1, [LANE_NORMAL] = 0, [LANE_LOW] = -1 };
        char once[STORE_SCHEDULE_NAME_MAX + 32];
        struct qv_client_task task = QV_CLIENT_TASK_INIT;
        (void)snprintf(once, sizeof(once), "%s.%" PRIu64, name, at_ms / 1000);
        task.handler = schedule->handler;
        task.key = schedule->overlap == OVERLAP_ALLOW ? NULL : schedule->key ? schedule->key : name;
        task.lane = lanes[schedule->lane];
        task.payload = schedule->payload.data;
        task.payload_size = schedule->payload.size;
        task.idempotency_key = at_ms ? once : NULL;
        return qv_client_submit(s->client, &task, id);
}

static int read_schedule(struct cli_store *s, const char *name, struct schedule *ret, struct error *error)
{
        struct kept_schedules kept;
        int r = find(s, name, &kept, error);
        if (r < 0)
                return r;
        r = schedule_parse(ret, kept.list[0].stored.definition, error);
        if (r == 0 && (r = schedule_read_zone(ret, error)) < 0)
                schedule_free(ret);
        kept_schedules_free(&kept);
        return r;
}

static int verb_run(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct schedule schedule;
        char id[QV_CLIENT_ID_SIZE];
        int r = read_schedule(s, q->name, &schedule, &error);
        if (r < 0)
                return fail(s, r, &error);
        r = submit_time(s, &schedule, q->name, 0, id);
        schedule_free(&schedule);
        if (r < 0)
                return cli_fail(s->command, r, qv_client_error());
        (void)printf("%s\n", id);
        return EXIT_DONE;
}

static int verb_backfill(struct cli_store *s, struct schedule_request *q)
{
        struct error error = { "" };
        struct schedule schedule;
        uint64_t from_ms, to_ms, count = 0;
        char id[QV_CLIENT_ID_SIZE];
        int r = read_schedule(s, q->name, &schedule, &error);
        if (r < 0)
                return fail(s, r, &error);
        r = time_parse(q->from, &schedule.zone, &from_ms, &error);
        if (r == 0)
                r = time_parse(q->to, &schedule.zone, &to_ms, &error);
        if (r == 0 && to_ms > clock_wall_ms())
                r = error_set(&error, -EINVAL, "--to: is not in the past; times to come fire by themselves");
        for (uint64_t at = from_ms - min_u64(from_ms, 1); r == 0 && count < BACKFILL_MAX;) {
                at = schedule_next_ms(&schedule, span_of_text(q->name), at, 0);
                if (at >= to_ms)
                        break;
                count++;
                r = q->is_dry ? 0 : submit_time(s, &schedule, q->name, at, id);
                if (r < 0)
                        (void)error_set(&error, r, "%s; after %" PRIu64 " tasks; it may be repeated", qv_client_error(),
                                count - 1);
        }
        schedule_free(&schedule);
        if (r < 0)
                return fail(s, r, &error);
        (void)printf("%" PRIu64 " task%s%s\n", count, text_plural(count),
                q->is_dry ? " would be submitted" : " submitted; each time once, also if this is repeated");
        return EXIT_DONE;
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
        if (q->has_json) {
                cli_json_print(schedule_times_as_json(&schedule, span_of_text(""), after_ms, 0, q->times));
        } else {
                struct buffer text = { 0 };
                schedule_put_times(&text, &schedule, span_of_text(""), after_ms, 0, q->times);
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
        if (q->name &&
                (strlen(q->name) > STORE_SCHEDULE_NAME_MAX || task_handler_check(span_of_text(q->name), error) < 0))
                return error_set(error, -EINVAL,
                        "%s: a name of a schedule has at most %u letters, digits, _ and -, and begins with a letter",
                        q->name, STORE_SCHEDULE_NAME_MAX);
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
        struct schedule_request q = { .catchup_ms = CATCHUP_FOR_MS, .times = TIMES_SHOWN };
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
                OPT_NUMBER("-n, --times N", &q.times, 1, 1000, "how many times are shown (default: 10)"),
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
