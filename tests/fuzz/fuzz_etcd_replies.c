/* Any answers of etcd to a client of the coordination tree: its session, a candidate, a lock, a member who follows the
 * others, and the stream of changes.  Each question gets the next answer that the bytes make, as JSON that is nearly
 * right, or as bytes.  Nobody crashes, nobody asks without end, and what is told of a node is one that can be. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "coord/etcd/etcd.h"
#include "coord/etcd/txn_private.h"
#include "tree_users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SENT_MAX 256
#define PREFIX   "/quiver/demo/"

/* --- what the driver stands on, without a server --- */

static struct curl_exchange *sent[SENT_MAX];
static unsigned sent_count;

void curl_http_start(struct curl_http *http, struct curl_exchange *exchange)
{
        (void)http;
        demand(sent_count < SENT_MAX);
        exchange->status = 0;
        exchange->reply.size = 0;
        exchange->was_sent = true;
        sent[sent_count++] = exchange;
}

static void take_away(const struct curl_exchange *exchange)
{
        for (unsigned i = 0; i < sent_count; i++)
                if (sent[i] == exchange) {
                        memmove(sent + i, sent + i + 1, (--sent_count - i) * sizeof(struct curl_exchange *));
                        return;
                }
        abort();
}

void curl_http_cancel(struct curl_exchange *exchange)
{
        take_away(exchange);
}

/* They come back, later. */
void curl_http_abort_all(struct curl_http *http)
{
        (void)http;
        for (unsigned i = 0; i < sent_count; i++)
                sent[i]->status = -ECONNABORTED;
}

void curl_exchange_free(struct curl_exchange *exchange)
{
        buffer_free(&exchange->body);
        buffer_free(&exchange->reply);
}

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        tree->retry_at_ms = 0; /* nobody waits here */
        (void)etcd_endpoint_tick(tree, now_ms);
        (void)etcd_session_tick(tree, now_ms);
        tree->stream_at_ms = tree->stream ? UINT64_MAX : 0;
        (void)etcd_stream_tick(tree, now_ms);
        (void)etcd_call_tick(tree, now_ms);
        remote_flush(remote);
        return UINT64_MAX;
}

static const struct remote_hooks hooks = { .make = etcd_request_make,
        .send = etcd_request_send,
        .forget = etcd_call_forget,
        .beat = etcd_beat,
        .tick = tick };

const struct coord_driver local_driver, zookeeper_driver, redis_tree_driver;
const struct coord_driver etcd_driver = { .scheme = "etcd", .start = remote_start };

/* --- answers --- */

static void put_any(struct choices *c, struct buffer *to)
{
        static const char *const values[] = { "null", "true", "false", "[]", "{}", "-1", "1e5", "\"\"", "\"nan\"",
                "\"-1\"", "\"99999999999999999999\"", "\"0x10\"", "\"YQ==\"", "\"YQ\"", "[1,{\"a\":[]}]", "\"DELETE\"",
                "7" };
        buffer_printf(to, "%s", values[choose(c, sizeof(values) / sizeof(values[0]))]);
}

static void put_number(struct choices *c, struct buffer *to, const char *name, uint64_t usual)
{
        if (!choose(c, 24))
                return; /* left out: zero */
        buffer_printf(to, "%s\"%s\":", to->data[to->size - 1] == '{' ? "" : ",", name);
        if (!choose(c, 24))
                put_any(c, to);
        else
                buffer_printf(to, "\"%" PRIu64 "\"", choose(c, 12) ? usual : choose_number(c));
}

static void put_header(struct choices *c, struct buffer *to)
{
        static uint64_t revision;
        revision = revision < 1000 ? revision + 1 : 1;
        if (!choose(c, 48))
                return;
        buffer_printf(to, "\"header\":{");
        put_number(c, to, "cluster_id", 77);
        put_number(c, to, "revision", revision + 1000);
        buffer_printf(to, "}");
}

static void put_key(struct choices *c, struct buffer *to)
{
        static const char *const keys[] = { "node/2/election/me-0000000000", "node/2/election/x-0000000000",
                "node/2/election/x-       nan", "node/2/members/me", "node/2/members/x", "node/2/members/a/b",
                "node/2/members/..", "node/1/members", "node/3/locks/one/me-0000000001", "node/1/election", "node/99/x",
                "node//", "sequence/election", "session/0000000000000007", "" };
        char key[128];
        (void)snprintf(key, sizeof(key), "%s%s", choose(c, 16) ? PREFIX : "/other/",
                keys[choose(c, sizeof(keys) / sizeof(keys[0]))]);
        etcd_put_bytes(to, "key", key, strlen(key));
}

