/* Submitting tasks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "store/redis/redis_store.h"

/* Plain tasks take one RPUSH, as from a producer in any language.  Everything else takes a script per shard; the
 * portions of one shard follow each other, so that a portion refused for a full backlog is not overtaken by a later
 * one.
 *
 * A user may lack the right to the script (the role "producer" of quiver check --acl).  Then tasks that need it are
 * refused, and the backlog limit of the others is checked by the lists' lengths.  That limit is approximate: tasks that
 * others append meanwhile, and delayed or parked ones, do not count. */
struct submission_state {
        uint32_t *order;   /* indexes of the valid items, grouped by shard, in their order of arrival */
        uint32_t *call_of; /* per item: the number of the command that carries it; 0: none yet */
        bool *is_measured; /* per index into `order`: the lengths of the group's lists are known */
        uint32_t count;    /* entries of `order` */
        uint32_t calls;
        uint32_t stored;
        int failure;
        struct error error;
        uint64_t wait;   /* number of this submit's marks for WAIT */
        bool has_waited; /* WAIT was answered */
};

struct submission {
        struct redis_op op; /* first */
        struct submission_state state;
};

static struct submission *submission_of(struct redis_op *op)
{
        return (struct submission *)op;
}

/* Far below its limit a backlog need not be counted for every push: the length that RPUSH returns is enough. */
static bool is_near_limit(const struct redis_store *s, uint32_t shard, uint32_t tasks)
{
        uint64_t max = s->store.backlog_max;
        uint64_t known = s->shards[shard].backlog;
        return max != UINT64_MAX && (known > max / 2 || known + tasks > max / 2);
}

/* The items of one shard: a range of `order`. */
struct shard_items {
        uint32_t begin, end;
};

/* One pass of a stable radix sort by shard number. */
static void order_by_byte(
        const struct store_prepared *p, unsigned shift, const uint32_t *from, uint32_t *to, uint32_t count)
{
        uint32_t begins[257] = { 0 };
        for (uint32_t i = 0; i < count; i++)
                begins[1 + (p[from[i]].shard >> shift & 0xff)]++;
        for (unsigned i = 1; i < 257; i++)
                begins[i] += begins[i - 1];
        for (uint32_t i = 0; i < count; i++)
                to[begins[p[from[i]].shard >> shift & 0xff]++] = from[i];
}

_Static_assert(SHARDS_MAX <= 65536, "a shard's number has two bytes");

static void put_in_order(struct submission_state *state, const struct store_submit *submit, uint32_t *spare)
{
        for (uint32_t i = 0; i < submit->items_count; i++)
                if (submit->prepared[i].bytes.size)
                        state->order[state->count++] = i;
        if (state->count < 2)
                return;
        order_by_byte(submit->prepared, 0, state->order, spare, state->count);
        order_by_byte(submit->prepared, 8, spare, state->order, state->count);
}

static struct shard_items group_at(
        const struct submission_state *state, const struct store_submit *submit, uint32_t begin)
{
        struct shard_items g = { begin, begin + 1 };
        uint32_t shard = submit->prepared[state->order[begin]].shard;
        while (g.end < state->count && submit->prepared[state->order[g.end]].shard == shard)
                g.end++;
        return g;
}

/* Whether the item needs the script. */
static bool has_options(const struct store_prepared *p)
{
        return p->delay_ms || p->not_before_ms || p->unique_ms || p->idempotency.size;
}

static bool needs_script(const struct submission *sub, const struct store_submit *submit, struct shard_items g)
{
        const uint32_t *order = sub->state.order;
        if (sub->op.s->wait_replicas)
                return true;
        for (uint32_t i = g.begin; i < g.end; i++)
                if (has_options(&submit->prepared[order[i]]))
                        return true;
        return is_near_limit(sub->op.s, submit->prepared[order[g.begin]].shard, g.end - g.begin);
}

static bool is_waiting(const struct submission *sub, const struct store_submit *submit, uint32_t i)
{
        return !submit->items[i].status && !sub->state.call_of[i];
}

/* --- answers --- */

