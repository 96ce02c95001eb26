/* Mailboxes: messages for one host.  Each has a hash tag of its own, so that they are spread over a Cluster. */
#include <errno.h>
#include <stdio.h>

#include "store/redis/redis_store.h"

/* quiver:{APP:NONCE}:mail and …:mailbox */
static void put_keys(struct redis_call *call, const uint8_t nonce[STORE_NONCE_SIZE])
{
        char text[2 * STORE_NONCE_SIZE + 1];
        nonce_text(nonce, text);
        call_printf(call, "quiver:{%s:%s}:mail", call->op->s->store.app, text);
        call_printf(call, "quiver:{%s:%s}:mailbox", call->op->s->store.app, text);
}

static void post_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_post *post = (struct store_post *)call->op->request;
        post->number = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "number");
        if (post->number)
                bell_own_mail(call->op->s, post->nonce);
        else if (!post->request.status)
                post_refuse(post, answer_number(call->op, reply_at(reply, 1), TASK_NUMBER_MAX, "messages"),
                        answer_number(call->op, reply_at(reply, 2), TASK_NUMBER_MAX, "bytes"));
}

void redis_post(struct redis_store *s, struct store_request *request)
{
        const struct store_post *post = (const struct store_post *)request;
        struct redis_call *call = call_script_keys(op_begin(s, request), SCRIPT_post, 2, 4);
        call->answer = post_answer;
        put_keys(call, post->nonce);
        call_put(call, post->bytes);
        call_put_number(call, post->keep_ms);
        call_put_number(call, STORE_MAIL_MESSAGES);
        call_put_number(call, STORE_MAIL_BYTES);
        call_send(call);
}

static void take_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_mail_take *take = (struct store_mail_take *)call->op->request;
        take->messages = arena_take(request_arena(&take->request), take->messages_max * sizeof(*take->messages));
        take->has_more = answer_bool(call->op, reply_at(reply, 0), "has more");
        for (size_t i = 1; i + 1 < reply_count(reply) && take->messages_count < take->messages_max; i += 2)
                take->messages[take->messages_count++] = (struct store_message){
                        .number = answer_number(call->op, reply->element[i], TASK_NUMBER_MAX, "number"),
                        .bytes = reply_span(reply->element[i + 1]),
                };
}

void redis_mail_take(struct redis_store *s, struct store_request *request)
{
        const struct store_mail_take *take = (const struct store_mail_take *)request;
        struct redis_call *call = call_script_keys(op_begin(s, request), SCRIPT_mail_take, 2, 3);
        call->answer = take_answer;
        put_keys(call, take->nonce);
        call_put_number(call, take->after);
        call_put_number(call, take->messages_max);
        call_put_number(call, STORE_CALL_BYTES);
        call_send_tracked(call);
}
