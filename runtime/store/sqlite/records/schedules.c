/* Schedules: records of a shard that submit tasks at given times. */
#include <errno.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

/* Reads the columns name, state, version, next, last, last_seq, fired, skipped, definition.  False: not written by
 * Quiver. */
static bool schedule_read(struct query *q, struct arena_chunk **arena, struct store_schedule *schedule)
{
        uint64_t state = column_number(q, 1);
        *schedule = (struct store_schedule){ .name = arena_copy(arena, column_span(q, 0)),
                .state = (enum store_schedule_state)min_u64(state, SCHEDULE_DELETED),
                .version = column_number(q, 2),
                .next_ms = column_is_null(q, 3) ? STORE_NEVER : column_number(q, 3),
                .last_ms = column_number(q, 4),
                .last_seq = column_number(q, 5),
                .fired = column_number(q, 6),
                .skipped = column_number(q, 7),
                .definition = arena_copy(arena, column_span(q, 8)) };
        return state <= SCHEDULE_DELETED && schedule->version && schedule->version <= TASK_NUMBER_MAX &&
               (schedule->next_ms <= TASK_NUMBER_MAX || schedule->next_ms == STORE_NEVER) &&
               schedule->last_ms <= TASK_NUMBER_MAX && schedule->last_seq <= STORE_SEQ_MAX &&
               schedule->fired <= TASK_NUMBER_MAX && schedule->skipped <= TASK_NUMBER_MAX &&
               schedule->definition.size <= STORE_SCHEDULE_DEFINITION;
}

/* 1: found; 0: not found; -EPROTO: not written by Quiver. */
static int schedule_get(struct sqlite_store *s, uint32_t shard, struct span name, struct arena_chunk **arena,
        struct store_schedule *schedule)
{
        struct query q = query(&s->db, STATEMENT_SCHEDULE_GET);
        bind_number(&q, shard);
        bind_text(&q, name);
        int r = query_row(&q);
        if (r && !schedule_read(&q, arena, schedule))
                r = -EPROTO;
        query_end(&q);
        return r;
}

static void schedule_put(struct sqlite_store *s, uint32_t shard, const struct store_schedule *schedule)
{
        struct query q = query(&s->db, STATEMENT_SCHEDULE_SET);
        bind_number(&q, shard);
        bind_text(&q, schedule->name);
        bind_number(&q, schedule->state);
        bind_number(&q, schedule->version);
        if (schedule->next_ms == STORE_NEVER)
                bind_null(&q);
        else
                bind_number(&q, schedule->next_ms);
        bind_number(&q, schedule->last_ms);
        bind_number(&q, schedule->last_seq);
        bind_number(&q, schedule->fired);
        bind_number(&q, schedule->skipped);
        bind_span(&q, schedule->definition);
        (void)query_run(&q);
}

uint64_t shard_next_schedule_ms(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_SCHEDULE_NEXT);
        bind_number(&q, shard);
        uint64_t next_ms = query_row(&q) ? column_number(&q, 0) : STORE_NEVER;
        query_end(&q);
        return next_ms > TASK_NUMBER_MAX ? STORE_NEVER : next_ms;
}

/* --- changing --- */

/* Makes room for one more schedule; deleted ones are removed first. */
static bool make_room(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_SCHEDULE_COUNT);
        bind_number(&q, shard);
        uint64_t count = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        if (count < STORE_SCHEDULES_MAX)
                return true;
        q = query(&s->db, STATEMENT_SCHEDULE_SWEEP);
        bind_number(&q, shard);
        return query_run(&q) > 0;
}

void sqlite_schedule_set(struct sqlite_store *s, struct store_request *request)
{
        struct store_schedule_set *set = (struct store_schedule_set *)request;
        struct sqlite_shard_row *shard = shard_write(s, set->shard);
        struct store_schedule schedule = { .name = set->name, .state = SCHEDULE_DELETED };
        int r = schedule_get(s, set->shard, set->name, request_arena(request), &schedule);
        if (r < 0) {
                operation_refuse(request, r,
                        "schedule %.*s: its record cannot be read; what is wrong with it: quiver fsck",
                        (int)set->name.size, set->name.data);
                return;
        }
        set->change = schedule_change(set, r > 0, &schedule);
        if (set->change == SCHEDULE_GONE) {
                operation_refuse(request, -ENOENT, "schedule: shard %u has none of the name %.*s", set->shard,
                        (int)set->name.size, set->name.data);
                return;
        }
        if (set->change != SCHEDULE_CHANGED)
                return;
        if (!r && !make_room(s, set->shard)) {
                operation_refuse(request, -E2BIG, "schedule: shard %u has %u, which are the most", set->shard,
                        STORE_SCHEDULES_MAX);
                return;
        }
        schedule_put(s, set->shard, &schedule);
        if (shard->is_held)
                control_add(s, shard, CONTROL_SCHEDULES, set->name, (struct span){ "", 0 }, (struct span){ "", 0 }, 0);
}

