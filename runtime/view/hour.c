#include "view/hour.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "view/json.h"

#define NUMBER_MAX 1e15 /* a larger value is neither a count nor a time */

/* at_ms comes first, then the doubles in the order of the struct. */
const char *const hour_columns[HOUR_COLUMNS] = { "at_ms", "seconds", "done_per_second", "failed_per_second", "waiting",
        "running", "wait_p50_seconds", "wait_p99_seconds", "run_p50_seconds", "run_p99_seconds", "seats_used",
        "seats" };

static double *number_at(struct hour_point *point, unsigned column)
{
        double *const numbers[HOUR_COLUMNS - 1] = { &point->seconds, &point->done, &point->failed, &point->waiting,
                &point->running, &point->wait_p50, &point->wait_p99, &point->run_p50, &point->run_p99,
                &point->seats_used, &point->seats };
        return numbers[column - 1];
}

void hour_add(struct hour *hour, const struct hour_point *point)
{
        uint32_t kept = 0;
        for (uint32_t i = 0; i < hour->count; i++) {
                uint64_t at_ms = hour->points[i].at_ms;
                if (at_ms < point->at_ms && point->at_ms - at_ms < HOUR_MS)
                        hour->points[kept++] = hour->points[i];
        }
        if (kept == HOUR_POINTS) {
                memmove(hour->points, hour->points + 1, (HOUR_POINTS - 1) * sizeof(*hour->points));
                kept--;
        }
        hour->points[kept++] = *point;
        hour->count = kept;
}

static json_t *number(double value)
{
        /* Whole numbers are written as integers; four digits of the others are enough for a curve. */
        if (value == floor(value))
                return json_integer((json_int_t)value);
        return json_real(value);
}

static json_t *points_as_json(const struct hour *hour)
{
        json_t *points = json_array();
        for (uint32_t i = 0; i < hour->count; i++) {
                struct hour_point point = hour->points[i];
                json_t *row = json_array();
                (void)json_array_append_new(row, json_integer((json_int_t)point.at_ms));
                for (unsigned column = 1; column < HOUR_COLUMNS; column++)
                        (void)json_array_append_new(row, number(fmin(*number_at(&point, column), NUMBER_MAX)));
                (void)json_array_append_new(points, row);
        }
        return points;
}

char *hour_document(const struct hour *hour)
{
        json_t *o = json_pack("{s:s, s:o}", "name", hour->name, "points", points_as_json(hour));
        char *text = memory_or_abort(json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(4)));
        json_decref(o);
        return text;
}

static bool is_name(const char *name)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
        size_t size = name ? strlen(name) : 0;
        return size && size <= HOUR_NAME && strspn(name, letters) == size;
}

static bool read_point(const json_t *row, uint64_t after_ms, struct hour_point *ret_point)
{
        const json_t *at = json_array_get(row, 0);
        if (json_array_size(row) != HOUR_COLUMNS || !json_is_integer(at) || json_integer_value(at) < 0 ||
                json_integer_value(at) > (json_int_t)TASK_NUMBER_MAX || (uint64_t)json_integer_value(at) <= after_ms)
                return false;
        ret_point->at_ms = (uint64_t)json_integer_value(at);
        for (unsigned column = 1; column < HOUR_COLUMNS; column++) {
                const json_t *value = json_array_get(row, column);
                if (!json_is_number(value) ||
                        !(json_number_value(value) >= 0 && json_number_value(value) <= NUMBER_MAX))
                        return false;
                *number_at(ret_point, column) = json_number_value(value);
        }
        return true;
}

static int read_object(const json_t *o, struct hour *ret_hour)
{
        const char *name = json_string_value(json_object_get(o, "name"));
        const json_t *points = json_object_get(o, "points");
        uint64_t after_ms = 0;
        if (!is_name(name) || !json_is_array(points) || json_array_size(points) > HOUR_POINTS)
                return -EBADMSG;
        *ret_hour = (struct hour){ .count = (uint32_t)json_array_size(points) };
        memcpy(ret_hour->name, name, strlen(name) + 1);
        for (uint32_t i = 0; i < ret_hour->count; i++) {
                if (!read_point(json_array_get(points, i), after_ms, &ret_hour->points[i]))
                        return -EBADMSG;
                after_ms = ret_hour->points[i].at_ms;
        }
        return 0;
}

int hour_read(struct hour *ret_hour, struct span document)
{
        if (!document.size || document.size > STORE_HISTORY_MAX)
                return -EBADMSG;
        struct hour hour;
        json_t *o = json_loadb(document.data, document.size, 0, NULL);
        int r = o ? read_object(o, &hour) : -EBADMSG;
        json_decref(o);
        if (r == 0)
                *ret_hour = hour;
        return r;
}

static int by_name(const void *a, const void *b)
{
        const json_t *const *x = a;
        const json_t *const *y = b;
        return strcmp(view_json_get_text(*x, "name"), view_json_get_text(*y, "name"));
}

json_t *hours_as_json(const struct store_status *documents, uint32_t count)
{
        json_t **found = memory_zero(count, sizeof(json_t *));
        uint32_t found_count = 0;
        json_t *columns = json_array();
        json_t *hosts = json_array();
        for (unsigned i = 0; i < HOUR_COLUMNS; i++)
                (void)json_array_append_new(columns, json_string(hour_columns[i]));
        for (uint32_t i = 0; i < count; i++) {
                struct hour hour;
                if (hour_read(&hour, documents[i].document) < 0)
                        continue;
                json_t *o = json_object();
                view_json_set_text(o, "name", hour.name);
                view_json_number(o, "age_ms", documents[i].age_ms);
                (void)json_object_set_new(o, "points", points_as_json(&hour));
                found[found_count++] = o;
        }
        qsort(found, found_count, sizeof(json_t *), by_name);
        for (uint32_t i = 0; i < found_count; i++)
                (void)json_array_append_new(hosts, found[i]);
        free(found);
        return json_pack("{s:o, s:o}", "columns", columns, "hosts", hosts);
}
