#include "schedule/time_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/calendar.h"

struct time_reader {
        const char *at;
        bool is_bad;
};

static int take_digits(struct time_reader *r, int digits, int least, int most)
{
        int value = 0;
        for (int i = 0; i < digits; i++, r->at++) {
                if (*r->at < '0' || *r->at > '9') {
                        r->is_bad = true;
                        return least;
                }
                value = value * 10 + (*r->at - '0');
        }
        r->is_bad |= value < least || value > most;
        return value;
}

static bool take(struct time_reader *r, char c)
{
        if (*r->at != c)
                return false;
        r->at++;
        return true;
}

static void need(struct time_reader *r, char c)
{
        r->is_bad |= !take(r, c);
}

/* In seconds; false: none is given. */
static bool take_offset(struct time_reader *r, int64_t *ret)
{
        *ret = 0;
        if (take(r, 'Z') || take(r, 'z'))
                return true;
        bool is_negative = *r->at == '-';
        if (!is_negative && *r->at != '+')
                return false;
        r->at++;
        int hours = take_digits(r, 2, 0, 23);
        (void)take(r, ':');
        int minutes = take_digits(r, 2, 0, 59);
        *ret = (hours * 3600 + minutes * 60) * (is_negative ? -1 : 1);
        return true;
}

int time_parse(const char *text, const struct zone *zone, uint64_t *ret_ms, struct error *error)
{
        struct time_reader r = { .at = text };
        int64_t offset;
        int hour = 0, minute = 0, second = 0;
        int year = take_digits(&r, 4, 1970, 9999);
        need(&r, '-');
        int month = take_digits(&r, 2, 1, 12);
        need(&r, '-');
        int day = take_digits(&r, 2, 1, 31);
        if (!r.is_bad && day > calendar_month_days(year, month))
                return error_set(
                        error, -EINVAL, "%.40s: that month has %d days", text, calendar_month_days(year, month));
        if (!r.is_bad && (take(&r, 'T') || take(&r, 't') || take(&r, ' '))) {
                hour = take_digits(&r, 2, 0, 23);
                need(&r, ':');
                minute = take_digits(&r, 2, 0, 59);
                if (!r.is_bad && take(&r, ':'))
                        second = take_digits(&r, 2, 0, 59);
        }
        bool has_offset = !r.is_bad && take_offset(&r, &offset);
        if (r.is_bad || *r.at)
                return error_set(
                        error, -EINVAL, "%.40s: a time is written as 2026-12-01T03:00:00Z or 2026-12-01 03:00", text);
        int64_t local = calendar_days(year, month, day) * CALENDAR_DAY_S + hour * 3600 + minute * 60 + second;
        int64_t at = has_offset ? local - offset : zone_from_local(zone, local);
        if (at < 0)
                return error_set(error, -EINVAL, "%.40s: is before 1970", text);
        *ret_ms = (uint64_t)at * 1000;
        return 0;
}

void time_put(struct buffer *to, uint64_t ms, const struct zone *zone)
{
        int64_t until, year;
        int month, day;
        int64_t utc = (int64_t)(ms / 1000);
        int64_t offset = zone_offset(zone, utc, &until);
        int64_t days = calendar_day_of(utc + offset);
        int64_t rest = utc + offset - days * CALENDAR_DAY_S;
        calendar_date(days, &year, &month, &day);
        buffer_printf(to, "%04" PRId64 "-%02d-%02d %02d:%02d:%02d", year, month, day, (int)(rest / 3600),
                (int)(rest / 60 % 60), (int)(rest % 60));
        if (!strcmp(zone->name, "UTC") || !zone->name[0])
                buffer_printf(to, "Z");
        else
                buffer_printf(to, " %c%02d:%02d", offset < 0 ? '-' : '+', (int)(llabs(offset) / 3600),
                        (int)(llabs(offset) / 60 % 60));
}
