/* Sends advances of several shards in one script, lua/shard/advance_many.lua.  Running a script costs the server as
 * much as its work for one shard, so all advances of a turn of the loop go together.
 *
 * Only the common case goes this way, and not in a Cluster, where a script may touch only one slot.  The reads that
 * make the doorbell ring follow the script as commands of their own: inside the script, every read would make Redis
 * remember all keys that the script was given. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "store/redis/shard/advance_private.h"

#define MANY_MAX 32u
/* As advance_many.lua documents them. */
#define MANY_KEYS      2u
#define MANY_HEAD      2u
#define MANY_ARGUMENTS 11u
#define MANY_WORDS     (3 + MANY_HEAD + MANY_MAX * (MANY_KEYS + MANY_ARGUMENTS))
/* After an uncommon case, this many advances of the shard are sent alone. */
#define SINGLES 64u

/* One of the advances. */
struct many_part {
        struct redis_op *op;
        struct redis_call *arguments;
        uint32_t shard;
        bool rings;
};

/* Freed when both of its commands are answered. */
struct advance_many {
        struct redis_command script;
        struct redis_command look; /* EXISTS of keys that usually do not exist, so that they ring when created */
        struct redis_store *s;
        unsigned pending;
        unsigned count;
        uint64_t ttl_ms, samples;
        struct many_part parts[MANY_MAX];
        char numbers[3][24]; /* ttl, samples, keys */
        const char *argv[MANY_WORDS];
        size_t sizes[MANY_WORDS];
        const char *look_argv[1 + MANY_MAX * RARE_KEYS];
        size_t look_sizes[1 + MANY_MAX * RARE_KEYS];
};

static void many_free(struct advance_many *many)
{
        if (!--many->pending)
                free(many);
}

/* --- what comes back --- */

/* Reads the script's answer for one shard; 0: uncommon case, nothing was done. */
static void part_answer(const struct many_part *part, const redisReply *reply, uint64_t now_ms, bool is_sent_once)
{
        struct redis_op *op = part->op;
        struct advance_op *self = op->self;
        struct store_advance *advance = (struct store_advance *)op->request;
        struct redis_shard *shard = &op->s->shards[part->shard];
        struct redis_lane *lane = &shard->lanes[LANE_NORMAL];
        self->is_sent_once = is_sent_once;
        if (reply->type == REDIS_REPLY_INTEGER && !reply->integer) {
                shard->singles = SINGLES;
                advance_send_anew(op);
                return;
        }
        if (reply_count(reply) != 4) {
                op_bad_answer(op);
                return;
        }
        advance->verdict = STORE_OK;
        advance->has_more[LANE_NORMAL] = answer_bool(op, reply->element[0], "has more");
        advance->next_due_ms = STORE_NEVER;
        advance->left_ms = advance->lease.ttl_ms;
        advance->wanted = STORE_NOT_WANTED;
        advance->gone = self->gone;
        shard->is_watched = true;
        self->is_answered = self->is_listed = true;
        for (unsigned i = 0; i < LANES; i++)
                shard->lanes[i].small = 0;
        lane->small = (uint32_t)answer_number(op, reply->element[1], LANE_SMALL_ONLY - 1, "number of elements");
        uint64_t last = answer_number(op, reply->element[2], STORE_SEQ_NUMBER(UINT64_MAX) - STORE_CALL_TASKS, "seq");
        uint32_t count = (uint32_t)answer_number(op, reply->element[3], STORE_CALL_TASKS, "number of tasks");
        claimed_init(&self->claim, op, part->shard, count, now_ms);
        if (!count || op->request->status)
                return;
        if (!advance_note_list(op, lane, (uint64_t)LANE_NORMAL << STORE_SEQ_LANE_SHIFT | (last + 1), count))
                op_bad_value(op, "block of tasks");
        lane->calls = LANE_CALLS;
}

static void fail_all(struct advance_many *many, int status, const char *text)
{
        for (unsigned i = 0; i < many->count; i++)
                op_fail(many->parts[i].op, status, "%s: %s", store_op_name(many->parts[i].op->request->op), text);
}

