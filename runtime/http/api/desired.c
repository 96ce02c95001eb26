/* desired.c: the desired state for every host, including those that start later: pause and resume, drain and activate;
 * and a reload of this host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/names.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "store/admin.h"

struct desired_call {
        struct http_exchange *x;
        struct store_desired_set set;
        char name[128];
        const char *action;
};

static void on_set(struct store_request *request)
{
        struct desired_call *call = container_of(request, struct desired_call, set.request);
        struct http_exchange *x = call->x;
        int status = request->status;
        struct error error = request->error;
        json_t *body = json_pack("{s:s, s:b}", "name", call->name, "set", call->set.has_value);
        if (status == 0)
                http_audit(x, call->action, call->name);
        free(call);
        if (status == 0) {
                http_answer_json(x, 200, body);
                return;
        }
        json_decref(body);
        http_answer_store_problem(x, status, error.text);
}

static void set(struct http_exchange *x, const char *action, const char *kind, const char *of, bool has_value)
{
        const char *reason = http_parameter(x, "reason");
        struct desired_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->action = action;
        x->call = call;
        (void)snprintf(call->name, sizeof(call->name), "%s%s%s", kind, of ? "." : "", of ? of : "");
        call->set.request.done = on_set;
        call->set.has_value = has_value;
        call->set.item = (struct store_desired){ span_of_text(call->name),
                span_of_text(reason ? reason : "asked for over HTTP") };
        store_desired_set(x->services->store, &call->set);
}

static void set_pause(struct http_exchange *x, const char *action, bool has_value)
{
        struct error error = { { 0 } };
        const char *handler = http_parameter(x, "handler");
        if (handler && task_handler_check(span_of_text(handler), &error) < 0)
                http_answer_problem(x, 400, "%s", error.text);
        else
                set(x, action, "pause", handler, has_value);
}

void http_pause(struct http_exchange *x)
{
        set_pause(x, "pause", true);
}

void http_resume(struct http_exchange *x)
{
        set_pause(x, "resume", false);
}

static void set_drain(struct http_exchange *x, const char *action, bool has_value)
{
        struct error error = { { 0 } };
        const char *member = http_parameter(x, "member");
        if (name_check_host(member, &error) < 0)
                http_answer_problem(x, 400, "%s: %s", member, error.text);
        else
                set(x, action, "drain", member, has_value);
}

void http_drain(struct http_exchange *x)
{
        set_drain(x, "drain", true);
}

void http_activate(struct http_exchange *x)
{
        set_drain(x, "activate", false);
}

/* --- reload ------------------------------------------------------------------------------------------------------- */

static void on_reloaded(struct http_exchange *x, json_t *reply, const char *refused)
{
        json_t *problems = json_object_get(reply, "problems");
        if (refused) {
                http_answer_problem(x, 503, "%s; nothing was changed", refused);
                return;
        }
        if (!http_is_asked(x, "dry_run"))
                http_audit(x, "reload", problems ? "refused" : "taken");
        if (problems) {
                json_t *body = json_pack("{s:i, s:s, s:O}", "status", 422, "detail",
                        "the new settings cannot be taken; nothing was changed", "problems", problems);
                json_decref(reply);
                http_answer_json(x, 422, body);
                return;
        }
        http_answer_json(x, 200, reply);
}

void http_reload(struct http_exchange *x)
{
        char by[sizeof(x->who.name) + 8];
        (void)snprintf(by, sizeof(by), "HTTP %s", x->who.name);
        x->services->reload(x->services->self, by, http_is_asked(x, "dry_run"), on_reloaded, x);
}
