/* read.c: the app as a whole, one task, one key, as `quiver status`, `task` and `key` print them with --json; and the
 * description of the API. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/api/endpoints.h"
#include "http/api/look_io.h"
#include "look/keys_look.h"
#include "look/status_look.h"
#include "look/task_look.h"
#include "view/done.h"
#include "view/task.h"

/* --- the app as a whole ------------------------------------------------------------------------------------------- */

struct status_call {
        struct http_look http_look;
        struct status_look status;
        const char *part; /* NULL: all of it */
};

static void free_status(struct http_look *http_look)
{
        struct status_call *call = container_of(http_look, struct status_call, http_look);
        status_look_free(&call->status);
        free(call);
}

static void answer_status(struct http_look *http_look)
{
        struct status_call *call = container_of(http_look, struct status_call, http_look);
        json_t *all = status_as_json(&call->status.status);
        json_t *answer = all;
        if (call->part) {
                answer = json_pack("{s:O}", call->part, json_object_get(all, call->part));
                json_decref(all);
        }
        http_look_answer(http_look, 200, answer);
}

static void start_status(struct http_exchange *x, const char *part)
{
        const struct config *config = x->services->config(x->services->self);
        struct status_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_status, .free = free_status };
        call->part = part;
        status_look_init(&call->status, config->store.url.text, clock_wall_ms());
        http_look_start(&call->http_look, x, &call->status.look);
}

void http_get_status(struct http_exchange *x)
{
        start_status(x, NULL);
}

void http_get_shards(struct http_exchange *x)
{
        start_status(x, "shards");
}

void http_get_handlers(struct http_exchange *x)
{
        start_status(x, "handlers");
}

void http_get_limits(struct http_exchange *x)
{
        start_status(x, "limits");
}

/* --- one task ----------------------------------------------------------------------------------------------------- */

struct task_call {
        struct http_look http_look;
        struct task_look task;
        struct store_status_list documents;
};

static void free_task(struct http_look *http_look)
{
        struct task_call *call = container_of(http_look, struct task_call, http_look);
        task_look_free(&call->task);
        free(call);
}

static void on_done_documents(struct store_request *request)
{
        struct task_call *call = container_of(request, struct task_call, documents.request);
        const struct http_services *services = call->http_look.x->services;
        struct done_search search;
        struct buffer why = { 0 };
        if (request->status < 0) {
                http_look_problem(&call->http_look, 503, "%s", request->error.text);
                return;
        }
        done_search_init(&search, call->task.id, clock_wall_ms());
        for (uint32_t i = 0; i < call->documents.items_count; i++)
                done_search_add(&search, &call->documents.items[i]);
        /* Tasks that this host did a moment ago are in no document yet. */
        json_t *own = services->done(services->self, call->task.id);
        done_search_add_now(&search, own);
        json_decref(own);
        done_search_missing(&why, &search);
        if (search.found)
                http_look_answer(&call->http_look, 200, json_incref(search.found));
        else
                http_look_problem(&call->http_look, 404, "there is no such task: %s", buffer_text(&why));
        buffer_free(&why);
        done_search_free(&search);
}

static void answer_task(struct http_look *http_look)
{
        struct task_call *call = container_of(http_look, struct task_call, http_look);
        if (call->task.found.is_there) {
                http_look_answer(http_look, 200, task_look_as_json(&call->task));
                return;
        }
        if (call->task.merged_into[0]) {
                http_look_answer(http_look, 200,
                        merged_as_json(call->task.id, span_of_text(call->task.merged_into), call->task.merged_ms));
                return;
        }
        /* The store does not have the task: it may be in the hosts' documents of done tasks. */
        call->documents = (struct store_status_list){ .request.done = on_done_documents, .kind = DOCUMENT_DONE };
        store_status_list(http_look->x->services->store, &call->documents);
}

void http_get_task(struct http_exchange *x)
{
        struct span id = span_of_text(http_parameter(x, "id"));
        if (!http_check_task_id(x, id, NULL))
                return;
        struct task_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_task, .free = free_task };
        task_look_init(&call->task, id);
        http_look_start(&call->http_look, x, &call->task.look);
}

/* --- one key ------------------------------------------------------------------------------------------------------ */

struct key_call {
        struct http_look http_look;
        struct key_look key;
};

static void free_key(struct http_look *http_look)
{
        struct key_call *call = container_of(http_look, struct key_call, http_look);
        key_look_free(&call->key);
        free(call);
}

static void answer_key(struct http_look *http_look)
{
        struct key_call *call = container_of(http_look, struct key_call, http_look);
        http_look_answer(http_look, 200, key_look_as_json(&call->key));
}

void http_get_key(struct http_exchange *x)
{
        struct error error = { { 0 } };
        struct span key = span_of_text(http_parameter(x, "key"));
        if (task_key_check(key, &error) < 0) {
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        struct key_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_key, .free = free_key };
        key_look_init(&call->key, key);
        http_look_start(&call->http_look, x, &call->key.look);
}

/* --- the description of the API ----------------------------------------------------------------------------------- */

extern const char embedded_etc_openapi_json[];

void http_get_openapi(struct http_exchange *x)
{
        http_answer(x, 200, "application/json", span_of_text(embedded_etc_openapi_json));
}
