/* request.c: requests as calls, in the order of starting: each waits for the answer to the one before, because calls on
 * several connections overtake each other.  A write is fenced by its session and waits until there is one; reads need
 * none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "coord/etcd/etcd.h"

/* --- making calls ------------------------------------------------------------------------------------------------ */

static void get_answered(struct etcd_call *call);
static void children_answered(struct etcd_call *call);
static void write_answered(struct etcd_call *call);

static struct etcd_call *make_get(struct etcd_tree *tree, const struct coord_get *get)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/range", get_answered);
        struct buffer key = { 0 };
        etcd_name_node(&key, tree->prefix, get->path);
        buffer_printf(&call->exchange.body, "{");
        etcd_put_key(&call->exchange.body, "key", &key);
        buffer_printf(&call->exchange.body, "}");
        buffer_free(&key);
        if (get->watch)
                call->watch = etcd_watch_begin(&tree->watches, ETCD_WATCH_NODE, get->path);
        return call;
}

static struct etcd_call *make_children(struct etcd_tree *tree, const struct coord_children *children)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/range", children_answered);
        struct buffer *body = &call->exchange.body;
        struct buffer key = { 0 };
        etcd_name_children(&key, tree->prefix, children->path);
        buffer_printf(body, "{\"keys_only\":true");
        etcd_put_key(body, "key", &key);
        etcd_name_end(&key);
        etcd_put_key(body, "range_end", &key);
        buffer_printf(body, "}");
        buffer_free(&key);
        if (children->watch)
                call->watch = etcd_watch_begin(&tree->watches, ETCD_WATCH_CHILDREN, children->path);
        return call;
}

static struct etcd_call *make_write(struct etcd_tree *tree, const struct coord_request *request)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/kv/txn", write_answered);
        call->is_write = true;
        call->txn = etcd_txn_new(tree->prefix, request);
        return call;
}

void *etcd_request_make(struct remote *remote, struct coord_request *request)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        struct etcd_call *call;
        if (request->op == COORD_OP_GET)
                call = make_get(tree, (struct coord_get *)request);
        else if (request->op == COORD_OP_CHILDREN)
                call = make_children(tree, (struct coord_children *)request);
        else
                call = make_write(tree, request);
        call->request = request;
        return call;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

static bool is_its_turn(const struct coord_request *request)
{
        const struct coord_request *first = request->coord->requests;
        while (first != request && !first->driver)
                first = first->next; /* it was refused, and is about to be finished */
        return first == request;
}

void etcd_request_send(struct remote *remote, struct coord_request *request)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        struct etcd_call *call = request->driver;
        uint64_t now_ms = clock_boot_ms();
        bool needs_session = call->is_write && !remote->coord.is_visitor;
        if (call->is_out || !etcd_is_ready(tree, now_ms) || (needs_session && !tree->watch_from) ||
                !is_its_turn(request))
                return;
        uint64_t left_ms = request->deadline_ms > now_ms ? request->deadline_ms - now_ms : 1;
        if (call->is_write) {
                call->lease = needs_session ? tree->lease : 0;
                buffer_clear(&call->exchange.body);
                etcd_txn_build(call->txn, call->lease, &call->exchange.body);
        } else {
                left_ms = min_u64(left_ms, etcd_attempt_ms(tree));
        }
        etcd_call_send(call, left_ms);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

/* etcd answers, so requests that wait behind others get a new deadline: deadlines are meant for an authority that is
 * silent. */
static void prolong(struct etcd_tree *tree)
{
        uint64_t deadline_ms = clock_boot_ms() + tree->remote.coord.session_ms;
        for (struct coord_request *at = tree->remote.coord.requests; at; at = at->next) {
                const struct etcd_call *call = at->driver;
                if (call && !call->is_out)
                        at->deadline_ms = max_u64(at->deadline_ms, deadline_ms);
        }
}

