#include "look/limit_act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "view/json.h"
#include "view/limits.h"

enum limit_act_step { STEP_STATUS, STEP_VALUES, STEP_SET, STEP_END };

static bool fail(struct limit_act *act, int result)
{
        act->result = result;
        act->step = STEP_END;
        return false;
}

/* --- parsing the setting --- */

static int read_count(const char *name, const json_t *value, uint64_t *ret, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > STORE_LIMIT_MAX)
                return error_set(error, -EINVAL, "%s: a whole number from 1 to %u", name, STORE_LIMIT_MAX);
        *ret = (uint64_t)json_integer_value(value);
        return 0;
}

static int read_time(const char *name, const json_t *value, uint64_t *ret, struct error *error)
{
        uint64_t ms = 0;
        if (!json_is_string(value) || units_duration_ms(json_string_value(value), &ms, NULL) < 0 || !ms ||
                ms > STORE_LIMIT_PERIOD_MS / 2)
                return error_set(error, -EINVAL, "%s: a text such as \"10m\", at most a day", name);
        *ret = ms;
        return 0;
}

int limit_act_read(struct span body, struct limit_override *ret, struct error *error)
{
        struct limit_override o = { 0 };
        json_error_t problem;
        json_t *object = json_loadb(body.size ? body.data : "", body.size, JSON_REJECT_DUPLICATES, &problem);
        const char *name;
        json_t *value;
        int r = json_is_object(object) ? 0 : error_set(error, -EINVAL, "the body is no JSON object: %s", problem.text);
        json_object_foreach(object, name, value)
        {
                if (r < 0)
                        break;
                if (!strcmp(name, "rate"))
                        r = read_count(name, value, &o.rate, error);
                else if (!strcmp(name, "burst"))
                        r = read_count(name, value, &o.burst, error);
                else if (!strcmp(name, "concurrency"))
                        r = read_count(name, value, &o.concurrency, error);
                else if (!strcmp(name, "per"))
                        r = read_time(name, value, &o.per_ms, error);
                else if (!strcmp(name, "for"))
                        r = read_time(name, value, &o.until_ms, error);
                else
                        r = error_set(error, -EINVAL, "%.64s: there are rate, per, burst, concurrency and for", name);
        }
        json_decref(object);
        if (r == 0)
                *ret = o;
        return r;
}

/* Checks that the wanted setting fits the kind of the limit. */
static int check(struct limit_act *act)
{
        const struct limit_override *o = &act->wanted;
        bool is_rate = !strcmp(view_json_get_text(act->found, "kind"), "rate");
        uint64_t hosts = view_json_get_number(act->found, "hosts");
        if (!act->found || (!hosts && act->kind == LIMIT_ACT_SET))
                return error_set(&act->error, -ENOENT,
                        "no host has a limit \"%s\"; it is defined in runtime.cfg: limits = { %s = { … }; }", act->name,
                        act->name);
        if (act->kind != LIMIT_ACT_SET)
                return 0;
        if (!o->rate && !o->per_ms && !o->burst && !o->concurrency)
                return error_set(
                        &act->error, -EINVAL, "nothing to set: give it a %s", is_rate ? "rate" : "concurrency");
        if (is_rate && o->concurrency)
                return error_set(&act->error, -EINVAL, "limit %s is a rate; it has no concurrency", act->name);
        if (!is_rate && (o->rate || o->per_ms || o->burst))
                return error_set(&act->error, -EINVAL, "limit %s is a concurrency; it has no rate", act->name);
        return 0;
}

/* Sets a burst that fits the rate, as the configuration's default would. */
static void fill_burst(struct limit_override *o, const json_t *found)
{
        uint64_t per_ms = o->per_ms ? o->per_ms : view_json_get_number(found, "per_ms");
        uint64_t rate = o->rate ? o->rate : view_json_get_number(found, "rate");
        if (!rate || !per_ms || o->burst)
                return;
        o->burst = min_u64(1 + (rate * 200 + per_ms - 1) / per_ms, STORE_LIMIT_MAX);
}

static bool ask_set(struct limit_act *act)
{
        struct limit_override o = act->kind == LIMIT_ACT_SET ? act->wanted : (struct limit_override){ 0 };
        uint64_t now_ms = act->status.now_ms;
        int r = check(act);
        if (r < 0)
                return fail(act, r);
        if (act->kind == LIMIT_ACT_SET)
                fill_burst(&o, act->found);
        /* Newer than any version that hosts have, even if clocks differ. */
        o.version = max_u64(now_ms, view_json_get_number(act->found, "version") + 1);
        if (o.until_ms)
                o.until_ms = max_u64(o.version + 1, now_ms + o.until_ms);
        limit_override_put(&act->value, &o);
        (void)snprintf(act->item, sizeof(act->item), LIMIT_OVERRIDE_PREFIX "%s", act->name);
        act->is_changed = act->kind == LIMIT_ACT_SET || json_object_get(act->found, "set");
        /* Shows the limit as it will be when the hosts have read the change. */
        if (act->kind == LIMIT_ACT_CLEAR)
                (void)json_object_del(act->found, "set");
        struct store_desired item = { span_of_text(act->item), span_of_text(buffer_text(&act->value)) };
        if (act->kind == LIMIT_ACT_SET)
                (void)limits_add_desired(act->status.status.limits, &item, now_ms);
        act->step = STEP_SET;
        return look_set_desired(&act->status.look, item);
}

/* --- the values of a limit --- */

static bool take_values(struct limit_act *act)
{
        struct look *look = &act->status.look;
        const struct store_limit_look *page = &look->limit;
        json_t *values = json_object_get(act->found, "values");
        if (!values) {
                values = json_array();
                (void)json_object_set_new(act->found, "home", limit_home_as_json(page));
                (void)json_object_set_new(act->found, "values", values);
        }
        for (uint32_t i = 0; i < page->listed; i++)
                (void)json_array_append_new(values, limit_value_as_json(&page->limit, &page->values[i]));
        act->place.cursor.major = page->cursor;
        act->has_more = !page->is_end && json_array_size(values) >= act->shown_max;
        return !page->is_end && !act->has_more && look_ask_limit(look, span_of_text(act->name), page->cursor);
}

static bool ask_values(struct limit_act *act)
{
        /* The home of a limit that was never used does not know it, and answers with an error. */
        bool is_used = view_json_get_number(act->found, "started") || view_json_get_number(act->found, "refused") ||
                       view_json_get_number(act->found, "granted");
        int r = check(act);
        if (r < 0)
                return fail(act, r);
        act->step = STEP_VALUES;
        return is_used && look_ask_limit(&act->status.look, span_of_text(act->name), act->place.cursor.major);
}

static bool limit_act_next(struct look *base)
{
        struct limit_act *act = container_of(base, struct limit_act, status.look);
        switch ((enum limit_act_step)act->step) {
        case STEP_STATUS:
                if (act->next_status(base))
                        return true;
                act->found = limits_get(act->status.status.limits, act->name);
                return act->kind == LIMIT_ACT_SHOW ? ask_values(act) : ask_set(act);
        case STEP_VALUES:
                return take_values(act);
        case STEP_SET:
        case STEP_END:
                break;
        }
        act->step = STEP_END;
        return false;
}

void limit_act_init(struct limit_act *act, const char *store_url, uint64_t now_ms)
{
        status_look_init(&act->status, store_url, now_ms);
        act->next_status = act->status.look.next;
        act->status.look.next = limit_act_next;
}

void limit_act_free(struct limit_act *act)
{
        buffer_free(&act->value);
        status_look_free(&act->status);
}
