/* The desired state, and what hosts say about themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "store/redis/redis_store.h"

#define STATUS_LIST_MAX 1024u

static int by_name(const void *a, const void *b)
{
        const struct span *x = &((const struct store_desired *)a)->name;
        const struct span *y = &((const struct store_desired *)b)->name;
        int r = memcmp(x->data, y->data, min_u64(x->size, y->size));
        return r ? r : (x->size > y->size) - (x->size < y->size);
}

uint64_t version_read(const redisReply *reply)
{
        struct span text = reply_span(reply);
        uint64_t version = 0;
        for (size_t i = 0; i < text.size && text.size <= 16; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return 0;
                version = version * 10 + (uint64_t)(text.data[i] - '0');
        }
        return version;
}

static void version_answer(struct redis_call *call, const redisReply *reply)
{
        ((struct store_desired_get *)call->op->request)->version = version_read(reply);
}

static void desired_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_desired_get *get = (struct store_desired_get *)call->op->request;
        struct arena_chunk **arena = request_arena(&get->request);
        get->items = arena_take(arena, (reply_count(reply) / 2) * sizeof(*get->items));
        for (size_t i = 0; i + 1 < reply_count(reply); i += 2)
                get->items[get->items_count++] =
                        (struct store_desired){ arena_copy(arena, reply_span(reply->element[i])),
                                arena_copy(arena, reply_span(reply->element[i + 1])) };
        if (get->items_count)
                qsort(get->items, get->items_count, sizeof(*get->items), by_name);
}

void redis_desired_get(struct redis_store *s, struct store_request *request)
{
        struct store_desired_get *get = (struct store_desired_get *)request;
        struct redis_op *op = op_begin(s, request);
        get->items_count = 0;
        /* The version first: what changes in between is then read once more, not missed. */
        struct redis_call *version = call_new(op, "HGET", 2);
        version->answer = version_answer;
        call_put(version, key_of_app(op, "app"));
        call_put(version, SPAN_TEXT("desired_version"));
        call_send_tracked(version);
        struct redis_call *all = call_new(op, "HGETALL", 1);
        all->answer = desired_answer;
        call_put(all, key_of_app(op, "desired"));
        call_send_tracked(all);
}

static void set_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_desired_set *set = (struct store_desired_set *)call->op->request;
        set->version = answer_number(call->op, reply, TASK_NUMBER_MAX, "version");
        if (set->version)
                bell_own_desired(call->op->s);
        else if (!call->op->request->status)
                op_fail(call->op, -E2BIG, "desired state: %u names are the most", STORE_DESIRED_MAX);
}

void redis_desired_set(struct redis_store *s, struct store_request *request)
{
        struct store_desired_set *set = (struct store_desired_set *)request;
        struct redis_op *op = op_begin(s, request);
        struct redis_call *call = call_script_keys(op, SCRIPT_desired, 2, 4);
        call->answer = set_answer;
        call_put(call, key_of_app(op, "app"));
        call_put(call, key_of_app(op, "desired"));
        call_put_number(call, set->has_value);
        call_put(call, set->item.name);
        call_put(call, set->item.value);
        call_put_number(call, STORE_DESIRED_MAX);
        call_send(call);
}

static const char *const document_keys[DOCUMENTS][2] = {
        [DOCUMENT_STATUS] = { "status", "statusends" },
        [DOCUMENT_RUNNING] = { "running", "runningends" },
        [DOCUMENT_DONE] = { "done", "doneends" },
        [DOCUMENT_HISTORY] = { "history", "historyends" },
};

void redis_status_put(struct redis_store *s, struct store_request *request)
{
        struct store_status_put *put = (struct store_status_put *)request;
        struct redis_op *op = op_begin(s, request);
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(put->nonce, nonce);
        struct redis_call *call = call_script_keys(op, SCRIPT_status_put, 4, 4 + 3 * put->counters_count);
        call_put(call, key_of_app(op, document_keys[put->kind][0]));
        call_put(call, key_of_app(op, document_keys[put->kind][1]));
        call_put(call, key_of_app(op, "counters"));
        call_put(call, key_of_app(op, "counted"));
        call_printf(call, "%s", nonce);
        call_put(call, put->document);
        call_put_number(call, put->keep_ms);
        call_put_number(call, put->kind == DOCUMENT_STATUS ? STORE_COUNTERS_MAX : 0);
        for (uint32_t i = 0; i < put->counters_count; i++) {
                call_put(call, put->counters[i].name);
                call_put_number(call, put->counters[i].before);
                call_put_number(call, put->counters[i].value);
        }
        call_send(call);
}

static void status_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_status_list *list = (struct store_status_list *)call->op->request;
        list->items = arena_take(request_arena(&list->request), (reply_count(reply) / 3) * sizeof(*list->items));
        for (size_t i = 0; i + 2 < reply_count(reply); i += 3) {
                struct store_status *item = &list->items[list->items_count];
                /* Whatever somebody has put there under another name is no host's. */
                if (!nonce_read(reply_span(reply->element[i]), item->nonce))
                        continue;
                list->items_count++;
                item->age_ms = answer_number(call->op, reply->element[i + 1], TASK_NUMBER_MAX, "age");
                item->document = arena_copy(request_arena(&list->request), reply_span(reply->element[i + 2]));
        }
}

static void totals_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_status_list *list = (struct store_status_list *)call->op->request;
        size_t count = min_u64(reply_count(reply) / 2, STORE_COUNTERS_MAX);
        struct arena_chunk **arena = request_arena(&list->request);
        list->totals = arena_take(arena, count * sizeof(*list->totals));
        for (size_t i = 0; i < count; i++)
                list->totals[i] = (struct store_total){ .name = arena_copy(arena, reply_span(reply->element[2 * i])),
                        .value = version_read(reply->element[2 * i + 1]) };
        list->totals_count = (uint32_t)count;
}

void redis_status_list(struct redis_store *s, struct store_request *request)
{
        struct store_status_list *list = (struct store_status_list *)request;
        struct redis_op *op = op_begin(s, request);
        list->items_count = list->totals_count = 0;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(list->nonce, nonce);
        struct redis_call *call = call_script_keys(op, SCRIPT_status_list, 2, 2);
        call->answer = status_answer;
        call_put(call, key_of_app(op, document_keys[list->kind][0]));
        call_put(call, key_of_app(op, document_keys[list->kind][1]));
        call_put_number(call, STATUS_LIST_MAX);
        call_printf(call, "%s", list->is_one ? nonce : "");
        call_send(call);
        if (list->kind != DOCUMENT_STATUS)
                return;
        struct redis_call *totals = call_new(op, "HGETALL", 1);
        totals->answer = totals_answer;
        call_put(totals, key_of_app(op, "counters"));
        call_send(totals);
}
