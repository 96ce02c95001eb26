/* Reads the answer of advance.lua: verdict, tasks, controls, troubles. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "store/redis/shard/advance_private.h"

static void read_controls(struct redis_op *op, struct store_advance *advance, const redisReply *list)
{
        struct arena_chunk **arena = request_arena(&advance->request);
        if (!list || list->type == REDIS_REPLY_STRING || reply_count(list) > STORE_CALL_CONTROLS) {
                op_bad_value(op, "controls");
                return;
        }
        advance->controls = arena_take(arena, reply_count(list) * sizeof(*advance->controls));
        for (size_t i = 0; i < reply_count(list); i++) {
                const redisReply *row = list->element[i];
                struct store_control *control = &advance->controls[advance->controls_count++];
                struct span key = arena_copy(arena, reply_span(reply_at(row, 1)));
                *control = (struct store_control){ .verb = (enum store_control_verb)answer_number(
                                                           op, reply_at(row, 0), CONTROLS - 1, "control"),
                        .id = arena_copy(arena, reply_span(reply_at(row, 2))),
                        .seq = answer_number(op, reply_at(row, 3), STORE_SEQ_MAX, "control's seq"),
                        .data = arena_copy(arena, reply_span(reply_at(row, 4))) };
                if (control->verb == CONTROL_HEARTBEAT || control->verb == CONTROL_OUTCOME)
                        control->start = key;
                else
                        control->key = key;
        }
}

/* Elements of the reply, as lua/shard/advance.lua documents them; the blocks come last. */
enum {
        REPLY_BITS,
        REPLY_NOW,
        REPLY_LEFT,
        REPLY_GONE,
        REPLY_DUE,
        REPLY_CONTROLS,
        REPLY_TROUBLES,
        REPLY_SMALL,
        REPLY_BLOCKS = REPLY_SMALL + LANES
};
enum {
        BITS_MORE = 1,
        BIT_OUTBOX = 8,
        BIT_KEYS = 16,
        BIT_REFUSED = 32,
        BITS_WANTED_SHIFT = 6,
        BIT_DUE_WAITING = 256,
        BIT_LISTED = 512
};
#define BITS_MAX (BIT_LISTED | BIT_DUE_WAITING | STORE_WANTED_FIRM << BITS_WANTED_SHIFT | 63)

/* Number of tasks in a block: an array of tasks, or a count of those that are in their lane's list. */
static uint64_t block_size(struct redis_op *op, const redisReply *tasks)
{
        if (tasks->type == REDIS_REPLY_ARRAY)
                return tasks->elements;
        return answer_number(op, tasks, CLAIMED_MAX, "number of tasks");
}

/* Number of tasks in all blocks; 0, with the request failed, if the blocks are malformed or too many. */
static uint32_t count_tasks(struct redis_op *op, const redisReply *reply)
{
        uint64_t sum = 0;
        for (size_t i = REPLY_BLOCKS; i + 2 < reply_count(reply); i += 3)
                sum += block_size(op, reply->element[i + 1]);
        if ((reply_count(reply) - REPLY_BLOCKS) % 3 == 0 && sum <= CLAIMED_MAX)
                return (uint32_t)sum;
        op_bad_value(op, "number of tasks");
        return 0;
}

/* Reads a block of tasks with consecutive seqs.  False if it is malformed. */
static bool read_block(struct redis_op *op, uint64_t seq, const redisReply *tasks, const redisReply *notes)
{
        struct advance_op *self = op->self;
        bool has_notes = notes->type == REDIS_REPLY_ARRAY;
        if (has_notes && notes->elements != tasks->elements)
                return false;
        for (size_t i = 0; i < tasks->elements; i++) {
                const redisReply *task = tasks->element[i];
                struct span note = has_notes ? reply_span(notes->element[i]) : (struct span){ 0 };
                if (task->type != REDIS_REPLY_STRING)
                        return false;
                lane_see(&op->s->shards[self->claim.shard].lanes[STORE_SEQ_LANE(seq)], reply_span(task));
                claimed_add(&self->claim, op, seq++, reply_span(task), note, false);
        }
        return true;
}

bool advance_note_list(struct redis_op *op, struct redis_lane *lane, uint64_t seq, uint32_t count)
{
        struct advance_op *self = op->self;
        struct advance_list *list = &self->lists[STORE_SEQ_LANE(seq)];
        uint64_t number = STORE_SEQ_NUMBER(seq);
        if (!self->is_listed || list->count || !count || count > list->reads || !number)
                return false;
        list->first = number;
        list->count = count;
        if (!lane->count)
                lane->base = number - 1;
        /* Somebody has changed the lane's number: the tasks are claimed, but our view is void. */
        if (number != lane->base + lane->count + 1)
                self->is_listed = false;
        return true;
}

static void read_tasks(struct redis_op *op, struct redis_shard *shard, const redisReply *reply)
{
        struct advance_op *self = op->self;
        for (size_t i = REPLY_BLOCKS; i + 2 < reply_count(reply) && !op->request->status; i += 3) {
                uint64_t seq = answer_number(op, reply->element[i], STORE_SEQ_MAX, "seq");
                const redisReply *tasks = reply->element[i + 1];
                struct redis_lane *lane = &shard->lanes[STORE_SEQ_LANE(seq)];
                bool is_block = tasks->type == REDIS_REPLY_ARRAY
                                        ? read_block(op, seq, tasks, reply->element[i + 2])
                                        : advance_note_list(op, lane, seq, (uint32_t)block_size(op, tasks));
                if (!is_block)
                        op_bad_value(op, "block of tasks");
                lane->calls = LANE_CALLS;
        }
        /* The tasks' bytes are freed with this answer, and more answers are to come: copy them. */
        if (op->pending > 1)
                claimed_keep(&self->claim, op, 0);
}

