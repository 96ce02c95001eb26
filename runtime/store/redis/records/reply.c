/* Replies: one task's outcome, for the one who waits for it.  Reading it arms the bell, so its coming rings. */
#include <stdio.h>

#include "store/redis/redis_store.h"

static void look(struct redis_store *s, struct store_request *request);

static void reply_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_reply *to = (struct store_reply *)call->op->request;
        struct arena_chunk **arena = request_arena(&to->request);
        if (!reply_count(reply))
                return;
        uint64_t state = answer_number(call->op, reply_at(reply, 0), REPLY_MERGED, "state");
        if (state == REPLY_MERGED) {
                to->is_led_on = store_reply_follow(to, reply_span(reply_at(reply, 2)));
                return;
        }
        to->state = (enum store_reply_state)state;
        to->has_data = answer_bool(call->op, reply_at(reply, 1), "data");
        to->data = arena_copy(arena, reply_span(reply_at(reply, 2)));
        to->reason = arena_copy(arena, reply_span(reply_at(reply, 3)));
        struct span note = arena_copy(arena, reply_span(reply_at(reply, 4)));
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
        struct redis_call *call = call_script_keys(op, SCRIPT_reply, 1, 0);
        call->answer = reply_answer;
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
