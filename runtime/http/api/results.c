/* results.c: the results of handlers: taken for a while, and committed by the receipts that came with them.
 *
 * Like submissions and outcomes of workers, these are not in the audit log: they are an app's normal traffic, not
 * actions of a person. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/units.h"
#include "http/api/endpoints.h"
#include "http/api/lists.h"
#include "http/api/look_io.h"
#include "look/results_act.h"
#include "view/json.h"

/* --- taking ------------------------------------------------------------------------------------------------------- */

struct take_call {
        struct http_look http_look;
        struct results_take take;
};

static void free_take(struct http_look *http_look)
{
        struct take_call *call = container_of(http_look, struct take_call, http_look);
        results_take_free(&call->take);
        free(call);
}

static void answer_take(struct http_look *http_look)
{
        struct take_call *call = container_of(http_look, struct take_call, http_look);
        json_t *o = json_pack("{s:O, s:b}", "results", call->take.found, "more", call->take.has_more);
        view_json_number(o, "lease_ms", call->take.lease_ms);
        http_look_answer(http_look, 200, o);
}

/* Results taken before the failure would only come back when their lease ends, so they are answered. */
static bool answer_some(struct http_look *http_look, int status, const char *text)
{
        struct take_call *call = container_of(http_look, struct take_call, http_look);
        (void)status;
        (void)text;
        if (!json_array_size(call->take.found))
                return false;
        call->take.has_more = true;
        answer_take(http_look);
        return true;
}

void http_take_results(struct http_exchange *x)
{
        const struct config *config = x->services->config(x->services->self);
        const char *lease = http_parameter(x, "lease");
        struct error error = { "" };
        uint64_t max = LIST_LIMIT;
        uint64_t lease_ms = config->store.results.lease_ms;
        if (!list_read_number(x, "max", LIST_LIMIT_MAX, &max))
                return;
        if (lease && units_duration_ms(lease, &lease_ms, &error) < 0) {
                http_answer_problem(x, 400, "lease: %s", error.text);
                return;
        }
        if (!lease_ms || lease_ms > TASK_NUMBER_MAX) {
                http_answer_problem(x, 400, "lease: %s; it is more than 0, such as 30s", lease);
                return;
        }
        struct take_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = answer_take, .failed = answer_some, .free = free_take };
        call->take.max = (uint32_t)max;
        call->take.bytes_max = LIST_BYTES;
        call->take.lease_ms = lease_ms;
        results_take_init(&call->take);
        if (getrandom(call->take.consumer, STORE_NONCE_SIZE, 0) != (ssize_t)STORE_NONCE_SIZE) {
                free_take(&call->http_look);
                http_answer_problem(x, 503, "the system gives no random bytes; try again");
                return;
        }
        http_look_start(&call->http_look, x, &call->take.look);
}

/* --- committing --------------------------------------------------------------------------------------------------- */

struct commit_call {
        struct http_look http_look;
        struct results_commit commit;
};

static void free_commit(struct http_look *http_look)
{
        struct commit_call *call = container_of(http_look, struct commit_call, http_look);
        results_commit_free(&call->commit);
        free(call);
}

static void answer_commit(struct http_look *http_look)
{
        struct commit_call *call = container_of(http_look, struct commit_call, http_look);
        json_t *o = json_object();
        view_json_number(o, "committed", call->commit.committed);
        (void)json_object_set(o, "refused", call->commit.refused);
        http_look_answer(http_look, 200, o);
}

static bool answer_half_committed(struct http_look *http_look, int status, const char *text)
{
        struct commit_call *call = container_of(http_look, struct commit_call, http_look);
        bool is_unknown = status == -ETIMEDOUT || status == -ECONNRESET;
        http_look_problem(http_look, is_unknown ? 504 : 503,
                "%s; %llu were committed before that%s; the same request again does no harm", text,
                (unsigned long long)call->commit.committed,
                is_unknown ? ", and some may have been with the last step" : "");
        return true;
}

void http_commit_results(struct http_exchange *x)
{
        struct error error = { "" };
        struct store_info info;
        struct commit_call *call = memory_zero(1, sizeof(*call));
        call->http_look =
                (struct http_look){ .answer = answer_commit, .failed = answer_half_committed, .free = free_commit };
        store_info(x->services->store, &info);
        if (results_commit_read(&call->commit, x->body, info.shards, LIST_LIMIT_MAX, &error) < 0) {
                free_commit(&call->http_look);
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        http_look_start(&call->http_look, x, &call->commit.look);
}
