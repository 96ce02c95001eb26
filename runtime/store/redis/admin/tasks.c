/* Counting, listing, finding and cancelling tasks; the dead. */
#include <errno.h>
#include <string.h>

#include "store/redis/redis_store.h"

/* --- counts ------------------------------------------------------------------------------------------------------ */

static uint64_t sum(const struct store_counts *c)
{
        return c->queued[LANE_HIGH] + c->queued[LANE_NORMAL] + c->queued[LANE_LOW] + c->delayed + c->in_flight +
               store_counts_parked(c) + c->dead + c->done + c->dropped + c->merged;
}

static void count_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct store_counts *to = &((struct store_count *)op->request)->counts[call->number];
        uint64_t parked[3]; /* in all lanes, high, low */
        uint64_t *const numbers[] = { &to->queued[LANE_HIGH], &to->queued[LANE_NORMAL], &to->queued[LANE_LOW],
                &to->delayed, &to->in_flight, &parked[0], &parked[1], &parked[2], &to->dead, &to->results,
                &to->controls, &to->keys, &to->outbox, &to->done, &to->dropped, &to->results_dropped, &to->merged,
                &to->epoch };
        size_t count = sizeof(numbers) / sizeof(numbers[0]);
        if (reply_count(reply) != count + 7) {
                op_bad_answer(op);
                return;
        }
        for (size_t i = 0; i < count; i++)
                *numbers[i] = answer_number(op, reply->element[i], TASK_NUMBER_MAX, "count");
        store_counts_set_parked(to, parked[0], parked[1], parked[2]);
        to->is_held = answer_bool(op, reply->element[count], "lease");
        if (to->is_held)
                (void)nonce_read(reply_span(reply->element[count + 1]), to->holder);
        struct span host = reply_span(reply->element[count + 6]);
        if (to->is_held && store_host_is_good(host))
                memcpy(to->host, host.data, host.size);
        to->left_ms = answer_number(op, reply->element[count + 2], TASK_NUMBER_MAX, "lease");
        to->wanted = (enum store_wanted)answer_number(op, reply->element[count + 3], STORE_WANTED_FIRM, "want");
        uint64_t oldest = answer_number(op, reply->element[count + 4], TASK_NUMBER_MAX, "time");
        uint64_t now = answer_number(op, reply->element[count + 5], TASK_NUMBER_MAX, "time");
        to->oldest_ms = store_age_ms(op->s->store.record.created_ms, oldest, now);
        to->time_ms = now;
        /* Nobody counts an RPUSH; each task is in exactly one of these. */
        to->submitted = sum(to);
}

void redis_count(struct redis_store *s, struct store_request *request)
{
        struct store_count *count = (struct store_count *)request;
        struct redis_op *op = op_begin(s, request);
        count->counted = 0;
        for (uint32_t i = 0; i < count->shards && count->first_shard + i < s->store.shards; i++) {
                count->counts[i] = (struct store_counts){ .shard = count->first_shard + i };
                struct redis_call *call = call_script(op, SCRIPT_count, count->first_shard + i, 0);
                call->number = count->counted++;
                call->answer = count_answer;
                call_send(call);
        }
        if (op->pending)
                writable_ask(op);
        else
                op_defer(s, request);
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* One row of list.lua or find.lua. */
static void row_read(
        struct redis_op *op, uint32_t shard, enum store_state state, const redisReply *row, struct store_listed *to)
{
        struct store_task task = { 0 };
        struct span bytes = reply_span(reply_at(row, 2));
        struct span note = reply_span(reply_at(row, 3));
        *to = (struct store_listed){ .state = state,
                .number = answer_number(op, reply_at(row, 0), TASK_NUMBER_MAX, "number"),
                .reason = reply_span(reply_at(row, 5)),
                .id = reply_span(reply_at(row, 6)) };
        uint64_t seq = answer_number(op, reply_at(row, 1), TASK_NUMBER_MAX, "seq");
        if (store_task_read(&op->s->store, shard, seq, bytes, request_arena(op->request), &task, NULL)) {
                /* Its id and key as the scripts know it by: so it is cancelled. */
                task.envelope.payload = bytes;
                task.envelope.id = reply_span(reply_at(row, 6));
                task.key = reply_span(reply_at(row, 7));
        }
        to->envelope = task.envelope;
        to->key = task.key;
        if (!to->id.size)
                to->id = task.envelope.id;
        if (note_parse(note.data, note.size, &to->note))
                to->note = (struct task_note){ 0 };
        if (state == STATE_DELAYED)
                to->due_in_ms = answer_number(op, reply_at(row, 4), TASK_NUMBER_MAX, "due time");
        if (state == STATE_DEAD) {
                to->at_ms = answer_number(op, reply_at(row, 4), TASK_NUMBER_MAX, "time");
                to->long_bytes = answer_number(op, reply_at(row, 8), TASK_NUMBER_MAX, "size");
        }
}

/* --- list -------------------------------------------------------------------------------------------------------- */

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_list *list = (struct store_list *)call->op->request;
        const redisReply *rows = reply_at(reply, 2);
        list->cursor.major = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "cursor");
        list->is_end = answer_bool(call->op, reply_at(reply, 1), "end");
        list->tasks = arena_take(request_arena(&list->request), reply_count(rows) * sizeof(*list->tasks));
        for (size_t i = 0; i < reply_count(rows); i++) {
                struct store_listed *to = &list->tasks[list->tasks_count];
                row_read(call->op, list->shard, list->state, rows->element[i], to);
                if (!list->handler.size || span_is(to->envelope.handler, list->handler))
                        list->tasks_count++;
        }
}

