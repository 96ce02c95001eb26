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
