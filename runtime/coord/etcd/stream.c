/* stream.c: the watch: one stream that reports every change in the app's tree from a revision on, so that none is lost
 * when it is started again, at this server or another. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "coord/etcd/etcd.h"

/* A message holds at most one transaction or request (1.5 MiB) as base64, and a little more. */
#define MESSAGE_MAX (8u * 1024u * 1024u)
/* The stream is restarted after this time: the connection may have been lost silently. */
#define LIFE_MS  600000u
#define AGAIN_MS 100u

void etcd_stream_stop(struct etcd_tree *tree)
{
        struct etcd_call *call = tree->stream;
        tree->stream = NULL;
        if (call)
                etcd_call_forget(call);
}

static void begin_again(struct etcd_tree *tree, uint64_t after_ms)
{
        etcd_stream_stop(tree);
        tree->stream_at_ms = clock_boot_ms() + after_ms;
        remote_wake_at(&tree->remote, tree->stream_at_ms);
}

/* --- messages of the stream -------------------------------------------------------------------------------------- */

/* A list of children changes when a child is made or deleted, and when the node itself is, because a reader of a
 * missing node's list waits for that. */
static void ring(struct etcd_tree *tree, char *path, uint64_t revision, bool is_new_or_gone)
{
        struct etcd_watches *watches = &tree->watches;
        etcd_watch_rang(watches, ETCD_WATCH_NODE, path, revision);
        if (!is_new_or_gone)
                return;
        etcd_watch_rang(watches, ETCD_WATCH_CHILDREN, path, revision);
        char *slash = strrchr(path, '/');
        if (slash) {
                *slash = 0;
                etcd_watch_rang(watches, ETCD_WATCH_CHILDREN, path, revision);
        }
}

/* False: it is not an event. */
static bool take_event(struct etcd_tree *tree, const json_t *event, uint64_t *latest)
{
        const json_t *kv = json_object_get(event, "kv");
        const json_t *type = json_object_get(event, "type");
        bool is_gone = json_is_string(type) && !strcmp(json_string_value(type), "DELETE");
        struct buffer key = { 0 };
        char path[COORD_PATH_MAX];
        uint64_t revision = 0, version = 0;
        bool is_good = (!type || json_is_string(type)) &&
                       etcd_number(kv, "mod_revision", ETCD_NUMBER_MAX - 1, &revision) && revision &&
                       etcd_number(kv, "version", ETCD_NUMBER_MAX, &version) &&
                       etcd_reply_bytes(kv, "key", COORD_PATH_MAX * 2, &key);
        if (is_good) {
                *latest = max_u64(*latest, revision);
                if (etcd_name_read((struct span){ (const char *)key.data, key.size }, tree->prefix, path))
                        ring(tree, path, revision, is_gone || version == 1);
        }
        buffer_free(&key);
        return is_good;
}

static void look(struct etcd_tree *tree)
{
        const struct coord_events *events = &tree->remote.coord.events;
        etcd_watch_clear(&tree->watches);
        if (events->look && tree->remote.coord.session && !tree->remote.is_closing)
                events->look(events->self);
}

/* The server ends the watch, with a reason in words. */
static void cancelled(struct etcd_tree *tree, const json_t *message)
{
        const char *reason = json_string_value(json_object_get(message, "cancel_reason"));
        char shown[ETCD_MESSAGE_MAX + 1] = "";
        uint64_t compacted = 0;
        if (reason)
                etcd_text(reason, shown);
        if (!etcd_number(message, "compact_revision", ETCD_NUMBER_MAX - 1, &compacted))
                compacted = 0;
        begin_again(tree, compacted ? 0 : AGAIN_MS);
        if (compacted > tree->watch_from) {
                /* Older changes are no longer reported: everything is read again after the stream has started. */
                tree->watch_from = compacted;
                look(tree);
        } else if (strstr(shown, "auth token") || strstr(shown, "auth store")) {
                etcd_endpoint_logout(tree);
        } else if (strstr(shown, "permission denied") || strstr(shown, "user name is empty")) {
                struct error text;
                (void)error_set(&text, 0,
                        "etcd lets the coordination's user not watch %s: %s; etcdctl role grant-permission ROLE "
                        "--prefix=true readwrite %s",
                        tree->prefix, shown, tree->prefix);
                etcd_refuse(tree, -EACCES, text.text);
        } else {
                etcd_endpoint_failed(tree, shown[0] ? shown : "etcd has ended the watch");
        }
}

/* Whether the server lost changes that it had confirmed: its revision went back. */
static bool went_back(const struct etcd_tree *tree, const json_t *message, const struct etcd_header *header)
{
        return json_is_true(json_object_get(message, "created")) && header->revision &&
               header->revision + 1 < tree->watch_from;
}

