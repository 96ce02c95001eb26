/* call.c: one call: sends it to the current server, and reads from the answer what matters to every call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "coord/etcd/etcd.h"

#define LOGINS_MAX 2u

/* --- the answer -------------------------------------------------------------------------------------------------- */

/* The member has no leader, is starting or stopping, or timed out: another member may serve us. */
static bool is_unavailable(const struct etcd_call *call)
{
        return call->failure.code == ETCD_CODE_UNAVAILABLE || call->failure.code == 4 ||
               call->failure.code == ETCD_CODE_UNKNOWN;
}

/* The server forgot the token (a restart, five minutes), or users have changed since. */
static bool is_about_token(const struct etcd_call *call)
{
        return call->failure.code == ETCD_CODE_UNAUTHENTICATED ||
               strstr(call->failure.message, "revision of auth store is old") != NULL;
}

/* A message of a stream stands in "result"; an answer to a plain call is the whole reply. */
static const json_t *message_of(const struct etcd_call *call)
{
        const json_t *result = json_object_get(call->reply, "result");
        return result ? result : call->reply;
}

static void strange(struct etcd_call *call, const char *what)
{
        char server[300];
        call->outcome = ETCD_STRANGE;
        (void)error_set(&call->error, 0, "%s does not answer as etcd does: %s (HTTP %ld)",
                etcd_endpoint_name(call->tree, server), what, call->exchange.http_code);
}

/* All servers of the list must belong to one cluster: another cluster does not know our lease and nodes. */
static bool is_our_cluster(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        char server[300];
        /* The server that grants the session decides which cluster is ours. */
        if (!tree->cluster_id || (!tree->watch_from && !tree->remote.coord.is_visitor))
                tree->cluster_id = call->header.cluster_id;
        if (!call->header.cluster_id || call->header.cluster_id == tree->cluster_id)
                return true;
        call->outcome = ETCD_STRANGE;
        (void)error_set(&call->error, 0,
                "%s belongs to another etcd cluster (%" PRIx64 ") than the servers before (%" PRIx64
                "); look at the url of the coordination",
                etcd_endpoint_name(tree, server), call->header.cluster_id, tree->cluster_id);
        return false;
}

static void read_reply(struct etcd_call *call)
{
        const struct buffer *text = &call->exchange.reply;
        json_error_t error;
        call->reply = json_loadb((const char *)text->data, text->size, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(call->reply)) {
                strange(call, "no JSON");
        } else if (etcd_reply_failure(call->reply, &call->failure)) {
                char server[300];
                call->outcome = ETCD_FAILED;
                (void)error_set(&call->error, 0, "etcd at %s says: %s", etcd_endpoint_name(call->tree, server),
                        call->failure.message);
        } else if (call->exchange.http_code != 200) {
                strange(call, "no error that it knows");
        } else if (!call->needs_no_login && !etcd_reply_header(message_of(call), &call->header)) {
                strange(call, "an answer without a header");
        } else if (call->needs_no_login || is_our_cluster(call)) {
                call->outcome = ETCD_ANSWERED; /* the version reply has no header */
        }
}

void etcd_call_explain(struct etcd_call *call)
{
        char server[300];
        (void)error_set(
                &call->error, 0, "etcd at %s: %s", etcd_endpoint_name(call->tree, server), call->exchange.error.text);
}

static void read_answer(struct etcd_call *call)
{
        json_decref(call->reply);
        call->reply = NULL;
        call->failure = (struct etcd_failure){ 0 };
        call->header = (struct etcd_header){ 0 };
        call->error.text[0] = 0;
        if (call->exchange.status == -EMSGSIZE) {
                call->outcome = ETCD_STRANGE;
                etcd_call_explain(call);
        } else if (call->exchange.status) {
                call->outcome = call->exchange.was_sent ? ETCD_LOST : ETCD_UNSENT;
                etcd_call_explain(call);
        } else {
                read_reply(call);
        }
        if (call->outcome == ETCD_FAILED && is_unavailable(call))
                call->outcome = ETCD_LOST;
}

/* Decides from the answer whether another server should be tried. */
static void judge_server(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        if (call->exchange.status == -ECONNABORTED || call->exchange.status == -EMSGSIZE)
                return;
        if (call->outcome == ETCD_ANSWERED || call->outcome == ETCD_FAILED) {
                etcd_endpoint_answered(tree);
                return;
        }
        tree->untrusted = call->exchange.is_untrusted ? tree->untrusted + 1 : 0;
        etcd_endpoint_failed(tree, call->error.text);
}

static void wait_again(struct etcd_call *call)
{
        if (!call->request)
                DL_APPEND(call->tree->waiting, call);
        remote_wake_at(&call->tree->remote, 0);
}

