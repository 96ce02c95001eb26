#include "schedule/schedule.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "view/json.h"

#define EVERY_MIN_MS UINT64_C(1000)
#define YEAR_MS      (UINT64_C(366) * 86400 * 1000)
#define TIME_MAX_MS  UINT64_C(253402300799000) /* the end of the year 9999 */

const char *const schedule_overlaps[] = { "skip", "queue-one", "queue-all", "replace", "allow", NULL };
const char *const schedule_catchups[] = { "last", "all", "none", NULL };

/* --- reading and writing --- */

struct definition {
        json_t *object;
        struct error *error;
        int status;
};

static void refuse(struct definition *d, const char *field, const char *what)
{
        if (!d->status)
                d->status = error_set(d->error, -EINVAL, "%s: %s", field, what);
}

static char *take_text(struct definition *d, const char *field)
{
        json_t *value = json_object_get(d->object, field);
        if (value && (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)))
                refuse(d, field, "is no text");
        return json_is_string(value) ? text_copy(json_string_value(value)) : NULL;
}

static uint64_t take_number(struct definition *d, const char *field, uint64_t most)
{
        json_t *value = json_object_get(d->object, field);
        if (!value)
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most) {
                refuse(d, field, "is no number in its range");
                return 0;
        }
        return (uint64_t)json_integer_value(value);
}

static int take_choice(struct definition *d, const char *field, const char *const *words)
{
        json_t *value = json_object_get(d->object, field);
        struct span text = { json_string_value(value), json_string_length(value) };
        if (!value)
                return 0;
        for (int i = 0; text.data && words[i]; i++)
                if (span_is(text, span_of_text(words[i])))
                        return i;
        refuse(d, field, "is not one of the words that are known");
        return 0;
}

static void take_payload(struct definition *d, struct schedule *schedule)
{
        const json_t *text = json_object_get(d->object, "payload");
        const json_t *packed = json_object_get(d->object, "payload_base64");
        struct buffer bytes = { 0 };
        if (text && !json_is_string(text))
                refuse(d, "payload", "is no text");
        else if (text)
                buffer_put(&bytes, json_string_value(text), json_string_length(text));
        else if (packed && (!json_is_string(packed) ||
                                   view_base64_decode(json_string_value(packed), json_string_length(packed), &bytes)))
                refuse(d, "payload_base64", "is no base64");
        schedule->payload = (struct span){ (const char *)bytes.data, bytes.size };
}

int schedule_parse(struct schedule *schedule, struct span definition, struct error *error)
{
        struct definition d = { .object = json_loadb(definition.size ? definition.data : "", definition.size,
                                        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL),
                .error = error };
        struct schedule made = { 0 };
        if (!json_is_object(d.object)) {
                json_decref(d.object);
                return error_set(error, -EINVAL, "the definition is no JSON object");
        }
        char *zone = take_text(&d, "zone");
        char *lane = take_text(&d, "lane");
        made.cron = take_text(&d, "cron");
        made.every_ms = take_number(&d, "every_ms", YEAR_MS);
        made.at_ms = take_number(&d, "at_ms", TIME_MAX_MS);
        made.overlap = (enum schedule_overlap)take_choice(&d, "overlap", schedule_overlaps);
        made.catchup = (enum schedule_catchup)take_choice(&d, "catchup", schedule_catchups);
        made.catchup_ms = take_number(&d, "catchup_ms", YEAR_MS);
        made.jitter_ms = take_number(&d, "jitter_ms", YEAR_MS);
        made.start_ms = take_number(&d, "start_ms", TIME_MAX_MS);
        made.end_ms = take_number(&d, "end_ms", TIME_MAX_MS);
        made.runs_max = take_number(&d, "runs_max", INT64_MAX);
        made.handler = take_text(&d, "handler");
        made.key = take_text(&d, "key");
        made.from = take_text(&d, "from");
        made.lane = LANE_NORMAL;
        /* Times are whole seconds. */
        made.at_ms -= made.at_ms % 1000;
        made.start_ms -= made.start_ms % 1000;
        take_payload(&d, &made);
        if (zone && strlen(zone) > ZONE_NAME_MAX)
                refuse(&d, "zone", "is too long");
        else if (zone)
                memcpy(made.zone_name, zone, strlen(zone));
        if (lane && !lane_parse(span_of_text(lane), &made.lane))
                refuse(&d, "lane", "is not high, normal or low");
        free(zone);
        free(lane);
        json_decref(d.object);
        if (!d.status)
                d.status = schedule_check(&made, error);
        if (d.status)
                schedule_free(&made);
        else
                *schedule = made;
        return d.status;
}

