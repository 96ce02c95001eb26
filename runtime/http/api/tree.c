/* tree.c: reads the coordination tree: the members of the app, and the holders of locks and elections. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "http/api/endpoints.h"
#include "http/api/look_io.h"
#include "view/json.h"

/* --- members ------------------------------------------------------------------------------------------------------ */

struct members_call {
        struct http_look http_look;
        struct membership_look members;
        struct store_status_list documents;
};

static void free_members(struct http_look *http_look)
{
        struct members_call *call = container_of(http_look, struct members_call, http_look);
        membership_view_free(&call->members.view);
        membership_look_free(&call->members);
        free(call);
}

/* The documents of the store add details; without them the members are shown nevertheless. */
static void on_documents(struct store_request *request)
{
        struct members_call *call = container_of(request, struct members_call, documents.request);
        for (uint32_t i = 0; request->status == 0 && i < call->documents.items_count; i++)
                membership_view_add_document(&call->members.view, &call->documents.items[i]);
        http_look_answer(&call->http_look, 200, membership_as_json(&call->members.view));
}

static void ask_documents(struct http_look *http_look)
{
        struct members_call *call = container_of(http_look, struct members_call, http_look);
        call->documents = (struct store_status_list){ .request.done = on_documents };
        store_status_list(http_look->x->services->store, &call->documents);
}

void http_get_members(struct http_exchange *x)
{
        struct members_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = ask_documents, .free = free_members };
        membership_look_init(&call->members);
        http_look_start_tree(&call->http_look, x, &call->members.look);
}

/* --- locks -------------------------------------------------------------------------------------------------------- */

struct locks_call {
        struct http_look http_look;
        struct locks_look locks;
};

static void free_locks(struct http_look *http_look)
{
        struct locks_call *call = container_of(http_look, struct locks_call, http_look);
        locks_look_free(&call->locks);
        free(call);
}

static void answer_locks(struct http_look *http_look)
{
        struct locks_call *call = container_of(http_look, struct locks_call, http_look);
        json_t *o = json_pack("{s:O}", "locks", call->locks.found);
        view_json_number(o, "total", call->locks.total);
        http_look_answer(http_look, 200, o);
}

void http_get_locks(struct http_exchange *x)
{
        struct locks_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_locks, .free = free_locks };
        locks_look_init(&call->locks);
        http_look_start_tree(&call->http_look, x, &call->locks.look);
}