static void pushed(struct redis_call *call, const redisReply *reply)
{
        struct redis_shard *shard = &call->op->s->shards[call->shard];
        /* Tasks that left meanwhile are not subtracted; near the limit a script counts exactly. */
        uint64_t length = answer_number(call->op, reply, TASK_NUMBER_MAX, "length");
        shard->backlog += (uint64_t)call->command.argc - 2;
        if (length > shard->backlog)
                shard->backlog = length;
        submission_of(call->op)->state.stored++;
        bell_own_write(call->op->s, call->shard);
}

/* Compares the item with the shard's record of its idempotency name: the id and the digest in hex, both empty if
 * unreadable. */
static int remembered(struct store_submission *item, const struct store_prepared *p, const redisReply *said)
{
        struct span hex = reply_span(reply_at(said, 1));
        uint8_t digest[SHA256_SIZE];
        bool is_read = units_hex_read(hex.data, hex.size, digest, SHA256_SIZE);
        return submission_repeat(item, p, reply_span(reply_at(said, 0)),
                (struct span){ (const char *)digest, is_read ? SHA256_SIZE : 0 });
}

static void scripted(struct redis_call *call, const redisReply *reply)
{
        struct submission *sub = submission_of(call->op);
        struct store_submit *submit = (struct store_submit *)call->op->request;
        size_t at = 1;
        bool is_full = false;
        if (sub->op.s->store.backlog_max != UINT64_MAX)
                sub->op.s->shards[call->shard].backlog =
                        answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "backlog");
        for (uint32_t i = 0; i < submit->items_count; i++) {
                struct store_submission *item = &submit->items[i];
                if (sub->state.call_of[i] != call->number)
                        continue;
                const redisReply *said = reply_at(reply, at++);
                struct span first = reply_span(said);
                int status = first.size ? -EEXIST : 0;
                if (reply_count(said)) {
                        status = remembered(item, &submit->prepared[i], said);
                } else if (!first.size) {
                        uint64_t verdict = answer_number(call->op, said, 2, "verdict");
                        is_full |= verdict == 1;
                        status = verdict == 1 ? -EDQUOT : verdict ? -ENOBUFS : 0;
                }
                submission_settle(submit, i, status, first);
        }
        sub->state.stored++;
        for (uint32_t i = 0; i < submit->items_count && is_full; i++)
                if (submit->prepared[i].bytes.size && submit->prepared[i].shard == call->shard &&
                        is_waiting(sub, submit, i))
                        submission_settle(submit, i, -EDQUOT, (struct span){ 0 });
        bell_own_write(call->op->s, call->shard);
}

/* The user may not run the script: items that do not need it will be sent without. */
static void denied(struct submission *sub, struct store_submit *submit, const struct redis_call *call)
{
        sub->op.s->no_scripts = call->command.error;
        for (uint32_t i = 0; i < submit->items_count; i++)
                if (sub->state.call_of[i] == call->number)
                        sub->state.call_of[i] = 0;
}

static void failed(struct redis_call *call)
{
        struct submission *sub = submission_of(call->op);
        struct store_submit *submit = (struct store_submit *)call->op->request;
        if (call->command.status == -EPERM && call->command.script && !sub->op.s->wait_replicas) {
                denied(sub, submit, call);
                return;
        }
        for (uint32_t i = 0; i < submit->items_count; i++)
                if (sub->state.call_of[i] == call->number)
                        submit->items[i].status = call->command.status;
        if (!sub->state.failure) {
                sub->state.failure = call->command.status;
                refusal_describe(call->op->s, &call->command, sub->state.error.text, sizeof(sub->state.error.text));
        }
}

/* --- sending --- */

