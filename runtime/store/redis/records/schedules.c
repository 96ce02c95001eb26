/* Schedules: records of a shard that submit tasks at given times. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "store/redis/redis_store.h"

/* No next time is 0 there. */
static uint64_t time_put(uint64_t ms)
{
        return ms == STORE_NEVER ? 0 : ms;
}

/* state, version, next, last, last_seq, fired, skipped */
#define NUMBERS 7
static void numbers_read(struct redis_op *op, redisReply *const *parts, struct store_schedule *schedule)
{
        schedule->state =
                (enum store_schedule_state)answer_number(op, parts[0], SCHEDULE_DELETED, "state of a schedule");
        schedule->version = answer_number(op, parts[1], TASK_NUMBER_MAX, "version");
        schedule->next_ms = answer_number(op, parts[2], TASK_NUMBER_MAX, "next time");
        schedule->last_ms = answer_number(op, parts[3], TASK_NUMBER_MAX, "last time");
        schedule->last_seq = answer_number(op, parts[4], TASK_NUMBER_MAX, "seq");
        schedule->fired = answer_number(op, parts[5], TASK_NUMBER_MAX, "count");
        schedule->skipped = answer_number(op, parts[6], TASK_NUMBER_MAX, "count");
        if (!schedule->next_ms)
                schedule->next_ms = STORE_NEVER;
}

/* --- changing ---------------------------------------------------------------------------------------------------- */

static void set_answer(struct redis_call *call, const redisReply *reply)
{
        enum { THERE_IS_NONE = SCHEDULE_GONE, TOO_MANY, UNREADABLE };
        struct store_schedule_set *set = (struct store_schedule_set *)call->op->request;
        uint64_t code = answer_number(call->op, reply, UNREADABLE, "change");
        switch (code) {
        case THERE_IS_NONE:
                op_fail(call->op, -ENOENT, "schedule: shard %" PRIu32 " has none of the name %.*s", set->shard,
                        (int)set->name.size, set->name.data);
                return;
        case TOO_MANY:
                op_fail(call->op, -E2BIG, "schedule: shard %" PRIu32 " has %u, which are the most", set->shard,
                        STORE_SCHEDULES_MAX);
                return;
        case UNREADABLE:
                op_fail(call->op, -EPROTO,
                        "schedule %.*s: its record cannot be read; what is wrong with it: quiver fsck",
                        (int)set->name.size, set->name.data);
                return;
        default:
                set->change = (enum store_schedule_change)code;
        }
        if (set->change == SCHEDULE_CHANGED)
                bell_own_write(call->op->s, set->shard);
}

void redis_schedule_set(struct redis_store *s, struct store_request *request)
{
        struct store_schedule_set *set = (struct store_schedule_set *)request;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_schedule_set, set->shard, 10);
        call->answer = set_answer;
        call_put_number(call, set->verb);
        call_put(call, set->name);
        call_put_number(call, set->version);
        call_put(call, set->definition);
        call_put_number(call, time_put(set->next_ms));
        call_put_number(call, STORE_SCHEDULES_MAX);
        call_put_number(call, set->state);
        call_put_number(call, set->last_ms);
        call_put_number(call, set->fired);
        call_put_number(call, set->skipped);
        call_send(call);
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
        struct span x = ((const struct store_schedule *)a)->name;
        struct span y = ((const struct store_schedule *)b)->name;
        int r = memcmp(x.data, y.data, min_u64(x.size, y.size));
        return r ? r : (x.size > y.size) - (x.size < y.size);
}

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        enum { PARTS = 2 + NUMBERS };
        struct redis_op *op = call->op;
        struct store_schedule_list *list = (struct store_schedule_list *)op->request;
        size_t count = reply_count(reply) ? (reply_count(reply) - 1) / PARTS : 0;
        if (!reply_count(reply) || count > STORE_SCHEDULES_MAX || reply_count(reply) != 1 + count * PARTS) {
                op_bad_answer(op);
                return;
        }
        list->unreadable = (uint32_t)answer_number(op, reply->element[0], UINT32_MAX, "count");
        list->schedules = arena_take(request_arena(op->request), (count + 1) * sizeof(*list->schedules));
        for (size_t i = 0; i < count; i++) {
                redisReply *const *parts = &reply->element[1 + i * PARTS];
                struct store_schedule *schedule = &list->schedules[list->schedules_count++];
                *schedule = (struct store_schedule){ .name = reply_span(parts[0]),
                        .definition = reply_span(parts[1 + NUMBERS]) };
                numbers_read(op, parts + 1, schedule);
                if (task_handler_check(schedule->name, NULL) || schedule->name.size > STORE_SCHEDULE_NAME_MAX) {
                        list->schedules_count--;
                        list->unreadable++;
                }
        }
        if (list->schedules_count)
                qsort(list->schedules, list->schedules_count, sizeof(*list->schedules), by_name);
}

void redis_schedule_list(struct redis_store *s, struct store_request *request)
{
        struct store_schedule_list *list = (struct store_schedule_list *)request;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_schedule_list, list->shard, 3);
        call->answer = list_answer;
        call_put(call, list->name);
        call_put_number(call, STORE_SCHEDULES_MAX);
        call_put_number(call, list->has_deleted);
        call_send(call);
}

/* --- firing ------------------------------------------------------------------------------------------------------ */

static void fires_answer(struct redis_call *call, const redisReply *reply)
{
        enum { PARTS = 1 + NUMBERS };
        struct redis_op *op = call->op;
        struct store_fires *fires = (struct store_fires *)op->request;
        op->s->shards[call->shard].is_watched = !reply_is_fenced(reply);
        if (reply_is_fenced(reply))
                return;
        if (reply_count(reply) != (size_t)PARTS * fires->fires_count) {
                op_bad_answer(op);
                return;
        }
        fires->verdict = STORE_OK;
        for (uint32_t i = 0; i < fires->fires_count; i++) {
                redisReply *const *parts = &reply->element[(size_t)PARTS * i];
                struct store_fire *fire = &fires->fires[i];
                fire->fired = (enum store_fired)answer_number(op, parts[0], STORE_FIRE_STALE, "what was fired");
                numbers_read(op, parts + 1, &fire->stored);
        }
        bell_own_write(op->s, call->shard);
}

void redis_fires(struct redis_store *s, struct store_request *request)
{
        struct store_fires *fires = (struct store_fires *)request;
        struct redis_call *call =
                call_script(op_begin(s, request), SCRIPT_fires, fires->lease.shard, 2 + 9 * fires->fires_count);
        call->answer = fires_answer;
        call_put_lease(call, &fires->lease);
        call_put_number(call, fires->call);
        for (uint32_t i = 0; i < fires->fires_count; i++) {
                const struct store_fire *fire = &fires->fires[i];
                const struct store_prepared *p = fire->has_task ? &fires->prepared[i] : NULL;
                call_put(call, fire->name);
                call_put_number(call, fire->version);
                call_put_number(call, fire->expected_ms);
                call_put_number(call, time_put(fire->next_ms));
                call_put_number(call, fire->passed);
                call_put_number(call, fire->has_task);
                call_put_number(call, fire->unless_alive);
                call_put_number(call, p ? p->lane : LANE_NORMAL);
                call_put(call, p ? p->bytes : (struct span){ 0 });
        }
        call_send_tracked(call);
}
