#include "schedule/zone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/calendar.h"

/* No zone is or was further from UTC. */
#define OFFSET_MAX_S (26 * 3600)
/* Times beyond are refused: their year has more than nine digits. */
#define TIME_MAX_S (INT64_C(1) << 56)

/* --- the footer: std offset [dst [offset] [,start[/time],end[/time]]] --- */

struct rule_text {
        const char *at, *end;
};

static bool take_char(struct rule_text *t, char c)
{
        if (t->at == t->end || *t->at != c)
                return false;
        t->at++;
        return true;
}

static bool is_letter(char c)
{
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* "CET", "<+03>" */
static bool take_name(struct rule_text *t)
{
        const char *begin = t->at;
        if (take_char(t, '<')) {
                while (t->at < t->end && *t->at != '>')
                        t->at++;
                return take_char(t, '>');
        }
        while (t->at < t->end && is_letter(*t->at))
                t->at++;
        return t->at - begin >= 3;
}

static bool take_number(struct rule_text *t, int most, int *ret)
{
        const char *begin = t->at;
        int value = 0;
        while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && t->at - begin < 4)
                value = value * 10 + (*t->at++ - '0');
        *ret = value;
        return t->at > begin && value <= most;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool take_time(struct rule_text *t, int hours_max, int64_t *ret)
{
        bool is_negative = take_char(t, '-');
        int hours, minutes = 0, seconds = 0;
        if (!is_negative)
                (void)take_char(t, '+');
        if (!take_number(t, hours_max, &hours))
                return false;
        if (take_char(t, ':') &&
                (!take_number(t, 59, &minutes) || (take_char(t, ':') && !take_number(t, 59, &seconds))))
                return false;
        int64_t value = hours * 3600 + minutes * 60 + seconds;
        *ret = is_negative ? -value : value;
        return true;
}

static bool take_day(struct rule_text *t, struct zone_day *day)
{
        *day = (struct zone_day){ .at = 7200 };
        if (take_char(t, 'M')) {
                day->kind = ZONE_DAY_WEEK;
                if (!take_number(t, 12, &day->month) || !day->month || !take_char(t, '.') ||
                        !take_number(t, 5, &day->week) || !day->week || !take_char(t, '.') ||
                        !take_number(t, 6, &day->day))
                        return false;
        } else if (take_char(t, 'J')) {
                day->kind = ZONE_DAY_JULIAN;
                if (!take_number(t, 365, &day->day) || !day->day)
                        return false;
        } else {
                day->kind = ZONE_DAY_ZERO;
                if (!take_number(t, 365, &day->day))
                        return false;
        }
        return !take_char(t, '/') || take_time(t, 167, &day->at);
}

static bool parse_rule(struct span text, struct zone_rule *ret)
{
        struct rule_text t = { text.data, text.data + text.size };
        struct zone_rule rule = { 0 };
        if (!take_name(&t) || !take_time(&t, 24, &rule.standard))
                return false;
        rule.standard = -rule.standard; /* POSIX counts westward */
        if (t.at < t.end) {
                rule.has_summer = true;
                rule.summer = rule.standard + 3600;
                if (!take_name(&t))
                        return false;
                if (t.at < t.end && *t.at != ',') {
                        if (!take_time(&t, 24, &rule.summer))
                                return false;
                        rule.summer = -rule.summer;
                }
                if (!take_char(&t, ',') || !take_day(&t, &rule.begin) || !take_char(&t, ',') ||
                        !take_day(&t, &rule.end))
                        return false;
        }
        *ret = rule;
        return t.at == t.end;
}

/* When the change happens in that year, by a clock that is `offset` from UTC. */
static int64_t day_in(const struct zone_day *day, int64_t year, int64_t offset)
{
        int64_t days = calendar_days(year, 1, 1);
        if (day->kind == ZONE_DAY_ZERO) {
                days += day->day;
        } else if (day->kind == ZONE_DAY_JULIAN) {
                days += day->day - 1 + (calendar_is_leap(year) && day->day >= 60);
        } else {
                int64_t first = calendar_days(year, day->month, 1);
                int in_month = 1 + (day->day - calendar_weekday(first) + 7) % 7 + (day->week - 1) * 7;
                while (in_month > calendar_month_days(year, day->month))
                        in_month -= 7;
                days = first + in_month - 1;
        }
        return days * CALENDAR_DAY_S + day->at - offset;
}

static int64_t rule_offset(const struct zone_rule *rule, int64_t utc, int64_t *ret_until)
{
        int64_t year, next = INT64_MAX, latest = INT64_MIN, offset = rule->standard;
        int month, day;
        *ret_until = INT64_MAX;
        if (!rule->has_summer)
                return rule->standard;
        calendar_date(calendar_day_of(utc + rule->standard), &year, &month, &day);
        for (int64_t y = year - 1; y <= year + 1; y++) {
                int64_t begin = day_in(&rule->begin, y, rule->standard), end = day_in(&rule->end, y, rule->summer);
                if (begin <= utc && begin > latest) {
                        latest = begin;
                        offset = rule->summer;
                }
                /* In a zone with permanent summer time, the end of a year's summer is the beginning of the next. */
                if (end <= utc && end > latest) {
                        latest = end;
                        offset = rule->standard;
                }
                if (begin > utc && begin < next)
                        next = begin;
                if (end > utc && end < next)
                        next = end;
        }
        *ret_until = next;
        return offset;
}

/* --- the file --- */

struct tzif_counts {
        uint32_t ut, standard, leaps, transitions, types, letters;
};

static uint32_t read_32(const unsigned char *at)
{
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read_time(const unsigned char *at, size_t size)
{
        if (size == 4)
                return (int32_t)read_32(at);
        return (int64_t)((uint64_t)read_32(at) << 32 | read_32(at + 4));
}

static int refuse(struct error *error, const char *name, const char *what)
{
        return error_set(error, -EINVAL, "time zone %s: its file is malformed: %s", name, what);
}

/* The size of the block after a header; SIZE_MAX: its counts are invalid. */
static size_t block_size(const struct tzif_counts *c, size_t time_size)
{
        if (c->transitions > ZONE_TRANSITIONS_MAX || !c->types || c->types > 256 || c->letters > 1024 ||
                c->leaps > 1024 || c->ut > 256 || c->standard > 256)
                return SIZE_MAX;
        return c->transitions * (time_size + 1) + (size_t)c->types * 6 + c->letters + c->leaps * (time_size + 4) +
               c->standard + c->ut;
}

static bool read_header(struct span bytes, size_t at, struct tzif_counts *ret, char *ret_version)
{
        const unsigned char *b = (const unsigned char *)bytes.data + at;
        if (bytes.size < at + 44 || memcmp(b, "TZif", 4) != 0)
                return false;
        *ret_version = (char)b[4];
        *ret = (struct tzif_counts){ read_32(b + 20), read_32(b + 24), read_32(b + 28), read_32(b + 32),
                read_32(b + 36), read_32(b + 40) };
        return true;
}

static int read_block(
        struct zone *zone, const unsigned char *b, const struct tzif_counts *c, size_t time_size, struct error *error)
{
        const unsigned char *kinds = b + c->transitions * time_size;
        const unsigned char *types = kinds + c->transitions;
        zone->at = memory_zero(c->transitions + 1, sizeof(*zone->at));
        zone->offset = memory_zero(c->transitions + 1, sizeof(*zone->offset));
        for (uint32_t i = 0; i < c->types; i++) {
                int32_t offset = (int32_t)read_32(types + (size_t)i * 6);
                if (offset < -OFFSET_MAX_S || offset > OFFSET_MAX_S)
                        return refuse(error, zone->name, "an offset of more than a day");
        }
        zone->first = (int32_t)read_32(types);
        for (uint32_t i = 0; i < c->transitions; i++) {
                zone->at[i] = read_time(b + i * time_size, time_size);
                if (kinds[i] >= c->types)
                        return refuse(error, zone->name, "a transition to what it does not describe");
                zone->offset[i] = (int32_t)read_32(types + (size_t)kinds[i] * 6);
                if (i && zone->at[i] <= zone->at[i - 1])
                        return refuse(error, zone->name, "its transitions are not in order");
        }
        zone->count = c->transitions;
        return 0;
}

int zone_parse(struct zone *zone, const char *name, struct span bytes, struct error *error)
{
        struct zone made = { 0 };
        struct tzif_counts counts;
        char version;
        size_t at = 0, time_size = 4;
        (void)snprintf(made.name, sizeof(made.name), "%s", name);
        if (bytes.size > ZONE_BYTES_MAX || !read_header(bytes, 0, &counts, &version))
                return refuse(error, name, "it does not begin as a TZif file");
        size_t size = block_size(&counts, 4);
        if (version >= '2' && size <= bytes.size) {
                at = 44 + size;
                time_size = 8;
                if (!read_header(bytes, at, &counts, &version))
                        return refuse(error, name, "its second part is missing");
                size = block_size(&counts, 8);
        }
        if (size == SIZE_MAX || size > bytes.size - at - 44)
                return refuse(error, name, "it is cut short");
        int r = read_block(&made, (const unsigned char *)bytes.data + at + 44, &counts, time_size, error);
        const char *footer = bytes.data + at + 44 + size, *end = bytes.data + bytes.size;
        if (r == 0 && time_size == 8 && end - footer > 2 && footer[0] == '\n' && end[-1] == '\n') {
                made.has_rule = parse_rule((struct span){ footer + 1, (size_t)(end - footer - 2) }, &made.rule);
                if (!made.has_rule)
                        r = refuse(error, name, "its last line is no rule");
        }
        if (r < 0)
                zone_free(&made);
        else
                *zone = made;
        return r;
}

void zone_free(struct zone *zone)
{
        if (!zone)
                return;
        free(zone->at);
        free(zone->offset);
        *zone = (struct zone){ 0 };
}

bool zone_name_is_good(const char *name)
{
        size_t size = strlen(name);
        if (!size || size > ZONE_NAME_MAX || name[0] == '/' || name[size - 1] == '/' || strstr(name, "//"))
                return false;
        return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") == size;
}

/* --- looking things up --- */

int64_t zone_offset(const struct zone *zone, int64_t utc, int64_t *ret_until)
{
        uint32_t low = 0, high = zone->count;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                if (zone->at[middle] <= utc)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < zone->count) {
                *ret_until = zone->at[low];
                return low ? zone->offset[low - 1] : zone->first;
        }
        if (zone->has_rule)
                return rule_offset(&zone->rule, utc, ret_until);
        *ret_until = INT64_MAX;
        return low ? zone->offset[low - 1] : zone->first;
}

int64_t zone_from_local(const struct zone *zone, zone_local local)
{
        int64_t begin = local - OFFSET_MAX_S - CALENDAR_DAY_S;
        if (local > TIME_MAX_S || local < -TIME_MAX_S)
                return local;
        for (;;) {
                int64_t end;
                int64_t utc = local - zone_offset(zone, begin, &end);
                /* The clocks were set forward at `begin`, past this time. */
                if (utc < begin)
                        return begin;
                if (utc < end)
                        return utc;
                begin = end;
        }
}
