/* Any definition of a schedule, as a store may hold it or somebody may send it, with any time zone: what is accepted is
 * written and read again as the same, its times ascend and come to an end, and what is missed is dealt with. */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "choices.h"
#include "schedule/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TIMES 8u

/* --- definitions -------------------------------------------------------------------------------------------------- */

static void put_field(struct buffer *b, struct choices *c)
{
        static const char *const words[] = { "*", "0", "1", "5", "23", "59", "31", "12", "7", "*/7", "1-5", "mon-fri",
                "jan", "L", "1,2,30", "60", "5-1", "*/0", "sun", "29", "feb" };
        buffer_printf(b, "%s", words[choose(c, sizeof(words) / sizeof(words[0]))]);
}

static void put_pattern(struct buffer *b, struct choices *c)
{
        static const char *const names[] = { "@daily", "@hourly", "@yearly", "@never", "0 0 29 2 *", "30 2 * * *" };
        unsigned which = choose(c, 12);
        if (which < 6) {
                buffer_printf(b, "%s", names[which]);
                return;
        }
        for (unsigned i = 0, count = choose(c, 16) ? 5 : choose(c, 8); i < count; i++) {
                buffer_printf(b, "%s", i ? " " : "");
                put_field(b, c);
        }
}

static void put_member(struct buffer *b, struct choices *c)
{
        static const char *const others[] = { "\"overlap\":\"queue-one\"", "\"overlap\":\"allow\"",
                "\"catchup\":\"all\"", "\"catchup\":\"none\"", "\"key\":\"k\"", "\"payload\":\"x\"",
                "\"payload_base64\":\"AAE=\"", "\"lane\":\"high\"", "\"zone\":\"Europe/Berlin\"", "\"zone\":\"../x\"",
                "\"unknown\":1", "\"from\":\"file\"", "\"runs_max\":3", "\"start_ms\":1763256000000",
                "\"end_ms\":1763256600000" };
        static const char *const numbers[] = { "every_ms", "at_ms", "catchup_ms", "jitter_ms", "start_ms", "end_ms",
                "runs_max" };
        buffer_printf(b, ",");
        if (choose(c, 2))
                buffer_printf(b, "%s", others[choose(c, sizeof(others) / sizeof(others[0]))]);
        else
                buffer_printf(b, "\"%s\":%" PRId64, numbers[choose(c, 7)], (int64_t)choose_number(c));
}

static void put_definition(struct buffer *b, struct choices *c)
{
        buffer_printf(b, "{\"handler\":\"mail\",");
        switch (choose(c, 4)) {
        case 0:
                buffer_printf(b, "\"every_ms\":%" PRIu64, choose(c, 2) ? choose_number(c) : 1000 + choose_byte(c));
                break;
        case 1:
                buffer_printf(b, "\"at_ms\":%" PRIu64, choose_number(c));
                break;
        default:
                buffer_printf(b, "\"cron\":\"");
                put_pattern(b, c);
                buffer_printf(b, "\"");
        }
        for (unsigned i = choose(c, 5); i; i--)
                put_member(b, c);
        buffer_printf(b, "}");
}

/* --- zones -------------------------------------------------------------------------------------------------------- */

static void put_be(struct buffer *b, uint64_t value, unsigned bytes)
{
        while (bytes--) {
                char byte = (char)(bytes < 8 ? value >> (8 * bytes) : 0);
                buffer_put(b, &byte, 1);
        }
}

static void put_zone_part(struct buffer *b, struct choices *c, unsigned wide)
{
        unsigned types = 1 + choose(c, 3), changes = choose(c, 8) ? choose(c, 6) : choose_byte(c);
        uint64_t at = choose(c, 2) ? 0 : choose_number(c);
        buffer_put(b, "TZif", 4);
        buffer_put(b, choose(c, 8) ? "2" : "\0", 1);
        put_be(b, 0, 15);
        put_be(b, 0, 4);
        put_be(b, 0, 4);
        put_be(b, choose(c, 16) ? 0 : choose_number(c), 4);
        put_be(b, choose(c, 16) ? changes : choose_number(c), 4);
        put_be(b, choose(c, 16) ? types : choose_number(c), 4);
        put_be(b, 4, 4);
        for (unsigned i = 0; i < changes; i++)
                put_be(b, at += choose_byte(c) * UINT64_C(100000), wide);
        for (unsigned i = 0; i < changes; i++)
                put_be(b, choose(c, types + (choose(c, 16) ? 0 : 1)), 1);
        for (unsigned i = 0; i < types; i++) {
                put_be(b, choose(c, 2) ? choose_byte(c) * 900u : choose_number(c), 4);
                put_be(b, choose(c, 2), 1);
                put_be(b, 0, 1);
        }
        buffer_put(b, "CET", 4);
}

