/* An owner's call: outcomes in, tasks out, the lease renewed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
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

/* --- a call under way -------------------------------------------------------------------------------------------- */

/* What is claimed in the common case stays in its lane's list, and comes with an LRANGE that follows the script. */
struct advance_list {
        const struct redis_call *call; /* the LRANGE that is waited for; NULL: none */
        uint32_t from, reads;          /* what it asks for */
        bool has_last;  /* and before that for the last one that was claimed before: is it still there? */
        uint64_t first; /* the number of the first claimed task */
        uint32_t count; /* how many of what it reads are claimed */
        bool is_exact;  /* it was sent when the script had been answered */
        bool is_read;
};

struct advance_op {
        struct redis_claim claim;
        const struct redis_call *script;
        struct advance_list lists[LANES];
        uint32_t gone, dead;
        bool is_anew;     /* the store knew more than we did, so all was said once more */
        bool is_answered; /* by the script, and it was not fenced */
        bool is_listed;   /* what we know of the lists is what the store says */
        bool is_changed;  /* others have changed a list between the script and its LRANGE */
        bool is_ended;
};

/* So many elements of which nothing is known may be read at once. */
static uint32_t fresh_reads(const struct redis_store *s)
{
        uint64_t most = LANE_FRESH_BYTES / (s->store.payload_max + TASK_HEAD_MAX);
        return (uint32_t)max_u64(1, min_u64(most, LANE_FRESH_MAX));
}

void view_begin(struct redis_store *s, uint32_t shard)
{
        view_forget(&s->shards[shard], VIEW_EMPTY);
        for (unsigned lane = 0; lane < LANES; lane++)
                s->shards[shard].lanes[lane].small = 0;
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

/* The reply, as lua/shard/advance.lua says; the blocks come last. */
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

/* How many tasks a block has: in a list of its own, or in that of its lane. */
static uint64_t block_size(struct redis_op *op, const redisReply *tasks)
{
        if (tasks->type == REDIS_REPLY_ARRAY)
                return tasks->elements;
        return answer_number(op, tasks, CLAIMED_MAX, "number of tasks");
}

/* How many tasks all blocks have; 0 if they are no blocks, or too many: the request has failed then. */
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

/* Tasks of consecutive seqs.  False if it is none. */
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

/* The next elements of a lane's list were claimed.  False if they cannot be those that the LRANGE asked for. */
static bool note_list(struct redis_op *op, struct redis_lane *lane, uint64_t seq, uint32_t count)
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
        /* Somebody has written another number there: these are claimed all the same. */
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
                                        : note_list(op, lane, seq, (uint32_t)block_size(op, tasks));
                if (!is_block)
                        op_bad_value(op, "block of tasks");
                lane->calls = LANE_CALLS;
        }
        /* Their bytes go with this answer, and others are to come. */
        if (op->pending > 1)
                claimed_keep(&self->claim, op, 0);
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
                if (advance->outcomes[i].task.reply_ms || advance->outcomes[i].merged_count)
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

static void advance_send(struct redis_op *op);

/* What the store has of the lists is not what we thought: it is told by seq what is done, and moves what is in flight
 * out of them. */
static void send_anew(struct redis_op *op, struct redis_shard *shard)
{
        struct advance_op *self = op->self;
        view_forget(shard, VIEW_UNKNOWN);
        if (self->is_anew) {
                op_bad_answer(op);
                return;
        }
        self->is_anew = true;
        advance_send(op);
}

/* Only RPUSH leaves the places of what is claimed alone.  After anything else nobody knows which task is which, so that
 * the shard counts as lost: what is acquired anew comes with its bytes. */
static void list_changed(struct redis_op *op, uint32_t shard)
{
        ((struct store_advance *)op->request)->verdict = STORE_FENCED;
        op->s->shards[shard].is_watched = false;
        log_event(LEVEL_ERROR, "list-changed", "app=%s shard=%" PRIu32 " text=%s", op->s->store.app, shard,
                LOG_QUOTE(
                        "somebody else has changed a list of this shard with another command than RPUSH; the shard is "
                        "acquired anew, and what was claimed from its lists and is not done runs again"));
}

