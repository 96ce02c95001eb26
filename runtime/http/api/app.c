/* app.c: changes what is recorded about the app for all its hosts, and switches features on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "http/api/look_io.h"
#include "store/app.h"
#include "view/app.h"

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

/* Only max_members: the coordination changes only while no host runs, so no host can be asked to change it. */
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

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

struct upgrade_call {
        struct http_look http_look;
        struct http_exchange *x;
        struct membership_look members;
        union {
                struct store_app_get get;
                struct store_app_set set;
        };
        char *asked; /* owns the texts of `words` */
        const char *words[STORE_FEATURES_MAX];
        size_t words_count;
        const char *names[STORE_FEATURES_MAX]; /* features to switch on */
        struct span spans[STORE_FEATURES_MAX];
        size_t count;
        bool is_dry;
};

static void free_upgrade(struct http_look *http_look)
{
        struct upgrade_call *call = container_of(http_look, struct upgrade_call, http_look);
        membership_view_free(&call->members.view);
        membership_look_free(&call->members);
        free(call->asked);
        free(call);
}

static void on_switched(struct store_request *request)
{
        struct upgrade_call *call = container_of(request, struct upgrade_call, set.request);
        bool is_unknown = request->status == -ETIMEDOUT || request->status == -ECONNRESET;
        struct buffer names = { 0 };
        if (request->status < 0) {
                http_look_problem(&call->http_look, is_unknown ? 504 : 503, "%s; %s", request->error.text,
                        is_unknown ? "it may or may not have been done" : "nothing was done");
                return;
        }
        for (size_t i = 0; i < call->count; i++)
                buffer_printf(&names, "%s%s", i ? " " : "", call->names[i]);
        http_audit(call->x, "app-upgrade", buffer_text(&names));
        buffer_free(&names);
        http_look_answer(&call->http_look, 200, app_upgrade_as_json(call->names, call->count, false));
}

/* True: some host does not know a feature, and the request was answered. */
static bool is_lacking(struct upgrade_call *call)
{
        struct buffer lines = { 0 };
        struct buffer text = { 0 };
        size_t count = app_put_lacking(&lines, &call->members.view, call->names, call->count);
        char *rest = NULL;
        char *copy = text_copy(buffer_text(&lines));
        for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                buffer_printf(&text, "%s%s", text.size ? "; " : "", line);
        if (count)
                http_look_problem(&call->http_look, 409, "not switched on; upgrade or stop these hosts first: %s",
                        buffer_text(&text));
        free(copy);
        buffer_free(&lines);
        buffer_free(&text);
        return count > 0;
}

/* All members are known.  A feature is switched on only if every member knows it. */
static void switch_on(struct http_look *http_look)
{
        struct upgrade_call *call = container_of(http_look, struct upgrade_call, http_look);
        if (is_lacking(call))
                return;
        if (call->is_dry) {
                http_look_answer(http_look, 200, app_upgrade_as_json(call->names, call->count, true));
                return;
        }
        for (size_t i = 0; i < call->count; i++)
                call->spans[i] = span_of_text(call->names[i]);
        call->set = (struct store_app_set){
                .request.done = on_switched, .features = call->spans, .features_count = (uint32_t)call->count
        };
        store_app_set(call->x->services->store, &call->set);
}

static void on_record(struct store_request *request)
{
        struct upgrade_call *call = container_of(request, struct upgrade_call, get.request);
        struct http_exchange *x = call->x;
        int status = request->status;
        struct error error = request->error;
        int r = status < 0 ? 0
                           : app_choose_features(&call->get.app, call->words, call->words_count,
                                     http_is_asked(x, "all"), call->names, &call->count, &error);
        if (status == 0 && r == 0 && call->count) {
                membership_look_init(&call->members);
                http_look_start_tree(&call->http_look, x, &call->members.look);
                return;
        }
        bool is_dry = call->is_dry;
        free_upgrade(&call->http_look);
        if (status < 0)
                http_answer_store_problem(x, status, error.text);
        else if (r < 0)
                http_answer_problem(x, 400, "%s", error.text);
        else
                http_answer_json(x, 200, app_upgrade_as_json(NULL, 0, is_dry));
}

void http_upgrade_app(struct http_exchange *x)
{
        const char *features = http_parameter(x, "features");
        if (!features && !http_is_asked(x, "all")) {
                http_answer_problem(
                        x, 400, "which features? features=NAME,NAME or all=1; GET /v1/app names those that there are");
                return;
        }
        struct upgrade_call *call = memory_zero(1, sizeof(*call));
        char *rest = NULL;
        call->asked = text_copy(features ? features : "");
        char *word = strtok_r(call->asked, ",", &rest);
        for (; word && call->words_count < STORE_FEATURES_MAX; word = strtok_r(NULL, ",", &rest))
                call->words[call->words_count++] = word;
        if (word || (features && !call->words_count)) {
                free_upgrade(&call->http_look);
                http_answer_problem(
                        x, 400, "features: names with commas between them, 1 to %u of them", STORE_FEATURES_MAX);
                return;
        }
        call->http_look = (struct http_look){ .answer = switch_on, .free = free_upgrade };
        call->x = x;
        call->is_dry = http_is_asked(x, "dry_run");
        x->call = call;
        call->get.request.done = on_record;
        store_app_get(x->services->store, &call->get);
}