/* Assigns items of the group, from index `first` on, to a new command, as many as it may carry. */
static uint32_t portion(
        struct submission *sub, struct store_submit *submit, struct shard_items g, uint32_t first, bool is_plain)
{
        const struct store_prepared *p = submit->prepared;
        const uint32_t *order = sub->state.order;
        uint32_t number = ++sub->state.calls;
        uint32_t count = 0;
        size_t bytes = 0;
        for (uint32_t i = first; i < g.end && count < STORE_CALL_TASKS && bytes < STORE_CALL_BYTES; i++) {
                if (!is_waiting(sub, submit, order[i]) || (is_plain && p[order[i]].lane != p[order[first]].lane))
                        continue;
                sub->state.call_of[order[i]] = number;
                bytes += p[order[i]].bytes.size;
                count++;
        }
        return count;
}

static void push(struct submission *sub, struct store_submit *submit, struct shard_items g, uint32_t first)
{
        const struct store_prepared *p = submit->prepared;
        const uint32_t *order = sub->state.order;
        uint32_t count = portion(sub, submit, g, first, true);
        struct redis_call *call = call_new(&sub->op, "RPUSH", 1 + count);
        call->number = sub->state.calls;
        call->shard = p[order[first]].shard;
        call->answer = pushed;
        call->failed = failed;
        call_put(call, key_of_lane(sub->op.s, call->shard, p[order[first]].lane));
        for (uint32_t i = first; i < g.end; i++)
                if (sub->state.call_of[order[i]] == call->number)
                        call_put(call, p[order[i]].bytes);
        call_send(call);
}

/* Appends the scope of `unique`: handler and key, neither of which has control characters. */
static void put_scope(struct redis_call *call, const struct store_prepared *p)
{
        if (p->unique_ms)
                call_printf(call, "%.*s:%.*s", (int)p->handler.size, p->handler.data, (int)p->key.size, p->key.data);
        else
                call_put(call, (struct span){ 0 });
}

/* Appends the idempotency record: name, duration, digest. */
static void put_record(struct redis_call *call, const struct store_prepared *p)
{
        char hex[2 * SHA256_SIZE + 1] = "";
        if (p->idempotency.size)
                (void)units_hex(hex, p->digest, SHA256_SIZE);
        call_put(call, p->idempotency);
        call_put_number(call, p->idempotency_ms);
        call_printf(call, "%s", hex);
}

static void submit_by_script(struct submission *sub, struct store_submit *submit, struct shard_items g, uint32_t first)
{
        uint64_t max = sub->op.s->store.backlog_max;
        uint32_t count = portion(sub, submit, g, first, false);
        uint32_t shard = submit->prepared[sub->state.order[first]].shard;
        struct redis_call *call = call_script(&sub->op, SCRIPT_submit, shard, 4 + 10 * count);
        call->number = sub->state.calls;
        call->answer = scripted;
        call->failed = failed;
        call_put_number(call, max == UINT64_MAX ? 0 : max);
        call_printf(call, "%s", sub->op.s->wait_name);
        call_printf(call, "%" PRIu64 ".%" PRIu32, sub->state.wait, call->number);
        call_put_number(call, sub->op.s->store.idempotency_max);
        for (uint32_t i = first; i < g.end; i++) {
                const struct store_prepared *p = &submit->prepared[sub->state.order[i]];
                if (sub->state.call_of[sub->state.order[i]] != call->number)
                        continue;
                call_put_number(call, p->lane);
                call_put_number(call, p->not_before_ms);
                call_put_number(call, p->delay_ms);
                call_put_number(call, p->unique_ms);
                put_scope(call, p);
                call_put(call, p->id);
                call_put(call, p->bytes);
                put_record(call, p);
        }
        call_send(call);
}

/* --- without the script --- */

static void measured(struct redis_call *call, const redisReply *reply)
{
        call->op->s->shards[call->shard].backlog += answer_number(call->op, reply, TASK_NUMBER_MAX, "length");
}

static void measure(struct submission *sub, uint32_t shard)
{
        sub->op.s->shards[shard].backlog = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
                struct redis_call *call = call_new(&sub->op, "LLEN", 1);
                call->shard = shard;
                call->answer = measured;
                call_put(call, key_of_lane(sub->op.s, shard, (enum lane)lane));
                call_send(call);
        }
}