static void advance_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[call->shard];
        if (reply_is_fenced(reply)) {
                shard->is_watched = false;
                return;
        }
        if (span_is(reply_span(reply), SPAN_TEXT("OTHER"))) {
                list_changed(call->op, call->shard);
                return;
        }
        if (span_is(reply_span(reply), SPAN_TEXT("ANEW"))) {
                send_anew(op, shard);
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

/* --- lists ------------------------------------------------------------------------------------------------------- */

/* Whether the server has read the list after the script, and at once.  A script that was sent again, to another server
 * or as text, may have come after it. */
static bool is_in_order(const struct advance_op *self, const struct redis_call *call)
{
        const struct advance_list *list = &self->lists[call->number];
        return list->is_exact || (self->is_answered && self->script->command.sends == 1 && call->command.sends == 1);
}

static bool is_last(const struct redis_lane *lane, struct span bytes)
{
        struct span last = lane_last(lane);
        bytes.size = min_u64(bytes.size, LANE_LOOK_BYTES);
        return span_is(bytes, last);
}

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct advance_op *self = op->self;
        struct advance_list *list = &self->lists[call->number];
        struct redis_lane *lane = &op->s->shards[call->shard].lanes[call->number];
        if (list->call != call || !list->count || !is_in_order(self, call) || op->request->status)
                return;
        if (list->has_last && !is_last(lane, reply_span(reply_at(reply, 0)))) {
                self->is_changed = true;
                return;
        }
        uint32_t before = self->claim.count;
        for (uint32_t i = 0; i < list->count; i++) {
                const redisReply *task = reply_at(reply, i + list->has_last);
                if (!task || task->type != REDIS_REPLY_STRING) {
                        op_bad_value(op, "list of tasks");
                        return;
                }
                if (self->is_listed)
                        lane_add(lane, reply_span(task));
                lane_see(lane, reply_span(task));
                claimed_add(&self->claim, op, (uint64_t)call->number << STORE_SEQ_LANE_SHIFT | (list->first + i),
                        reply_span(task), (struct span){ 0 }, false);
        }
        lane_remember(lane, self->is_listed ? list->first + list->count - 1 : 0,
                self->is_listed ? reply_span(reply_at(reply, list->count - 1 + list->has_last)) : (struct span){ 0 });
        list->is_read = true;
        if (op->pending > 1)
                claimed_keep(&self->claim, op, before);
}

static void list_send(struct redis_op *op, uint32_t shard, unsigned lane)
{
        struct advance_list *list = &((struct advance_op *)op->self)->lists[lane];
        struct redis_call *call = call_new(op, "LRANGE", 3);
        call->answer = list_answer;
        call->shard = shard;
        call->number = lane;
        call_put(call, key_of_lane(op->s, shard, (enum lane)lane));
        call_put_number(call, list->from - list->has_last);
        call_put_number(call, list->from + list->reads - 1);
        list->call = call;
        if (((const struct store_advance *)op->request)->calls_again)
                call_send_untracked(call);
        else
                call_send(call);
}

/* Where the list was read too early, or not at all, it is read now.  What we have claimed stays where it is for as long
 * as we own the shard. */
static bool read_again(struct redis_op *op, uint32_t shard)
{
        struct advance_op *self = op->self;
        bool is_sent = false;
        for (unsigned lane = 0; lane < LANES; lane++) {
                struct advance_list *list = &self->lists[lane];
                if (!list->count || list->is_read)
                        continue;
                list->is_exact = is_sent = true;
                list->reads = list->count;
                list_send(op, shard, lane);
        }
        return is_sent;
}