static void put_kv(struct choices *c, struct buffer *to)
{
        static const char *const values[] = { "here", "", "7", "12", "nan", "9999999999", "99999999999", "-1" };
        if (!choose(c, 24)) {
                put_any(c, to);
                return;
        }
        buffer_printf(to, "{");
        put_key(c, to);
        put_number(c, to, "create_revision", 12);
        put_number(c, to, "mod_revision", 1000 + choose(c, 255));
        put_number(c, to, "version", 1);
        if (choose(c, 2))
                put_number(c, to, "lease", 7);
        if (choose(c, 2)) {
                const char *value = values[choose(c, sizeof(values) / sizeof(values[0]))];
                etcd_put_bytes(to, "value", value, strlen(value));
        }
        buffer_printf(to, "}");
}

static void put_kvs(struct choices *c, struct buffer *to, unsigned most)
{
        unsigned count = choose(c, most + 1);
        buffer_printf(to, ",\"kvs\":[");
        for (unsigned i = 0; i < count; i++) {
                buffer_printf(to, "%s", i ? "," : "");
                put_kv(c, to);
        }
        buffer_printf(to, "]");
}

static void put_responses(struct choices *c, struct buffer *to, unsigned puts, unsigned ranges)
{
        buffer_printf(to, ",\"responses\":[");
        for (unsigned i = 0; i < puts; i++)
                buffer_printf(to, "%s{\"response_put\":{}}", i ? "," : "");
        for (unsigned i = 0; i < ranges; i++) {
                buffer_printf(to, "%s{\"response_range\":{\"count\":\"1\"", i || puts ? "," : "");
                if (choose(c, 3))
                        put_kvs(c, to, choose(c, 8) ? 1 : 3);
                buffer_printf(to, "}}");
        }
        buffer_printf(to, "]");
}

static void put_txn(struct choices *c, struct buffer *to, const struct etcd_call *call)
{
        bool succeeds = choose(c, 2) || !call->txn || call->txn->only_reads;
        unsigned odd = choose(c, 12) ? 0 : 1;
        if (succeeds && choose(c, 24))
                buffer_printf(to, ",\"succeeded\":true");
        if (!call->txn)
                put_responses(c, to, 1, 0);
        else if (succeeds && !call->txn->only_reads)
                put_responses(c, to, call->txn->writes_count, call->txn->ops_count + odd);
        else
                put_responses(c, to, 0, call->txn->reads_count - (odd && call->txn->reads_count));
}

static void put_event(struct choices *c, struct buffer *to)
{
        buffer_printf(to, "{\"kv\":");
        put_kv(c, to);
        if (!choose(c, 2))
                buffer_printf(to, ",\"type\":\"DELETE\"");
        if (!choose(c, 16)) {
                buffer_printf(to, ",\"type\":");
                put_any(c, to);
        }
        buffer_printf(to, "}");
}

static void put_message(struct choices *c, struct buffer *to)
{
        static const char *const more[] = { ",\"created\":true", ",\"canceled\":true", ",\"fragment\":true",
                ",\"canceled\":true,\"compact_revision\":\"2000\"",
                ",\"canceled\":true,\"cancel_reason\":\"etcdserver: invalid auth token\"",
                ",\"canceled\":true,\"cancel_reason\":\"etcdserver: permission denied\"", ",\"events\":7" };
        buffer_printf(to, "{\"result\":{");
        put_header(c, to);
        buffer_printf(to, ",\"events\":[");
        unsigned count = choose(c, 4);
        for (unsigned i = 0; i < count; i++) {
                buffer_printf(to, "%s", i ? "," : "");
                put_event(c, to);
        }
        buffer_printf(to, "]%s}}", choose(c, 4) ? "" : more[choose(c, sizeof(more) / sizeof(more[0]))]);
}

static void put_failure(struct choices *c, struct buffer *to)
{
        static const char *const messages[] = { "etcdserver: no leader", "etcdserver: requested lease not found",
                "etcdserver: permission denied", "etcdserver: invalid auth token", "mvcc: database space exceeded",
                "etcdserver: user name is empty", "etcdserver: authentication is not enabled", "\\n\\u00fc" };
        const char *message = messages[choose(c, sizeof(messages) / sizeof(messages[0]))];
        buffer_printf(to, "{\"error\":\"x\",\"message\":\"%s\",\"code\":%u}", message, choose(c, 20));
}

