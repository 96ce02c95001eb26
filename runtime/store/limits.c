#include "store/limits.h"

#include <errno.h>

#include "store/limit_share.h"
#include "store/request.h"

static void check_name(struct store_request *request, struct span name)
{
        if (task_handler_check(name, NULL))
                request_refuse(
                        request, "limit: a name begins with a letter and has at most 64 letters, digits, _ or -");
}

void store_limit_take(struct store *store, struct store_limit_take *take)
{
        struct store_request *request = &take->request;
        request_begin(store, request, OP_LIMIT_TAKE);
        request_check_feature(request, "limits");
        check_name(request, take->limit.name);
        const char *wrong = limit_wrong(&take->limit);
        if (wrong)
                request_refuse(request, wrong);
        if (!take->lease_ms || take->lease_ms > STORE_LIMIT_LEASE_MS)
                request_refuse(request, "limit: a lease is up to an hour");
        if (take->call > TASK_NUMBER_MAX)
                request_refuse(request, "limit: a call's number is too high");
        if (take->items_count > STORE_LIMIT_ITEMS)
                request_refuse(request, "limit: too many values at once");
        for (uint32_t i = 0; i < take->items_count; i++) {
                struct store_limit_item *item = &take->items[i];
                if (item->value.size > STORE_LIMIT_VALUE_MAX)
                        request_refuse(request, "limit: a value has at most 255 bytes");
                if (item->want > STORE_LIMIT_MAX)
                        request_refuse(request, "limit: more is wanted than any limit has");
                if (item->keep > item->want)
                        request_refuse(request, "limit: more is kept than wanted");
                if (item->close_ms > STORE_LIMIT_LEASE_MS)
                        request_refuse(request, "limit: a value is closed for up to an hour");
                item->granted = item->left_ms = item->retry_ms = item->closed_ms = 0;
                item->is_full = item->has_waiting = item->is_over = false;
        }
        take->used = (struct store_limit){ .name = take->limit.name };
        request_start(request);
}

void store_limit_look(struct store *store, struct store_limit_look *look)
{
        struct store_request *request = &look->request;
        request_begin(store, request, OP_LIMIT_LOOK);
        check_name(request, look->name);
        if (!look->page_values || look->page_values > STORE_CALL_TASKS)
                request_refuse(request, "limit: a page has up to 256 values");
        look->limit = (struct store_limit){ .name = look->name };
        look->values = NULL;
        look->listed = 0;
        look->values_count = look->refused = 0;
        look->is_end = false;
        request_start(request);
}