static void advance_after(struct redis_op *op)
{
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        uint32_t shard = advance->lease.shard;
        if (self->is_answered && !self->is_ended && !op->request->status && self->is_changed) {
                list_changed(op, shard);
                self->is_answered = false;
                self->claim.count = self->claim.aside_count = 0;
        }
        if (self->is_answered && !self->is_ended && !op->request->status) {
                if (read_again(op, shard)) {
                        /* What came with this answer goes with it. */
                        claimed_keep(&self->claim, op, 0);
                        return;
                }
                op->s->shards[shard].view = self->is_listed ? VIEW_KNOWN : VIEW_EMPTY;
                advance->tasks = self->claim.tasks;
                advance->tasks_count = self->claim.count;
                advance->set_aside = self->claim.dead_count + self->dead;
        }
        if (!self->is_ended) {
                self->is_ended = true;
                if (claimed_set_aside(&self->claim, op, &advance->lease, aside_answer))
                        return;
        }
        if (op->request->status || !self->is_answered)
                view_forget(&op->s->shards[shard], VIEW_UNKNOWN);
        request_finish(op->request, op->request->status);
}

/* --- the call ---------------------------------------------------------------------------------------------------- */

/* The shard's field `claimed`, as it should be. */
static struct span view_text(struct redis_op *op, const struct redis_shard *shard)
{
        struct buffer b = { 0 };
        if (shard->view == VIEW_UNKNOWN)
                return SPAN_TEXT("-");
        if (shard->view == VIEW_EMPTY)
                return (struct span){ 0 };
        for (unsigned lane = 0; lane < LANES; lane++) {
                buffer_printf(&b, "%s%" PRIu32, lane ? " " : "", shard->lanes[lane].count);
                lane_text(&shard->lanes[lane], &b);
        }
        struct span text = arena_copy(request_arena(op->request), (struct span){ (const char *)b.data, b.size });
        buffer_free(&b);
        return text;
}

/* Marks what is done and stands in a list, and returns how many these are.  The seqs of the others are `rest`. */
static uint32_t mark_done(struct redis_op *op, struct redis_shard *shard, uint64_t *rest, uint32_t *ret_rest)
{
        struct advance_op *self = op->self;
        const struct store_advance *advance = (const struct store_advance *)op->request;
        uint32_t done = 0, count = 0;
        self->gone = 0;
        for (uint32_t i = 0; i < advance->outcomes_count; i++) {
                uint64_t seq = min_u64(advance->outcomes[i].task.seq, STORE_SEQ_MAX);
                switch (lane_mark_done(&shard->lanes[STORE_SEQ_LANE(seq)], STORE_SEQ_NUMBER(seq))) {
                case LANE_DONE:
                        done++;
                        break;
                case LANE_GONE:
                        self->gone++;
                        break;
                case LANE_ELSEWHERE:
                        rest[count++] = seq;
                        break;
                }
        }
        *ret_rest = count;
        return done;
}

/* How many elements of a lane are read with this call: those that are known to be small, and some more, of which
 * nothing is known, unless the others are large. */
static uint32_t list_reads(const struct redis_op *op, const struct redis_lane *lane, unsigned number)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        uint32_t most =
                lane->small >= LANE_SMALL_ONLY ? lane->small - LANE_SMALL_ONLY : lane->small + fresh_reads(op->s);
        uint32_t reads = (uint32_t)min_u64(advance->want[number], most);
        bool is_long = lane->count + reads > LANE_PLACES_MAX || lane->bytes >= LANE_BYTES_MAX;
        return is_long ? 0 : reads;
}

/* How many of them need not be looked at, since they fit. */
static uint32_t list_small(const struct redis_op *op, const struct redis_lane *lane)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        return lane->small < LANE_SMALL_ONLY && advance->want_bytes == STORE_CALL_BYTES ? lane->small : 0;
}

