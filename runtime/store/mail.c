/* Starts the operations of mail.h: checks the request, then hands it to the driver. */
#include "store/mail.h"

#include <errno.h>
#include <inttypes.h>

#include "store/request.h"

void store_post(struct store *store, struct store_post *post)
{
        struct store_request *request = &post->request;
        request_begin(store, request, OP_POST);
        post->number = 0;
        if (!post->keep_ms)
                post->keep_ms = STORE_MAIL_KEEP_MS;
        if (!post->bytes.size)
                request_refuse(request, "a message has at least one byte");
        if (post->keep_ms > TASK_NUMBER_MAX / 2)
                request_refuse(request, "a time is out of range");
        if (!request->status && post->bytes.size > STORE_MAIL_MESSAGE_MAX)
                request->status = error_set(&request->error, -EMSGSIZE, "post: %zu bytes, at most %u are allowed",
                        post->bytes.size, STORE_MAIL_MESSAGE_MAX);
        request_start(request);
}

void post_refuse(struct store_post *post, uint64_t messages, uint64_t bytes)
{
        post->request.status = error_set(&post->request.error, -EDQUOT,
                "post: the mailbox is full: it has %" PRIu64 " messages of %" PRIu64
                " bytes that its host has not taken",
                messages, bytes);
}

void store_mail_take(struct store *store, struct store_mail_take *take)
{
        request_begin(store, &take->request, OP_MAIL_TAKE);
        if (!take->messages_max || take->messages_max > STORE_CALL_TASKS)
                take->messages_max = STORE_CALL_TASKS;
        if (take->after > TASK_NUMBER_MAX)
                request_refuse(&take->request, "no message has such a number");
        take->messages_count = 0;
        take->has_more = false;
        request_start(&take->request);
}

void store_wanting_set(struct store *store, struct store_wanting_set *set)
{
        struct error error;
        request_begin(store, &set->request, OP_WANTING_SET);
        if (task_handler_check(set->handler, &error))
                request_refuse(&set->request, error.text);
        if (set->tasks > TASK_NUMBER_MAX || !set->keep_ms || set->keep_ms > TASK_NUMBER_MAX / 2)
                request_refuse(&set->request, "a record has a number of tasks and is kept for a while");
        request_start(&set->request);
}

void store_wanting_list(struct store *store, struct store_wanting_list *list)
{
        struct error error;
        request_begin(store, &list->request, OP_WANTING_LIST);
        if (list->handler.size && task_handler_check(list->handler, &error))
                request_refuse(&list->request, error.text);
        list->items_count = 0;
        request_start(&list->request);
}