/* --- listing --- */

void sqlite_schedule_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_schedule_list *list = (struct store_schedule_list *)request;
        struct arena_chunk **arena = request_arena(request);
        list->schedules = arena_take(arena, STORE_SCHEDULES_MAX * sizeof(*list->schedules));
        struct query q = query(&s->db, list->name.size ? STATEMENT_SCHEDULE_GET : STATEMENT_SCHEDULE_ALL);
        bind_number(&q, list->shard);
        if (list->name.size)
                bind_text(&q, list->name);
        else
                bind_number(&q, STORE_SCHEDULES_MAX);
        while (query_row(&q)) {
                struct store_schedule *schedule = &list->schedules[list->schedules_count];
                if (!schedule_read(&q, arena, schedule))
                        list->unreadable++;
                else if (schedule->state != SCHEDULE_DELETED || list->has_deleted)
                        list->schedules_count++;
        }
        query_end(&q);
}

/* --- firing --- */

/* Whether the task is queued, in flight or parked. */
static bool is_alive(struct sqlite_store *s, struct sqlite_shard_row *shard, struct span key_name, uint64_t seq)
{
        struct key key;
        if (!seq)
                return false;
        struct query q = query(&s->db, STATEMENT_LOG_GET);
        bind_number(&q, log_id(shard->shard, seq));
        bool is_there = query_row(&q);
        query_end(&q);
        if (is_there || !shard->keys || !key_get(s, shard, key_name, &key))
                return is_there;
        q = query(&s->db, STATEMENT_SIDE_GET);
        bind_number(&q, key.id);
        bind_number(&q, seq);
        is_there = query_row(&q);
        query_end(&q);
        return is_there;
}

static void fire_one(struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_fires *fires, uint32_t index,
        bool is_repeat)
{
        struct store_fire *fire = &fires->fires[index];
        struct store_schedule schedule;
        if (schedule_get(s, shard->shard, fire->name, request_arena(&fires->request), &schedule) <= 0)
                return;
        fire->stored = schedule;
        fire->stored.definition = (struct span){ 0 };
        if (is_repeat) {
                fire->fired = fire_repeat(&schedule, fire);
                return;
        }
        bool may_skip = fire->has_task && fire->unless_alive;
        fire->fired = fire_decide(&schedule, fire, may_skip && is_alive(s, shard, fire->task.key, schedule.last_seq));
        if (fire->fired == STORE_FIRE_STALE)
                return;
        schedule.next_ms = fire->next_ms;
        schedule.skipped += fire->passed;
        if (fire->fired == STORE_FIRED) {
                const struct store_prepared *p = &fires->prepared[index];
                shard_append_prepared(s, p);
                schedule.last_ms = fire->expected_ms;
                schedule.last_seq = lane_seq(p->lane, shard->tail[p->lane]);
                schedule.fired++;
        } else {
                schedule.skipped++;
        }
        schedule_put(s, shard->shard, &schedule);
        fire->stored = schedule;
        fire->stored.definition = (struct span){ 0 };
}

void sqlite_fires(struct sqlite_store *s, struct store_request *request)
{
        struct store_fires *fires = (struct store_fires *)request;
        struct sqlite_shard_row *shard = shard_write(s, fires->lease.shard);
        enum fence fence = fence_check(shard, &fires->lease, fires->call);
        if (fence == FENCE_FENCED)
                return;
        fires->verdict = STORE_OK;
        for (uint32_t i = 0; i < fires->fires_count; i++)
                fire_one(s, shard, fires, i, fence == FENCE_REPEAT);
        shard->call = fires->call;
        shard->last_count = 0;
}
