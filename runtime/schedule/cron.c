#include "schedule/cron.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "schedule/calendar.h"

/* The longest gap: 29 February on a given weekday ("0 0 29 2 *\/7") is at most 40 years away. */
#define DAYS_AHEAD (41 * 366)

/* --- reading --- */

struct cron_field {
        const char *name;
        int least, most;
        const char *const *words; /* names for least, least + 1, …; NULL-terminated */
};

static const char *const months[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
        "dec", NULL };
static const char *const weekdays[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELDS };

static const struct cron_field fields[FIELDS] = {
        [FIELD_MINUTE] = { "minute", 0, 59, NULL },
        [FIELD_HOUR] = { "hour", 0, 23, NULL },
        [FIELD_DAY] = { "day of the month", 1, 31, NULL },
        [FIELD_MONTH] = { "month", 1, 12, months },
        [FIELD_WEEKDAY] = { "day of the week", 0, 7, weekdays },
};

static const struct {
        const char *name, *pattern;
} nicknames[] = { { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
        { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" }, { "@midnight", "0 0 * * *" },
        { "@hourly", "0 * * * *" } };

static int refuse(struct error *error, const struct cron_field *field, struct span text)
{
        return error_set(error, -EINVAL, "%s: %.*s; it takes %d to %d%s%s, lists (1,15), ranges (1-5) and steps (*/10)",
                field->name, (int)(text.size > 40 ? 40 : text.size), text.data, field->least, field->most,
                field->words ? " or names such as " : "", field->words ? field->words[1] : "");
}

static bool take_value(const struct cron_field *field, const char **at, const char *end, int *ret)
{
        for (int i = 0; field->words && field->words[i]; i++)
                if (end - *at >= 3 && !strncasecmp(*at, field->words[i], 3)) {
                        *at += 3;
                        *ret = field->least + i;
                        return true;
                }
        const char *begin = *at;
        int value = 0;
        while (*at < end && isdigit((unsigned char)**at) && *at - begin < 4)
                value = value * 10 + (*(*at)++ - '0');
        *ret = value;
        return *at > begin && value >= field->least && value <= field->most;
}

/* Parses one element of a list: *, 5, 1-5, *\/2, 1-30/5. */
static bool parse_part(const struct cron_field *field, struct span part, uint64_t *bits)
{
        const char *at = part.data, *end = part.data + part.size;
        int from = field->least, to = field->most, step = 1;
        bool is_star = at < end && *at == '*';
        if (is_star)
                at++;
        else if (!take_value(field, &at, end, &from))
                return false;
        if (!is_star)
                to = from;
        if (!is_star && at < end && *at == '-') {
                at++;
                if (!take_value(field, &at, end, &to) || to < from)
                        return false;
        }
        if (at < end && *at == '/') {
                const struct cron_field steps = { "", 1, field->most, NULL };
                at++;
                /* Crons disagree about "5/15", so it is refused. */
                if ((!is_star && to == from) || !take_value(&steps, &at, end, &step))
                        return false;
        }
        for (int value = from; value <= to; value += step)
                *bits |= UINT64_C(1) << value;
        return at == end;
}

static int parse_field(const struct cron_field *field, struct span text, uint64_t *ret_bits, struct error *error)
{
        uint64_t bits = 0;
        struct span rest = text;
        for (;;) {
                const char *comma = memchr(rest.data, ',', rest.size);
                struct span part = { rest.data, comma ? (size_t)(comma - rest.data) : rest.size };
                if (!parse_part(field, part, &bits))
                        return refuse(error, field, text);
                if (!comma)
                        break;
                rest = (struct span){ comma + 1, rest.size - part.size - 1 };
        }
        *ret_bits = bits;
        return 0;
}

/* Whether the pattern occurs on a day of any year. */
static bool occurs(const struct cron *cron)
{
        static const int most[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        if (!cron->has_days || cron->has_weekdays)
                return true;
        for (int month = 1; month <= 12; month++)
                if (cron->months >> month & 1 && cron->days & ((UINT64_C(1) << (most[month - 1] + 1)) - 1))
                        return true;
        return false;
}

int cron_parse(struct cron *cron, const char *text, struct error *error)
{
        uint64_t bits[FIELDS];
        bool is_star[FIELDS];
        const char *at = text;
        for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++)
                if (!strcasecmp(text, nicknames[i].name))
                        at = nicknames[i].pattern;
        if (*at == '@')
                return error_set(error, -EINVAL,
                        "%.40s is unknown; there are @yearly, @monthly, @weekly, @daily and @hourly", text);
        for (int i = 0; i < FIELDS; i++) {
                at += strspn(at, " \t");
                size_t size = strcspn(at, " \t");
                if (!size)
                        return error_set(error, -EINVAL,
                                "%.80s: the %s is missing; it is five fields: minute hour day month weekday", text,
                                fields[i].name);
                is_star[i] = *at == '*';
                int r = parse_field(&fields[i], (struct span){ at, size }, &bits[i], error);
                if (r < 0)
                        return r;
                at += size;
        }
        if (at[strspn(at, " \t")])
                return error_set(
                        error, -EINVAL, "%.80s: has more than five fields: minute hour day month weekday", text);
        struct cron made = { .minutes = bits[FIELD_MINUTE],
                .hours = bits[FIELD_HOUR],
                .days = bits[FIELD_DAY],
                .months = bits[FIELD_MONTH],
                .weekdays = (bits[FIELD_WEEKDAY] | bits[FIELD_WEEKDAY] >> 7) & 0x7f,
                .has_days = !is_star[FIELD_DAY],
                .has_weekdays = !is_star[FIELD_WEEKDAY],
                .is_fixed = !is_star[FIELD_MINUTE] && !is_star[FIELD_HOUR] };
        if (!occurs(&made))
                return error_set(error, -EINVAL, "%.80s never occurs: no such month has that day", text);
        *cron = made;
        return 0;
}

const char *cron_doubt(const struct cron *cron)
{
        if (cron->minutes == (UINT64_C(1) << 60) - 1 && cron->hours != (UINT64_C(1) << 24) - 1)
                return "it runs at every minute of these hours; for once an hour write 0 as the minute";
        return NULL;
}

/* --- the next time --- */

/* A day field with a star and a step (*\/2) restricts as well; then both day fields must match. */
static bool has_day(const struct cron *cron, int64_t days)
{
        int64_t year;
        int month, day;
        calendar_date(days, &year, &month, &day);
        bool is_day = cron->days >> day & 1, is_weekday = cron->weekdays >> calendar_weekday(days) & 1;
        if (!(cron->months >> month & 1))
                return false;
        return cron->has_days && cron->has_weekdays ? is_day || is_weekday : is_day && is_weekday;
}

/* The first bit set from `from` on; -1: none. */
static int next_bit(uint64_t bits, int from)
{
        bits = from > 63 ? 0 : bits >> from << from;
        return bits ? __builtin_ctzll(bits) : -1;
}

/* The first matching minute from `from` on, in local time; CRON_NEVER: none for years, or none up to the day after
 * `until`. */
static zone_local next_local(const struct cron *cron, zone_local from, zone_local until)
{
        int64_t days = calendar_day_of(from + 59), last = days + DAYS_AHEAD;
        if (until / CALENDAR_DAY_S + 2 < last)
                last = until / CALENDAR_DAY_S + 2;
        int64_t minute_of_day = (from + 59 - days * CALENDAR_DAY_S) / 60;
        int hour = (int)(minute_of_day / 60), minute = (int)(minute_of_day % 60);
        for (; days < last; days++, hour = minute = 0) {
                if (!has_day(cron, days))
                        continue;
                for (int h = next_bit(cron->hours, hour); h >= 0; h = next_bit(cron->hours, h + 1)) {
                        int m = next_bit(cron->minutes, h == hour ? minute : 0);
                        if (m >= 0)
                                return days * CALENDAR_DAY_S + h * 3600 + m * 60;
                }
        }
        return CRON_NEVER;
}

static int64_t next_fixed(const struct cron *cron, const struct zone *zone, int64_t after)
{
        int64_t until;
        zone_local from = after + zone_offset(zone, after, &until);
        for (;;) {
                zone_local local = next_local(cron, from, INT64_MAX);
                if (local == CRON_NEVER)
                        return CRON_NEVER;
                int64_t at = zone_from_local(zone, local);
                if (at > after)
                        return at;
                from = local + 60;
        }
}

static int64_t next_elapsed(const struct cron *cron, const struct zone *zone, int64_t after)
{
        int64_t from = after + 1, last = after + (int64_t)DAYS_AHEAD * CALENDAR_DAY_S;
        while (from < last) {
                int64_t until;
                int64_t offset = zone_offset(zone, from, &until);
                zone_local local = next_local(cron, from + offset, until == INT64_MAX ? until : until + offset);
                if (local != CRON_NEVER && local - offset < until)
                        return local - offset;
                if (until == INT64_MAX)
                        break;
                from = until;
        }
        return CRON_NEVER;
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after)
{
        return cron->is_fixed ? next_fixed(cron, zone, after) : next_elapsed(cron, zone, after);
}
