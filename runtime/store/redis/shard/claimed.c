/* Checks claimed tasks.  Scripts do not validate envelopes; here malformed tasks of foreign producers are found and set
 * aside.  Until they have arrived among the dead or delayed tasks they are in flight, so a crash in between loses
 * nothing: the next owner gets them and finds the same. */
#include <errno.h>
#include <string.h>

#include "store/redis/msgpack.h"
#include "store/redis/redis_store.h"

void claimed_init(struct redis_claim *c, struct redis_op *op, uint32_t shard, uint32_t room, uint64_t now_ms)
{
        *c = (struct redis_claim){ .shard = shard, .room = room, .now_ms = now_ms };
        c->tasks = arena_room(request_arena(op->request), room * sizeof(*c->tasks)); /* store_task_read() fills them */
}

static void aside_add(struct redis_claim *c, uint64_t seq, uint64_t due_ms, struct span reason, struct span text)
{
        msgpack_array(&c->aside, 4);
        msgpack_number(&c->aside, seq);
        msgpack_number(&c->aside, due_ms);
        msgpack_bytes(&c->aside, reason);
        msgpack_bytes(&c->aside, text);
        c->aside_count++;
}

void claimed_add(
        struct redis_claim *c, struct redis_op *op, uint64_t seq, struct span bytes, struct span note, bool is_waiting)
{
        struct error error = { "" };
        /* Scripts return no more tasks than were asked for, and set aside tasks without a number themselves. */
        if (c->count == c->room || seq > STORE_SEQ_MAX) {
                op_bad_value(op, "seq");
                return;
        }
        struct store_task *task = &c->tasks[c->count];
        int r = store_task_read(&op->s->store, c->shard, seq, bytes, request_arena(op->request), task, &error);
        c->bytes += bytes.size;
        if (r) {
                aside_add(c, seq, 0, store_set_aside_reason(r), (struct span){ error.text, strlen(error.text) });
                c->dead_count++;
                return;
        }
        /* A task with a note was started or requeued before: its time has come already, whatever the clock says now. */
        if (!note.size && task->envelope.not_before_ms > c->now_ms) {
                aside_add(c, seq, task->envelope.not_before_ms, (struct span){ 0 }, (struct span){ 0 });
                return;
        }
        store_task_note(task, note, c->now_ms);
        task->is_key_waiting = is_waiting;
        c->count++;
}

static void task_keep(struct arena_chunk **arena, struct store_task *task)
{
        struct envelope *e = &task->envelope;
        struct span *const spans[] = { &e->key, &e->handler, &e->id, &e->headers, &e->others, &e->payload,
                &task->note.events, &task->note.checkpoint, &task->note.holder };
        for (unsigned i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
                if (spans[i]->size)
                        *spans[i] = arena_copy(arena, *spans[i]);
        task->key = e->key.size ? e->key : e->id;
}

void claimed_keep(struct redis_claim *c, struct redis_op *op, uint32_t from)
{
        for (uint32_t i = from; i < c->count; i++)
                task_keep(request_arena(op->request), &c->tasks[i]);
}

bool claimed_set_aside(struct redis_claim *c, struct redis_op *op, const struct store_lease *lease,
        void (*answer)(struct redis_call *call, const redisReply *reply))
{
        struct arena_chunk **arena = request_arena(op->request);
        if (!c->aside_count || op->request->status) {
                buffer_free(&c->aside);
                return false;
        }
        claimed_keep(c, op, 0);
        /* aside.lua moves all in-flight tasks to the in-flight hash, even if its answer is lost. */
        view_forget(&op->s->shards[c->shard], VIEW_UNKNOWN);
        struct buffer packed = { 0 };
        msgpack_array(&packed, c->aside_count);
        buffer_put(&packed, c->aside.data, c->aside.size);
        struct redis_call *call = call_script(op, SCRIPT_aside, c->shard, 3 + 2 * LANES);
        call->answer = answer;
        call_put_lease(call, lease);
        call_put(call, arena_copy(arena, (struct span){ (const char *)packed.data, packed.size }));
        call_put_number(call, op->s->store.payload_max + TASK_HEAD_MAX);
        for (unsigned lane = 0; lane < LANES; lane++) {
                call_put_number(call, op->s->shards[c->shard].lanes[lane].last_number);
                call_put(call, lane_last(&op->s->shards[c->shard].lanes[lane]));
        }
        buffer_free(&packed);
        buffer_free(&c->aside);
        call_send_tracked(call);
        return true;
}
