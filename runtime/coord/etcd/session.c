/* session.c: the session: a lease.
 *
 * It is kept alive every third of its time, and an answer proves that it was alive when the call was sent.  Without
 * proof for its whole time it is over for us; etcd, whose time began later, ends it soon after.  The session has a key
 * of its own, which goes with the lease and fences our writes: a session that is over changes nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers.h"
#include "coord/etcd/etcd.h"

/* Pause after a call that failed at once. */
#define AGAIN_MS 100u
/* A lease with a longer TTL is not one that we asked for. */
#define TTL_MAX_S 86400u

/* --- the end ----------------------------------------------------------------------------------------------------- */

struct etcd_call *etcd_revoke_call(
        struct etcd_tree *tree, uint64_t lease, void (*answered)(struct etcd_call *call), uint64_t patience_ms)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/lease/revoke", answered);
        etcd_put_lease(call, lease);
        call->deadline_ms = patience_ms ? clock_boot_ms() + patience_ms : 0;
        return call;
}

void etcd_expire(struct etcd_tree *tree, const char *why)
{
        if (tree->lease)
                tree->old_lease = tree->lease;
        tree->lease = 0;
        tree->watch_from = 0;
        tree->cluster_id = 0;
        etcd_stream_stop(tree);
        etcd_watch_clear(&tree->watches);
        remote_beat_soon(&tree->remote);
        remote_expired(&tree->remote, why);
}

/* --- a new session ----------------------------------------------------------------------------------------------- */

static void beat_failed(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        uint64_t now_ms = clock_boot_ms();
        tree->remote.beat = NULL;
        tree->remote.next_beat_ms = max_u64(now_ms + (call->outcome == ETCD_FAILED ? AGAIN_MS : 0), tree->retry_at_ms);
        if (call->outcome == ETCD_FAILED &&
                (call->failure.code == ETCD_CODE_DENIED || strstr(call->failure.message, "user name is empty"))) {
                struct error text;
                (void)error_set(&text, 0,
                        "%s; set coordination.user and its password, and give that user's role: etcdctl role "
                        "grant-permission ROLE --prefix=true readwrite %s",
                        call->error.text, tree->prefix);
                etcd_refuse(tree, -EACCES, text.text);
                tree->remote.next_beat_ms = tree->retry_at_ms;
        } else if (call->outcome == ETCD_FAILED || call->outcome == ETCD_STRANGE) {
                coord_note(&tree->remote.coord, call->error.text);
        } else if (call->outcome == ETCD_ANSWERED) {
                char server[300];
                struct error text;
                (void)error_set(&text, 0, "etcd at %s says nothing about the session that can be",
                        etcd_endpoint_name(tree, server));
                etcd_endpoint_failed(tree, text.text);
        }
        remote_wake_at(&tree->remote, tree->remote.next_beat_ms);
        etcd_call_free(call);
}

static void next_step(struct etcd_call *call, struct etcd_call *next)
{
        call->tree->remote.beat = next;
        etcd_call_free(call);
        etcd_call_send(next, etcd_attempt_ms(next->tree));
}

static void recorded(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        if (call->outcome != ETCD_ANSWERED || !json_is_true(json_object_get(call->reply, "succeeded"))) {
                tree->old_lease = tree->lease; /* half a session must not remain */
                tree->lease = 0;
                beat_failed(call);
                return;
        }
        tree->remote.beat = NULL;
        tree->remote.has_session = true;
        tree->remote.refusal.text[0] = 0;
        /* Everything read from now on is read at this revision or later. */
        tree->watch_from = call->header.revision + 1;
        tree->watch_pending = 0;
        tree->stream_at_ms = 0;
        etcd_call_free(call);
        (void)remote_prove(&tree->remote, tree->lease, false);
        remote_wake_at(&tree->remote, 0);
}

/* Writes the session's key.  Anybody who can read its value may end the session. */
static struct etcd_call *record_call(struct etcd_tree *tree)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/txn", recorded);
        struct buffer *body = &call->exchange.body;
        struct buffer key = { 0 };
        remote_make_nonce(tree->nonce);
        etcd_name_session(&key, tree->prefix, tree->lease);
        buffer_printf(body, "{\"success\":[{\"request_put\":{");
        etcd_put_key(body, "key", &key);
        etcd_put_bytes(body, "value", tree->nonce, REMOTE_NONCE_DIGITS);
        buffer_printf(body, ",\"lease\":\"%" PRIu64 "\"}}]}", tree->lease);
        buffer_free(&key);
        return call;
}