int schedule_parse_new(struct schedule *schedule, struct span definition, struct error *error)
{
        static const char *const known[] = { "cron", "zone", "every_ms", "at_ms", "overlap", "catchup", "catchup_ms",
                "jitter_ms", "start_ms", "end_ms", "runs_max", "handler", "key", "lane", "payload", "payload_base64",
                "from" };
        const char *name;
        json_t *value, *object = json_loadb(
                               definition.size ? definition.data : "", definition.size, JSON_REJECT_DUPLICATES, NULL);
        int r = 0;
        json_object_foreach(object, name, value)
        {
                size_t i = 0;
                while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i], name) != 0)
                        i++;
                if (i == sizeof(known) / sizeof(known[0]) && r == 0)
                        r = error_set(error, -EINVAL, "%s: a schedule has no such field", name);
        }
        if (json_is_object(object) && !json_object_get(object, "catchup_ms"))
                (void)json_object_set_new(object, "catchup_ms", json_integer(SCHEDULE_CATCHUP_MS));
        (void)json_object_set_new(object, "from", json_string("command"));
        char *text = json_is_object(object) ? json_dumps(object, JSON_COMPACT) : NULL;
        json_decref(object);
        if (r == 0)
                r = schedule_parse(schedule, span_of_text(text ? text : ""), error);
        free(text);
        return r;
}

bool schedule_is_of_file(const struct schedule *schedule)
{
        return schedule->from && !strcmp(schedule->from, "file");
}

int schedule_check(struct schedule *schedule, struct error *error)
{
        int ways = (schedule->cron != NULL) + (schedule->every_ms > 0) + (schedule->at_ms > 0);
        if (ways != 1)
                return error_set(error, -EINVAL, "say when: one of cron, every and at");
        if (schedule->every_ms && schedule->every_ms < EVERY_MIN_MS)
                return error_set(error, -EINVAL, "every: at least a second");
        if (!schedule->handler)
                return error_set(error, -EINVAL, "handler: is missing");
        int r = task_handler_check(span_of_text(schedule->handler), error);
        if (r == 0 && schedule->key)
                r = task_key_check(span_of_text(schedule->key), error);
        if (r == 0 && schedule->overlap == OVERLAP_ALLOW && schedule->key)
                r = error_set(
                        error, -EINVAL, "key: tasks of one key never overlap; leave it out, or choose another overlap");
        if (r == 0 && schedule->zone_name[0] && !zone_name_is_good(schedule->zone_name))
                r = error_set(error, -EINVAL, "zone: %s is no name of a time zone", schedule->zone_name);
        if (r == 0 && schedule->cron)
                r = cron_parse(&schedule->pattern, schedule->cron, error);
        if (r == 0 && schedule->end_ms && schedule->end_ms <= schedule->start_ms)
                r = error_set(error, -EINVAL, "end: is not after the start");
        return r;
}

static void put_text(json_t *o, const char *name, const char *text)
{
        if (text && *text)
                (void)json_object_set_new(o, name, json_string(text));
}

static void put_number(json_t *o, const char *name, uint64_t number)
{
        if (number)
                (void)json_object_set_new(o, name, json_integer((json_int_t)number));
}

char *schedule_text(const struct schedule *schedule)
{
        json_t *o = json_object();
        put_text(o, "cron", schedule->cron);
        put_text(o, "zone", schedule->zone_name);
        put_number(o, "every_ms", schedule->every_ms);
        put_number(o, "at_ms", schedule->at_ms);
        put_text(o, "overlap", schedule_overlaps[schedule->overlap]);
        put_text(o, "catchup", schedule_catchups[schedule->catchup]);
        put_number(o, "catchup_ms", schedule->catchup_ms);
        put_number(o, "jitter_ms", schedule->jitter_ms);
        put_number(o, "start_ms", schedule->start_ms);
        put_number(o, "end_ms", schedule->end_ms);
        put_number(o, "runs_max", schedule->runs_max);
        put_text(o, "handler", schedule->handler);
        put_text(o, "key", schedule->key);
        put_text(o, "lane", schedule->lane == LANE_NORMAL ? NULL : lane_name(schedule->lane));
        put_text(o, "from", schedule->from);
        if (schedule->payload.size)
                view_json_span(o, "payload", schedule->payload);
        char *text = memory_or_abort(json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS));
        json_decref(o);
        return text;
}

void schedule_free(struct schedule *schedule)
{
        if (!schedule)
                return;
        zone_free(&schedule->zone);
        free(schedule->cron);
        free(schedule->handler);
        free(schedule->key);
        free(schedule->from);
        free((char *)schedule->payload.data);
        *schedule = (struct schedule){ 0 };
}

int schedule_read_zone(struct schedule *schedule, struct error *error)
{
        return zone_read(&schedule->zone, schedule->zone_name, error);
}

struct span schedule_key(const struct schedule *schedule, struct span name)
{
        return schedule->key ? span_of_text(schedule->key) : name;
}

