#include "cli/schedule/schedule_show.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/print.h"
#include "schedule/time_text.h"
#include "view/table.h"
#include "view/text.h"

static const char *const states[] = { "active", "paused", "deleted" };

void schedule_put_times(
        struct buffer *to, const struct schedule *schedule, const uint64_t *times, uint32_t count, uint32_t asked)
{
        static const struct zone utc = { .name = "UTC" };
        for (uint32_t i = 0; i < count; i++) {
                buffer_printf(to, "  ");
                time_put(to, times[i], &schedule->zone);
                if (schedule->zone_name[0]) {
                        buffer_printf(to, "   ");
                        time_put(to, times[i], &utc);
                }
                buffer_printf(to, "\n");
        }
        if (count < asked)
                buffer_printf(to, count ? "  and no more\n" : "  never again\n");
}

void schedule_put_when(struct buffer *to, const struct schedule *schedule)
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

/* `schedule` NULL: its definition cannot be read. */
static void put_one(struct buffer *text, const struct store_schedule *stored, const struct schedule *schedule,
        uint64_t now_ms, uint32_t asked)
{
        char age[UNITS_TEXT_MAX];
        uint64_t times[SCHEDULE_TIMES_MAX];
        text_put_between(text, "schedule  ", stored->name.data, "");
        buffer_printf(text, ", %s, version %" PRIu64 "\n", states[stored->state], stored->version);
        if (schedule) {
                buffer_printf(text, "when      ");
                schedule_put_when(text, schedule);
                buffer_printf(text, "\ntask      ");
                text_put_between(text, "", schedule->handler, ", key ");
                text_put_bytes(text, schedule_key(schedule, stored->name), TASK_KEY_MAX);
                buffer_printf(text, ", %zu bytes\noverlap   %s; missed times: %s\nset by    %s\n",
                        schedule->payload.size, schedule_overlaps[schedule->overlap],
                        schedule_catchups[schedule->catchup],
                        schedule_is_of_file(schedule) ? "a configuration" : "command");
        }
        buffer_printf(text, "fired     %" PRIu64 ", skipped %" PRIu64, stored->fired, stored->skipped);
        if (stored->last_ms)
                buffer_printf(text, ", last %s ago", units_format_ms(age, now_ms - min_u64(now_ms, stored->last_ms)));
        buffer_printf(text, "\n");
        if (schedule && stored->state == SCHEDULE_ACTIVE) {
                buffer_printf(text, "next\n");
                schedule_put_times(
                        text, schedule, times, schedule_stored_times(schedule, stored, now_ms, asked, times), asked);
        }
}

int schedule_show(
        struct cli_store *s, const struct store_schedule *stored, uint32_t shard, uint32_t times, bool has_json)
{
        struct schedule schedule = { 0 };
        struct error error = { "" };
        int r = schedule_read(stored, &schedule, &error);
        uint64_t now_ms = clock_wall_ms();
        if (has_json) {
                cli_json_print(schedule_as_json_with_times(stored, shard, now_ms, times));
        } else {
                struct buffer text = { 0 };
                put_one(&text, stored, r == 0 ? &schedule : NULL, now_ms, times);
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
                schedule_put_when(&when, &schedule);
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
        table_put_text(table, TONE_PLAIN, schedule_is_of_file(&schedule) ? "file" : "command");
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
        table_text_column(&table, "set by", 0);
        table_text_column(&table, "next", 0);
        table_number_column(&table, "fired");
        table_number_column(&table, "skipped");
        for (uint32_t i = 0; i < kept->count; i++)
                put_row(&table, &kept->list[i], clock_wall_ms());
        table_print(&table, &text);
        cli_text_print(&text);
        table_free(&table);
}
