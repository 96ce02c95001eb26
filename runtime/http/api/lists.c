/* lists.c: lists of tasks, keys, dead tasks and schedules: a page at a time, bounded in work and bytes. */
#include "http/api/lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/units.h"
#include "http/api/endpoints.h"
#include "http/api/look_io.h"
#include "look/keys_look.h"
#include "look/records_look.h"
#include "view/json.h"
#include "view/key.h"
#include "view/task.h"

/* --- parameters --------------------------------------------------------------------------------------------------- */

bool list_read_number(struct http_exchange *x, const char *name, uint64_t max, uint64_t *ret)
{
        const char *text = http_parameter(x, name);
        char *end = NULL;
        if (!text)
                return true;
        errno = 0;
        unsigned long long number = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end || errno || !number || number > max) {
                http_answer_problem(
                        x, 400, "%s: %s; it is a number from 1 to %llu", name, text, (unsigned long long)max);
                return false;
        }
        *ret = number;
        return true;
}

bool list_read_filter(struct http_exchange *x, struct tasks_filter *ret_filter)
{
        struct error error = { { 0 } };
        const char *state = http_parameter(x, "state");
        const char *older = http_parameter(x, "older");
        struct tasks_filter f = { .state = ret_filter->state,
                .handler = http_parameter(x, "handler"),
                .key = http_parameter(x, "key"),
                .host = http_parameter(x, "host"),
                .error = http_parameter(x, "error"),
                .cause = http_parameter(x, "cause"),
                .reason = http_parameter(x, "reason") };
        if (state && !tasks_state_parse(state, &f.state)) {
                http_answer_problem(x, 400,
                        "state: %s; it is all, waiting (also parked and held), running, delayed, parked, held or dead",
                        state);
                return false;
        }
        if (older && units_duration_ms(older, &f.older_ms, &error) < 0) {
                http_answer_problem(x, 400, "older: %s", error.text);
                return false;
        }
        if (!list_read_number(x, "before", TASK_NUMBER_MAX, &f.before_ms))
                return false;
        *ret_filter = f;
        return true;
}

bool list_read_page(struct http_exchange *x, uint64_t *ret_limit, struct look_place *ret_place)
{
        const char *cursor = http_parameter(x, "cursor");
        *ret_limit = LIST_LIMIT;
        if (!list_read_number(x, "limit", LIST_LIMIT_MAX, ret_limit))
                return false;
        if (!cursor || look_place_parse(cursor, ret_place))
                return true;
        http_answer_problem(x, 400, "cursor: %s; send what the last answer had as its cursor, or none", cursor);
        return false;
}

void list_set_more(json_t *to, bool has_more, const struct look_place *place)
{
        char text[LOOK_PLACE_TEXT];
        (void)json_object_set_new(to, "more", json_boolean(has_more));
        if (has_more)
                view_json_set_text(to, "cursor", look_place_text(text, place));
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

struct tasks_call {
        struct http_look http_look;
        struct tasks_look tasks;
        json_t *list;
        size_t bytes;
        uint64_t due_max; /* not 0: show this many tasks, those that are due first, in that order */
};

static void free_tasks(struct http_look *http_look)
{
        struct tasks_call *call = container_of(http_look, struct tasks_call, http_look);
        tasks_look_free(&call->tasks);
        json_decref(call->list);
        free(call);
}

/* Keeps those of all tasks seen that are due first. */
static bool show_due(struct tasks_call *call, const struct store_listed *task, const json_t *where)
{
        size_t at = json_array_size(call->list);
        while (at && view_json_get_number(json_array_get(call->list, at - 1), "due_in_ms") > task->due_in_ms)
                at--;
        if (at == call->due_max)
                return true;
        json_t *o = listed_as_json(task);
        if (where)
                (void)json_object_update(o, (json_t *)(uintptr_t)where);
        (void)json_array_insert_new(call->list, at, o);
        if (json_array_size(call->list) > call->due_max)
                (void)json_array_remove(call->list, call->due_max);
        return true;
}

static bool show_task(void *self, const struct store_listed *task, const json_t *where)
{
        struct tasks_call *call = self;
        if (call->due_max)
                return show_due(call, task, where);
        if (call->bytes >= LIST_BYTES)
                return false;
        call->bytes += task->envelope.payload.size + task->note.events.size;
        json_t *o = listed_as_json(task);
        if (where)
                (void)json_object_update(o, (json_t *)(uintptr_t)where);
        (void)json_array_append_new(call->list, o);
        return true;
}

static void answer_tasks(struct http_look *http_look)
{
        struct tasks_call *call = container_of(http_look, struct tasks_call, http_look);
        const struct tasks_look *tasks = &call->tasks;
        json_t *o = json_object();
        (void)json_object_set(o, "tasks", call->list);
        view_json_number(o, "looked", tasks->looked);
        view_json_number(o, "total", tasks->total);
        view_json_number(o, "time_ms", tasks->time_ms);
        if (tasks->where.w.more)
                view_json_number(o, "running_unlisted", tasks->where.w.more);
        list_set_more(o, tasks->has_more, &tasks->place);
        http_look_answer(http_look, 200, o);
}

static void start_tasks(struct http_exchange *x, enum tasks_state state, bool is_plain)
{
        struct tasks_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_tasks, .free = free_tasks };
        call->list = json_array();
        call->tasks.filter.state = state;
        if (!list_read_filter(x, &call->tasks.filter) ||
                !list_read_page(x, &call->tasks.shown_max, &call->tasks.place)) {
                free_tasks(&call->http_look);
                return;
        }
        const char *order = http_parameter(x, "order");
        if (order && (strcmp(order, "due") != 0 || call->tasks.filter.state != SHOW_DELAYED)) {
                free_tasks(&call->http_look);
                http_answer_problem(x, 400, "order: %s; it is due, with state=delayed", order);
                return;
        }
        if (order) {
                call->due_max = call->tasks.shown_max;
                call->tasks.shown_max = LIST_LOOKED;
        }
        call->tasks.is_plain = is_plain;
        call->tasks.now_ms = clock_wall_ms();
        call->tasks.looked_max = call->tasks.keys_max = LIST_LOOKED;
        call->tasks.show = show_task;
        call->tasks.self = call;
        tasks_look_init(&call->tasks);
        http_look_start(&call->http_look, x, &call->tasks.look);
}

