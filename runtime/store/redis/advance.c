/* An owner's call: outcomes in, tasks out, the lease renewed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "store/redis/msgpack.h"
#include "store/redis/redis_store.h"

/* --- what goes out ----------------------------------------------------------------------------------------------- */

/* Done, and nothing else: its seq says it all.  Where no key waits there is nothing to refill from. */
static bool is_plain(const struct store_outcome *outcome, bool has_no_keys)
{
        return outcome->kind == STORE_DONE && !outcome->has_result && !outcome->task.reply_ms &&
               !outcome->follow_ups_count && (has_no_keys || !outcome->refill);
}

static bool all_plain(const struct store_advance *advance, bool has_no_keys)
{
        for (uint32_t i = 0; i < advance->outcomes_count; i++)
                if (!is_plain(&advance->outcomes[i], has_no_keys))
                        return false;
        return true;
}

static uint64_t bounded(uint64_t ms)
{
        return min_u64(ms, TASK_NUMBER_MAX / 4);
}

static void pack_follow_up(struct buffer *b, const struct store_prepared *f, uint32_t shard)
{
        msgpack_array(b, 5);
        msgpack_number(b, f->shard == shard ? 0 : f->shard + 1);
        msgpack_number(b, f->lane);
        msgpack_number(b, f->not_before_ms);
        msgpack_number(b, bounded(f->delay_ms));
        msgpack_bytes(b, f->bytes);
}

static void pack_outcome(struct buffer *b, const struct store_outcome *o)
{
        const struct store_ref *task = &o->task;
        struct span error = o->error;
        if (error.size > NOTE_TEXT_MAX)
                error.size = NOTE_TEXT_MAX;
        msgpack_array(b, 19);
        msgpack_number(b, o->kind);
        msgpack_number(b, task->seq);
        msgpack_bytes(b, task->id);
        msgpack_bytes(b, task->key);
        msgpack_bytes(b, task->handler);
        msgpack_number(b, task->reply_ms);
        msgpack_number(b, o->cost);
        msgpack_number(b, bounded(o->delay_ms));
        msgpack_number(b, o->refill);
        msgpack_number(b, o->is_suspect);
        msgpack_number(b, o->has_result);
        msgpack_bytes(b, o->reason);
        msgpack_bytes(b, error);
        msgpack_bytes(b, o->result);
        msgpack_bytes(b, o->checkpoint);
        msgpack_bytes(b, o->name);
        msgpack_bytes(b, o->holder);
        msgpack_number(b, min_u64(o->until_ms, STORE_START_MAX_MS));
        msgpack_array(b, o->follow_ups_count);
}

static struct span pack_outcomes(
        const struct store *store, const struct store_advance *advance, struct arena_chunk **arena)
{
        struct buffer b = { 0 };
        const struct store_prepared *follow_up = advance->prepared;
        msgpack_array(&b, 3);
        msgpack_number(&b, store->results_max);
        msgpack_number(&b, store->results_age_ms);
        msgpack_array(&b, advance->outcomes_count);
        for (uint32_t i = 0; i < advance->outcomes_count; i++) {
                pack_outcome(&b, &advance->outcomes[i]);
                for (uint32_t j = 0; j < advance->outcomes[i].follow_ups_count; j++)
                        pack_follow_up(&b, follow_up++, advance->lease.shard);
        }
        struct span packed = arena_copy(arena, (struct span){ (const char *)b.data, b.size });
        buffer_free(&b);
        return packed;
}

/* --- what comes back --------------------------------------------------------------------------------------------- */

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
                advance->controls[advance->controls_count++] =
                        (struct store_control){ .verb = (enum store_control_verb)answer_number(
                                                        op, reply_at(row, 0), CONTROL_SCHEDULES, "control"),
                                .key = arena_copy(arena, reply_span(reply_at(row, 1))),
                                .id = arena_copy(arena, reply_span(reply_at(row, 2))),
                                .seq = answer_number(op, reply_at(row, 3), STORE_SEQ_MAX, "control's seq") };
        }
}

/* The reply, as lua/advance.lua says; the blocks come last. */
enum { REPLY_BITS, REPLY_NOW, REPLY_LEFT, REPLY_GONE, REPLY_DUE, REPLY_CONTROLS, REPLY_TROUBLES, REPLY_BLOCKS };
enum { BITS_MORE = 1, BIT_OUTBOX = 8, BIT_KEYS = 16, BIT_REFUSED = 32, BITS_WANTED_SHIFT = 6, BIT_DUE_WAITING = 256 };
#define BITS_MAX (BIT_DUE_WAITING | STORE_WANTED_FIRM << BITS_WANTED_SHIFT | 63)