void redis_list(struct redis_store *s, struct store_request *request)
{
        struct store_list *list = (struct store_list *)request;
        list->tasks_count = 0;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_list, list->shard, 3);
        call->answer = list_answer;
        call_put_number(call, list->state);
        call_put_number(call, list->cursor.major);
        call_put_number(call, list->page_tasks);
        call_send(call);
}

/* --- find -------------------------------------------------------------------------------------------------------- */

/* The stages of find.lua, which counts them from 1.  The cursor: which of these, and where in it. */
static const enum store_state find_order[] = { STATE_DELAYED, STATE_QUEUED, STATE_IN_FLIGHT, STATE_PARKED, STATE_DEAD };
#define FIND_STAGES (sizeof(find_order) / sizeof(find_order[0]))

static void find_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_find *find = (struct store_find *)call->op->request;
        const redisReply *row = reply_at(reply_at(reply, 2), 0);
        uint64_t stage = answer_number(call->op, reply_at(reply, 0), FIND_STAGES + 1, "stage");
        uint64_t seen = answer_number(call->op, reply_at(reply, 1), TASK_NUMBER_MAX, "cursor");
        /* A search that does not get on would not end. */
        bool gets_on = stage > find->cursor.major + 1 || (stage == find->cursor.major + 1 && seen > find->cursor.minor);
        if (!stage || (row ? stage > FIND_STAGES : !gets_on)) {
                op_bad_value(call->op, "stage");
                return;
        }
        find->cursor = (struct store_cursor){ .major = stage - 1, .minor = seen };
        find->is_end = row || stage > FIND_STAGES;
        if (row) {
                struct store_listed *found = arena_take(request_arena(&find->request), sizeof(*found));
                row_read(call->op, call->shard, find_order[stage - 1], row, found);
                find->task = found;
        } else if (find->is_end) {
                struct span into = reply_span(reply_at(reply, 3));
                if (into.size && !task_id_check(into, NULL, NULL)) {
                        find->merged_into = arena_copy(request_arena(&find->request), into);
                        find->merged_ms = answer_number(call->op, reply_at(reply, 4), TASK_NUMBER_MAX, "time");
                }
        }
}

void redis_find(struct redis_store *s, struct store_request *request)
{
        struct store_find *find = (struct store_find *)request;
        uint32_t shard = 0;
        (void)task_id_check(find->id, &shard, NULL);
        find->task = NULL;
        find->merged_into = (struct span){ 0 };
        find->is_end = find->cursor.major >= FIND_STAGES;
        if (find->is_end) {
                op_defer(s, request);
                return;
        }
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_find, shard, 4);
        call->answer = find_answer;
        call_put(call, find->id);
        call_put_number(call, find->cursor.major + 1);
        call_put_number(call, find->cursor.minor);
        call_put_number(call, STORE_FIND_SLICE);
        call_send(call);
}

/* --- dead by group ------------------------------------------------------------------------------------------------ */

static void groups_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_dead_groups *to = (struct store_dead_groups *)call->op->request;
        struct arena_chunk **arena = request_arena(&to->request);
        size_t count = reply_count(reply) / 4;
        to->groups = arena_take(arena, count * sizeof(*to->groups));
        for (size_t i = 0; i < count; i++) {
                redisReply *const *row = reply->element + 4 * i;
                to->groups[to->groups_count++] =
                        (struct store_dead_group){ .handler = arena_copy(arena, reply_span(row[0])),
                                .reason = arena_copy(arena, reply_span(row[1])),
                                .error = arena_copy(arena, reply_span(row[2])),
                                .tasks = answer_number(call->op, row[3], TASK_NUMBER_MAX, "count") };
        }
}

void redis_dead_groups(struct redis_store *s, struct store_request *request)
{
        struct store_dead_groups *groups = (struct store_dead_groups *)request;
        groups->groups_count = 0;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_dead_groups, groups->shard, 0);
        call->answer = groups_answer;
        call_send(call);
}

/* --- cancel ------------------------------------------------------------------------------------------------------ */

static void cancel_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_cancel *cancel = (struct store_cancel *)call->op->request;
        if (reply->type != REDIS_REPLY_INTEGER) {
                op_bad_answer(call->op);
        } else if (reply->integer < 0) {
                op_fail(call->op, -ENOENT, "task %.*s is not %s any more", (int)cancel->id.size, cancel->id.data,
                        store_state_name(cancel->state));
        } else {
                cancel->is_pending = reply->integer == 1;
                bell_own_write(call->op->s, call->shard);
                replies_look(call->op->s);
        }
}