static bool take_events(struct etcd_tree *tree, const json_t *message, const struct etcd_header *header)
{
        const json_t *events = json_object_get(message, "events");
        uint64_t latest = 0;
        const json_t *event;
        size_t i;
        if (events && !json_is_array(events))
                return false;
        json_array_foreach(events, i, event)
        {
                if (!take_event(tree, event, &latest))
                        return false;
                /* The owner may have closed the tree or lost the session in a callback. */
                if (!tree->stream || tree->remote.is_closing)
                        return true;
        }
        bool is_progress = !json_array_size(events) && !json_is_true(json_object_get(message, "created"));
        tree->watch_pending = max_u64(tree->watch_pending, latest ? latest + 1 : 0);
        if (is_progress)
                tree->watch_pending = max_u64(tree->watch_pending, header->revision + 1);
        /* The parts of a message may split the changes of one transaction. */
        if (!json_is_true(json_object_get(message, "fragment"))) {
                tree->watch_from = max_u64(tree->watch_from, tree->watch_pending);
                tree->watch_pending = 0;
        }
        return true;
}

/* False: it is not a message of a watch. */
static bool take_message(struct etcd_tree *tree, const json_t *reply)
{
        const json_t *message = json_object_get(reply, "result");
        struct etcd_header header;
        struct etcd_failure failure;
        if (etcd_reply_failure(reply, &failure)) {
                begin_again(tree, AGAIN_MS);
                etcd_endpoint_failed(tree, failure.message);
                return true;
        }
        if (!etcd_reply_header(message, &header) || !header.cluster_id)
                return false;
        if (header.cluster_id != tree->cluster_id || went_back(tree, message, &header)) {
                etcd_expire(tree, "etcd has lost what it had confirmed, or is another one");
                return true;
        }
        if (json_is_true(json_object_get(message, "canceled"))) {
                cancelled(tree, message);
                return true;
        }
        return take_events(tree, message, &header);
}

static void on_more(struct curl_exchange *exchange)
{
        struct etcd_call *call = (struct etcd_call *)exchange;
        struct etcd_tree *tree = call->tree;
        /* A message may end the stream, which frees the call. */
        while (tree->stream == call) {
                struct span bytes = { (const char *)exchange->reply.data, exchange->reply.size };
                int64_t size = etcd_frame_next(&tree->frame, bytes);
                if (!size)
                        break;
                json_error_t error;
                json_t *message =
                        size > 0 ? json_loadb(bytes.data, (size_t)size, JSON_REJECT_DUPLICATES, &error) : NULL;
                if (size > 0) {
                        exchange->reply.size -= (size_t)size;
                        memmove(exchange->reply.data, exchange->reply.data + size, exchange->reply.size);
                }
                if (!message || !take_message(tree, message)) {
                        begin_again(tree, AGAIN_MS);
                        etcd_endpoint_failed(tree, "what came of the watch is none of etcd's messages");
                }
                json_decref(message);
        }
}

/* --- beginning --------------------------------------------------------------------------------------------------- */

/* A stream has no final answer: this means that it has ended. */
static void ended(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        tree->stream = NULL;
        tree->stream_at_ms = max_u64(clock_boot_ms() + AGAIN_MS, tree->retry_at_ms);
        etcd_call_free(call);
        remote_wake_at(&tree->remote, tree->stream_at_ms);
}

static void begin(struct etcd_tree *tree)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/watch", ended);
        struct buffer *body = &call->exchange.body;
        struct buffer key = { 0 };
        buffer_printf(&key, "%s", tree->prefix);
        buffer_printf(body, "{\"create_request\":{");
        etcd_put_key(body, "key", &key);
        etcd_name_end(&key);
        etcd_put_key(body, "range_end", &key);
        buffer_printf(body, ",\"start_revision\":\"%" PRIu64 "\",\"progress_notify\":true,\"fragment\":true}}",
                tree->watch_from);
        buffer_free(&key);
        call->exchange.more = on_more;
        call->exchange.reply_max = MESSAGE_MAX;
        tree->frame = (struct etcd_frame){ 0 };
        tree->watch_pending = 0;
        tree->stream = call;
        tree->stream_at_ms = clock_boot_ms() + LIFE_MS;
        etcd_call_send(call, 0);
}

uint64_t etcd_stream_tick(struct etcd_tree *tree, uint64_t now_ms)
{
        if (!tree->watch_from)
                return UINT64_MAX;
        if (now_ms < tree->stream_at_ms)
                return tree->stream_at_ms;
        if (!etcd_is_ready(tree, now_ms))
                return UINT64_MAX; /* the tree is not ready; whoever makes it ready wakes us */
        etcd_stream_stop(tree);
        begin(tree);
        return tree->stream_at_ms;
}
