#include "view/alarm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "view/json.h"
#include "view/text.h"

enum alarm_unit { UNIT_COUNT, UNIT_TIME };

/* Reads one number from the status of the app or of one handler (NULL: handlers do not have this condition). */
struct condition {
        const char *name;
        enum alarm_unit unit;
        bool is_below;    /* the alarm fires below the limit */
        const char *noun; /* the counted thing, singular; "": tasks */
        const char *what; /* what is true of them */
        uint64_t (*of_app)(const struct status *status);
        uint64_t (*of_handler)(const json_t *handler);
};

/* --- of the app --- */

static uint64_t oldest(const struct status *status)
{
        return status->oldest_ms;
}

static uint64_t dead(const struct status *status)
{
        return status->total.dead;
}

static uint64_t parked(const struct status *status)
{
        return status->parked_keys;
}

static uint64_t held(const struct status *status)
{
        return status->held_keys;
}

static uint64_t hosts(const struct status *status)
{
        return json_array_size(status->members);
}

static uint64_t unowned(const struct status *status)
{
        return status->info->shards - status->owned;
}

static uint64_t dropped_results(const struct status *status)
{
        return status->total.results_dropped;
}

static bool is_in(const json_t *handler, const char *state)
{
        return !strcmp(view_json_get_text(handler, "state"), state);
}

static uint64_t count_handlers(const struct status *status, uint64_t (*of_handler)(const json_t *handler))
{
        size_t i;
        const json_t *handler;
        uint64_t count = 0;
        json_array_foreach(status->handlers, i, handler)
        {
                count += of_handler(handler);
        }
        return count;
}

/* --- of a handler --- */

static uint64_t oldest_of(const json_t *handler)
{
        return view_json_get_number(handler, "oldest_ms");
}

static uint64_t waiting_of(const json_t *handler)
{
        return view_json_get_number(handler, "waiting");
}

static uint64_t dead_of(const json_t *handler)
{
        return view_json_get_number(handler, "dead");
}

static uint64_t unavailable_of(const json_t *handler)
{
        return is_in(handler, "unavailable");
}

static uint64_t quarantined_of(const json_t *handler)
{
        return is_in(handler, "quarantined");
}

static uint64_t refused_of(const json_t *handler)
{
        return is_in(handler, "refused") || view_json_get_number(handler, "refused");
}

/* Whether hosts serve different bytes under this name.  During a reload that is brief. */
static uint64_t versions_of(const json_t *handler)
{
        return strchr(view_json_get_text(handler, "version"), ',') || strchr(view_json_get_text(handler, "hash"), ',');
}

static uint64_t unavailable(const struct status *status)
{
        return count_handlers(status, unavailable_of);
}

static uint64_t quarantined(const struct status *status)
{
        return count_handlers(status, quarantined_of);
}

static uint64_t refused(const struct status *status)
{
        return count_handlers(status, refused_of);
}

/* Hosts may also run different versions of Quiver. */
static uint64_t versions(const struct status *status)
{
        size_t i;
        const json_t *member;
        const char *first = "";
        uint64_t differ = 0;
        json_array_foreach(status->members, i, member)
        {
                const char *version = view_json_get_text(member, "version");
                differ |= *first && *version && strcmp(first, version) != 0;
                first = *first ? first : version;
        }
        return count_handlers(status, versions_of) + differ;
}

static const struct condition conditions[] = {
        { "oldest", UNIT_TIME, false, "", "the oldest waits for", oldest, oldest_of },
        { "waiting", UNIT_COUNT, false, "", " waiting", status_waiting, waiting_of },
        { "dead", UNIT_COUNT, false, "", " dead", dead, dead_of },
        { "parked", UNIT_COUNT, false, " key", " parked", parked, NULL },
        { "held", UNIT_COUNT, false, " key", " held", held, NULL },
        { "hosts", UNIT_COUNT, true, " host", "", hosts, NULL },
        { "unowned", UNIT_COUNT, false, " shard", " without an owner", unowned, NULL },
        { "unavailable", UNIT_COUNT, false, " handler", " unavailable", unavailable, unavailable_of },
        { "quarantined", UNIT_COUNT, false, " handler", " quarantined", quarantined, quarantined_of },
        { "refused", UNIT_COUNT, false, " handler", " refused", refused, refused_of },
        { "dropped_results", UNIT_COUNT, false, " result", " dropped", dropped_results, NULL },
        { "versions", UNIT_COUNT, false, " handler", " of which hosts have different versions", versions, versions_of },
};

