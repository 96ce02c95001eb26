/* Any document in the place of a host's last hour, nearly right more often than not.  What is taken has points in the
 * order of their times and numbers within their range, can be added to, and gives a document that is taken again. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "view/hour.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_number(struct buffer *b, struct choices *c)
{
        static const char *const odd[] = { "-1", "1e400", "1e15", "1e16", "0.5", "null", "\"7\"", "[]", "1e-300",
                "true" };
        if (choose(c, 8))
                buffer_printf(b, "%u", choose(c, 1000));
        else
                buffer_printf(b, "%s", odd[choose(c, sizeof(odd) / sizeof(odd[0]))]);
}

static void put_point(struct buffer *b, struct choices *c, uint64_t *at_ms)
{
        *at_ms += choose(c, 16) ? 1 + choose(c, 60000) : 0;
        buffer_printf(b, "[%" PRIu64, choose(c, 32) ? *at_ms : choose_number(c));
        for (unsigned n = choose(c, 32) ? HOUR_COLUMNS - 1 : choose(c, 20); n; n--) {
                buffer_printf(b, ",");
                put_number(b, c);
        }
        buffer_printf(b, "]");
}

static void put_document(struct buffer *b, struct choices *c)
{
        static const char *const names[] = { "host-a", "", "a b", "\\u0000", "x\\\"y" };
        uint64_t at_ms = choose(c, 4) ? UINT64_C(1763256000000) : choose_number(c) / 2;
        unsigned points = choose(c, 8) ? choose(c, 5) : choose(c, HOUR_POINTS + 3);
        buffer_printf(b, "{\"name\":\"%s\",\"points\":[", names[choose(c, 8) ? 0 : choose(c, 5)]);
        for (unsigned i = 0; i < points; i++) {
                buffer_printf(b, "%s", i ? "," : "");
                put_point(b, c, &at_ms);
        }
        buffer_printf(b, "]}");
        if (!choose(c, 8) && b->size)
                b->data[choose_number(c) % b->size] = choose_byte(c);
}

static void check_hour(const struct hour *hour)
{
        demand(hour->count <= HOUR_POINTS && strlen(hour->name) <= HOUR_NAME && *hour->name);
        for (uint32_t i = 0; i < hour->count; i++) {
                const struct hour_point *p = &hour->points[i];
                demand(!i || hour->points[i - 1].at_ms < p->at_ms);
                demand(p->at_ms <= TASK_NUMBER_MAX && p->done >= 0 && p->done <= 1e15 && isfinite(p->run_p99));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        struct buffer text = { 0 };
        struct hour hour;
        struct hour again;
        bool is_raw = !choose(&c, 8);
        if (!is_raw)
                put_document(&text, &c);
        struct span document = is_raw ? (struct span){ (const char *)c.data, c.size }
                                      : (struct span){ (const char *)text.data, text.size };
        if (hour_read(&hour, document) == 0) {
                check_hour(&hour);
                struct hour_point point = { .at_ms = 1 + choose_number(&c) % TASK_NUMBER_MAX, .seconds = 60 };
                hour_add(&hour, &point);
                check_hour(&hour);
                char *written = hour_document(&hour);
                demand(strlen(written) <= STORE_HISTORY_MAX && hour_read(&again, span_of_text(written)) == 0);
                demand(again.count == hour.count && !strcmp(again.name, hour.name));
                free(written);
        }
        struct store_status status = { .document = document };
        json_decref(hours_as_json(&status, 1));
        buffer_free(&text);
        return 0;
}