static void on_script(struct redis_command *command)
{
        struct advance_many *many = container_of(command, struct advance_many, script);
        const redisReply *reply = command->reply;
        uint64_t now_ms = 0;
        char text[512];
        if (command->status) {
                refusal_describe(many->s, command, text, sizeof(text));
                fail_all(many, command->status, text);
        } else if (reply_count(reply) != 1 + many->count) {
                for (unsigned i = 0; i < many->count; i++)
                        op_bad_answer(many->parts[i].op);
        } else {
                for (unsigned i = 0; i < many->count; i++)
                        now_ms = answer_number(many->parts[i].op, reply->element[0], TASK_NUMBER_MAX, "time");
        }
        for (unsigned i = 0; i < many->count; i++) {
                const struct many_part *part = &many->parts[i];
                if (!part->op->request->status)
                        part_answer(part, reply->element[1 + i], now_ms, command->sends == 1);
                /* If the script was sent again, the reads that make it ring came before it, and its own writes used
                 * them up. */
                if (part->rings && command->sends != 1)
                        bell_own_write(many->s, part->shard);
                op_answered(part->op);
        }
        many_free(many);
}

/* If one of the keys exists, it was created after the script looked: ring. */
static void on_look(struct redis_command *command)
{
        struct advance_many *many = container_of(command, struct advance_many, look);
        const redisReply *reply = command->reply;
        bool is_none = !command->status && reply->type == REDIS_REPLY_INTEGER && !reply->integer;
        for (unsigned i = 0; i < many->count && !is_none && command->status != -ECANCELED; i++)
                if (many->parts[i].rings)
                        bell_own_write(many->s, many->parts[i].shard);
        many_free(many);
}

/* If another host wants the shard, it did so after the script looked: ring. */
static void want_answer(struct redis_call *call, const redisReply *reply)
{
        if (reply->type != REDIS_REPLY_NIL)
                bell_own_write(call->op->s, call->shard);
}

/* --- what goes out --- */

static void put_word(struct advance_many *many, struct span word)
{
        int at = many->script.argc++;
        many->argv[at] = word.data;
        many->sizes[at] = word.size;
}

static void put_number(struct advance_many *many, char text[24], uint64_t number)
{
        put_word(many, (struct span){ text, (size_t)snprintf(text, 24, "%llu", (unsigned long long)number) });
}

static void put_look(struct advance_many *many, struct span word)
{
        int at = many->look.argc++;
        many->look_argv[at] = word.data;
        many->look_sizes[at] = word.size;
}

static void send_script(struct advance_many *many)
{
        struct redis_store *s = many->s;
        many->script.script = &s->scripts.all[SCRIPT_advance_many];
        put_word(many, SPAN_TEXT("EVALSHA"));
        put_word(many, (struct span){ many->script.script->sha, 40 });
        put_number(many, many->numbers[0], MANY_KEYS * many->count);
        for (unsigned i = 0; i < many->count; i++) {
                put_word(many, key_of_lease(s, many->parts[i].shard));
                put_word(many, key_of_lane(s, many->parts[i].shard, LANE_NORMAL));
        }
        put_number(many, many->numbers[1], many->ttl_ms);
        put_number(many, many->numbers[2], many->samples);
        for (unsigned i = 0; i < many->count; i++)
                for (unsigned j = 0; j < MANY_ARGUMENTS; j++)
                        put_word(many,
                                (struct span){ many->parts[i].arguments->argv[j], many->parts[i].arguments->sizes[j] });
        many->script.done = on_script;
        many->script.argv = many->argv;
        many->script.argv_size = many->sizes;
        many->script.is_untracked = true;
        many->script.route = key_of_lease(s, many->parts[0].shard);
        many->pending++;
        redis_send(s->redis, &many->script);
}

static void send_look(struct advance_many *many)
{
        struct redis_store *s = many->s;
        put_look(many, SPAN_TEXT("EXISTS"));
        for (unsigned i = 0; i < many->count; i++)
                for (unsigned j = 0; many->parts[i].rings && j < RARE_KEYS; j++)
                        put_look(many, key_of_rare(s, many->parts[i].shard, j));
        if (many->look.argc == 1)
                return;
        many->look.done = on_look;
        many->look.argv = many->look_argv;
        many->look.argv_size = many->look_sizes;
        many->look.is_tracked = true;
        many->look.route = key_of_lease(s, many->parts[0].shard);
        many->pending++;
        redis_send(s->redis, &many->look);
}

/* The LRANGE comes last: if nothing else is pending, tasks are taken from its answer without a copy. */
static void send_reads(const struct many_part *part)
{
        struct redis_op *op = part->op;
        if (part->rings) {
                struct redis_call *want = call_new(op, "HGET", 2);
                want->answer = want_answer;
                want->shard = part->shard;
                call_put(want, key_of_lease(op->s, part->shard));
                call_put(want, SPAN_TEXT("want"));
                call_send_tracked(want);
        }
        if (((struct advance_op *)op->self)->lists[LANE_NORMAL].reads)
                advance_list_send(op, part->shard, LANE_NORMAL);
}

