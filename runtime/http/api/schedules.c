/* schedules.c: one schedule: shows it and its next times, sets, pauses, resumes, runs, backfills and deletes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "http/api/lists.h"
#include "http/api/look_io.h"
#include "look/schedule_act.h"
#include "schedule/time_text.h"
#include "view/json.h"

struct schedule_call {
        struct http_look http_look;
        struct schedule_act act;
        struct schedule wanted; /* PUT */
        uint64_t times;
        const char *action;
};

static void free_call(struct http_look *http_look)
{
        struct schedule_call *call = container_of(http_look, struct schedule_call, http_look);
        schedule_act_free(&call->act);
        schedule_free(&call->wanted);
        free(call);
}

static unsigned problem_status(int status)
{
        switch (status) {
        case -ENOENT:
                return 404;
        case -EINVAL:
                return 400;
        case -EDQUOT:
                return 429;
        default:
                return 409;
        }
}

/* If `more` is set, the client repeats the request with this `from`. */
static json_t *backfill_as_json(const struct schedule_act *act)
{
        static const struct zone utc = { .name = "UTC" };
        struct buffer text = { 0 };
        json_t *o = json_pack("{s:i, s:b}", "tasks", (int)act->tasks, "more", act->more_ms != 0);
        if (act->more_ms) {
                time_put(&text, act->more_ms, &utc);
                view_json_set_text(o, "from", buffer_text(&text));
        }
        buffer_free(&text);
        return o;
}

static json_t *answer_of(const struct schedule_call *call)
{
        const struct schedule_act *act = &call->act;
        switch (act->kind) {
        case SCHEDULE_ACT_SHOW:
        case SCHEDULE_ACT_SET:
                return schedule_as_json_with_times(&act->found, act->shard, act->now_ms, (uint32_t)call->times);
        case SCHEDULE_ACT_RUN:
                return json_pack("{s:s}", "id", act->id);
        case SCHEDULE_ACT_BACKFILL:
                return backfill_as_json(act);
        case SCHEDULE_ACT_PAUSE:
        case SCHEDULE_ACT_RESUME:
        case SCHEDULE_ACT_DELETE:
                break;
        }
        json_t *o = json_object();
        view_json_span(o, "name", act->name);
        (void)json_object_set_new(o, "changed", json_boolean(act->is_changed));
        return o;
}

static void on_acted(struct http_look *http_look)
{
        struct schedule_call *call = container_of(http_look, struct schedule_call, http_look);
        const struct schedule_act *act = &call->act;
        if (act->status < 0) {
                http_look_problem(http_look, problem_status(act->status), "%s", act->error.text);
                return;
        }
        if (call->action && !act->is_dry)
                http_audit(http_look->x, call->action, http_parameter(http_look->x, "name"));
        http_look_answer(http_look, act->kind == SCHEDULE_ACT_RUN ? 202 : 200, answer_of(call));
}

/* NULL: the request was answered.  `action` is for the audit log; NULL: it only reads. */
static struct schedule_call *begin(struct http_exchange *x, enum schedule_act_kind kind, const char *action)
{
        struct error error = { "" };
        const char *name = http_parameter(x, "name");
        uint64_t times = SCHEDULE_TIMES_SHOWN;
        if (schedule_name_check(name, &error) < 0) {
                http_answer_problem(x, 400, "%s", error.text);
                return NULL;
        }
        if (!list_read_number(x, "times", SCHEDULE_TIMES_MAX, &times))
                return NULL;
        struct schedule_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = on_acted, .free = free_call };
        call->action = action;
        call->times = times;
        call->act.kind = kind;
        call->act.name = span_of_text(name);
        call->act.now_ms = clock_wall_ms();
        call->act.is_dry = http_is_asked(x, "dry_run");
        schedule_act_init(&call->act);
        return call;
}

static void start(struct http_exchange *x, enum schedule_act_kind kind, const char *action)
{
        struct schedule_call *call = begin(x, kind, action);
        if (call)
                http_look_start(&call->http_look, x, &call->act.look);
}

void http_get_schedule(struct http_exchange *x)
{
        start(x, SCHEDULE_ACT_SHOW, NULL);
}

/* Shows what would be set, without a store. */
static void answer_dry(struct schedule_call *call, struct http_exchange *x)
{
        const struct schedule_act *act = &call->act;
        char *definition = schedule_text(&call->wanted);
        uint64_t next_ms = schedule_next_ms(&call->wanted, act->name, act->now_ms, 0);
        struct store_info info;
        store_info(x->services->store, &info);
        struct store_schedule stored = { .name = act->name,
                .version = act->now_ms,
                .next_ms = next_ms == SCHEDULE_NEVER ? STORE_NEVER : next_ms,
                .definition = span_of_text(definition) };
        json_t *o = schedule_as_json_with_times(&stored,
                shard_of_key(schedule_key(&call->wanted, act->name), info.shards), act->now_ms, (uint32_t)call->times);
        free(definition);
        free_call(&call->http_look);
        http_answer_json(x, 200, o);
}

void http_put_schedule(struct http_exchange *x)
{
        struct error error = { "" };
        struct schedule_call *call = begin(x, SCHEDULE_ACT_SET, "schedule-set");
        if (!call)
                return;
        int r = schedule_parse_new(&call->wanted, x->body, &error);
        if (r == 0)
                r = schedule_read_zone(&call->wanted, &error);
        if (r < 0) {
                free_call(&call->http_look);
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        call->act.wanted = &call->wanted;
        if (call->act.is_dry)
                answer_dry(call, x);
        else
                http_look_start(&call->http_look, x, &call->act.look);
}

void http_delete_schedule(struct http_exchange *x)
{
        struct schedule_call *call = begin(x, SCHEDULE_ACT_DELETE, "schedule-delete");
        if (!call)
                return;
        call->act.is_forced = http_is_asked(x, "force");
        http_look_start(&call->http_look, x, &call->act.look);
}

void http_pause_schedule(struct http_exchange *x)
{
        start(x, SCHEDULE_ACT_PAUSE, "schedule-pause");
}

void http_resume_schedule(struct http_exchange *x)
{
        start(x, SCHEDULE_ACT_RESUME, "schedule-resume");
}

void http_run_schedule(struct http_exchange *x)
{
        start(x, SCHEDULE_ACT_RUN, "schedule-run");
}

void http_backfill_schedule(struct http_exchange *x)
{
        uint64_t limit = SCHEDULE_BACKFILL_STEP;
        if (!http_parameter(x, "from") || !http_parameter(x, "to")) {
                http_answer_problem(
                        x, 400, "say which times: from=TIME&to=TIME, as 2026-11-01 or 2026-11-01T03:00:00Z");
                return;
        }
        if (!list_read_number(x, "limit", SCHEDULE_BACKFILL_STEP, &limit))
                return;
        struct schedule_call *call = begin(x, SCHEDULE_ACT_BACKFILL, "schedule-backfill");
        if (!call)
                return;
        call->act.from_text = http_parameter(x, "from");
        call->act.to_text = http_parameter(x, "to");
        call->act.tasks_max = (uint32_t)limit;
        http_look_start(&call->http_look, x, &call->act.look);
}
