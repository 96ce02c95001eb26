#include "store/schedules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/request.h"

static void check_name(struct store_request *request, struct span name)
{
        if (task_handler_check(name, NULL) || name.size > STORE_SCHEDULE_NAME_MAX)
                request_refuse(request, "a name begins with a letter and has at most 40 letters, digits, _ or -");
}

/* In whole seconds, which are part of ids. */
static bool is_time(uint64_t ms)
{
        return ms && ms <= TASK_NUMBER_MAX && ms % 1000 == 0;
}

void store_schedule_set(struct store *store, struct store_schedule_set *set)
{
        struct store_request *request = &set->request;
        bool has_definition = set->verb == SCHEDULE_PUT || set->verb == SCHEDULE_LOAD;
        bool has_version = has_definition || set->verb == SCHEDULE_DELETE;
        bool has_next = has_definition || set->verb == SCHEDULE_RESUME;
        request_begin(store, request, OP_SCHEDULE_SET);
        request_check_feature(request, "schedules");
        request_check_shard(request, set->shard);
        check_name(request, set->name);
        if ((unsigned)set->verb > SCHEDULE_LOAD)
                request_refuse(request, "no such verb");
        if (has_version && (!set->version || set->version > TASK_NUMBER_MAX))
                request_refuse(request, "a version is from 1");
        if (has_next && set->next_ms != STORE_NEVER && !is_time(set->next_ms))
                request_refuse(request, "a time is in whole seconds");
        if (set->definition.size > STORE_SCHEDULE_DEFINITION)
                request_refuse(request, "a definition has at most 4096 bytes");
        if (set->verb == SCHEDULE_LOAD && ((unsigned)set->state > SCHEDULE_PAUSED || set->last_ms > TASK_NUMBER_MAX ||
                                                  set->fired > TASK_NUMBER_MAX || set->skipped > TASK_NUMBER_MAX))
                request_refuse(request, "a schedule is active or paused, and its counts are numbers");
        request_start(request);
}

void store_schedule_list(struct store *store, struct store_schedule_list *list)
{
        struct store_request *request = &list->request;
        request_begin(store, request, OP_SCHEDULE_LIST);
        request_check_shard(request, list->shard);
        if (list->name.size)
                check_name(request, list->name);
        list->schedules = NULL;
        list->schedules_count = list->unreadable = 0;
        request_start(request);
}

static void prepare(struct store_fires *fires, struct store_fire *fire, struct store_prepared *ret_prepared)
{
        struct store_request *request = &fires->request;
        struct envelope task = fire->task;
        struct error error = { "" };
        char id[TASK_ID_MAX + 1];
        int size = snprintf(id, sizeof(id), "%.*s.%" PRIu64 "-%" PRIu32, (int)fire->name.size, fire->name.data,
                fire->expected_ms / 1000, fires->lease.shard);
        task.id = arena_copy(request_arena(request), (struct span){ id, (size_t)size });
        if (task.not_before_ms || task.unique_ms)
                request_refuse(request, "a schedule's task has neither a time nor a unique of its own");
        if (!request->status && submission_prepare(request, &task, ret_prepared, &error))
                request_refuse(request, error.text);
}

void store_fires(struct store *store, struct store_fires *fires)
{
        struct store_request *request = &fires->request;
        request_begin(store, request, OP_FIRES);
        request_check_feature(request, "schedules");
        request_check_lease(request, &fires->lease);
        if (!fires->fires_count || fires->fires_count > STORE_CALL_FIRES)
                request_refuse(request, "a request has 1 to 16 schedules");
        if (!request->status)
                fires->prepared =
                        arena_take(request_arena(request), fires->fires_count * sizeof(struct store_prepared));
        for (uint32_t i = 0; i < fires->fires_count && !request->status; i++) {
                struct store_fire *fire = &fires->fires[i];
                check_name(request, fire->name);
                if (!is_time(fire->expected_ms) || (fire->next_ms != STORE_NEVER && !is_time(fire->next_ms)))
                        request_refuse(request, "a time is in whole seconds");
                if (fire->next_ms <= fire->expected_ms)
                        request_refuse(request, "the next time is after the one that fires");
                fire->fired = STORE_FIRE_STALE;
                fire->stored = (struct store_schedule){ .name = fire->name };
                if (fire->has_task)
                        prepare(fires, fire, &fires->prepared[i]);
        }
        fires->verdict = STORE_FENCED;
        request_start(request);
}

/* The record as it is after the change; `is_there`: `schedule` is what is stored. */
enum store_schedule_change schedule_change(
        const struct store_schedule_set *set, bool is_there, struct store_schedule *schedule)
{
        bool is_gone = !is_there || schedule->state == SCHEDULE_DELETED;
        switch (set->verb) {
        case SCHEDULE_PUT:
        case SCHEDULE_LOAD:
                if (is_there && set->version <= schedule->version)
                        return set->version == schedule->version && !is_gone &&
                                               span_is(set->definition, schedule->definition)
                                       ? SCHEDULE_SAME
                                       : SCHEDULE_STALE;
                /* The same again must not lose a time that is due, so only another definition sets another time. */
                if (is_gone || set->verb == SCHEDULE_LOAD || !span_is(set->definition, schedule->definition))
                        schedule->next_ms = set->next_ms;
                schedule->state = is_gone ? SCHEDULE_ACTIVE : schedule->state;
                schedule->version = set->version;
                schedule->definition = set->definition;
                if (set->verb == SCHEDULE_LOAD) {
                        schedule->state = set->state;
                        schedule->last_ms = set->last_ms;
                        schedule->last_seq = 0;
                        schedule->fired = set->fired;
                        schedule->skipped = set->skipped;
                }
                return SCHEDULE_CHANGED;
        case SCHEDULE_DELETE:
                if (is_there && set->version < schedule->version)
                        return SCHEDULE_STALE;
                if (is_gone && is_there)
                        return SCHEDULE_SAME;
                schedule->state = SCHEDULE_DELETED;
                schedule->version = set->version;
                schedule->definition = (struct span){ "", 0 };
                schedule->next_ms = STORE_NEVER;
                return SCHEDULE_CHANGED;
        default:
                break;
        }
        if (is_gone)
                return SCHEDULE_GONE;
        enum store_schedule_state state = set->verb == SCHEDULE_PAUSE ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
        if (schedule->state == state)
                return SCHEDULE_SAME;
        schedule->state = state;
        if (state == SCHEDULE_ACTIVE)
                schedule->next_ms = set->next_ms;
        return SCHEDULE_CHANGED;
}

enum store_fired fire_decide(const struct store_schedule *stored, const struct store_fire *fire, bool is_alive)
{
        if (stored->state != SCHEDULE_ACTIVE || stored->version != fire->version ||
                stored->next_ms != fire->expected_ms)
                return STORE_FIRE_STALE;
        return fire->has_task && !(fire->unless_alive && is_alive) ? STORE_FIRED : STORE_FIRE_SKIPPED;
}

enum store_fired fire_repeat(const struct store_schedule *stored, const struct store_fire *fire)
{
        if (stored->version != fire->version || stored->next_ms != fire->next_ms)
                return STORE_FIRE_STALE;
        return stored->last_ms == fire->expected_ms ? STORE_FIRED : STORE_FIRE_SKIPPED;
}
