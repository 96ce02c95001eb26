/* app.c: changes what is recorded about the app for all its hosts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "store/app.h"

struct app_change {
        struct http_exchange *x;
        struct store_app_set set;
};

static void on_set(struct store_request *request)
{
        struct app_change *call = container_of(request, struct app_change, set.request);
        struct http_exchange *x = call->x;
        int status = request->status;
        struct error error = request->error;
        free(call);
        if (status < 0) {
                http_answer_store_problem(x, status, error.text);
                return;
        }
        http_audit(x, "app-set", http_parameter(x, "max_members"));
        x->call = NULL;
        http_get_app(x);
}

/* The coordination changes only while no host runs, so no host can be asked for that. */
void http_post_app(struct http_exchange *x)
{
        const char *text = http_parameter(x, "max_members");
        char *end = NULL;
        unsigned long number = text ? strtoul(text, &end, 10) : 0;
        if (!text || text[0] < '0' || text[0] > '9' || *end || number > STORE_MEMBERS_MAX) {
                http_answer_problem(x, 400, "max_members: %s; it is a number from 0 (no limit) to %u",
                        text ? text : "is missing", STORE_MEMBERS_MAX);
                return;
        }
        struct app_change *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->set = (struct store_app_set){
                .request.done = on_set, .has_max_members = true, .max_members = (uint32_t)number
        };
        x->call = call;
        store_app_set(x->services->store, &call->set);
}
