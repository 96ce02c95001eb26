#include "base/timestamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_S 3600
#define DAY_S  86400
/* The last second of year 9999. */
#define TIME_MAX_S INT64_C(253402300799)

struct timestamp {
        struct tm tm; /* as written */
        unsigned ms;
        bool has_date, has_zone;
        int zone_s;
};

/* `digits` digits of a number in [min, max]. */
static bool take_number(const char **at, unsigned digits, int min, int max, int *ret)
{
        int value = 0;
        for (unsigned i = 0; i < digits; i++) {
                char c = (*at)[i];
                if (c < '0' || c > '9')
                        return false;
                value = value * 10 + (c - '0');
        }
        *at += digits;
        *ret = value;
        return value >= min && value <= max;
}

static bool take_char(const char **at, char c)
{
        if (**at != c)
                return false;
        ++*at;
        return true;
}

static bool take_date(const char **at, struct timestamp *t)
{
        static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        int year;
        int month;
        if (!take_number(at, 4, 1970, 9999, &year) || !take_char(at, '-') || !take_number(at, 2, 1, 12, &month) ||
                !take_char(at, '-') || !take_number(at, 2, 1, days[month - 1], &t->tm.tm_mday))
                return false;
        bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        t->tm.tm_year = year - 1900;
        t->tm.tm_mon = month - 1;
        t->has_date = true;
        return (month != 2 || t->tm.tm_mday < 29 || is_leap) &&
               (take_char(at, 'T') || take_char(at, 't') || take_char(at, ' '));
}

/* Digits beyond milliseconds are cut. */
static bool take_fraction(const char **at, struct timestamp *t)
{
        unsigned scale = 100;
        if (!take_char(at, '.'))
                return true;
        if (**at < '0' || **at > '9')
                return false;
        for (; **at >= '0' && **at <= '9'; ++*at, scale /= 10)
                t->ms += scale * (unsigned)(**at - '0');
        return true;
}

static bool take_time(const char **at, struct timestamp *t)
{
        if (!take_number(at, 2, 0, 23, &t->tm.tm_hour) || !take_char(at, ':') ||
                !take_number(at, 2, 0, 59, &t->tm.tm_min))
                return false;
        return !take_char(at, ':') || (take_number(at, 2, 0, 59, &t->tm.tm_sec) && take_fraction(at, t));
}

static bool take_zone(const char **at, struct timestamp *t)
{
        int hours;
        int minutes;
        t->has_zone = true;
        if (take_char(at, 'Z') || take_char(at, 'z'))
                return true;
        bool is_minus = **at == '-';
        if (!take_char(at, '+') && !take_char(at, '-')) {
                t->has_zone = false;
                return true;
        }
        if (!take_number(at, 2, 0, 23, &hours) || !take_char(at, ':') || !take_number(at, 2, 0, 59, &minutes))
                return false;
        t->zone_s = (is_minus ? -1 : 1) * (hours * HOUR_S + minutes * 60);
        return true;
}

static bool is_same_time(const struct tm *a, const struct tm *b)
{
        return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
               a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

/* How often the local clock shows this time, and the first of these seconds.  mktime() alone chooses one of two or
 * another time, so every candidate second is converted and compared. */
static unsigned local_seconds(const struct tm *wanted, time_t *ret_first)
{
        struct tm plain = *wanted;
        struct tm shown;
        unsigned found = 0;
        time_t utc = timegm(&plain);
        /* Zones differ from UTC by up to 14 hours, in steps of a quarter of an hour. */
        for (time_t at = utc - 15 * HOUR_S; at <= utc + 15 * HOUR_S; at += HOUR_S / 4)
                if (localtime_r(&at, &shown) && is_same_time(&shown, wanted) && !found++)
                        *ret_first = at;
        return found;
}

static int take_local(struct timestamp *t, const char *text, uint64_t now_ms, int64_t *ret_s, struct error *error)
{
        time_t now_s = (time_t)(now_ms / 1000);
        time_t first = 0;
        struct tm today;
        if (!t->has_date) {
                if (!localtime_r(&now_s, &today))
                        return error_set(error, -EINVAL, "%s: it is not known which day it is", text);
                t->tm.tm_year = today.tm_year;
                t->tm.tm_mon = today.tm_mon;
                t->tm.tm_mday = today.tm_mday;
        }
        unsigned found = local_seconds(&t->tm, &first);
        if (!t->has_date && found && (uint64_t)first * 1000 + t->ms <= now_ms) {
                struct tm tomorrow = t->tm;
                tomorrow.tm_mday++;
                tomorrow.tm_isdst = 0;
                (void)timegm(&tomorrow); /* normalises to the next day's date */
                t->tm = tomorrow;
                found = local_seconds(&t->tm, &first);
        }
        if (!found)
                return error_set(error, -EINVAL,
                        "%s: the local clock does not show this time, it is set forward there; add the zone: +01:00",
                        text);
        if (found > 1)
                return error_set(error, -EINVAL,
                        "%s: the local clock shows this time twice, it is set back there; add the zone: +01:00", text);
        *ret_s = (int64_t)first;
        return 0;
}

int timestamp_parse(const char *text, bool may_be_local, uint64_t now_ms, uint64_t *ret_ms, struct error *error)
{
        struct timestamp t = { 0 };
        const char *at = text;
        int64_t seconds = 0;
        bool has_date = strlen(text) > 4 && text[4] == '-';
        if ((has_date && !take_date(&at, &t)) || !take_time(&at, &t) || !take_zone(&at, &t) || *at ||
                (!has_date && (t.has_zone || !may_be_local)))
                return error_set(error, -EINVAL, "%s is not a time such as 2026-11-20T09:00:00Z%s", text,
                        may_be_local ? ", \"2026-11-20 09:00\" or 09:00" : " or 2026-11-20T09:00:00+01:00");
        if (t.has_zone) {
                seconds = (int64_t)timegm(&t.tm) - t.zone_s;
        } else if (!may_be_local) {
                return error_set(error, -EINVAL, "%s has no time zone; end it with Z or +01:00", text);
        } else {
                int r = take_local(&t, text, now_ms, &seconds, error);
                if (r < 0)
                        return r;
        }
        if (seconds < 0 || seconds > TIME_MAX_S)
                return error_set(error, -EINVAL, "%s is out of range", text);
        *ret_ms = (uint64_t)seconds * 1000 + t.ms;
        return 0;
}