static void put_reply(struct choices *c, struct buffer *to, const struct etcd_call *call)
{
        const char *path = call->path;
        bool is_stream = !strcmp(path, "/v3/lease/keepalive");
        if (!choose(c, 24)) {
                put_failure(c, to);
                return;
        }
        if (!strcmp(path, "/version")) {
                buffer_printf(to, "{\"etcdserver\":\"3.%u.1\"}", choose(c, 8) ? 4 : choose(c, 6));
                return;
        }
        buffer_printf(to, "%s{", is_stream ? "{\"result\":" : "");
        put_header(c, to);
        if (!strcmp(path, "/v3/kv/txn")) {
                put_txn(c, to, call);
        } else if (!strcmp(path, "/v3/kv/range")) {
                put_kvs(c, to, 3);
        } else if (!strcmp(path, "/v3/auth/authenticate")) {
                buffer_printf(to, ",\"token\":\"%s\"", choose(c, 8) ? "t.1" : "");
        } else if (strstr(path, "/lease/")) {
                put_number(c, to, "ID", 7);
                put_number(c, to, "TTL", 10);
        }
        buffer_printf(to, "}%s", is_stream ? "}" : "");
}

static void put_bytes(struct choices *c, struct buffer *to)
{
        size_t size = choose(c, 64);
        size = size < c->size ? size : c->size;
        buffer_put(to, c->data, size);
        c->data += size;
        c->size -= size;
}

/* --- who asks --- */

struct scene {
        struct etcd_tree tree;
        struct tree_users users;
        struct url_host hosts[2];
};

static void tell_changed(void *self, const char *path)
{
        struct scene *s = self;
        if (!s->tree.remote.is_closing)
                users_changed(&s->users, path);
}

static void open_scene(struct scene *s, struct choices *c)
{
        struct coord_events events = users_events(&s->users);
        struct coord_options options = { .app = "demo", .session_ms = 10000, .events = &events };
        s->users.created_max = ETCD_NUMBER_MAX;
        coord_base_init(&s->tree.remote.coord, &etcd_driver, &options, "etcd://a,b");
        s->tree.remote.hooks = &hooks;
        s->tree.remote.timer_at_ms = 0; /* as if it were about to fire: nobody sets it */
        s->tree.prefix = PREFIX;
        s->tree.wanted_ms = 10000;
        s->tree.user = "fleet";
        s->tree.password = choose(c, 2) ? "pw" : NULL;
        s->hosts[0] = (struct url_host){ "a", 1 };
        s->hosts[1] = (struct url_host){ "::1", 2 };
        s->tree.url = (struct url){ .kind = URL_ETCD, .hosts = s->hosts, .hosts_count = 2 };
        s->tree.watches = (struct etcd_watches){ .tell = tell_changed, .self = s };
        users_begin(&s->users, &s->tree.remote.coord);
}

static void answer(struct choices *c, struct curl_exchange *exchange, int status)
{
        struct etcd_call *call = (struct etcd_call *)exchange;
        if (exchange->more && !status && !exchange->status) {
                /* A stream stays: it gets a message, a part of one, or bytes. */
                struct buffer message = { 0 };
                if (choose(c, 8))
                        put_message(c, &message);
                else
                        put_bytes(c, &message);
                size_t size = choose(c, 8) ? message.size : message.size / 2;
                buffer_put(&exchange->reply, message.data, size);
                buffer_free(&message);
                exchange->more(exchange);
                return;
        }
        take_away(exchange);
        if (!exchange->status)
                exchange->status = status;
        exchange->http_code = choose(c, 16) ? 200 : 404;
        if (!exchange->status) {
                if (choose(c, 32))
                        put_reply(c, &exchange->reply, call);
                else
                        put_bytes(c, &exchange->reply);
        }
        exchange->done(exchange);
}

static void close_scene(struct scene *s)
{
        struct etcd_tree *tree = &s->tree;
        remote_close(&tree->remote, NULL, NULL);
        coord_cancel(&tree->remote.coord, -ECANCELED);
        etcd_stream_stop(tree);
        if (tree->greeting)
                etcd_call_forget(tree->greeting);
        while (tree->waiting)
                etcd_call_forget(tree->waiting);
        demand(!sent_count);
        etcd_watch_free_all(&tree->watches);
        free(tree->token);
        member_free(&s->users.member);
        coord_base_free(&tree->remote.coord);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        static struct scene s;
        memset(&s, 0, sizeof(s));
        log_set_level(LEVEL_ERROR);
        sent_count = 0;
        open_scene(&s, &c);
        while (c.size) {
                s.tree.remote.next_beat_ms = s.tree.remote.beat ? UINT64_MAX : 0;
                remote_turn(&s.tree.remote);
                if (!sent_count)
                        break;
                struct curl_exchange *exchange = sent[choose(&c, sent_count < 256 ? sent_count : 255)];
                answer(&c, exchange, choose(&c, 24) ? 0 : choose(&c, 2) ? -ECONNRESET : -ETIMEDOUT);
                if (!choose(&c, 8)) {
                        member_retry(&s.users.member);
                        leader_retry(&s.users.leader);
                }
        }
        close_scene(&s);
        return 0;
}
