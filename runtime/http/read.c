/* read.c: GET /v1/status: what `quiver status --json` prints, from the same code. */
#include <stdlib.h>

#include "base/memory.h"
#include "http/endpoints.h"
#include "store/admin.h"
#include "store/store.h"
#include "view/status.h"

/* Three requests, one after the other. */
struct status_call {
        struct http_exchange *x;
        union {
                struct store_request request;
                struct store_count count;
                struct store_desired_get desired;
                struct store_status_list list;
        };
        struct store_info info;
        struct store_counts *counts;
        struct status status;
};

static void status_call_free(struct status_call *call)
{
        status_free(&call->status);
        free(call->counts);
        free(call);
}

/* True if the request has failed, and that is answered. */
static bool has_failed(struct status_call *call)
{
        if (call->request.status == 0)
                return false;
        struct http_exchange *x = call->x;
        int status = call->request.status;
        struct error error = call->request.error;
        status_call_free(call);
        http_answer_store_problem(x, status, error.text);
        return true;
}

static void on_documents(struct store_request *request)
{
        struct status_call *call = container_of(request, struct status_call, request);
        if (has_failed(call))
                return;
        for (uint32_t i = 0; i < call->list.items_count; i++)
                status_add_document(&call->status, &call->list.items[i]);
        for (uint32_t i = 0; i < call->list.totals_count; i++)
                status_add_total(&call->status, &call->list.totals[i]);
        struct http_exchange *x = call->x;
        json_t *json = status_as_json(&call->status);
        status_call_free(call);
        http_answer_json(x, 200, json);
}

static void on_desired(struct store_request *request)
{
        struct status_call *call = container_of(request, struct status_call, request);
        if (has_failed(call))
                return;
        for (uint32_t i = 0; i < call->desired.items_count; i++)
                status_add_desired(&call->status, &call->desired.items[i]);
        call->list = (struct store_status_list){ .request.done = on_documents };
        store_status_list(call->x->services->store, &call->list);
}

static void on_counts(struct store_request *request)
{
        struct status_call *call = container_of(request, struct status_call, request);
        const struct http_services *services = call->x->services;
        status_init(&call->status, &call->info, services->config(services->self)->store.url.text, call->counts);
        if (has_failed(call))
                return;
        call->desired = (struct store_desired_get){ .request.done = on_desired };
        store_desired_get(services->store, &call->desired);
}

void http_get_status(struct http_exchange *x)
{
        struct status_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        x->call = call;
        store_info(x->services->store, &call->info);
        call->counts = memory_zero(call->info.shards, sizeof(*call->counts));
        call->count =
                (struct store_count){ .request.done = on_counts, .shards = call->info.shards, .counts = call->counts };
        store_count(x->services->store, &call->count);
}