void redis_cancel_task(struct redis_store *s, struct store_request *request)
{
        struct store_cancel *cancel = (struct store_cancel *)request;
        struct redis_op *op = op_begin(s, request);
        uint32_t shard = 0;
        (void)task_id_check(cancel->id, &shard, NULL);
        cancel->is_pending = false;
        if (cancel->state == STATE_DEAD) {
                op_fail(op, -EALREADY, "task %.*s is dead already", (int)cancel->id.size, cancel->id.data);
                op_defer(s, request);
                return;
        }
        struct redis_call *call = call_script(op, SCRIPT_cancel, shard, 4);
        call->answer = cancel_answer;
        call_put_number(call, cancel->state);
        call_put_number(call, cancel->number);
        call_put(call, cancel->id);
        call_put(call, cancel->key);
        call_send(call);
}

/* --- reschedule -------------------------------------------------------------------------------------------------- */

static void reschedule_answer(struct redis_call *call, const redisReply *reply)
{
        const struct store_reschedule *asked = (const struct store_reschedule *)call->op->request;
        if (reply->type != REDIS_REPLY_INTEGER)
                op_bad_answer(call->op);
        else if (reply->integer < 0)
                op_fail(call->op, -ENOENT, "task %.*s is not delayed any more", (int)asked->id.size, asked->id.data);
        else
                bell_own_write(call->op->s, call->shard);
}

void redis_reschedule(struct redis_store *s, struct store_request *request)
{
        const struct store_reschedule *asked = (const struct store_reschedule *)request;
        uint32_t shard = 0;
        (void)task_id_check(asked->id, &shard, NULL);
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_reschedule, shard, 4);
        call->answer = reschedule_answer;
        call_put_number(call, asked->number);
        call_put(call, asked->id);
        call_put_number(call, asked->delay_ms);
        call_put_number(call, asked->at_ms);
        call_send(call);
}

/* --- move -------------------------------------------------------------------------------------------------------- */

static void move_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_move *move = (struct store_move *)call->op->request;
        if (reply->type != REDIS_REPLY_INTEGER)
                op_bad_answer(call->op);
        else if (reply->integer == -2)
                op_fail(call->op, -EPERM, "task %.*s is the first of a key that waits for its retry",
                        (int)move->id.size, move->id.data);
        else if (reply->integer < 0)
                op_fail(call->op, -ENOENT, "task %.*s is not %s any more", (int)move->id.size, move->id.data,
                        store_state_name(move->state));
        else
                bell_own_write(call->op->s, call->shard);
        move->is_pending = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

void redis_move(struct redis_store *s, struct store_request *request)
{
        struct store_move *move = (struct store_move *)request;
        uint32_t shard = 0;
        (void)task_id_check(move->id, &shard, NULL);
        move->is_pending = false;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_move, shard, 5);
        call->answer = move_answer;
        call_put_number(call, move->state);
        call_put_number(call, move->number);
        call_put(call, move->id);
        call_put(call, move->key);
        call_put_number(call, move->lane);
        call_send(call);
}

/* --- the dead ---------------------------------------------------------------------------------------------------- */

static void dead_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_dead *dead = (struct store_dead *)call->op->request;
        dead->acted = (uint32_t)answer_number(call->op, reply_at(reply, 0), STORE_CALL_TASKS, "count");
        dead->looked = (uint32_t)answer_number(call->op, reply_at(reply, 1), dead->numbers_count, "looked");
        dead->unreadable = (uint32_t)answer_number(call->op, reply_at(reply, 2), STORE_CALL_TASKS, "unreadable");
        dead->last = answer_number(call->op, reply_at(reply, 3), TASK_NUMBER_MAX, "last");
        dead->refused = (uint32_t)answer_number(call->op, reply_at(reply, 4), STORE_CALL_TASKS, "refused");
        if (dead->numbers_count && !dead->looked)
                op_bad_answer(call->op);
        if (dead->verb == DEAD_REQUEUE && dead->acted)
                bell_own_write(call->op->s, call->shard);
}

void redis_dead(struct redis_store *s, struct store_request *request)
{
        struct store_dead *dead = (struct store_dead *)request;
        dead->acted = dead->looked = dead->unreadable = dead->refused = 0;
        dead->last = 0;
        unsigned args = 2 + dead->ids_count + dead->numbers_count;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_dead, dead->shard, args);
        call->answer = dead_answer;
        call_put_number(call, dead->verb);
        call_put_number(call, dead->ids_count);
        for (uint32_t i = 0; i < dead->ids_count; i++)
                call_put(call, dead->ids[i]);
        for (uint32_t i = 0; i < dead->numbers_count; i++)
                call_put_number(call, dead->numbers[i]);
        call_send(call);
}
