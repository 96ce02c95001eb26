/* Ending the session of a host that is gone: whoever knows its nonce may.
 *
 *         token: 16 hexadecimal digits of the lease, "-", the nonce */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "coord/etcd/etcd.h"

#define LEASE_DIGITS 16u

struct etcd_session_end {
        struct coord_open open; /* a visitor's; first */
        struct coord_end_session *end;
        uint64_t lease;
        char nonce[ETCD_NONCE_DIGITS + 1];
        int status;
        struct error error;
};

void etcd_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        const struct etcd_tree *tree = (const struct etcd_tree *)coord;
        ret_token[0] = 0;
        if (tree->lease && tree->watch_from)
                (void)snprintf(ret_token, COORD_TOKEN_MAX, "%016" PRIx64 "-%s", tree->lease, tree->nonce);
}

static bool token_read(const char *token, struct etcd_session_end *ending)
{
        static const char digits[] = "0123456789abcdef";
        const char *nonce = token + LEASE_DIGITS + 1;
        if (strspn(token, digits) != LEASE_DIGITS || token[LEASE_DIGITS] != '-' ||
                strspn(nonce, digits) != ETCD_NONCE_DIGITS || nonce[ETCD_NONCE_DIGITS])
                return false;
        ending->lease = strtoull(token, NULL, 16);
        memcpy(ending->nonce, nonce, ETCD_NONCE_DIGITS);
        return ending->lease > 0 && ending->lease <= ETCD_NUMBER_MAX;
}

static void finish(struct etcd_session_end *ending, int status, const char *text)
{
        struct coord_request *request = &ending->end->request;
        struct error copy;
        (void)error_set(&copy, 0, "%s", text);
        explicit_bzero(ending, sizeof(*ending));
        free(ending);
        if (status)
                coord_finish_error(request, status, "%s", copy.text);
        else
                coord_finish(request, 0);
}

static void on_closed(void *self)
{
        struct etcd_session_end *ending = self;
        finish(ending, ending->status, ending->error.text);
}

static void close_with(struct etcd_call *call, int status, const char *text)
{
        struct etcd_session_end *ending = call->self;
        struct coord *coord = &call->tree->remote.coord;
        ending->status = error_set(&ending->error, status, "%s", text);
        etcd_call_free(call);
        etcd_close(coord, on_closed, ending);
}

static void on_revoked(struct etcd_call *call)
{
        bool is_gone = call->outcome == ETCD_ANSWERED ||
                       (call->outcome == ETCD_FAILED && call->failure.code == ETCD_CODE_NOT_FOUND);
        close_with(call, is_gone ? 0 : -ETIMEDOUT, call->error.text);
}

/* The session's key has that nonce; or there is no such session any more, or it has another. */
static void on_compared(struct etcd_call *call)
{
        struct etcd_session_end *ending = call->self;
        const json_t *responses = json_object_get(call->reply, "responses");
        const json_t *range = json_object_get(json_array_get(responses, 0), "response_range");
        if (call->outcome != ETCD_ANSWERED) {
                close_with(call, call->outcome == ETCD_FAILED ? -EACCES : -ETIMEDOUT, call->error.text);
        } else if (json_is_true(json_object_get(call->reply, "succeeded"))) {
                struct etcd_call *next =
                        etcd_revoke_call(call->tree, ending->lease, on_revoked, call->tree->remote.coord.session_ms);
                next->self = ending;
                etcd_call_free(call);
                etcd_call_post(next);
        } else if (json_is_object(range) && !json_array_size(json_object_get(range, "kvs"))) {
                close_with(call, 0, "");
        } else {
                close_with(call, -EACCES, "the token is not that session's");
        }
}

static void on_opened(struct coord_request *request)
{
        struct etcd_session_end *ending = (struct etcd_session_end *)request;
        if (request->status) {
                finish(ending, request->status, request->error.text);
                return;
        }
        struct etcd_tree *tree = (struct etcd_tree *)ending->open.coord;
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/txn", on_compared);
        struct buffer *body = &call->exchange.body;
        struct buffer key = { 0 };
        call->self = ending;
        call->deadline_ms = clock_boot_ms() + tree->remote.coord.session_ms;
        etcd_name_session(&key, tree->prefix, ending->lease);
        buffer_printf(body, "{\"compare\":[{\"target\":\"VALUE\",\"result\":\"EQUAL\"");
        etcd_put_key(body, "key", &key);
        etcd_put_bytes(body, "value", ending->nonce, ETCD_NONCE_DIGITS);
        buffer_printf(body, "}],\"failure\":[{\"request_range\":{\"keys_only\":true");
        etcd_put_key(body, "key", &key);
        buffer_printf(body, "}}]}");
        buffer_free(&key);
        etcd_call_post(call);
}

void etcd_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct etcd_session_end *ending = memory_zero(1, sizeof(*ending));
        ending->end = end;
        ending->open.request.done = on_opened;
        ending->open.request.op = COORD_OP_OPEN;
        ending->open.options = end->options;
        ending->open.options.events = NULL;
        ending->open.request.status = end->request.status;
        ending->open.request.error = end->request.error;
        if (!end->request.status && !token_read(end->token, ending))
                ending->open.request.status =
                        error_set(&ending->open.request.error, -EINVAL, "not the token of a session in etcd");
        etcd_make(loop, &ending->open, 0);
}