static void put_lane(struct redis_op *op, struct redis_call *call, unsigned number, bool is_plain_call)
{
        struct advance_op *self = op->self;
        struct redis_lane *lane = &op->s->shards[call->shard].lanes[number];
        struct buffer text = { 0 };
        bool is_view = op->s->shards[call->shard].view != VIEW_UNKNOWN;
        struct span last = lane->count || !is_view ? lane_last(lane) : (struct span){ 0 };
        call_put_number(call, is_view ? lane_trim(lane) : lane->last_number);
        call_put_number(call, lane->count);
        lane_text(lane, &text);
        call_put(call, arena_copy(request_arena(op->request), (struct span){ (const char *)text.data, text.size }));
        buffer_free(&text);
        self->lists[number] = (struct advance_list){ .from = lane->count, .has_last = lane->count > 0 };
        if (is_plain_call)
                self->lists[number].reads = list_reads(op, lane, number);
        call_put_number(call, self->lists[number].reads);
        call_put_number(call, list_small(op, lane));
        /* Twice what they had so far, and what Redis adds: beyond that there are others among them. */
        call_put_number(call, 2 * lane->average + 64);
        /* A copy: it is said as it was, also if the call is sent again when others have been claimed. */
        call_put(call, arena_copy(request_arena(op->request), last));
}

/* Whether a lane besides `normal` has to be named. */
static bool is_used(struct redis_lane *lane, bool is_view)
{
        if (lane->count || (!is_view && lane->last_size))
                return true;
        if (!lane->calls)
                return false;
        lane->calls--;
        return true;
}

/* Everything behind the outcomes, as lua/shard/advance.lua says. */
static void put_lists(struct redis_op *op, struct redis_call *call, bool is_plain_call)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[call->shard];
        uint64_t *seqs = arena_take(request_arena(op->request), advance->outcomes_count * sizeof(*seqs));
        uint32_t done = 0, seqs_count = 0;
        uint64_t bytes = 0;
        bool is_view = shard->view != VIEW_UNKNOWN;
        bool is_high = is_used(&shard->lanes[LANE_HIGH], is_view), is_low = is_used(&shard->lanes[LANE_LOW], is_view);
        call_put(call, view_text(op, shard));
        if (is_plain_call)
                done = mark_done(op, shard, seqs, &seqs_count);
        for (unsigned lane = 0; lane < LANES; lane++)
                bytes = max_u64(bytes, shard->lanes[lane].bytes);
        call_put_number(call, done);
        call_put_number(call, LANE_SAMPLES + bytes / LANE_SAMPLE_BYTES);
        call_put_number(call, is_high || is_low ? 35 : 21);
        put_lane(op, call, LANE_NORMAL, is_plain_call && is_view);
        if (is_high || is_low) {
                put_lane(op, call, LANE_HIGH, is_plain_call && is_view);
                put_lane(op, call, LANE_LOW, is_plain_call && is_view);
        }
        for (uint32_t i = 0; i < seqs_count; i++)
                call_put_number(call, seqs[i]);
        /* Until it is answered nobody knows. */
        shard->view = VIEW_UNKNOWN;
}

static void advance_send(struct redis_op *op)
{
        struct redis_store *s = op->s;
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        uint32_t shard = advance->lease.shard;
        bool is_plain_call = all_plain(advance, s->shards[shard].has_no_keys);
        unsigned args = 34 + advance->outcomes_count;
        struct redis_call *call = advance->calls_again ? call_script_unrung(op, SCRIPT_advance, shard, args)
                                                       : call_script(op, SCRIPT_advance, shard, args);
        memset(self->lists, 0, sizeof(self->lists));
        self->script = call;
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
                packed = outcomes_pack(&s->store, advance, request_arena(op->request));
        call_put(call, packed);
        put_lists(op, call, is_plain_call);
        if (advance->calls_again)
                call_send_untracked(call);
        else
                call_send_tracked(call);
        for (unsigned lane = 0; lane < LANES; lane++)
                if (self->lists[lane].reads)
                        list_send(op, shard, lane);
}

void redis_advance(struct redis_store *s, struct store_request *request)
{
        struct store_advance *advance = (struct store_advance *)request;
        struct redis_op *op = op_begin(s, request);
        op->self = arena_take(request_arena(request), sizeof(struct advance_op));
        op->after = advance_after;
        advance->tasks_count = advance->controls_count = advance->gone = advance->set_aside = 0;
        advance->has_outbox = advance->is_refused = advance->has_due_waiting = false;
        memset(advance->has_more, 0, sizeof(advance->has_more));
        advance->verdict = STORE_FENCED;
        advance_send(op);
}
