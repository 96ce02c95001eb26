#include "host/service/room_appends.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

struct room_call {
        struct store_room_append append;
        struct span entry;
        struct pool_call *call;
};

/* The errors that plugin.h names; others are only in the host's log. */
static int status_of(const struct store_request *request)
{
        switch (-request->status) {
        case 0:
        case EINVAL:
        case EMSGSIZE:
        case E2BIG:
        case ENOTSUP:
                return request->status;
        case ETIMEDOUT:
        case ECONNRESET:
        case ECANCELED:
                return -ETIMEDOUT;
        default:
                log_event(LEVEL_WARN, "room-append", "text=%s", LOG_QUOTE(request->error.text));
                return -EIO;
        }
}

static void on_appended(struct store_request *request)
{
        struct room_call *one = container_of(request, struct room_call, append.request);
        (void)pool_call_answer(one->call, status_of(request), one->append.number, 0);
        free(one);
}

void room_appends_start(struct store *store, struct pool_call *call)
{
        struct room_call *one;
        if (!store) {
                (void)pool_call_answer(call, -ENOTSUP, 0, 0);
                return;
        }
        one = memory_zero(1, sizeof(*one));
        one->call = call;
        one->entry = (struct span){ (const char *)call->bytes, call->size };
        one->append = (struct store_room_append){ .request.done = on_appended,
                .name = span_of_text(call->name),
                .entries = &one->entry,
                .entries_count = 1 };
        store_room_append(store, &one->append);
}
