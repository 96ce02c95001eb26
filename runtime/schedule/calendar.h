/* calendar.h: days and dates of the Gregorian calendar, as plain numbers. */
#ifndef QUIVER_SCHEDULE_CALENDAR_H
#define QUIVER_SCHEDULE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define CALENDAR_DAY_S 86400

/* Days since 1970-01-01; month and day count from 1.  Computed in eras of 400 years, which are all alike. */
static inline int64_t calendar_days(int64_t year, int month, int day)
{
        year -= month <= 2;
        int64_t era = (year >= 0 ? year : year - 399) / 400;
        int64_t of_era = year - era * 400;
        int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline void calendar_date(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
        days += 719468;
        int64_t era = (days >= 0 ? days : days - 146096) / 146097;
        int64_t of_era = days - era * 146097;
        int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
        int64_t month = (5 * of_year + 2) / 153;
        *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
        *ret_month = (int)(month < 10 ? month + 3 : month - 9);
        *ret_year = years + era * 400 + (*ret_month <= 2);
}

/* 0 is Sunday. */
static inline int calendar_weekday(int64_t days)
{
        return (int)(((days + 4) % 7 + 7) % 7);
}

static inline bool calendar_is_leap(int64_t year)
{
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline int calendar_month_days(int64_t year, int month)
{
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        return month == 2 && calendar_is_leap(year) ? 29 : days[month - 1];
}

/* The day of a moment; also before 1970. */
static inline int64_t calendar_day_of(int64_t seconds)
{
        return (seconds >= 0 ? seconds : seconds - (CALENDAR_DAY_S - 1)) / CALENDAR_DAY_S;
}

#endif
