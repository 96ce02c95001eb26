#include "store/request.h"

#include <assert.h>
#include <errno.h>

#define OPERATION_TEXT(number, function, text, kind) [OP_##number] = (text),
static const char *const op_names[OPS] = { [OP_OPEN] = "open", STORE_OPERATIONS(OPERATION_TEXT) };

const char *store_op_name(unsigned op)
{
        return op < OPS ? op_names[op] : "unknown";
}

struct arena_chunk **request_arena(struct store_request *request)
{
        return (struct arena_chunk **)&request->reply;
}

void request_finish(struct store_request *request, int status)
{
        /* done() may free the request or start it again. */
        struct arena_chunk *reply = request->reply;
        request->reply = NULL;
        request->status = status;
        if (request->op == OP_APP_GET && !status)
                request->store->record = ((struct store_app_get *)request)->app;
        request->done(request);
        arena_free(reply);
}

void requests_cancel(struct store_request *list)
{
        while (list) {
                struct store_request *request = list;
                list = list->next;
                (void)error_set(&request->error, 0, "the store was closed");
                request_finish(request, -ECANCELED);
        }
}

void request_begin(struct store *store, struct store_request *request, enum store_op op)
{
        assert(request->done);
        request->store = store;
        request->op = op;
        request->status = 0;
        request->error.text[0] = 0;
        request->reply = NULL;
        request->next = NULL;
}

void request_start(struct store_request *request)
{
        request->store->driver->start(request->store, request);
}

void request_refuse(struct store_request *request, const char *what)
{
        if (!request->status)
                request->status = error_set(&request->error, -EINVAL, "%s: %s", store_op_name(request->op), what);
}

void request_check_feature(struct store_request *request, const char *feature)
{
        if (!request->status && !store_app_has(&request->store->record, feature))
                request->status = error_set(&request->error, -ENOTSUP,
                        "%s: the app has the feature \"%s\" not switched on; when all its hosts know it: quiver app "
                        "upgrade %s",
                        store_op_name(request->op), feature, feature);
}

void request_check_shard(struct store_request *request, uint32_t shard)
{
        if (shard >= request->store->shards)
                request_refuse(request, "no such shard");
}

void request_check_lease(struct store_request *request, const struct store_lease *lease)
{
        request_check_shard(request, lease->shard);
        if (!lease->ttl_ms || lease->ttl_ms > TASK_NUMBER_MAX)
                request_refuse(request, "a lease needs a ttl");
        if (!lease->epoch || lease->epoch > TASK_NUMBER_MAX)
                request_refuse(request, "epoch out of range");
}