void many_flush(struct redis_store *s)
{
        struct advance_many *many = s->many;
        if (!many)
                return;
        s->many = NULL;
        (void)uv_idle_stop(&s->unsent);
        /* Our own reference, until everything is sent. */
        many->pending = 1;
        send_script(many);
        send_look(many);
        for (unsigned i = 0; i < many->count; i++)
                send_reads(&many->parts[i]);
        many_free(many);
}

void many_cancel(struct redis_store *s)
{
        struct advance_many *many = s->many;
        s->many = NULL;
        for (unsigned i = 0; many && i < many->count; i++)
                request_finish(many->parts[i].op->request, -ECANCELED);
        free(many);
}

static void on_unsent(uv_idle_t *idle)
{
        many_flush(idle->data);
}

static struct advance_many *many_ensure(struct redis_store *s, uint64_t ttl_ms)
{
        /* After a reload of the configuration shards may have different TTLs. */
        if (s->many && (s->many->count == MANY_MAX || s->many->ttl_ms != ttl_ms))
                many_flush(s);
        if (!s->many) {
                s->many = memory_zero(1, sizeof(*s->many));
                s->many->s = s;
                s->many->ttl_ms = ttl_ms;
                (void)uv_idle_start(&s->unsent, on_unsent);
        }
        return s->many;
}

/* Whether all ended tasks are in the list of `normal`. */
static bool all_in_list(const struct store_advance *advance, const struct redis_lane *lane)
{
        for (uint32_t i = 0; i < advance->outcomes_count; i++) {
                uint64_t seq = advance->outcomes[i].task.seq;
                if (STORE_SEQ_LANE(seq) != LANE_NORMAL || !lane_has(lane, STORE_SEQ_NUMBER(seq)))
                        return false;
        }
        return true;
}

static bool is_common(const struct redis_op *op, const struct redis_shard *shard)
{
        const struct store_advance *advance = (const struct store_advance *)op->request;
        const struct redis_lane *lanes = shard->lanes;
        if (op->s->is_cluster || shard->singles || shard->view == VIEW_UNKNOWN || !shard->has_no_keys ||
                advance->want_bytes != STORE_CALL_BYTES || !advance_is_plain(advance, true))
                return false;
        for (unsigned lane = 0; lane < LANES; lane++)
                if (lane != LANE_NORMAL && (lanes[lane].count || lanes[lane].calls))
                        return false;
        /* A list that is not read would not ring either. */
        if (!advance_reads(op, &lanes[LANE_NORMAL], LANE_NORMAL) &&
                (advance->want[LANE_NORMAL] || !advance->calls_again))
                return false;
        return all_in_list(advance, &lanes[LANE_NORMAL]);
}

bool advance_join(struct redis_op *op)
{
        struct redis_store *s = op->s;
        struct advance_op *self = op->self;
        const struct store_advance *advance = (const struct store_advance *)op->request;
        uint32_t number = advance->lease.shard, rest = 0;
        struct redis_shard *shard = &s->shards[number];
        struct redis_lane *lane = &shard->lanes[LANE_NORMAL];
        if (!is_common(op, shard))
                return false;
        struct advance_many *many = many_ensure(s, advance->lease.ttl_ms);
        struct redis_call *arguments = call_arguments(op, MANY_ARGUMENTS);
        call_put_lease(arguments, &advance->lease);
        call_put_number(arguments, advance->call);
        call_put(arguments, advance_view(op, shard));
        call_put_number(arguments, advance_mark_done(op, shard, NULL, &rest));
        struct span last = lane->count ? arena_copy(request_arena(op->request), lane_last(lane)) : (struct span){ 0 };
        call_put_number(arguments, lane_trim(lane));
        call_put_number(arguments, lane->count);
        call_put(arguments, advance_marks(op, lane));
        self->rings = !advance->calls_again;
        self->lists[LANE_NORMAL] = (struct advance_list){
                .from = lane->count, .has_last = lane->count > 0, .reads = advance_reads(op, lane, LANE_NORMAL)
        };
        call_put_number(arguments, self->lists[LANE_NORMAL].reads);
        call_put_number(arguments, advance_small(op, lane));
        call_put_number(arguments, lane_large(lane));
        call_put(arguments, last);
        many->samples = max_u64(many->samples, advance_samples(shard));
        many->parts[many->count++] =
                (struct many_part){ .op = op, .arguments = arguments, .shard = number, .rings = self->rings };
        shard->view = VIEW_UNKNOWN; /* unknown until the call is answered */
        op->pending++;
        return true;
}