/* Finishes the request, then ends its watch.  `revision`: changes after it are reported; 0: the watch is not armed. */
static void finish(struct etcd_call *call, int status, const char *text, uint64_t revision)
{
        struct etcd_tree *tree = call->tree;
        struct coord_request *request = call->request;
        struct etcd_watch *watch = call->watch;
        struct error copy;
        (void)error_set(&copy, 0, "%s", text ? text : "");
        request->driver = NULL;
        if (call->outcome == ETCD_ANSWERED)
                prolong(tree);
        etcd_call_free(call);
        /* The next request may be sent now, or after done() has started it. */
        remote_wake_at(&tree->remote, 0);
        if (status)
                coord_finish_error(request, status, "%s", copy.text);
        else
                coord_finish(request, 0);
        etcd_watch_end(&tree->watches, watch, revision);
}

static void fail_refused(struct etcd_call *call)
{
        struct error text;
        int status = -EPROTO;
        const char *hint = "";
        switch (call->failure.code) {
        case ETCD_CODE_DENIED:
                status = -EACCES;
                hint = "; etcdctl role grant-permission ROLE --prefix=true readwrite ";
                break;
        case ETCD_CODE_UNAUTHENTICATED:
                status = -EACCES;
                break;
        case ETCD_CODE_EXHAUSTED:
                status = strstr(call->failure.message, "space") ? -ENOSPC : -EBUSY;
                hint = status == -ENOSPC ? "; compact and defragment it, then: etcdctl alarm disarm" : "";
                break;
        case ETCD_CODE_INVALID:
                if (strstr(call->failure.message, "user name is empty")) {
                        status = -EACCES;
                        hint = "; set coordination.user and its password";
                } else if (strstr(call->failure.message, "too large")) {
                        status = -E2BIG;
                        hint = "; raise --max-request-bytes of etcd to 1572864";
                }
                break;
        default:
                break;
        }
        (void)error_set(&text, 0, "%s%s%s", call->error.text, hint,
                call->failure.code == ETCD_CODE_DENIED ? call->tree->prefix : "");
        finish(call, status, text.text, 0);
}

/* False: the request has ended with an error, or is sent again. */
static bool is_answer(struct etcd_call *call)
{
        bool is_strange = call->outcome == ETCD_STRANGE && call->exchange.status != -EMSGSIZE;
        bool may_repeat =
                call->outcome == ETCD_UNSENT || ((call->outcome == ETCD_LOST || is_strange) && !call->is_write);
        if (call->outcome == ETCD_ANSWERED)
                return true;
        if (may_repeat && clock_boot_ms() < call->request->deadline_ms) {
                /* The request waits for the next server. */
                remote_wake_at(&call->tree->remote, call->tree->retry_at_ms);
        } else if (call->outcome == ETCD_FAILED) {
                fail_refused(call);
        } else if (call->outcome == ETCD_STRANGE) {
                finish(call, call->exchange.status == -EMSGSIZE ? -E2BIG : -EPROTO, call->error.text, 0);
        } else {
                finish(call, call->outcome == ETCD_UNSENT ? -ETIMEDOUT : -ECONNRESET, call->error.text, 0);
        }
        return false;
}

static void fail_strange(struct etcd_call *call)
{
        finish(call, -EPROTO, "etcd gave an answer that this Quiver cannot read", 0);
}

static void get_answered(struct etcd_call *call)
{
        struct coord_get *get = (struct coord_get *)call->request;
        struct etcd_kv kv;
        if (!is_answer(call))
                return;
        const json_t *kvs = json_object_get(call->reply, "kvs");
        uint64_t revision = call->header.revision;
        if (kvs && (!json_is_array(kvs) || json_array_size(kvs) > 1)) {
                fail_strange(call);
                return;
        }
        const json_t *first = json_array_get(kvs, 0);
        if (!first) {
                finish(call, -ENOENT, "no such node", revision);
                return;
        }
        if (!etcd_reply_kv(first, &kv)) {
                fail_strange(call);
                return;
        }
        struct buffer data = { 0 };
        if (!etcd_reply_bytes(first, "value", COORD_DATA_MAX, &data)) {
                struct error text;
                (void)error_set(&text, 0, "%.512s has more than %u bytes, which Quiver does not write", get->path,
                        COORD_DATA_MAX);
                coord_note(&call->tree->remote.coord, text.text);
                finish(call, -EBADMSG, text.text, revision);
        } else {
                get->data = arena_copy(coord_arena(&get->request), (struct span){ (const char *)data.data, data.size });
                get->stat = (struct coord_stat){ kv.created, kv.version - 1, kv.lease };
                finish(call, 0, NULL, revision);
        }
        buffer_free(&data);
}

