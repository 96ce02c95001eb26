#include "schedule/record.h"

#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "schedule/time_text.h"
#include "view/json.h"

int schedule_name_check(const char *name, struct error *error)
{
        if (strlen(name) <= STORE_SCHEDULE_NAME_MAX && task_handler_check(span_of_text(name), error) == 0)
                return 0;
        return error_set(error, -EINVAL,
                "%s: a name of a schedule has at most %u letters, digits, _ and -, and begins with a letter", name,
                STORE_SCHEDULE_NAME_MAX);
}

static void put_definition(json_t *to, struct span definition)
{
        json_t *object =
                json_loadb(definition.size ? definition.data : "", definition.size, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(object)) {
                (void)json_object_set_new(to, "definition", object);
                return;
        }
        json_decref(object);
        view_json_span(to, "definition", definition);
}

json_t *schedule_as_json(const struct store_schedule *stored, uint32_t shard)
{
        static const char *const states[] = { "active", "paused", "deleted" };
        json_t *o = json_object();
        view_json_span(o, "name", stored->name);
        view_json_set_text(o, "state", states[stored->state]);
        view_json_number(o, "shard", shard);
        view_json_number(o, "version", stored->version);
        if (stored->next_ms != STORE_NEVER)
                view_json_number(o, "next_ms", stored->next_ms);
        if (stored->last_ms)
                view_json_number(o, "last_ms", stored->last_ms);
        view_json_number(o, "fired", stored->fired);
        view_json_number(o, "skipped", stored->skipped);
        put_definition(o, stored->definition);
        return o;
}

int schedule_read(const struct store_schedule *stored, struct schedule *ret, struct error *error)
{
        struct schedule schedule;
        int r = schedule_parse(&schedule, stored->definition, error);
        if (r < 0)
                return r;
        r = schedule_read_zone(&schedule, error);
        if (r < 0)
                schedule_free(&schedule);
        else
                *ret = schedule;
        return r;
}

uint32_t schedule_times(const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired,
        uint32_t count, uint64_t *ret_times)
{
        uint32_t found = 0;
        while (found < count &&
                (after_ms = schedule_next_ms(schedule, name, after_ms, fired + found)) != SCHEDULE_NEVER)
                ret_times[found++] = after_ms;
        return found;
}

json_t *schedule_times_as_json(const uint64_t *times, uint32_t count)
{
        json_t *list = json_array();
        for (uint32_t i = 0; i < count; i++)
                (void)json_array_append_new(list, json_integer((json_int_t)times[i]));
        return list;
}

uint32_t schedule_stored_times(const struct schedule *schedule, const struct store_schedule *stored, uint64_t now_ms,
        uint32_t count, uint64_t *ret_times)
{
        if (stored->state != SCHEDULE_ACTIVE || stored->next_ms == STORE_NEVER || !count)
                return 0;
        ret_times[0] = stored->next_ms;
        return 1 + schedule_times(schedule, stored->name, max_u64(stored->next_ms, now_ms), stored->fired + 1,
                           count - 1, ret_times + 1);
}

static json_t *local_times(const uint64_t *times, uint32_t count, const struct zone *zone)
{
        json_t *texts = json_array();
        for (uint32_t i = 0; i < count; i++) {
                struct buffer text = { 0 };
                time_put(&text, times[i], zone);
                (void)json_array_append_new(texts, json_string(buffer_text(&text)));
                buffer_free(&text);
        }
        return texts;
}

json_t *schedule_as_json_with_times(
        const struct store_schedule *stored, uint32_t shard, uint64_t now_ms, uint32_t count)
{
        struct schedule schedule;
        struct error error = { "" };
        uint64_t times[SCHEDULE_TIMES_MAX];
        json_t *o = schedule_as_json(stored, shard);
        if (schedule_read(stored, &schedule, &error) < 0) {
                view_json_set_text(o, "error", error.text);
                return o;
        }
        uint32_t found =
                schedule_stored_times(&schedule, stored, now_ms, (uint32_t)min_u64(count, SCHEDULE_TIMES_MAX), times);
        (void)json_object_set_new(o, "times", schedule_times_as_json(times, found));
        (void)json_object_set_new(o, "local_times", local_times(times, found, &schedule.zone));
        const char *doubt = schedule.cron ? cron_doubt(&schedule.pattern) : NULL;
        if (doubt)
                view_json_set_text(o, "doubt", doubt);
        schedule_free(&schedule);
        return o;
}
