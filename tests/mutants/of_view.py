"""What people are shown: runtime/view, runtime/look, runtime/cli."""
from noticed_by import CONTRACT, UNIT

MUTANTS = [
    # --- quiver top
    ("top: what acts on a terminal", "runtime/cli/top/top_view.c",
     'bool is_bad = is_control(text);', 'bool is_bad = false;', [UNIT("top")]),
    ("top: an error as it is", "runtime/cli/top/top_view.c",
     'text_put_bytes(&line, (struct span){ (const char *)data->error.data, data->error.size }, 1024);',
     'buffer_put(&line, data->error.data, data->error.size);', [UNIT("top")]),
    ("top: read-only acts", "runtime/cli/top/top_keys.c", 'if (state->is_read_only)', 'if (false)', [UNIT("top")]),
    ("top: no is a yes", "runtime/cli/top/top_keys.c",
     "key == 'y' || key == 'Y' ? TOP_DO_ACT : TOP_DO_CANCEL", "TOP_DO_ACT", [UNIT("top")]),
    ("top: the selection stays where it was", "runtime/cli/top/top_rows.c",
     'if (is_it) {', 'if (false && is_it) {', [UNIT("top")]),

    # --- metrics, and the last hour
    ("metrics: labels as they are", "runtime/view/metrics.c",
     """if (c == '\\\\' || c == '"')""", """if (c == '\\\\')""", [UNIT("metrics")]),
    ("hour: points in any order", "runtime/view/hour.c",
     " || (uint64_t)json_integer_value(at) <= after_ms)", ")", [UNIT("hour")]),
    ("hour: any number of points", "runtime/view/hour.c",
     " || json_array_size(points) > HOUR_POINTS)", ")", [UNIT("hour")]),
    ("hour: any number", "runtime/view/hour.c",
     "!(json_number_value(value) >= 0 && json_number_value(value) <= NUMBER_MAX)", "json_number_value(value) > NUMBER_MAX",
     [UNIT("hour")]),
    ("hour: a document of any length", "runtime/view/hour.c",
     "if (!document.size || document.size > STORE_HISTORY_MAX)", "if (!document.size)", [UNIT("hour")]),
    ("hour: any name", "runtime/view/hour.c",
     "size <= HOUR_NAME && strspn(name, letters) == size", "size <= HOUR_NAME", [UNIT("hour")]),

    # --- looking at a store
    ("look: what came later is in the list", "runtime/look/tasks_look.c",
     "if (f->before_ms && (!since_ms || since_ms >= f->before_ms))", "if (f->before_ms && !since_ms)",
     [CONTRACT("store_sqlite")]),
    ("look: any number of tasks", "runtime/look/tasks_look.c",
     "if (look->looked == look->looked_max)\n                return false;\n        look->filter", "look->filter",
     [CONTRACT("store_sqlite")]),
    ("look: who has no room loses it", "runtime/look/tasks_look.c",
     "look->looked += has_room;\n        json_decref(where);\n        return has_room;",
     "look->looked += has_room;\n        json_decref(where);\n        return true;", [CONTRACT("store_sqlite")]),
    ("look: a place of any form", "runtime/look/look.c",
     "if (strcmp(look_place_text(again, &place), text) != 0)", "if (!*look_place_text(again, &place))",
     [CONTRACT("store_sqlite")]),
    ("look: a place out of range", "runtime/look/look.c",
     " ||\n                place.cursor.major > TASK_NUMBER_MAX || place.cursor.minor > TASK_NUMBER_MAX)", ")",
     [CONTRACT("store_sqlite")]),
    ("look: keys of any state", "runtime/look/keys_look.c",
     "if (!look->state || !strcmp(store_key_state_name(key->state), look->state)) {", "if (true) {",
     [CONTRACT("store_sqlite")]),

    # --- status and alarms
    ("alarm: hosts fires when there are enough", "runtime/view/alarm.c",
     "c->is_below ? found >= alarm->limit : found < alarm->limit", "found < alarm->limit", [UNIT("view_status")]),
    ("alarm: what is claimed does not wait", "runtime/view/status.c",
     "store_counts_queued(&status->total) + status->total.in_flight + status->total.parked",
     "store_counts_queued(&status->total)", [UNIT("view_status")]),
    ("status: anybody says what runs in a shard", "runtime/view/status.c",
     "if (!c->is_held || !c->left_ms || memcmp(c->holder, found->nonce, STORE_NONCE_SIZE) != 0)", "if (false)",
     [UNIT("view_status")]),
    ("status: a busy key's surplus is parked", "runtime/view/status.c",
     "status->parked_keys += key->state == KEY_PARKED;", "status->parked_keys++;", [UNIT("view_status")]),
]
