/* request.c: what happens to every request before and after the driver handles it. */
#include "coord/request.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"

static const char *const op_names[COORD_OPS] = {
        [COORD_OP_OPEN] = "open",
        [COORD_OP_END_SESSION] = "end-session",
        [COORD_OP_CREATE] = "create",
        [COORD_OP_GET] = "get",
        [COORD_OP_SET] = "set",
        [COORD_OP_DELETE] = "delete",
        [COORD_OP_CHILDREN] = "children",
        [COORD_OP_MULTI] = "multi",
};

const char *coord_op_name(unsigned op)
{
        return op < COORD_OPS ? op_names[op] : "unknown";
}

const char *coord_op_path(const struct coord_request *request)
{
        const char *path = NULL;
        switch (request->op) {
        case COORD_OP_CREATE:
                path = ((const struct coord_create *)request)->path;
                break;
        case COORD_OP_GET:
                path = ((const struct coord_get *)request)->path;
                break;
        case COORD_OP_SET:
                path = ((const struct coord_set *)request)->path;
                break;
        case COORD_OP_DELETE:
                path = ((const struct coord_delete *)request)->path;
                break;
        case COORD_OP_CHILDREN:
                path = ((const struct coord_children *)request)->path;
                break;
        default:
                break;
        }
        return path ? path : "";
}

struct arena_chunk **coord_arena(struct coord_request *request)
{
        return (struct arena_chunk **)&request->reply;
}

void coord_prepare(struct coord_request *request, enum coord_op op)
{
        assert(request->done);
        request->coord = NULL;
        request->op = op;
        request->status = 0;
        request->error.text[0] = 0;
        request->reply = NULL;
        request->prev = request->next = NULL;
        request->deadline_ms = 0;
        request->driver = NULL;
}

void coord_begin(struct coord *coord, struct coord_request *request, enum coord_op op)
{
        coord_prepare(request, op);
        request->coord = coord;
        DL_APPEND(coord->requests, request);
}

void coord_start(struct coord_request *request)
{
        request->coord->driver->start(request->coord, request);
}

void coord_refuse(struct coord_request *request, int status, const char *what)
{
        if (!request->status)
                request->status = error_set(&request->error, status, "%s %.512s: %s", coord_op_name(request->op),
                        coord_op_path(request), what);
}

/* --- finishing --------------------------------------------------------------------------------------------------- */

void coord_finish(struct coord_request *request, int status)
{
        /* done() may free the request or start it again. */
        struct arena_chunk *reply = request->reply;
        if (request->coord)
                DL_DELETE(request->coord->requests, request);
        request->coord = NULL;
        request->reply = NULL;
        request->status = status;
        request->done(request);
        arena_free(reply);
}

void coord_finish_error(struct coord_request *request, int status, const char *format, ...)
{
        struct error text;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text.text, sizeof(text.text), format, args);
        va_end(args);
        const char *path = coord_op_path(request);
        (void)error_set(
                &request->error, 0, "%s%s%.512s: %s", coord_op_name(request->op), path[0] ? " " : "", path, text.text);
        coord_finish(request, status);
}

uint64_t coord_sweep(struct coord *coord, uint64_t now_ms, void (*forget)(struct coord_request *request))
{
        uint64_t next_ms = UINT64_MAX;
        struct coord_request *request = coord->requests;
        while (request) {
                if (!request->deadline_ms || request->deadline_ms > now_ms) {
                        if (request->deadline_ms && request->deadline_ms < next_ms)
                                next_ms = request->deadline_ms;
                        request = request->next;
                        continue;
                }
                if (forget)
                        forget(request);
                coord_finish_error(request, -ETIMEDOUT, "no answer within the session's timeout");
                /* done() may have changed the list anywhere: start over from its beginning. */
                request = coord->requests;
                next_ms = UINT64_MAX;
        }
        return next_ms;
}

void coord_cancel(struct coord *coord, int status)
{
        while (coord->requests)
                coord_finish_error(coord->requests, status, "the coordination tree was closed");
}

/* --- struct coord ------------------------------------------------------------------------------------------------ */

void coord_base_init(
        struct coord *coord, const struct coord_driver *driver, const struct coord_options *options, const char *url)
{
        *coord = (struct coord){ .driver = driver,
                .app = memory_text(options->app),
                .url = memory_text(url),
                .is_visitor = !options->events,
                .state = COORD_CONNECTING,
                .session_ms = options->session_ms };
        if (options->events)
                coord->events = *options->events;
}

void coord_base_free(struct coord *coord)
{
        free(coord->app);
        free(coord->url);
        free(coord->server);
        coord->app = coord->url = coord->server = NULL;
}

void coord_note(struct coord *coord, const char *text)
{
        uint64_t hash = hash_bytes(HASH_START, (const uint8_t *)text, strlen(text));
        for (unsigned i = 0; i < coord->noted_count && i < COORD_NOTED_MAX; i++)
                if (coord->noted[i] == hash)
                        return;
        coord->noted[coord->noted_count++ % COORD_NOTED_MAX] = hash;
        log_event(LEVEL_WARN, "coordination-value", "driver=%s text=%s hint=%s", coord->driver->scheme, LOG_QUOTE(text),
                LOG_QUOTE("somebody else has written it; it is not used"));
}

void coord_tell(struct coord *coord, enum coord_state state, uint64_t session)
{
        coord->state = state;
        coord->session = session;
        if (coord->events.session)
                coord->events.session(coord->events.self, state, session);
}