/* Logs tasks that were too long and are now dead, and unreadable records.  Returns the number of dead ones. */
static uint32_t read_troubles(const struct redis_call *call, const redisReply *troubles)
{
        const redisReply *lines = reply_at(troubles, 1);
        if (!reply_count(troubles))
                return (uint32_t)answer_number(call->op, troubles, 0, "troubles");
        for (size_t i = 0; i < reply_count(lines); i++) {
                struct span line = reply_span(lines->element[i]);
                log_event(LEVEL_ERROR, "bad-record", "app=%s shard=%" PRIu32 " text=%s", call->op->s->store.app,
                        call->shard, LOG_QUOTE(line.size ? line.data : ""));
        }
        return (uint32_t)answer_number(call->op, reply_at(troubles, 0), STORE_CALL_TASKS, "number of long tasks");
}

static bool has_replies(const struct store_advance *advance)
{
        for (uint32_t i = 0; i < advance->outcomes_count; i++)
                if (advance->outcomes[i].task.reply_ms || advance->outcomes[i].merged_count)
                        return true;
        return false;
}

void advance_send_anew(struct redis_op *op)
{
        struct advance_op *self = op->self;
        struct redis_shard *shard = &op->s->shards[((const struct store_advance *)op->request)->lease.shard];
        view_forget(shard, VIEW_UNKNOWN);
        if (self->is_anew) {
                op_bad_answer(op);
                return;
        }
        self->is_anew = true;
        advance_send(op);
}

/* Only RPUSH keeps the positions of claimed elements.  After any other command it is unknown which task is which, so
 * the shard counts as lost: acquiring it again returns the tasks with their bytes. */
void advance_list_changed(struct redis_op *op, uint32_t shard)
{
        ((struct store_advance *)op->request)->verdict = STORE_FENCED;
        op->s->shards[shard].is_watched = false;
        log_event(LEVEL_ERROR, "list-changed", "app=%s shard=%" PRIu32 " text=%s", op->s->store.app, shard,
                LOG_QUOTE(
                        "somebody else has changed a list of this shard with another command than RPUSH; the shard is "
                        "acquired anew, and what was claimed from its lists and is not done runs again"));
}

void advance_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[call->shard];
        self->is_sent_once = call->command.sends == 1;
        if (reply_is_fenced(reply)) {
                shard->is_watched = false;
                return;
        }
        if (span_is(reply_span(reply), SPAN_TEXT("OTHER"))) {
                advance_list_changed(call->op, call->shard);
                return;
        }
        if (span_is(reply_span(reply), SPAN_TEXT("ANEW"))) {
                advance_send_anew(op);
                return;
        }
        if (reply_count(reply) < REPLY_BLOCKS) {
                op_bad_answer(op);
                return;
        }
        uint64_t bits = answer_number(op, reply->element[REPLY_BITS], BITS_MAX, "bits");
        if ((bits >> BITS_WANTED_SHIFT & 3) > STORE_WANTED_FIRM) {
                op_bad_value(op, "bits");
                return;
        }
        advance->verdict = STORE_OK;
        for (unsigned lane = 0; lane < LANES; lane++)
                advance->has_more[lane] = bits & (BITS_MORE << lane);
        advance->has_outbox = bits & BIT_OUTBOX;
        advance->is_refused = bits & BIT_REFUSED;
        advance->has_due_waiting = bits & BIT_DUE_WAITING;
        advance->wanted = (enum store_wanted)(bits >> BITS_WANTED_SHIFT & 3);
        advance->next_due_ms = answer_due(op, reply->element[REPLY_DUE]);
        advance->left_ms = answer_number(op, reply->element[REPLY_LEFT], TASK_NUMBER_MAX, "lease");
        advance->gone = self->gone +
                        (uint32_t)answer_number(op, reply->element[REPLY_GONE], STORE_CALL_TASKS, "number of gone");
        shard->has_no_keys = !(bits & BIT_KEYS);
        shard->is_watched = true;
        self->is_answered = true;
        self->is_listed = bits & BIT_LISTED;
        advance->is_costly = !self->is_listed;
        if (!self->is_listed)
                view_forget(shard, VIEW_UNKNOWN);
        for (unsigned lane = 0; lane < LANES; lane++)
                shard->lanes[lane].small = (uint32_t)answer_number(
                        op, reply->element[REPLY_SMALL + lane], 2 * LANE_SMALL_ONLY, "number of elements");
        read_controls(op, advance, reply->element[REPLY_CONTROLS]);
        uint64_t now_ms = answer_number(op, reply->element[REPLY_NOW], TASK_NUMBER_MAX, "time");
        claimed_init(&self->claim, op, call->shard, count_tasks(op, reply), now_ms);
        read_tasks(op, shard, reply);
        self->dead = read_troubles(call, reply->element[REPLY_TROUBLES]);
        if (has_replies(advance))
                replies_look(op->s);
}
