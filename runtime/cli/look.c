#include "cli/look.h"

#include <stdlib.h>

#include "base/memory.h"

struct looking {
        struct client_call call;
        struct look *look;
        bool has_next;
};

/* On the client's thread, where the answer is there to be taken. */
static void on_answer(struct store_request *request)
{
        struct look *look = container_of(request, struct look, request);
        struct looking *looking = look->driver;
        struct store_request *told = &looking->call.request;
        told->status = request->status;
        told->error = request->error;
        if (request->status == 0)
                looking->has_next = look_next(look);
        told->done(told);
}

static void start(struct qv_client *client, struct client_call *call)
{
        struct looking *looking = container_of(call, struct looking, call);
        looking->look->request.done = on_answer;
        looking->look->start(client_store(client), looking->look);
}

int cli_look(struct cli_store *s, struct look *look, struct error *error)
{
        struct looking *looking = memory_zero(1, sizeof(*looking));
        int r = 0;
        looking->call.start = start;
        looking->look = look;
        look->info = *s->info;
        look->driver = looking;
        looking->has_next = look_next(look);
        while (r == 0 && looking->has_next)
                r = client_call(s->client, &looking->call, error);
        look->driver = NULL;
        free(looking);
        return r;
}
