/* limits.c: one limit of the app: shows what it allows and how much is used, sets it for a while, sets it back. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "http/api/lists.h"
#include "http/api/look_io.h"
#include "look/limit_act.h"

struct limit_http_call {
        struct http_look http_look;
        struct limit_act act;
};

static void free_call(struct http_look *http_look)
{
        struct limit_http_call *call = container_of(http_look, struct limit_http_call, http_look);
        limit_act_free(&call->act);
        free(call);
}

static void on_acted(struct http_look *http_look)
{
        struct limit_http_call *call = container_of(http_look, struct limit_http_call, http_look);
        struct limit_act *act = &call->act;
        if (act->result < 0) {
                http_look_problem(http_look, act->result == -ENOENT ? 404 : 400, "%s", act->error.text);
                return;
        }
        json_t *found = json_incref(act->found);
        if (act->kind == LIMIT_ACT_SHOW)
                list_set_more(found, act->has_more, &act->place);
        else
                http_audit(http_look->x, act->kind == LIMIT_ACT_SET ? "limit-set" : "limit-clear", act->name);
        http_look_answer(http_look, 200, found);
}

/* NULL: the request was answered. */
static struct limit_http_call *begin(struct http_exchange *x, enum limit_act_kind kind)
{
        const struct config *config = x->services->config(x->services->self);
        const char *name = http_parameter(x, "name");
        struct error error = { "" };
        if (task_handler_check(span_of_text(name), &error) < 0) {
                http_answer_problem(x, 404, "there is no such limit: %s", error.text);
                return NULL;
        }
        struct limit_http_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = on_acted, .free = free_call };
        call->act.kind = kind;
        call->act.name = name;
        limit_act_init(&call->act, config->store.url.text, clock_wall_ms());
        return call;
}

void http_get_limit(struct http_exchange *x)
{
        uint64_t limit = LIST_LIMIT;
        struct limit_http_call *call = begin(x, LIMIT_ACT_SHOW);
        if (!call)
                return;
        if (!list_read_page(x, &limit, &call->act.place)) {
                free_call(&call->http_look);
                return;
        }
        call->act.shown_max = (uint32_t)limit;
        http_look_start(&call->http_look, x, &call->act.status.look);
}

void http_put_limit(struct http_exchange *x)
{
        struct error error = { "" };
        struct limit_http_call *call = begin(x, LIMIT_ACT_SET);
        if (!call)
                return;
        if (limit_act_read(x->body, &call->act.wanted, &error) < 0) {
                free_call(&call->http_look);
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        http_look_start(&call->http_look, x, &call->act.status.look);
}

void http_delete_limit(struct http_exchange *x)
{
        struct limit_http_call *call = begin(x, LIMIT_ACT_CLEAR);
        if (call)
                http_look_start(&call->http_look, x, &call->act.status.look);
}