/* --- times --- */

/* In whole seconds, like the times themselves. */
static uint64_t jitter_of(const struct schedule *schedule, struct span name)
{
        uint64_t seconds = schedule->jitter_ms / 1000;
        if (!seconds)
                return 0;
        return crc32(0, (const unsigned char *)name.data, (unsigned)name.size) % (seconds + 1) * 1000;
}

/* The next time, ignoring jitter and end. */
static uint64_t next_plain(const struct schedule *schedule, uint64_t after_ms)
{
        if (schedule->at_ms)
                return schedule->at_ms > after_ms ? schedule->at_ms : SCHEDULE_NEVER;
        if (schedule->start_ms && after_ms < schedule->start_ms)
                after_ms = schedule->start_ms - 1;
        if (schedule->every_ms) {
                uint64_t first = schedule->start_ms, every = schedule->every_ms / 1000 * 1000;
                return first + (after_ms < first ? 0 : (after_ms - first) / every + 1) * every;
        }
        int64_t next = cron_next(&schedule->pattern, &schedule->zone, (int64_t)(after_ms / 1000));
        return next == CRON_NEVER || next < 0 ? SCHEDULE_NEVER : (uint64_t)next * 1000;
}

uint64_t schedule_next_ms(const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired)
{
        uint64_t jitter = jitter_of(schedule, name);
        if (schedule->runs_max && fired >= schedule->runs_max)
                return SCHEDULE_NEVER;
        uint64_t next = next_plain(schedule, after_ms - min_u64(after_ms, jitter));
        if (next == SCHEDULE_NEVER || next > TIME_MAX_MS || (schedule->end_ms && next >= schedule->end_ms))
                return SCHEDULE_NEVER;
        return next + jitter;
}

/* The latest time up to now; `expected_ms` is a time.  Binary search for the last moment whose next time has come,
 * because there may be a billion times in between: no host may have run for years, or the schedule ended long ago. */
static uint64_t latest_ms(
        const struct schedule *schedule, struct span name, uint64_t expected_ms, uint64_t fired, uint64_t now_ms)
{
        uint64_t latest = expected_ms, from = expected_ms, to = now_ms;
        while (from < to) {
                uint64_t middle = from + (to - from) / 2;
                uint64_t next = schedule_next_ms(schedule, name, middle, fired);
                if (next <= now_ms) {
                        latest = next;
                        from = max_u64(next, middle + 1);
                } else {
                        to = middle;
                }
        }
        return latest;
}

static uint32_t count_between(
        const struct schedule *schedule, struct span name, uint64_t from_ms, uint64_t to_ms, uint64_t fired)
{
        uint32_t count = 0;
        uint64_t at = from_ms;
        while (count < SCHEDULE_COUNT_MAX && (at = schedule_next_ms(schedule, name, at, fired)) < to_ms)
                count++;
        return count;
}

void schedule_plan(const struct schedule *schedule, struct span name, uint64_t expected_ms, uint64_t fired,
        uint64_t now_ms, struct schedule_plan *ret_plan)
{
        struct schedule_plan plan = { .has_task = true,
                .next_ms = schedule_next_ms(schedule, name, expected_ms, fired + 1) };
        uint64_t late_ms = now_ms - min_u64(now_ms, expected_ms);
        bool is_missed = late_ms > SCHEDULE_LATE_MS || plan.next_ms <= now_ms;
        if (is_missed) {
                bool is_too_old = late_ms > max_u64(schedule->catchup_ms, SCHEDULE_LATE_MS);
                uint64_t latest = latest_ms(schedule, name, expected_ms, fired, now_ms);
                uint64_t latest_late_ms = now_ms - latest;
                bool latest_fires = latest_late_ms <= SCHEDULE_LATE_MS ||
                                    (schedule->catchup != CATCHUP_NONE && latest_late_ms <= schedule->catchup_ms);
                bool fires = schedule->catchup == CATCHUP_ALL ? !is_too_old : latest == expected_ms && latest_fires;
                if (fires) {
                        plan.has_task = true;
                } else if (schedule->catchup == CATCHUP_ALL && latest_fires) {
                        /* Continues at the oldest time that is not too old. */
                        plan.has_task = false;
                        plan.next_ms = schedule_next_ms(
                                schedule, name, now_ms - max_u64(schedule->catchup_ms, SCHEDULE_LATE_MS) - 1, fired);
                } else {
                        plan.has_task = false;
                        plan.next_ms = latest_fires ? latest : schedule_next_ms(schedule, name, now_ms, fired);
                }
        }
        if (!plan.has_task)
                plan.passed = count_between(schedule, name, expected_ms, plan.next_ms, fired);
        *ret_plan = plan;
}