#define CONDITIONS (sizeof(conditions) / sizeof(conditions[0]))

/* --- reading --- */

static int refuse(struct error *error, const char *text, bool is_handler)
{
        char names[256] = "";
        for (size_t i = 0; i < CONDITIONS; i++)
                if (!is_handler || conditions[i].of_handler)
                        (void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "",
                                conditions[i].name);
        return error_set(
                error, -EINVAL, "%s: unknown; %s %s", text, is_handler ? "of a handler there is" : "there is", names);
}

static bool read_number(const char *text, uint64_t *ret)
{
        uint64_t value = 0;
        if (!*text)
                return false;
        for (; *text; text++) {
                if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10)
                        return false;
                value = value * 10 + (uint64_t)(*text - '0');
        }
        *ret = value;
        return value > 0;
}

static int read_limit(
        const struct condition *c, const char *text, const char *limit, uint64_t *ret, struct error *error)
{
        struct error ignored;
        if (c->unit == UNIT_TIME) {
                if (units_duration_ms(limit, ret, &ignored) < 0 || !*ret)
                        return error_set(error, -EINVAL, "%s: a time above 0, such as %s=5m", text, c->name);
                return 0;
        }
        if (!read_number(limit, ret))
                return error_set(error, -EINVAL, "%s: a number from 1, such as %s=1", text, c->name);
        return 0;
}

int alarm_parse(const char *text, struct alarm *ret_alarm, struct error *error)
{
        struct alarm alarm = { 0 };
        size_t size = strcspn(text, "@=");
        const char *limit = strchr(text, '=');
        if (text[size] == '@') {
                struct span handler = { text + size + 1, strcspn(text + size + 1, "=") };
                if (task_handler_check(handler, error) < 0)
                        return -EINVAL;
                memcpy(alarm.handler, handler.data, handler.size);
        }
        for (; alarm.what < CONDITIONS; alarm.what++)
                if (strlen(conditions[alarm.what].name) == size && !strncmp(conditions[alarm.what].name, text, size))
                        break;
        if (alarm.what == CONDITIONS || (*alarm.handler && !conditions[alarm.what].of_handler))
                return refuse(error, text, *alarm.handler);
        int r = read_limit(&conditions[alarm.what], text, limit ? limit + 1 : "", &alarm.limit, error);
        if (r == 0)
                *ret_alarm = alarm;
        return r;
}

/* --- looking --- */

static void put_amount(struct buffer *to, const struct condition *c, uint64_t amount)
{
        char text[UNITS_TEXT_MAX];
        if (c->unit == UNIT_TIME)
                buffer_printf(to, "%s", units_format_ms(text, amount));
        else
                buffer_printf(to, "%" PRIu64, amount);
}

bool alarm_is_reached(const struct alarm *alarm, const struct status *status, struct buffer *why)
{
        const struct condition *c = &conditions[alarm->what];
        const json_t *handler = *alarm->handler ? status_handler(status, alarm->handler) : NULL;
        uint64_t found = !*alarm->handler ? c->of_app(status) : handler ? c->of_handler(handler) : 0;
        if (c->is_below ? found >= alarm->limit : found < alarm->limit)
                return false;
        if (*alarm->handler)
                buffer_printf(why, "%s: ", alarm->handler);
        if (c->unit == UNIT_TIME)
                buffer_printf(why, "%s ", c->what);
        put_amount(why, c, found);
        if (c->unit != UNIT_TIME)
                buffer_printf(why, "%s%s%s", c->noun, *c->noun ? text_plural(found) : "", c->what);
        buffer_printf(why, c->is_below ? ", and there should be " : ", and the limit is ");
        put_amount(why, c, alarm->limit);
        buffer_printf(why, "\n");
        return true;
}
