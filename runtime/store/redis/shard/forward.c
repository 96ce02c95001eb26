/* Follow-ups and other entries for other shards: reads the outbox, hands each entry to its target, and forgets those
 * that have arrived.  Repeating this is safe: each target counts the entries and takes each once. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "store/redis/redis_store.h"

#define ENTRIES_MAX 272

struct entry {
        uint32_t target;
        uint64_t number;
        struct span packed;
        bool is_sent;
};

struct forwarding {
        struct redis_op op; /* first */
        uint64_t base;
        struct span source;
        struct entry entries[ENTRIES_MAX];
        uint32_t count;
};

static void forget_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_forward *forward = (struct store_forward *)call->op->request;
        forward->verdict = reply_is_fenced(reply) ? STORE_FENCED : STORE_OK;
        if (forward->verdict == STORE_OK)
                forward->has_more = answer_bool(call->op, reply, "outbox");
}

static void forget(struct redis_op *op)
{
        struct forwarding *f = (struct forwarding *)op;
        struct store_forward *forward = (struct store_forward *)op->request;
        uint32_t arrived = 0;
        while (arrived < f->count && f->entries[arrived].is_sent)
                arrived++;
        op->after = NULL;
        if (op->request->status || !arrived) {
                forward->has_more = f->count > 0;
                request_finish(op->request, op->request->status);
                return;
        }
        struct redis_call *call = call_script(op, SCRIPT_forget, forward->lease.shard, 3);
        call->answer = forget_answer;
        call_put_lease(call, &forward->lease);
        call_put_number(call, f->base);
        call_put_number(call, arrived);
        call_send_tracked(call);
}

static void take_answer(struct redis_call *call, const redisReply *reply)
{
        struct forwarding *f = (struct forwarding *)call->op;
        uint64_t taken = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "number");
        const redisReply *kinds = reply_at(reply, 2);
        for (size_t i = 0; i < reply_count(kinds); i++) {
                struct span kind = reply_span(kinds->element[i]);
                log_event(LEVEL_WARN, "kept-entry",
                        "app=%s shard=%" PRIu32 " from=%" PRIu32
                        " kind=%.*s text=\"this Quiver does not know it; it is kept for one that does\"",
                        call->op->s->store.app, call->shard, ((struct store_forward *)call->op->request)->lease.shard,
                        (int)min_u64(kind.size, 31), kind.data ? kind.data : "");
        }
        /* Fail, so that the owner does not try again at once. */
        if (answer_bool(call->op, reply_at(reply, 1), "verdict"))
                op_fail(call->op, -ENOBUFS,
                        "forward: shard %" PRIu32
                        " keeps as many entries of unknown kinds as it may; a newer Quiver takes them",
                        call->shard);
        for (uint32_t i = 0; i < f->count; i++)
                if (f->entries[i].target == call->shard && f->entries[i].number <= taken)
                        f->entries[i].is_sent = true;
        bell_own_write(call->op->s, call->shard);
}

static void send_to(struct forwarding *f, uint32_t first)
{
        uint32_t target = f->entries[first].target;
        struct redis_call *call = call_script(&f->op, SCRIPT_take, target, 1 + f->count - first);
        call->answer = take_answer;
        call_put(call, f->source);
        for (uint32_t i = first; i < f->count; i++)
                if (f->entries[i].target == target)
                        call_put(call, f->entries[i].packed);
        call_send(call);
}

static void outbox_answer(struct redis_call *call, const redisReply *reply)
{
        struct forwarding *f = (struct forwarding *)call->op;
        struct store_forward *forward = (struct store_forward *)call->op->request;
        struct arena_chunk **arena = request_arena(call->op->request);
        forward->verdict = reply_is_fenced(reply) ? STORE_FENCED : STORE_OK;
        if (forward->verdict == STORE_FENCED)
                return;
        f->base = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "base");
        struct span born = reply_span(reply_at(reply, 1));
        char source[64];
        int size = snprintf(source, sizeof(source), "%" PRIu32 ".%.*s", forward->lease.shard,
                (int)min_u64(born.size, 40), born.data ? born.data : "");
        f->source = arena_copy(arena, (struct span){ source, (size_t)size });
        for (size_t i = 2; i + 2 < reply_count(reply) && f->count < ENTRIES_MAX; i += 3) {
                uint64_t target = answer_number(call->op, reply->element[i], TASK_NUMBER_MAX, "target");
                /* No such shard: the entry goes to our own shard, where it is found to belong elsewhere. */
                if (target >= call->op->s->store.shards)
                        target = forward->lease.shard;
                f->entries[f->count++] = (struct entry){ .target = (uint32_t)target,
                        .number = answer_number(call->op, reply->element[i + 1], TASK_NUMBER_MAX, "number"),
                        .packed = arena_copy(arena, reply_span(reply->element[i + 2])) };
        }
        for (uint32_t i = 0; i < f->count && !call->op->request->status; i++) {
                bool is_first = true;
                for (uint32_t j = 0; j < i; j++)
                        is_first = is_first && f->entries[j].target != f->entries[i].target;
                if (is_first)
                        send_to(f, i);
        }
}

void redis_forward(struct redis_store *s, struct store_request *request)
{
        struct store_forward *forward = (struct store_forward *)request;
        struct forwarding *f = arena_take(request_arena(request), sizeof(*f));
        forward->has_more = false;
        f->op = (struct redis_op){ .s = s, .request = request, .after = forget };
        struct redis_call *call = call_script(&f->op, SCRIPT_outbox, forward->lease.shard, 1);
        call->answer = outbox_answer;
        call_put_lease(call, &forward->lease);
        call_send(call);
}