static void put_zone(struct buffer *b, struct choices *c)
{
        static const char *const rules[] = { "CET-1CEST,M3.5.0,M10.5.0/3", "UTC0", "<+03>-3", "A-24B,J1/-167,J365/167",
                "EST5EDT,0,365", "X", "", "CET-1CEST,M13.6.7,M0.0.0", "IST-2IDT,M3.4.4/26,M10.5.0", "A25" };
        put_zone_part(b, c, 4);
        put_zone_part(b, c, 8);
        buffer_printf(b, "\n%s\n", rules[choose(c, sizeof(rules) / sizeof(rules[0]))]);
        if (!choose(c, 8) && b->size)
                b->data[choose_number(c) % b->size] = choose_byte(c);
}

/* --- what is made of them ----------------------------------------------------------------------------------------- */

static void take_zone(struct schedule *s, struct choices *c)
{
        struct buffer bytes = { 0 };
        struct error error = { "" };
        bool is_raw = !choose(c, 8);
        if (!is_raw)
                put_zone(&bytes, c);
        struct span text = is_raw ? (struct span){ (const char *)c->data, c->size }
                                  : (struct span){ (const char *)bytes.data, bytes.size };
        if (zone_parse(&s->zone, "Fuzz/Here", text, &error) < 0)
                demand(error.text[0]);
        buffer_free(&bytes);
}

static void check_times(const struct schedule *s, uint64_t after_ms)
{
        uint64_t times[TIMES];
        uint32_t count = schedule_times(s, SPAN_TEXT("nightly"), after_ms, 0, TIMES, times);
        demand(count <= TIMES);
        for (uint32_t i = 0; i < count; i++)
                demand(times[i] > (i ? times[i - 1] : after_ms) && times[i] != SCHEDULE_NEVER);
        json_decref(schedule_times_as_json(times, count));
}

static void check_plan(const struct schedule *s, struct choices *c)
{
        struct schedule_plan plan;
        uint64_t expected_ms = choose(c, 2) ? UINT64_C(1763256000000) : choose_number(c);
        uint64_t now_ms = expected_ms + (choose(c, 2) ? choose_number(c) : choose_byte(c) * UINT64_C(60000));
        if (now_ms < expected_ms || now_ms > TASK_NUMBER_MAX)
                return;
        schedule_plan(s, SPAN_TEXT("nightly"), expected_ms, choose(c, 4), now_ms, &plan);
        demand(plan.next_ms > expected_ms && plan.passed <= SCHEDULE_COUNT_MAX);
}

static void check_text(const struct schedule *s)
{
        struct schedule again;
        struct error error = { "" };
        char *text = schedule_text(s);
        demand(schedule_parse(&again, span_of_text(text), &error) == 0);
        char *second = schedule_text(&again);
        demand(!strcmp(text, second));
        free(second);
        free(text);
        schedule_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        struct buffer text = { 0 };
        struct schedule s;
        struct error error = { "" };
        bool is_raw = !choose(&c, 8);
        if (!is_raw)
                put_definition(&text, &c);
        struct span definition = is_raw ? (struct span){ (const char *)c.data, c.size }
                                        : (struct span){ (const char *)text.data, text.size };
        struct store_schedule stored = { .name = SPAN_TEXT("nightly"), .definition = definition };
        json_decref(schedule_as_json(&stored, 1));
        if (schedule_parse_new(&s, definition, &error) == 0)
                schedule_free(&s);
        else
                demand(error.text[0]);
        error.text[0] = 0;
        if (schedule_parse(&s, definition, &error) == 0) {
                check_text(&s);
                take_zone(&s, &c);
                check_times(&s, UINT64_C(1763256000000));
                check_times(&s, choose_number(&c) % TASK_NUMBER_MAX);
                check_plan(&s, &c);
                schedule_free(&s);
        } else {
                demand(error.text[0]);
        }
        buffer_free(&text);
        return 0;
}