/* False: a key is outside the range that was asked for. */
static bool give_names(struct etcd_call *call, const json_t *kvs)
{
        struct coord_children *children = (struct coord_children *)call->request;
        struct buffer prefix = { 0 }, key = { 0 };
        bool is_good = true;
        const json_t *kv;
        size_t i;
        etcd_name_children(&prefix, call->tree->prefix, children->path);
        remote_names_begin(children, json_array_size(kvs));
        json_array_foreach(kvs, i, kv)
        {
                buffer_clear(&key);
                is_good = is_good && etcd_reply_bytes(kv, "key", ETCD_REPLY_MAX, &key) && key.size >= prefix.size &&
                          !memcmp(key.data, prefix.data, prefix.size);
                if (is_good)
                        remote_names_add(children,
                                (struct span){ (const char *)key.data + prefix.size, key.size - prefix.size });
        }
        remote_names_end(children);
        buffer_free(&prefix);
        buffer_free(&key);
        return is_good;
}

static void children_answered(struct etcd_call *call)
{
        if (!is_answer(call))
                return;
        const json_t *kvs = json_object_get(call->reply, "kvs");
        if ((kvs && !json_is_array(kvs)) || !give_names(call, kvs))
                fail_strange(call);
        else
                finish(call, 0, NULL, call->header.revision);
}

static void give_stats(struct etcd_call *call)
{
        struct coord_request *request = call->request;
        if (request->op == COORD_OP_CREATE) {
                struct coord_create *create = (struct coord_create *)request;
                const char *made = etcd_txn_made(call->txn);
                create->made = arena_copy(coord_arena(request), span_of_text(made)).data;
                create->stat = etcd_txn_stat(call->txn, 0);
        } else if (request->op == COORD_OP_SET) {
                ((struct coord_set *)request)->stat = etcd_txn_stat(call->txn, 0);
        } else if (request->op == COORD_OP_MULTI) {
                struct coord_multi *multi = (struct coord_multi *)request;
                for (uint32_t i = 0; i < multi->ops_count; i++)
                        multi->ops[i].stat = etcd_txn_stat(call->txn, i);
        }
}

static void write_failed(struct etcd_call *call)
{
        unsigned which = 0;
        int status = etcd_txn_status(call->txn, &which);
        if (call->request->op == COORD_OP_MULTI)
                ((struct coord_multi *)call->request)->ops[which].status = status;
        if (status == -EBADMSG)
                coord_note(&call->tree->remote.coord, etcd_txn_why(call->txn));
        finish(call, status, etcd_txn_why(call->txn), 0);
}

/* The session of the call is over.  If it is our current one, this is how we learn of it. */
static void write_expired(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        if (call->lease == tree->lease && tree->watch_from)
                etcd_expire(tree, "the server says so");
        else
                finish(call, -EOWNERDEAD, "the session has expired", 0);
}

static void write_answered(struct etcd_call *call)
{
        if (call->outcome == ETCD_FAILED && call->failure.code == ETCD_CODE_NOT_FOUND && call->lease) {
                write_expired(call); /* the put named a lease that does not exist */
                return;
        }
        if (!is_answer(call))
                return;
        switch (etcd_txn_read(call->txn, call->reply)) {
        case ETCD_TXN_DONE:
                give_stats(call);
                finish(call, 0, NULL, 0);
                break;
        case ETCD_TXN_AGAIN:
                etcd_request_send(&call->tree->remote, call->request);
                break;
        case ETCD_TXN_FAILED:
                write_failed(call);
                break;
        case ETCD_TXN_EXPIRED:
                write_expired(call);
                break;
        case ETCD_TXN_BROKEN:
                fail_strange(call);
                break;
        }
}