void http_get_tasks(struct http_exchange *x)
{
        start_tasks(x, SHOW_ALL, false);
}

/* --- dead tasks, schedules, the app ----------------------------------------------------------------------- */

struct records_call {
        struct http_look http_look;
        struct records_look records;
};

static void free_records(struct http_look *http_look)
{
        struct records_call *call = container_of(http_look, struct records_call, http_look);
        records_look_free(&call->records);
        free(call);
}

static void answer_records(struct http_look *http_look)
{
        struct records_call *call = container_of(http_look, struct records_call, http_look);
        const struct records_look *records = &call->records;
        json_t *o = NULL;
        switch (records->kind) {
        case RECORDS_DEAD_GROUPS:
                o = json_pack("{s:O}", "groups", records->found);
                view_json_number(o, "total", records->total);
                view_json_number(o, "time_ms", records->time_ms);
                break;
        case RECORDS_SCHEDULES:
                o = json_pack("{s:O}", "schedules", records->found);
                view_json_number(o, "unreadable", records->unreadable);
                if (records->in_force.version)
                        (void)json_object_set_new(o, "configuration", schedules_mark_as_json(&records->in_force));
                list_set_more(o, records->has_more, &records->place);
                break;
        case RECORDS_APP:
                o = json_incref(records->found);
                break;
        }
        http_look_answer(http_look, 200, o);
}

static void start_records(struct http_exchange *x, enum records_kind kind)
{
        struct records_call *call = memory_zero(1, sizeof(*call));
        uint64_t limit = LIST_LIMIT;
        call->http_look = (struct http_look){ .answer = answer_records, .free = free_records };
        if (!list_read_page(x, &limit, &call->records.place)) {
                free_records(&call->http_look);
                return;
        }
        call->records.shown_max = (uint32_t)limit;
        records_look_init(&call->records, kind);
        http_look_start(&call->http_look, x, &call->records.look);
}

void http_get_dead(struct http_exchange *x)
{
        /* Without a filter: all dead tasks, by group. */
        if (x->parameters_count)
                start_tasks(x, SHOW_DEAD, true);
        else
                start_records(x, RECORDS_DEAD_GROUPS);
}

void http_get_schedules(struct http_exchange *x)
{
        start_records(x, RECORDS_SCHEDULES);
}

void http_get_app(struct http_exchange *x)
{
        start_records(x, RECORDS_APP);
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

struct keys_call {
        struct http_look http_look;
        struct keys_look keys;
        json_t *list;
        bool is_busiest; /* show the keys with the most tasks first */
        uint64_t limit;
};

static void free_keys(struct http_look *http_look)
{
        struct keys_call *call = container_of(http_look, struct keys_call, http_look);
        keys_look_free(&call->keys);
        json_decref(call->list);
        free(call);
}

static bool show_key(void *self, const struct store_key_info *key)
{
        struct keys_call *call = self;
        size_t at = json_array_size(call->list);
        if (call->is_busiest) {
                while (at && view_json_get_number(json_array_get(call->list, at - 1), "tasks") < key->tasks)
                        at--;
                if (at == call->limit)
                        return true;
        }
        (void)json_array_insert_new(call->list, at, key_as_json(key));
        if (json_array_size(call->list) > call->limit)
                (void)json_array_remove(call->list, call->limit);
        return true;
}

static void answer_keys(struct http_look *http_look)
{
        struct keys_call *call = container_of(http_look, struct keys_call, http_look);
        json_t *o = json_pack("{s:O}", "keys", call->list);
        view_json_number(o, "looked", call->keys.looked);
        view_json_number(o, "total", call->keys.total);
        list_set_more(o, call->keys.has_more, &call->keys.place);
        http_look_answer(http_look, 200, o);
}

static bool read_keys(struct http_exchange *x, struct keys_call *call)
{
        const char *state = http_parameter(x, "state");
        const char *order = http_parameter(x, "order");
        if (state && strcmp(state, "waiting") != 0 && strcmp(state, "parked") != 0 && strcmp(state, "held") != 0) {
                http_answer_problem(x, 400, "state: %s; it is waiting, parked or held", state);
                return false;
        }
        if (order && strcmp(order, "tasks") != 0) {
                http_answer_problem(x, 400, "order: %s; it is tasks: those with the most of them first", order);
                return false;
        }
        call->keys.state = state;
        call->is_busiest = order != NULL;
        return list_read_page(x, &call->limit, &call->keys.place);
}

void http_get_keys(struct http_exchange *x)
{
        struct keys_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_keys, .free = free_keys };
        call->list = json_array();
        if (!read_keys(x, call)) {
                free_keys(&call->http_look);
                return;
        }
        /* Finding the largest keys requires looking at all of them. */
        call->keys.shown_max = call->is_busiest ? UINT64_MAX : call->limit;
        call->keys.looked_max = LIST_LOOKED;
        call->keys.show = show_key;
        call->keys.self = call;
        keys_look_init(&call->keys);
        http_look_start(&call->http_look, x, &call->keys.look);
}
