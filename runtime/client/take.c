/* take.c: a worker on a host's machine: takes tasks, keeps them, and reports their outcome, over the hosts' sockets. */
#include "client/take.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "client/call.h"
#include "client/host_call.h"
#include "client/say_json.h"
#include "client/sized_struct.h"
#include "client/work_json.h"
#include "task/envelope.h"
#include "task/id.h"
#include "worker/fence.h"

#define POLL_MAX_MS       UINT64_C(60000) /* the longest wait that a host allows */
#define POLL_TURN_MS      UINT64_C(1000)  /* the longest wait if there is another host to ask */
#define ANSWER_MS         UINT64_C(10000)
#define FINISH_TIMEOUT_MS UINT64_C(30000)

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Maps an HTTP status to an errno; the text is the host's. */
static int judge(const struct http_answer *answer, const char *host, struct error *error)
{
        static const struct {
                unsigned status;
                int r;
        } meanings[] = { { 400, -EINVAL }, { 401, -EACCES }, { 403, -EACCES }, { 404, -ENOENT }, { 409, -ESTALE },
                { 413, -EMSGSIZE }, { 429, -EBUSY }, { 503, -EBUSY }, { 504, -ETIMEDOUT } };
        if (answer->status == 200 || answer->status == 202 || answer->status == 204)
                return 0;
        int r = -EBADMSG;
        for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
                if (meanings[i].status == answer->status)
                        r = meanings[i].r;
        json_t *problem =
                json_loadb(answer->body.size ? (const char *)answer->body.data : "", answer->body.size, 0, NULL);
        const char *detail = json_string_value(json_object_get(problem, "detail"));
        (void)error_set(error, r, "host %s answered %u: %s", host, answer->status,
                detail ? detail : "and gave no reason; see its log");
        json_decref(problem);
        return r;
}