/* etcd counts whole seconds, and its election timeout sets a lower bound. */
static void note_granted(struct etcd_tree *tree, uint64_t granted_ms)
{
        if (tree->remote.coord.session_ms != granted_ms)
                log_event(LEVEL_WARN, "coordination-etcd", "session_ms=%" PRIu64 " wanted_ms=%" PRIu64 " hint=%s",
                        granted_ms, tree->wanted_ms,
                        LOG_QUOTE("etcd grants whole seconds, and none below 1.5 times its election timeout; set "
                                  "coordination.session to what it grants"));
        tree->remote.coord.session_ms = granted_ms;
}

static void granted(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        uint64_t lease = 0, ttl_s = 0;
        if (call->outcome != ETCD_ANSWERED || !etcd_number(call->reply, "ID", ETCD_NUMBER_MAX, &lease) || !lease ||
                !etcd_number(call->reply, "TTL", TTL_MAX_S, &ttl_s) || !ttl_s) {
                beat_failed(call);
                return;
        }
        tree->lease = lease;
        note_granted(tree, ttl_s * 1000);
        next_step(call, record_call(tree));
}

static struct etcd_call *grant_call(struct etcd_tree *tree)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/lease/grant", granted);
        buffer_printf(&call->exchange.body, "{\"TTL\":\"%" PRIu64 "\"}", (tree->wanted_ms + 999) / 1000);
        return call;
}

/* The last session's lease is revoked first, if etcd has not ended it yet. */
static void revoked(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        bool is_gone = call->outcome == ETCD_ANSWERED ||
                       (call->outcome == ETCD_FAILED && call->failure.code == ETCD_CODE_NOT_FOUND);
        if (!is_gone) {
                beat_failed(call);
                return;
        }
        tree->old_lease = 0;
        next_step(call, grant_call(tree));
}

/* --- heartbeat --------------------------------------------------------------------------------------------------- */

static void kept_alive(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        const json_t *result = json_object_get(call->reply, "result");
        uint64_t lease = 0, ttl_s = 0;
        if (call->outcome != ETCD_ANSWERED || !etcd_number(result, "ID", ETCD_NUMBER_MAX, &lease) ||
                lease != tree->lease || !etcd_number(result, "TTL", TTL_MAX_S, &ttl_s)) {
                beat_failed(call);
                return;
        }
        tree->remote.beat = NULL;
        etcd_call_free(call);
        if (ttl_s)
                (void)remote_prove(&tree->remote, tree->lease, false);
        else
                etcd_expire(tree, "the server says so");
        remote_wake_at(&tree->remote, 0);
}

void *etcd_beat(struct remote *remote)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        struct etcd_call *call;
        uint64_t now_ms = clock_boot_ms();
        if (!etcd_is_ready(tree, now_ms)) {
                remote->next_beat_ms = max_u64(now_ms + AGAIN_MS, tree->retry_at_ms);
                return NULL;
        }
        if (tree->lease && tree->watch_from) {
                call = etcd_call_new(tree, "/v3/lease/keepalive", kept_alive);
                etcd_put_lease(call, tree->lease);
        } else if (tree->old_lease) {
                call = etcd_revoke_call(tree, tree->old_lease, revoked, 0);
        } else {
                call = grant_call(tree);
        }
        etcd_call_send(call, etcd_attempt_ms(tree));
        return call;
}

uint64_t etcd_session_tick(struct etcd_tree *tree, uint64_t now_ms)
{
        struct remote *remote = &tree->remote;
        if (remote->coord.is_visitor)
                return UINT64_MAX;
        if (remote_is_over(remote, now_ms))
                etcd_expire(tree, "no answer for a session's time");
        /* A heartbeat that fails at once is no answer, either. */
        if (remote->has_session && now_ms - remote->proof_ms > 2 * remote->coord.session_ms / REMOTE_BEATS)
                remote_suspend(remote);
        return remote_beat_tick(remote, now_ms);
}