static void refuse_options(struct submission *sub, struct store_submit *submit, uint32_t i)
{
        struct submission_state *state = &sub->state;
        submit->items[i].status = -EPERM;
        if (!state->failure)
                (void)error_set(&state->error, 0,
                        "a delay, a time, --unique and an idempotency name need the script \"submit\": %s",
                        sub->op.s->no_scripts.text);
        state->failure = -EPERM;
}

/* Refuses items that need the script or find no room.  True: the rest can be sent now; false: the lists' lengths are
 * being asked for. */
static bool make_plain(struct submission *sub, struct store_submit *submit, struct shard_items g)
{
        struct redis_store *s = sub->op.s;
        uint32_t shard = submit->prepared[sub->state.order[g.begin]].shard;
        uint32_t waiting = 0;
        for (uint32_t i = g.begin; i < g.end; i++) {
                uint32_t item = sub->state.order[i];
                if (is_waiting(sub, submit, item) && has_options(&submit->prepared[item]))
                        refuse_options(sub, submit, item);
                waiting += is_waiting(sub, submit, item);
        }
        if (!waiting || !is_near_limit(s, shard, waiting))
                return true;
        if (!sub->state.is_measured[g.begin]) {
                sub->state.is_measured[g.begin] = true;
                measure(sub, shard);
                return false;
        }
        uint64_t backlog = s->shards[shard].backlog;
        uint64_t room = backlog < s->store.backlog_max ? s->store.backlog_max - backlog : 0;
        for (uint32_t i = g.begin; i < g.end; i++) {
                uint32_t item = sub->state.order[i];
                if (!is_waiting(sub, submit, item))
                        continue;
                if (!room)
                        submission_settle(submit, item, -EDQUOT, (struct span){ 0 });
                else
                        room--;
        }
        return true;
}

/* Sends all plain items, and the next portion of every other shard. */
static void send_round(struct submission *sub)
{
        struct store_submit *submit = (struct store_submit *)sub->op.request;
        struct shard_items g = { 0 };
        for (; g.end < sub->state.count;) {
                g = group_at(&sub->state, submit, g.end);
                bool is_plain = !needs_script(sub, submit, g);
                if (!is_plain && sub->op.s->no_scripts.text[0] && !sub->op.s->wait_replicas) {
                        is_plain = true;
                        if (!make_plain(sub, submit, g))
                                continue;
                }
                for (uint32_t i = g.begin; i < g.end; i++) {
                        if (!is_waiting(sub, submit, sub->state.order[i]))
                                continue;
                        if (is_plain) {
                                push(sub, submit, g, i);
                                continue;
                        }
                        submit_by_script(sub, submit, g, i);
                        break;
                }
        }
}

/* --- replicas --- */

#define WAIT_MS "4000" /* less than a command's deadline */

static void waited(struct redis_call *call, const redisReply *reply)
{
        uint32_t wanted = call->op->s->wait_replicas;
        uint64_t replicas = answer_number(call->op, reply, TASK_NUMBER_MAX, "replicas");
        if (replicas < wanted)
                op_fail(call->op, -ETIMEDOUT, "submit: stored, but only %u of %u replicas have it so far",
                        (unsigned)replicas, wanted);
}

/* The tasks are stored; only their replication is unknown. */
static void wait_failed(struct redis_call *call)
{
        op_fail(call->op, call->command.status == -ECANCELED ? -ECANCELED : -ETIMEDOUT,
                "submit: stored, but whether replicas have it is not known: %s", call->command.error.text);
}

/* WAIT blocks its connection, so it runs on one of its own, where it counts only writes that were made there before.
 * That write removes the marks that came with the tasks.  Replication is in order, so a replica that has the removal
 * has the tasks, too.  A server without the marks never had the tasks: it took over from a master that was lost with
 * them. */
