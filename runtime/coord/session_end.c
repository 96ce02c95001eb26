#include "coord/session_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void finish(struct session_end *ending, int status, const char *text)
{
        struct coord_request *request = &ending->end->request;
        struct error copy;
        (void)error_set(&copy, 0, "%s", text);
        explicit_bzero(ending, ending->size);
        free(ending);
        if (status)
                coord_finish_error(request, status, "%s", copy.text);
        else
                coord_finish(request, 0);
}

static void on_opened(struct coord_request *request)
{
        struct session_end *ending = (struct session_end *)request;
        if (request->status)
                finish(ending, request->status, request->error.text);
        else
                ending->ask(ending);
}

void *session_end_new(struct coord_end_session *end, size_t size, void (*ask)(struct session_end *ending))
{
        struct session_end *ending = memory_zero(1, size);
        ending->end = end;
        ending->size = size;
        ending->ask = ask;
        ending->open.request.done = on_opened;
        ending->open.request.op = COORD_OP_OPEN;
        ending->open.options = end->options;
        ending->open.options.events = NULL;
        ending->open.request.status = end->request.status;
        ending->open.request.error = end->request.error;
        return ending;
}

void session_end_refuse(struct session_end *ending, const char *why)
{
        ending->open.request.status = error_set(&ending->open.request.error, -EINVAL, "%s", why);
}

static void on_closed(void *self)
{
        struct session_end *ending = self;
        finish(ending, ending->status, ending->error.text);
}

void session_end_close(struct session_end *ending, int status, const char *text)
{
        struct coord *coord = ending->open.coord;
        ending->status = error_set(&ending->error, status, "%s", text);
        coord->driver->close(coord, on_closed, ending);
}
