/* The advance: commits outcomes, claims tasks and renews the lease. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "store/redis/shard/advance_private.h"

/* Whether the outcome is plain DONE, so that the seq is all that the store needs.  If no key waits, there is nothing to
 * refill from. */
static bool is_plain(const struct store_outcome *outcome, bool has_no_keys)
{
        return outcome->kind == STORE_DONE && !outcome->has_result && !outcome->task.reply_ms &&
               !outcome->follow_ups_count && (has_no_keys || !outcome->refill);
}

bool advance_is_plain(const struct store_advance *advance, bool has_no_keys)
{
        for (uint32_t i = 0; i < advance->outcomes_count; i++)
                if (!is_plain(&advance->outcomes[i], has_no_keys))
                        return false;
        return true;
}

/* How many elements of unknown size may be read at once. */
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

struct span advance_view(struct redis_op *op, const struct redis_shard *shard)
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

uint32_t advance_mark_done(struct redis_op *op, struct redis_shard *shard, uint64_t *rest, uint32_t *ret_rest)
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

uint32_t advance_reads(const struct redis_op *op, const struct redis_lane *lane, unsigned number)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        uint32_t most =
                lane->small >= LANE_SMALL_ONLY ? lane->small - LANE_SMALL_ONLY : lane->small + fresh_reads(op->s);
        uint32_t reads = (uint32_t)min_u64(advance->want[number], most);
        bool is_long = lane->count + reads > LANE_PLACES_MAX || lane->bytes >= LANE_BYTES_MAX;
        return is_long ? 0 : reads;
}

uint32_t advance_small(const struct redis_op *op, const struct redis_lane *lane)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        return lane->small < LANE_SMALL_ONLY && advance->want_bytes == STORE_CALL_BYTES ? lane->small : 0;
}

struct span advance_marks(struct redis_op *op, const struct redis_lane *lane)
{
        struct buffer text = { 0 };
        lane_text(lane, &text);
        struct span copy = arena_copy(request_arena(op->request), (struct span){ (const char *)text.data, text.size });
        buffer_free(&text);
        return copy;
}

uint64_t advance_samples(const struct redis_shard *shard)
{
        uint64_t bytes = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
                bytes = max_u64(bytes, shard->lanes[lane].bytes);
        return LANE_SAMPLES + bytes / LANE_SAMPLE_BYTES;
}

static void put_lane(struct redis_op *op, struct redis_call *call, unsigned number, bool is_plain_call)
{
        struct advance_op *self = op->self;
        struct redis_lane *lane = &op->s->shards[call->shard].lanes[number];
        bool is_view = op->s->shards[call->shard].view != VIEW_UNKNOWN;
        struct span last = lane->count || !is_view ? lane_last(lane) : (struct span){ 0 };
        call_put_number(call, is_view ? lane_trim(lane) : lane->last_number);
        call_put_number(call, lane->count);
        call_put(call, advance_marks(op, lane));
        self->lists[number] = (struct advance_list){ .from = lane->count, .has_last = lane->count > 0 };
        if (is_plain_call)
                self->lists[number].reads = advance_reads(op, lane, number);
        call_put_number(call, self->lists[number].reads);
        call_put_number(call, advance_small(op, lane));
        call_put_number(call, lane_large(lane));
        /* A copy, because a repeated call must send the same bytes even if more was claimed meanwhile. */
        call_put(call, arena_copy(request_arena(op->request), last));
}

/* Whether the call has to name this lane, which is not `normal`. */
static bool is_used(struct redis_lane *lane, bool is_view)
{
        if (lane->count || (!is_view && lane->last_size))
                return true;
        if (!lane->calls)
                return false;
        lane->calls--;
        return true;
}

/* Adds all arguments after the outcomes, as lua/shard/advance.lua documents them. */
static void put_lists(struct redis_op *op, struct redis_call *call, bool is_plain_call)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[call->shard];
        uint64_t *seqs = arena_take(request_arena(op->request), advance->outcomes_count * sizeof(*seqs));
        uint32_t done = 0, seqs_count = 0;
        bool is_view = shard->view != VIEW_UNKNOWN;
        bool is_high = is_used(&shard->lanes[LANE_HIGH], is_view), is_low = is_used(&shard->lanes[LANE_LOW], is_view);
        call_put(call, advance_view(op, shard));
        if (is_plain_call)
                done = advance_mark_done(op, shard, seqs, &seqs_count);
        call_put_number(call, done);
        call_put_number(call, advance_samples(shard));
        call_put_number(call, is_high || is_low ? 35 : 21);
        put_lane(op, call, LANE_NORMAL, is_plain_call && is_view);
        if (is_high || is_low) {
                put_lane(op, call, LANE_HIGH, is_plain_call && is_view);
                put_lane(op, call, LANE_LOW, is_plain_call && is_view);
        }
        for (uint32_t i = 0; i < seqs_count; i++)
                call_put_number(call, seqs[i]);
        /* The view is unknown until the call is answered. */
        shard->view = VIEW_UNKNOWN;
}

void advance_send(struct redis_op *op)
{
        struct redis_store *s = op->s;
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        uint32_t shard = advance->lease.shard;
        bool is_plain_call = advance_is_plain(advance, s->shards[shard].has_no_keys);
        unsigned args = 34 + advance->outcomes_count;
        struct redis_call *call = advance->calls_again ? call_script_unrung(op, SCRIPT_advance, shard, args)
                                                       : call_script(op, SCRIPT_advance, shard, args);
        memset(self->lists, 0, sizeof(self->lists));
        self->rings = false;
        s->shards[shard].singles -= s->shards[shard].singles > 0;
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
                        advance_list_send(op, shard, lane);
}

static void aside_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_advance *advance = (struct store_advance *)call->op->request;
        if (reply_is_fenced(reply))
                return; /* the next call will be FENCED, too */
        advance->next_due_ms = min_u64(advance->next_due_ms, answer_due(call->op, reply_at(reply, 0)));
        for (unsigned lane = 0; lane < LANES && !advance->next_due_ms; lane++)
                advance->has_more[lane] = true;
}

static void advance_after(struct redis_op *op)
{
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        uint32_t shard = advance->lease.shard;
        if (self->is_answered && !self->is_ended && !op->request->status && self->is_changed) {
                advance_list_changed(op, shard);
                self->is_answered = false;
                self->claim.count = self->claim.aside_count = 0;
        }
        if (self->is_answered && !self->is_ended && !op->request->status) {
                if (advance_read_again(op, shard)) {
                        /* The tasks' bytes are freed with this answer: copy them. */
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

void redis_advance(struct redis_store *s, struct store_request *request)
{
        struct store_advance *advance = (struct store_advance *)request;
        struct redis_op *op = op_begin(s, request);
        op->self = arena_take(request_arena(request), sizeof(struct advance_op));
        op->after = advance_after;
        advance->tasks_count = advance->controls_count = advance->gone = advance->set_aside = 0;
        advance->has_outbox = advance->is_refused = advance->has_due_waiting = advance->is_costly = false;
        memset(advance->has_more, 0, sizeof(advance->has_more));
        advance->verdict = STORE_FENCED;
        if (!advance_join(op))
                advance_send(op);
}