static void on_done(struct curl_exchange *exchange)
{
        struct etcd_call *call = (struct etcd_call *)exchange;
        struct etcd_tree *tree = call->tree;
        call->is_out = false;
        read_answer(call);
        judge_server(call);
        if (call->outcome == ETCD_FAILED && is_about_token(call) && tree->password && !call->needs_no_login &&
                call->logins < LOGINS_MAX) {
                call->logins++;
                etcd_endpoint_logout(tree);
                /* The server refused it before doing anything, so it may be sent again. */
                if (call->deadline_ms || call->request) {
                        wait_again(call);
                        return;
                }
        }
        bool is_gone = call->outcome == ETCD_LOST || call->outcome == ETCD_UNSENT || call->outcome == ETCD_STRANGE;
        if (is_gone && call->deadline_ms && clock_boot_ms() < call->deadline_ms)
                wait_again(call);
        else
                call->answered(call);
}

/* Makes a member that is cut off from the others end the stream instead of staying silent. */
static const struct strings lines = { .items = (char *[]){ "Grpc-Metadata-hasleader: true" }, .count = 1 };

/* --- sending ----------------------------------------------------------------------------------------------------- */

struct etcd_call *etcd_call_new(struct etcd_tree *tree, const char *path, void (*answered)(struct etcd_call *call))
{
        struct etcd_call *call = memory_zero(1, sizeof(*call));
        call->tree = tree;
        call->path = path;
        call->answered = answered;
        call->exchange.done = on_done;
        call->exchange.reply_max = ETCD_REPLY_MAX;
        call->exchange.lines = &lines;
        return call;
}

void etcd_call_send(struct etcd_call *call, uint64_t limit_ms)
{
        struct etcd_tree *tree = call->tree;
        char server[300];
        free(call->url);
        call->url = text_printf("%s://%s%s", tree->url.kind == URL_ETCD_TLS ? "https" : "http",
                etcd_endpoint_name(tree, server), call->path);
        call->exchange.url = call->url;
        call->exchange.token = call->needs_no_login ? NULL : tree->token;
        call->exchange.limit_ms = limit_ms;
        call->exchange.connect_ms = etcd_attempt_ms(tree);
        call->is_out = true;
        curl_http_start(tree->http, &call->exchange);
}

void etcd_call_post(struct etcd_call *call)
{
        DL_APPEND(call->tree->waiting, call);
        remote_wake_at(&call->tree->remote, 0);
}

uint64_t etcd_call_tick(struct etcd_tree *tree, uint64_t now_ms)
{
        uint64_t next_ms = UINT64_MAX;
        struct etcd_call *call = tree->waiting;
        while (call) {
                struct etcd_call *after = call->next;
                uint64_t left_ms = call->deadline_ms > now_ms ? call->deadline_ms - now_ms : 0;
                if (left_ms && etcd_is_ready(tree, now_ms)) {
                        DL_DELETE(tree->waiting, call);
                        etcd_call_send(call, min_u64(left_ms, etcd_attempt_ms(tree)));
                } else if (left_ms) {
                        next_ms = min_u64(next_ms, call->deadline_ms);
                } else {
                        DL_DELETE(tree->waiting, call);
                        call->outcome = ETCD_LOST;
                        if (!call->error.text[0])
                                (void)error_set(&call->error, 0, "etcd was not reached");
                        call->answered(call);
                        after = tree->waiting; /* answered() may have changed the list */
                }
                call = after;
        }
        return next_ms;
}

void etcd_call_free(struct etcd_call *call)
{
        if (!call)
                return;
        if (call->exchange.body.data)
                explicit_bzero(call->exchange.body.data, call->exchange.body.size);
        curl_exchange_free(&call->exchange);
        etcd_txn_free(call->txn);
        json_decref(call->reply);
        free(call->url);
        free(call);
}

void etcd_call_forget(void *gone)
{
        struct etcd_call *call = gone;
        struct etcd_tree *tree = call->tree;
        struct etcd_watch *watch = call->watch;
        struct etcd_call *at = tree->waiting;
        while (at && at != call)
                at = at->next;
        if (at)
                DL_DELETE(tree->waiting, call);
        if (call->is_out)
                curl_http_cancel(&call->exchange);
        etcd_call_free(call);
        etcd_watch_end(&tree->watches, watch, 0);
}

void etcd_put_lease(struct etcd_call *call, uint64_t lease)
{
        buffer_clear(&call->exchange.body);
        buffer_printf(&call->exchange.body, "{\"ID\":\"%" PRIu64 "\"}", lease);
}