/* How many tasks all blocks have; 0 if they are no blocks, or too many: the request has failed then. */
static uint32_t count_tasks(struct redis_op *op, const redisReply *reply)
{
        uint64_t sum = 0;
        for (size_t i = REPLY_BLOCKS; i + 2 < reply_count(reply); i += 3)
                sum += reply_count(reply->element[i + 1]);
        if ((reply_count(reply) - REPLY_BLOCKS) % 3 == 0 && sum <= CLAIMED_MAX)
                return (uint32_t)sum;
        op_bad_value(op, "number of tasks");
        return 0;
}

/* Tasks of consecutive seqs.  False if it is none. */
static bool read_block(
        struct redis_claim *c, struct redis_op *op, uint64_t seq, const redisReply *tasks, const redisReply *notes)
{
        bool has_notes = notes->type == REDIS_REPLY_ARRAY;
        if (tasks->type != REDIS_REPLY_ARRAY || (has_notes && notes->elements != tasks->elements))
                return false;
        for (size_t i = 0; i < tasks->elements; i++) {
                const redisReply *task = tasks->element[i];
                struct span note = has_notes ? reply_span(notes->element[i]) : (struct span){ 0 };
                if (task->type != REDIS_REPLY_STRING)
                        return false;
                claimed_add(c, op, seq++, reply_span(task), note, false);
        }
        return true;
}

static void read_tasks(struct redis_claim *c, struct redis_op *op, const redisReply *reply)
{
        for (size_t i = REPLY_BLOCKS; i + 2 < reply_count(reply) && !op->request->status; i += 3) {
                uint64_t seq = answer_number(op, reply->element[i], STORE_SEQ_MAX, "seq");
                if (!read_block(c, op, seq, reply->element[i + 1], reply->element[i + 2]))
                        op_bad_value(op, "block of tasks");
        }
}

/* Tasks that were too long and are dead, and records that cannot be read: a line about each.  Returns how many are
 * dead. */
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
                if (advance->outcomes[i].task.reply_ms)
                        return true;
        return false;
}

static void aside_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_advance *advance = (struct store_advance *)call->op->request;
        if (reply_is_fenced(reply))
                return; /* the next call will hear of it */
        advance->next_due_ms = min_u64(advance->next_due_ms, answer_due(call->op, reply_at(reply, 0)));
        for (unsigned lane = 0; lane < LANES && !advance->next_due_ms; lane++)
                advance->has_more[lane] = true;
}

static void advance_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct store_advance *advance = (struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[call->shard];
        struct redis_claim c;
        if (reply_is_fenced(reply)) {
                shard->is_watched = false;
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
        advance->gone = (uint32_t)answer_number(op, reply->element[REPLY_GONE], STORE_CALL_TASKS, "number of gone");
        shard->has_no_keys = !(bits & BIT_KEYS);
        shard->is_watched = true;
        read_controls(op, advance, reply->element[REPLY_CONTROLS]);
        uint64_t now_ms = answer_number(op, reply->element[REPLY_NOW], TASK_NUMBER_MAX, "time");
        claimed_init(&c, op, call->shard, count_tasks(op, reply), now_ms);
        read_tasks(&c, op, reply);
        advance->tasks = c.tasks;
        advance->tasks_count = c.count;
        advance->set_aside = c.dead_count + read_troubles(call, reply->element[REPLY_TROUBLES]);
        if (has_replies(advance))
                replies_look(op->s);
        (void)claimed_set_aside(&c, op, &advance->lease, aside_answer);
}

void redis_advance(struct redis_store *s, struct store_request *request)
{
        struct store_advance *advance = (struct store_advance *)request;
        struct redis_op *op = op_begin(s, request);
        bool is_plain_call = all_plain(advance, s->shards[advance->lease.shard].has_no_keys);
        advance->tasks_count = advance->controls_count = advance->gone = advance->set_aside = 0;
        advance->has_outbox = advance->is_refused = advance->has_due_waiting = false;
        memset(advance->has_more, 0, sizeof(advance->has_more));
        advance->verdict = STORE_FENCED;

        struct redis_call *call = call_script(op, SCRIPT_advance, advance->lease.shard, 9 + advance->outcomes_count);
        call->answer = advance_answer;
        call_put_lease(call, &advance->lease);
        call_put_number(call, advance->call);
        call_put_number(call, advance->lease.ttl_ms);
        for (unsigned lane = 0; lane < LANES; lane++)
                call_put_number(call, advance->want[lane]);
        call_put_number(call, advance->want_bytes);
        call_put_number(call, s->store.payload_max + TASK_HEAD_MAX);
        struct span packed = { 0 };
        if (!is_plain_call)
                packed = pack_outcomes(&s->store, advance, request_arena(request));
        call_put(call, packed);
        for (uint32_t i = 0; i < advance->outcomes_count && is_plain_call; i++)
                call_put_number(call, advance->outcomes[i].task.seq);
        call_send_tracked(call);
}
