/* history.c: GET /v1/history: the last hour of every host, a point a minute. */
#include <stdlib.h>

#include "base/memory.h"
#include "http/api/endpoints.h"
#include "store/admin.h"
#include "view/hour.h"

struct history_call {
        struct store_status_list list;
        struct http_exchange *x;
};

static void on_listed(struct store_request *request)
{
        struct history_call *call = container_of(request, struct history_call, list.request);
        struct http_exchange *x = call->x;
        if (request->status < 0) {
                int status = request->status;
                struct error error = request->error;
                free(call);
                http_answer_store_problem(x, status, error.text);
                return;
        }
        json_t *json = hours_as_json(call->list.items, call->list.items_count);
        free(call);
        http_answer_json(x, 200, json);
}

void http_get_history(struct http_exchange *x)
{
        struct history_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->list = (struct store_status_list){ .request.done = on_listed, .kind = DOCUMENT_HISTORY };
        x->call = call;
        store_status_list(x->services->store, &call->list);
}
