/* keys.c: what a key waits for, and what a person does about it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/audit.h"
#include "http/endpoints.h"
#include "store/admin.h"
#include "view/json.h"
#include "view/key.h"

struct key_call {
        struct http_exchange *x;
        union {
                struct store_request request;
                struct store_keys keys;
                struct store_key_act act;
        };
        struct span key; /* a parameter of the exchange */
};

static struct key_call *key_call_start(struct http_exchange *x)
{
        struct error error = { { 0 } };
        struct span key = span_of_text(http_parameter(x, "key"));
        if (task_key_check(key, &error) < 0) {
                http_answer_problem(x, 400, "%s", error.text);
                return NULL;
        }
        struct key_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->key = key;
        x->call = call;
        return call;
}

static void fail(struct key_call *call)
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

static void on_key(struct store_request *request)
{
        struct key_call *call = container_of(request, struct key_call, request);
        if (request->status < 0) {
                fail(call);
                return;
        }
        struct http_exchange *x = call->x;
        json_t *json;
        if (call->keys.keys_count) {
                json = key_as_json(&call->keys.keys[0]);
        } else {
                json = json_pack("{s:s}", "state", store_key_state_name(KEY_FREE));
                view_json_span(json, "key", call->key);
        }
        free(call);
        http_answer_json(x, 200, json);
}

void http_get_key(struct http_exchange *x)
{
        struct key_call *call = key_call_start(x);
        struct store_info info;
        if (!call)
                return;
        store_info(x->services->store, &info);
        call->keys = (struct store_keys){
                .request.done = on_key, .shard = shard_of_key(call->key, info.shards), .page_keys = 1, .key = call->key
        };
        store_keys(x->services->store, &call->keys);
}

/* --- acting ------------------------------------------------------------------------------------------------------- */

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
        struct key_call *call = container_of(request, struct key_call, request);
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
        struct key_call *call = key_call_start(x);
        if (!call)
                return;
        call->act = (struct store_key_act){ .request.done = on_acted,
                .verb = verbs[i].verb,
                .key = call->key,
                .reason = span_of_text(reason ? reason : "asked for over HTTP") };
        store_key_act(x->services->store, &call->act);
}
