/* end_session.c: ends the session of a host that is gone; knowing its nonce is the permission.
 *
 *         token: 16 hexadecimal digits of the lease, "-", the nonce */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "coord/etcd/etcd.h"
#include "coord/session_end.h"

#define LEASE_DIGITS 16u

struct etcd_session_end {
        struct session_end base; /* must be first */
        uint64_t lease;
        char nonce[REMOTE_NONCE_DIGITS + 1];
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
                strspn(nonce, digits) != REMOTE_NONCE_DIGITS || nonce[REMOTE_NONCE_DIGITS])
                return false;
        ending->lease = strtoull(token, NULL, 16);
        memcpy(ending->nonce, nonce, REMOTE_NONCE_DIGITS);
        return ending->lease > 0 && ending->lease <= ETCD_NUMBER_MAX;
}

static void close_with(struct etcd_call *call, int status, const char *text)
{
        struct session_end *ending = call->self;
        struct error error;
        (void)error_set(&error, 0, "%s", text); /* copied, because the text may belong to the call */
        etcd_call_free(call);
        session_end_close(ending, status, error.text);
}

static void on_revoked(struct etcd_call *call)
{
        bool is_gone = call->outcome == ETCD_ANSWERED ||
                       (call->outcome == ETCD_FAILED && call->failure.code == ETCD_CODE_NOT_FOUND);
        close_with(call, is_gone ? 0 : -ETIMEDOUT, call->error.text);
}

/* The nonce was compared: the session's key has it, or there is no such session, or it has another nonce. */
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

static void ask(struct session_end *base)
{
        struct etcd_session_end *ending = (struct etcd_session_end *)base;
        struct etcd_tree *tree = (struct etcd_tree *)base->open.coord;
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/txn", on_compared);
        struct buffer *body = &call->exchange.body;
        struct buffer key = { 0 };
        call->self = ending;
        call->deadline_ms = clock_boot_ms() + tree->remote.coord.session_ms;
        etcd_name_session(&key, tree->prefix, ending->lease);
        buffer_printf(body, "{\"compare\":[{\"target\":\"VALUE\",\"result\":\"EQUAL\"");
        etcd_put_key(body, "key", &key);
        etcd_put_bytes(body, "value", ending->nonce, REMOTE_NONCE_DIGITS);
        buffer_printf(body, "}],\"failure\":[{\"request_range\":{\"keys_only\":true");
        etcd_put_key(body, "key", &key);
        buffer_printf(body, "}}]}");
        buffer_free(&key);
        etcd_call_post(call);
}

void etcd_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct etcd_session_end *ending = session_end_new(end, sizeof(*ending), ask);
        if (!end->request.status && !token_read(end->token, ending))
                session_end_refuse(&ending->base, "not the token of a session in etcd");
        etcd_make(loop, &ending->base.open, 0);
}
