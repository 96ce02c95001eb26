/* keys.c: actions on a key that waits: hold, unhold, retry, skip. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "store/admin.h"

struct key_control {
        struct http_exchange *x;
        union {
                struct store_request request;
                struct store_key_act act;
        };
        struct span key; /* a parameter of the exchange */
};

static struct key_control *key_control_start(struct http_exchange *x)
{
        struct error error = { { 0 } };
        struct span key = span_of_text(http_parameter(x, "key"));
        if (task_key_check(key, &error) < 0) {
                http_answer_problem(x, 400, "%s", error.text);
                return NULL;
        }
        struct key_control *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->key = key;
        x->call = call;
        return call;
}

static void fail(struct key_control *call)
{
        struct http_exchange *x = call->x;
        int status = call->request.status;
        struct error error = call->request.error;
        free(call);
        if (status == -ENOENT)
                http_answer_problem(x, 404, "this key is neither held nor parked");
        else
                http_answer_store_problem(x, status, error.text);
}

static const struct {
        const char *name;
        enum store_control_verb verb;
} verbs[] = {
        { "hold", CONTROL_HOLD },
        { "unhold", CONTROL_UNHOLD },
        { "retry", CONTROL_RETRY },
        { "skip", CONTROL_SKIP },
};

static void on_acted(struct store_request *request)
{
        struct key_control *call = container_of(request, struct key_control, request);
        if (request->status < 0) {
                fail(call);
                return;
        }
        struct http_exchange *x = call->x;
        bool is_pending = call->act.is_pending;
        free(call);
        http_audit(x, http_parameter(x, "verb"), http_parameter(x, "key"));
        http_answer_json(x, is_pending ? 202 : 200, json_pack("{s:b}", "pending", is_pending));
}

void http_act_on_key(struct http_exchange *x)
{
        const char *name = http_parameter(x, "verb");
        const char *reason = http_parameter(x, "reason");
        size_t i = 0;
        while (i < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verbs[i].name, name) != 0)
                i++;
        if (i == sizeof(verbs) / sizeof(verbs[0])) {
                http_answer_problem(x, 404, "there is no %s of a key; there are hold, unhold, retry and skip", name);
                return;
        }
        struct key_control *call = key_control_start(x);
        if (!call)
                return;
        call->act = (struct store_key_act){ .request.done = on_acted,
                .verb = verbs[i].verb,
                .key = call->key,
                .reason = span_of_text(reason ? reason : "asked for over HTTP") };
        store_key_act(x->services->store, &call->act);
}
