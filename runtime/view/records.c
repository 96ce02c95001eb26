#include "view/records.h"

#include "view/json.h"

/* --- dead tasks --------------------------------------------------------------------------------------------------- */

static bool is_same(const json_t *a, const json_t *b, const char *name)
{
        return json_equal(json_object_get(a, name), json_object_get(b, name));
}

void dead_groups_add(json_t *groups, const struct store_dead_group *group)
{
        size_t i;
        json_t *known;
        json_t *o = json_object();
        bool has_room = json_array_size(groups) < GROUPS_MAX;
        view_json_span(o, "handler", group->handler);
        view_json_span(o, "reason", has_room ? group->reason : SPAN_TEXT(""));
        view_json_span(o, "error", has_room ? group->error : SPAN_TEXT(""));
        json_array_foreach(groups, i, known)
        {
                if (is_same(known, o, "handler") && is_same(known, o, "reason") && is_same(known, o, "error")) {
                        view_json_number(known, "tasks", view_json_get_number(known, "tasks") + group->tasks);
                        json_decref(o);
                        return;
                }
        }
        view_json_number(o, "tasks", group->tasks);
        (void)json_array_append_new(groups, o);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

json_t *limit_as_json(const struct store_limit_look *look)
{
        const struct store_limit *limit = &look->limit;
        json_t *o = json_object();
        view_json_span(o, "name", limit->name);
        view_json_number(o, "version", limit->version);
        if (limit->rate) {
                view_json_number(o, "rate", limit->rate);
                view_json_number(o, "period_ms", limit->period_ms);
                view_json_number(o, "burst", limit->burst);
        } else {
                view_json_number(o, "concurrency", limit->concurrency);
                view_json_number(o, "grace_ms", limit->grace_ms);
        }
        view_json_number(o, "values_max", limit->values_max);
        view_json_number(o, "values_count", look->values_count);
        view_json_number(o, "refused", look->refused);
        return o;
}

json_t *limit_value_as_json(const struct store_limit *limit, const struct store_limit_value *value)
{
        json_t *o = json_object();
        view_json_span(o, "value", value->value);
        if (limit->rate) {
                view_json_number(o, "tokens", value->tokens);
        } else {
                view_json_number(o, "held", value->held);
                view_json_number(o, "holders", value->holders);
        }
        return o;
}
