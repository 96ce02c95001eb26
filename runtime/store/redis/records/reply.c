/* Replies: one task's outcome, for the one who waits for it.  Reading it arms the bell, so its coming rings. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/redis/msgpack.h"
#include "store/redis/redis_store.h"

static void look(struct redis_store *s, struct store_request *request);

/* An outcome as dead.lua packs it. */
struct redis_outcome {
        uint64_t state, has_data;
        struct span data, reason, note;
};

static bool outcome_read(struct span packed, struct redis_outcome *o)
{
        uint32_t count;
        return msgpack_take_array(&packed, &count) && count == 5 && msgpack_take_number(&packed, &o->state) &&
               o->state >= REPLY_DONE && o->state <= REPLY_MERGED && msgpack_take_number(&packed, &o->has_data) &&
               o->has_data <= 1 && msgpack_take_bytes(&packed, &o->data) && msgpack_take_bytes(&packed, &o->reason) &&
               msgpack_take_bytes(&packed, &o->note) && !packed.size;
}

static void reply_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_reply *to = (struct store_reply *)call->op->request;
        struct arena_chunk **arena = request_arena(&to->request);
        struct redis_outcome o;
        if (reply->type == REDIS_REPLY_NIL)
                return;
        if (!outcome_read(reply_span(reply), &o)) {
                op_fail(call->op, -EPROTO,
                        "reply: app \"%s\", shard %" PRIu32 ": %.*s is not an outcome that Quiver has written; DEL it",
                        call->op->s->store.app, call->shard, (int)call->sizes[1], call->argv[1]);
                return;
        }
        if (o.state == REPLY_MERGED) {
                to->is_led_on = store_reply_follow(to, o.data);
                return;
        }
        to->state = (enum store_reply_state)o.state;
        to->has_data = o.has_data;
        to->data = arena_copy(arena, o.data);
        to->reason = arena_copy(arena, o.reason);
        struct span note = arena_copy(arena, o.note);
        if (note_parse(note.data, note.size, &to->note))
                to->note = (struct task_note){ 0 };
}

static void looked(struct redis_op *op)
{
        struct redis_store *s = op->s;
        struct store_reply *reply = (struct store_reply *)op->request;
        if (reply->is_led_on && !reply->request.status) {
                look(s, &reply->request);
                return;
        }
        if (reply->request.status || reply->state != REPLY_PENDING || uv_now(s->loop) >= reply->deadline_ms) {
                request_finish(&reply->request, reply->request.status);
                return;
        }
        reply->request.next = s->waiting;
        s->waiting = &reply->request;
        bell_want(s);
        bell_set_timer(s);
}

static void look(struct redis_store *s, struct store_request *request)
{
        struct store_reply *reply = (struct store_reply *)request;
        char name[TASK_ID_MAX + 16];
        uint32_t shard = 0;
        (void)task_id_check(reply->id, &shard, NULL);
        struct span id = store_reply_id(reply);
        reply->is_led_on = false;
        (void)snprintf(name, sizeof(name), "reply:%.*s", (int)id.size, id.data);
        /* What an earlier look left in the arena goes with it. */
        arena_free(*request_arena(request));
        *request_arena(request) = NULL;
        struct redis_op *op = op_begin(s, request);
        op->after = looked;
        /* Not a script: whoever may only submit reads replies, too. */
        struct redis_call *call = call_new(op, "GET", 1);
        call->answer = reply_answer;
        call->shard = shard;
        call_put(call, key_of_shard(op, shard, name));
        call_send_tracked(call);
}

void replies_look(struct redis_store *s)
{
        struct store_request *list = s->waiting;
        s->waiting = NULL;
        while (list) {
                struct store_request *request = list;
                list = list->next;
                look(s, request);
        }
}

void redis_reply(struct redis_store *s, struct store_request *request)
{
        struct store_reply *reply = (struct store_reply *)request;
        reply->state = REPLY_PENDING;
        reply->deadline_ms = uv_now(s->loop) + reply->wait_ms;
        look(s, request);
}