static void wait_replicas(struct submission *sub, uint32_t shard)
{
        const struct store_submit *submit = (const struct store_submit *)sub->op.request;
        struct arena_chunk **arena = request_arena(sub->op.request);
        char name[48];
        (void)snprintf(name, sizeof(name), "wait.%s", sub->op.s->wait_name);
        struct span key = key_of_shard(&sub->op, shard, name);
        const char **words = arena_take(arena, (submit->items_count + 2) * sizeof(*words));
        size_t *sizes = arena_take(arena, (submit->items_count + 2) * sizeof(*sizes));
        int count = 0;
        words[count++] = "HDEL";
        words[count++] = key.data;
        for (uint32_t i = 0, last = 0; i < submit->items_count; i++) {
                if (submit->prepared[i].shard != shard || submit->items[i].status || sub->state.call_of[i] <= last)
                        continue; /* this call's mark is listed already: calls of a shard are in order */
                last = sub->state.call_of[i];
                char mark[48];
                int size = snprintf(mark, sizeof(mark), "%" PRIu64 ".%" PRIu32, sub->state.wait, last);
                words[count++] = arena_copy(arena, (struct span){ mark, (size_t)size + 1 }).data;
        }
        for (int i = 0; i < count; i++)
                sizes[i] = i == 1 ? key.size : strlen(words[i]);
        struct redis_call *call = call_new(&sub->op, "WAIT", 2);
        call->answer = waited;
        call->failed = wait_failed;
        call_put_number(call, sub->op.s->wait_replicas);
        call_put(call, SPAN_TEXT(WAIT_MS));
        call->command.is_blocking = true;
        call->command.first_argv = words;
        call->command.first_size = sizes;
        call->command.first_argc = count;
        call->command.first_least = (uint64_t)count - 2;
        call_send_to(call, key);
}

/* Waits once per shard with stored items, because each may be on another server. */
static void wait_for_all(struct submission *sub)
{
        const struct store_submit *submit = (const struct store_submit *)sub->op.request;
        for (uint32_t i = 0; i < submit->items_count; i++) {
                bool is_first = sub->state.call_of[i] && !submit->items[i].status;
                for (uint32_t j = 0; j < i && is_first; j++)
                        is_first = submit->prepared[j].shard != submit->prepared[i].shard || submit->items[j].status;
                if (is_first)
                        wait_replicas(sub, submit->prepared[i].shard);
        }
}

static void conclude(struct submission *sub)
{
        struct store_submit *submit = (struct store_submit *)sub->op.request;
        int failure = sub->state.failure;
        submit->refused = 0;
        for (uint32_t i = 0; i < submit->items_count; i++)
                submit->refused += submit->items[i].status != 0;
        /* If some items are stored, each item has its own status.  Without an answer nobody knows. */
        bool is_unknown = failure == -ETIMEDOUT || failure == -ECONNRESET;
        if (failure && (!sub->state.stored || is_unknown))
                op_fail(&sub->op, failure, "submit: %s", sub->state.error.text);
        else if (failure && !submit->request.error.text[0])
                submit->request.error = sub->state.error;
}

static void after_round(struct redis_op *op)
{
        struct submission *sub = submission_of(op);
        if (!op->request->status &&
                (!sub->state.failure || (sub->state.failure == -EPERM && op->s->no_scripts.text[0])))
                send_round(sub);
        if (!op->pending && op->s->wait_replicas && !sub->state.has_waited) {
                sub->state.has_waited = true;
                wait_for_all(sub);
        }
        if (op->pending)
                return;
        conclude(sub);
        request_finish(op->request, op->request->status);
}

void redis_submit(struct redis_store *s, struct store_request *request)
{
        struct store_submit *submit = (struct store_submit *)request;
        struct arena_chunk **arena = request_arena(request);
        struct submission *sub = arena_take(arena, sizeof(*sub));
        sub->op = (struct redis_op){ .s = s, .request = request, .after = after_round };
        uint32_t *rooms = arena_take(arena, 3 * (size_t)submit->items_count * sizeof(uint32_t));
        sub->state.call_of = rooms;
        sub->state.order = rooms + submit->items_count;
        sub->state.is_measured = arena_take(arena, submit->items_count * sizeof(bool));
        put_in_order(&sub->state, submit, rooms + 2 * (size_t)submit->items_count);
        sub->state.wait = ++s->waits;
        send_round(sub);
        if (sub->op.pending)
                return;
        conclude(sub);
        op_defer(s, request);
}