static int no_host(const char *state, struct error *error)
{
        return error_set(error, -ECONNREFUSED,
                "no host runs here: there is no socket NAME.http in the state folder %s; start one: quiver run, or "
                "name "
                "the file of its settings",
                state);
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

/* 0; -EAGAIN: it has no task; or another error. */
static int poll_host(const char *state, const char *host, const struct qv_client_take *take, uint64_t wait_ms,
        struct qv_client_work **ret_work, json_t **ret_object, struct error *error)
{
        struct http_answer answer = { 0 };
        char path[256];
        (void)snprintf(
                path, sizeof(path), "/v1/work/%s?worker=%s&wait=%" PRIu64 "ms", take->handler, take->worker, wait_ms);
        int r = host_call(state, host, path, NULL, wait_ms + ANSWER_MS, &answer, error);
        if (r < 0)
                return r;
        r = judge(&answer, host, error);
        if (r == 0 && answer.status == 204)
                r = -EAGAIN;
        if (r == 0) {
                json_t *object = json_loadb(answer.body.size ? (const char *)answer.body.data : "", answer.body.size,
                        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
                r = work_of_json(object, take->handler, host, ret_work, error);
                if (r == 0)
                        *ret_object = object;
                else
                        json_decref(object);
        }
        http_answer_free(&answer);
        return r;
}

/* Asks every host once.  0; -EAGAIN: at least one has the handler, and none has a task; or an error, preferably of a
 * host that runs. */
static int poll_hosts(const char *state, const struct qv_client_take *take, uint64_t until_ms, bool is_first,
        struct qv_client_work **ret_work, json_t **ret_object, struct error *error)
{
        struct strings names = { 0 };
        int best = -ECONNREFUSED;
        host_call_names(state, &names);
        if (!names.count)
                return no_host(state, error);
        for (size_t i = 0; i < names.count && best < 0; i++) {
                struct error said = { "" };
                uint64_t now_ms = clock_boot_ms();
                uint64_t wait_ms = min_u64(until_ms > now_ms ? until_ms - now_ms : 0, POLL_MAX_MS);
                /* With several hosts, one may already have a task: the first round does not wait. */
                if (names.count > 1)
                        wait_ms = is_first ? 0 : min_u64(wait_ms, POLL_TURN_MS);
                int r = poll_host(state, names.items[i], take, wait_ms, ret_work, ret_object, &said);
                if (r == 0 || r == -EAGAIN || best == -ECONNREFUSED) {
                        best = r;
                        (void)error_set(error, r, "%s", said.text);
                }
        }
        strings_free(&names);
        return best;
}

static void name_worker(char name[WORKER_NAME_MAX + 1])
{
        char host[40] = "";
        (void)gethostname(host, sizeof(host) - 1);
        for (char *c = host; *c; c++)
                if (worker_name_check((struct span){ c, 1 }, NULL) < 0)
                        *c = '-';
        (void)snprintf(name, WORKER_NAME_MAX + 1, "%s-%ld", *host ? host : "worker", (long)getpid());
}

int take_work(const char *state, const struct qv_client_take *given, struct qv_client_work **ret_work,
        json_t **ret_object, struct error *error)
{
        struct qv_client_take take = *given;
        char name[WORKER_NAME_MAX + 1];
        name_worker(name);
        take.worker = take.worker ? take.worker : name;
        if (!take.handler || task_handler_check(span_of_text(take.handler), error) < 0)
                return error_set(error, -EINVAL,
                        "handler: a name begins with a letter and has at most 64 letters, digits, _ or -");
        if (worker_name_check(span_of_text(take.worker), error) < 0)
                return error_prefix(error, -EINVAL, "worker");
        uint64_t now_ms = clock_boot_ms();
        uint64_t until_ms = take.wait_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + take.wait_ms;
        for (bool is_first = true;; is_first = false) {
                int r = poll_hosts(state, &take, until_ms, is_first, ret_work, ret_object, error);
                if (r != -EAGAIN)
                        return r;
                if (clock_boot_ms() >= until_ms)
                        return error_set(
                                error, r, "no task of %s came within %" PRIu64 " ms", take.handler, take.wait_ms);
        }
}

/* --- heartbeats and outcomes -------------------------------------------------------------------------------------- */

static int check_work(const struct qv_client_work *work, struct error *error)
{
        struct work_fence fence;
        uint32_t shard;
        if (!work->handler || task_handler_check(span_of_text(work->handler), error) < 0)
                return error_set(error, -EINVAL, "work.handler: is not the name of a handler");
        if (!work->id || task_id_check(span_of_text(work->id), &shard, error) < 0)
                return error_set(error, -EINVAL, "work.id: is not the id of a task");
        if (!work->fence || fence_parse(span_of_text(work->fence), &fence, error) < 0)
                return error_set(error, -EINVAL, "work.fence: give back the text that the task came with");
        return 0;
}

static int say_to(const char *state, const char *host, const char *path, const json_t *body, uint64_t timeout_ms,
        struct http_answer *ret_answer, struct error *error)
{
        struct http_answer answer = { 0 };
        int r = host_call(state, host, path, body, timeout_ms, &answer, error);
        if (r == 0)
                r = judge(&answer, host, error);
        if (r == 0)
                *ret_answer = answer;
        else
                http_answer_free(&answer);
        return r;
}

/* Whether the host certainly did not take the report, so that another host may be asked. */
static bool is_unheard(int r)
{
        return r == -ECONNREFUSED || r == -EACCES || r == -EBUSY || r == -EBADMSG;
}

/* Any host accepts a report; the one that handed out the task is asked first. */
static int say(const char *state, const struct qv_client_work *work, const char *what, const json_t *body,
        uint64_t timeout_ms, struct http_answer *ret_answer, struct error *error)
{
        struct strings names = { 0 };
        char path[256];
        (void)snprintf(path, sizeof(path), "/v1/work/%s/%s/%s", work->handler, work->id, what);
        int r = work->host ? say_to(state, work->host, path, body, timeout_ms, ret_answer, error)
                           : no_host(state, error);
        if (is_unheard(r))
                host_call_names(state, &names);
        for (size_t i = 0; i < names.count && is_unheard(r); i++)
                if (!work->host || strcmp(names.items[i], work->host) != 0)
                        r = say_to(state, names.items[i], path, body, timeout_ms, ret_answer, error);
        strings_free(&names);
        return r;
}

int keep_work(const char *state, const struct qv_client_work *work, const struct qv_client_heartbeat *heartbeat,
        uint64_t timeout_ms, struct qv_client_kept *ret_kept, struct error *error)
{
        struct http_answer answer = { 0 };
        int r = check_work(work, error);
        if (r < 0)
                return r;
        json_t *body = heartbeat_json(work->fence, heartbeat);
        r = say(state, work, "heartbeat", body, timeout_ms, &answer, error);
        if (r == 0)
                r = kept_of_json((struct span){ (const char *)answer.body.data, answer.body.size }, ret_kept, error);
        json_decref(body);
        http_answer_free(&answer);
        return r;
}

int finish_work(const char *state, const struct qv_client_work *work, const struct qv_client_finish *finish,
        struct error *error)
{
        struct http_answer answer = { 0 };
        int r = check_work(work, error);
        if (r < 0)
                return r;
        json_t *body = finish_json(work->fence, finish, error);
        if (!body)
                return -EINVAL;
        r = say(state, work, "outcome", body, FINISH_TIMEOUT_MS, &answer, error);
        json_decref(body);
        http_answer_free(&answer);
        return r;
}

/* --- client.h ----------------------------------------------------------------------------------------------------- */

static int need_state(const struct qv_client *client, const char **ret_state, struct error *error)
{
        *ret_state = client_state(client);
        return *ret_state ? 0
                          : error_set(error, -EINVAL,
                                    "this handle knows no state folder, where the hosts' sockets are: open it with "
                                    "options.config instead of options.store");
}

int qv_client_take(struct qv_client *client, const struct qv_client_take *given, struct qv_client_work **ret_work)
{
        struct error *error = client_error_start();
        struct qv_client_take take = QV_CLIENT_TAKE_INIT;
        json_t *object = NULL;
        const char *state;
        if (SIZED_COPY(&take, given) < 0)
                return error_set(error, -EINVAL, "take.size: start from QV_CLIENT_TAKE_INIT");
        int r = need_state(client, &state, error);
        if (r == 0)
                r = take_work(state, &take, ret_work, &object, error);
        json_decref(object);
        return r;
}

int qv_client_heartbeat(struct qv_client *client, const struct qv_client_work *given,
        const struct qv_client_heartbeat *given_heartbeat, struct qv_client_kept *kept)
{
        struct error *error = client_error_start();
        struct qv_client_work work = QV_CLIENT_WORK_INIT;
        struct qv_client_heartbeat heartbeat = QV_CLIENT_HEARTBEAT_INIT;
        struct qv_client_kept full = QV_CLIENT_KEPT_INIT;
        const char *state;
        if (SIZED_COPY(&work, given) < 0 || (given_heartbeat && SIZED_COPY(&heartbeat, given_heartbeat) < 0) ||
                SIZED_FILL(kept, &full) < 0)
                return error_set(error, -EINVAL, "work, heartbeat, kept: start from their _INIT macros");
        int r = need_state(client, &state, error);
        if (r == 0)
                r = keep_work(state, &work, &heartbeat, KEEP_TIMEOUT_MS, &full, error);
        if (r == 0)
                (void)SIZED_FILL(kept, &full);
        return r;
}

int qv_client_finish(
        struct qv_client *client, const struct qv_client_work *given, const struct qv_client_finish *given_finish)
{
        struct error *error = client_error_start();
        struct qv_client_work work = QV_CLIENT_WORK_INIT;
        struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
        const char *state;
        if (SIZED_COPY(&work, given) < 0 || SIZED_COPY(&finish, given_finish) < 0)
                return error_set(error, -EINVAL, "work, finish: start from their _INIT macros");
        int r = need_state(client, &state, error);
        return r < 0 ? r : finish_work(state, &work, &finish, error);
}
