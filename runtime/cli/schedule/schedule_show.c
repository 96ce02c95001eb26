#include "cli/schedule/schedule_show.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/print.h"
#include "schedule/time_text.h"
#include "view/records.h"
#include "view/table.h"
#include "view/text.h"

static const char *const states[] = { "active", "paused", "deleted" };

void schedule_put_times(struct buffer *to, const struct schedule *schedule, struct span name, uint64_t after_ms,
        uint64_t fired, uint32_t count)
{
        static const struct zone utc = { .name = "UTC" };
        for (uint32_t i = 0; i < count; i++) {
                after_ms = schedule_next_ms(schedule, name, after_ms, fired + i);
                if (after_ms == SCHEDULE_NEVER) {
                        buffer_printf(to, i ? "  and no more\n" : "  never again\n");
                        return;
                }
                buffer_printf(to, "  ");
                time_put(to, after_ms, &schedule->zone);
                if (schedule->zone_name[0]) {
                        buffer_printf(to, "   ");
                        time_put(to, after_ms, &utc);
                }
                buffer_printf(to, "\n");
        }
}

json_t *schedule_times_as_json(
        const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired, uint32_t count)
{
        json_t *times = json_array();
        for (uint32_t i = 0; i < count; i++) {
                after_ms = schedule_next_ms(schedule, name, after_ms, fired + i);
                if (after_ms == SCHEDULE_NEVER)
                        break;
                (void)json_array_append_new(times, json_integer((json_int_t)after_ms));
        }
        return times;
}

static void put_when(struct buffer *to, const struct schedule *schedule)
{
        char text[UNITS_TEXT_MAX];
        static const struct zone utc = { .name = "UTC" };
        if (schedule->cron)
                text_put_between(to, "", schedule->cron, "");
        else if (schedule->every_ms)
                buffer_printf(to, "every %s", units_format_ms(text, schedule->every_ms));
        else
                time_put(to, schedule->at_ms, schedule->zone_name[0] ? &schedule->zone : &utc);
        if (schedule->zone_name[0])
                text_put_between(to, " ", schedule->zone_name, "");
}

int schedule_show(struct cli_store *s, const struct kept_schedule *kept, uint32_t times, bool has_json)
{
        const struct store_schedule *stored = &kept->stored;
        struct schedule schedule = { 0 };
        struct error error = { "" };
        char age[UNITS_TEXT_MAX];
        int r = schedule_parse(&schedule, stored->definition, &error);
        if (r == 0)
                r = schedule_read_zone(&schedule, &error);
        uint64_t now_ms = clock_wall_ms();
        if (has_json) {
                json_t *o = schedule_as_json(stored, kept->shard);
                if (r == 0)
                        (void)json_object_set_new(o, "times",
                                schedule_times_as_json(&schedule, stored->name, now_ms, stored->fired, times));
                cli_json_print(o);
        } else {
                struct buffer text = { 0 };
                text_put_between(&text, "schedule  ", stored->name.data, "");
                buffer_printf(&text, ", %s, version %" PRIu64 "\n", states[stored->state], stored->version);
                if (r == 0) {
                        buffer_printf(&text, "when      ");
                        put_when(&text, &schedule);
                        buffer_printf(&text, "\ntask      ");
                        text_put_between(&text, "", schedule.handler, ", key ");
                        text_put_bytes(&text, schedule_key(&schedule, stored->name), TASK_KEY_MAX);
                        buffer_printf(&text, ", %zu bytes\noverlap   %s; missed times: %s\n", schedule.payload.size,
                                schedule_overlaps[schedule.overlap], schedule_catchups[schedule.catchup]);
                }
                buffer_printf(&text, "fired     %" PRIu64 ", skipped %" PRIu64, stored->fired, stored->skipped);
                if (stored->last_ms)
                        buffer_printf(&text, ", last %s ago",
                                units_format_ms(age, now_ms - min_u64(now_ms, stored->last_ms)));
                buffer_printf(&text, "\n");
                if (r == 0 && stored->state == SCHEDULE_ACTIVE) {
                        buffer_printf(&text, "next\n");
                        schedule_put_times(&text, &schedule, stored->name,
                                stored->next_ms == STORE_NEVER ? now_ms : stored->next_ms - 1, stored->fired, times);
                }
                cli_text_print(&text);
        }
        schedule_free(&schedule);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static void put_row(struct table *table, const struct kept_schedule *kept, uint64_t now_ms)
{
        struct schedule schedule = { 0 };
        struct error error = { "" };
        struct buffer when = { 0 }, next = { 0 };
        char text[UNITS_TEXT_MAX];
        const struct store_schedule *stored = &kept->stored;
        if (schedule_parse(&schedule, stored->definition, &error) == 0)
                put_when(&when, &schedule);
        else
                buffer_printf(&when, "%s", error.text);
        if (stored->next_ms == STORE_NEVER)
                buffer_printf(&next, "never");
        else if (stored->next_ms <= now_ms)
                buffer_printf(&next, "due");
        else
                buffer_printf(&next, "in %s", units_format_ms(text, stored->next_ms - now_ms));
        table_row(table);
        table_put(table, TONE_PLAIN, stored->name);
        table_put_text(table, stored->state == SCHEDULE_ACTIVE ? TONE_PLAIN : TONE_WARN, states[stored->state]);
        table_put_text(table, TONE_PLAIN, buffer_text(&when));
        table_put_text(table, TONE_PLAIN, schedule.handler ? schedule.handler : "");
        table_put_text(table, TONE_PLAIN, buffer_text(&next));
        table_put_number(table, TONE_PLAIN, stored->fired);
        table_put_number(table, TONE_PLAIN, stored->skipped);
        buffer_free(&when);
        buffer_free(&next);
        schedule_free(&schedule);
}

void schedules_show(const struct kept_schedules *kept)
{
        struct buffer text = { 0 };
        struct table table = { .has_color = cli_has_color() };
        table_text_column(&table, "schedule", 0);
        table_text_column(&table, "state", 0);
        table_text_column(&table, "when", 48);
        table_text_column(&table, "handler", 0);
        table_text_column(&table, "next", 0);
        table_number_column(&table, "fired");
        table_number_column(&table, "skipped");
        for (uint32_t i = 0; i < kept->count; i++)
                put_row(&table, &kept->list[i], clock_wall_ms());
        table_print(&table, &text);
        cli_text_print(&text);
        table_free(&table);
}
