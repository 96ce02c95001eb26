#include "redis/conn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sha1.h"
#include "redis/redis_private.h"
#include "tls/tls.h"

/* Short, because another host can be asked. */
#define ASK_ANY_TIMEOUT_MS 1000

static bool is_one_of_many(enum conn_kind kind)
{
        return kind == CONN_ASK_ANY || kind == CONN_SENTINEL;
}

static struct conn *conn_of(struct redis_socket *sock)
{
        return container_of(sock, struct conn, socket);
}

void queue_put(struct redis_command **queue, struct redis_command *command)
{
        DL_APPEND(*queue, command);
}

void queue_remove(struct redis_command **queue, struct redis_command *command)
{
        DL_DELETE(*queue, command);
}

static void mark_unflushed(struct conn *conn)
{
        if (conn->is_unflushed)
                return;
        conn->is_unflushed = true;
        LL_PREPEND2(conn->redis->unflushed, conn, next_unflushed);
        redis_soon(conn->redis);
}

void conns_flush(struct redis *redis)
{
        while (redis->unflushed) {
                struct conn *conn = redis->unflushed;
                LL_DELETE2(redis->unflushed, conn, next_unflushed);
                conn->is_unflushed = false;
                redis_socket_flush(&conn->socket);
        }
}

/* A command that this folder sends itself.  Its `redis` is NULL; freed after told() was called. */
struct asked {
        struct redis_command command;
        told_fn *told;
        void *self;
};

static void tell(struct redis_command *command, int status, const redisReply *reply)
{
        struct asked *asked = (struct asked *)command;
        if (asked->told)
                asked->told(asked->self, status, reply);
        free(asked);
}

void conn_end_asked(struct conn *conn, int status)
{
        struct redis_command *command, *after;
        for (command = conn->sent; command; command = after) {
                after = command->next;
                if (command->redis)
                        continue;
                queue_remove(&conn->sent, command);
                tell(command, status, NULL);
        }
}

void conn_lose(struct conn *conn, int status)
{
        conn->is_ready = false;
        redis_socket_close(&conn->socket);
        conn_end_asked(conn, status);
        if (conn->kind == CONN_MAIN)
                redis_refused(conn->redis, status);
        if (conn->kind == CONN_MAIN || is_one_of_many(conn->kind))
                redis_failed(conn->redis, status, conn->socket.error.text);
        conn->events->lost(conn, status);
}

void conn_close(struct conn *conn)
{
        if (!conn)
                return;
        conn_end_asked(conn, -ECANCELED);
        assert(!conn->sent);
        conn->events = NULL;
        conn->is_ready = false;
        redis_socket_close(&conn->socket);
}

static void on_up(struct redis_socket *sock)
{
        struct conn *conn = conn_of(sock);
        if (sock->stream)
                (void)snprintf(conn->facts.tls, sizeof(conn->facts.tls), "%s", tls_stream_version(sock->stream));
        login_start(conn);
        mark_unflushed(conn);
}

static void on_login_reply(struct conn *conn, redisReply *reply)
{
        int r = login_reply(conn, reply);
        if (r) {
                conn_lose(conn, r);
                return;
        }
        if (!login_is_over(conn))
                return;
        redis_socket_settled(&conn->socket);
        conn->is_ready = true;
        conn->events->ready(conn);
}

static void on_reply(struct redis_socket *sock, redisReply *reply)
{
        struct conn *conn = conn_of(sock);
        struct redis_command *command = conn->sent;
        if (!login_is_over(conn)) {
                on_login_reply(conn, reply);
                return;
        }
        if (conn->kind == CONN_BELL || conn->kind == CONN_WATCH) {
                conn->events->pushed(conn, reply);
                return;
        }
        if (!command) {
                conn_lose(conn, error_set(&sock->error, -EPROTO, "%s sent a reply that belongs to no command",
                                        sock->address.host));
                return;
        }
        if (command->has_prefix) {
                /* Whatever the server says to the prefix: if it refuses it, the command rings as others do. */
                command->has_prefix = false;
                return;
        }
        queue_remove(&conn->sent, command);
        if (command->redis)
                conn->events->answered(conn, command, reply);
        else
                tell(command, 0, reply);
        if (conn->is_retiring && !conn->sent && !sock->is_closing)
                conn_lose(conn, error_set(&sock->error, -EROFS, "%s is no longer a master", sock->address.host));
}

static void on_down(struct redis_socket *sock, int status)
{
        conn_lose(conn_of(sock), status);
}

static void on_closed(struct redis_socket *sock)
{
        struct conn *conn = conn_of(sock);
        struct redis *redis = conn->redis;
        if (conn->is_unflushed)
                LL_DELETE2(redis->unflushed, conn, next_unflushed);
        DL_DELETE(redis->conns, conn);
        free(conn);
        redis_conn_freed(redis);
}

static const struct redis_socket_events redis_socket_events = {
        .up = on_up,
        .reply = on_reply,
        .down = on_down,
        .closed = on_closed,
};

/* Certificates are renewed while connections live: a new connection gets what is in the files now. */
static void refresh_certificates(struct redis *redis)
{
        struct error error = { "" };
        char text[TLS_DESCRIPTION_MAX];
        int r = redis->tls ? tls_context_refresh(redis->tls, &error) : 0;
        if (r < 0) {
                log_event(LEVEL_WARN, "certificates", "url=%s error=%s hint=%s", LOG_QUOTE(redis->url.text),
                        LOG_QUOTE(error.text),
                        LOG_QUOTE(
                                "the certificates that were read before are used; repair the file, quiver check shows "
                                "whether it is right"));
        } else if (r > 0) {
                tls_context_describe(redis->tls, text);
                log_event(LEVEL_INFO, "certificates", "url=%s text=%s", LOG_QUOTE(redis->url.text), LOG_QUOTE(text));
        }
}

struct conn *conn_open(struct redis *redis, enum conn_kind kind, const struct address *address,
        const struct conn_events *events, void *owner)
{
        struct conn *conn = memory_zero(1, sizeof(*conn));
        conn->kind = kind;
        conn->redis = redis;
        conn->owner = owner;
        conn->events = events;
        conn->opened_at_ms = clock_boot_ms();
        conn->steps_count = 1; /* not 0, which would mean that the login is complete */
        DL_APPEND(redis->conns, conn);
        uint64_t timeout_ms = redis->options.deadline_ms;
        if (is_one_of_many(kind) && timeout_ms > ASK_ANY_TIMEOUT_MS)
                timeout_ms = ASK_ANY_TIMEOUT_MS;
        refresh_certificates(redis);
        redis_socket_open(&conn->socket, redis->loop, address, redis->tls, timeout_ms, &redis_socket_events);
        if (kind == CONN_MAIN && redis_has_others(redis))
                redis_wake_at(redis, conn->opened_at_ms + CONN_SILENT_MS);
        return conn;
}

uint64_t conn_owes_since_ms(const struct conn *conn)
{
        if (!conn->is_ready)
                return conn->opened_at_ms;
        return conn->sent ? conn->sent->sent_at_ms : 0;
}

bool conn_is_silent(const struct conn *conn, uint64_t now_ms)
{
        uint64_t since_ms = conn_owes_since_ms(conn);
        return since_ms && now_ms >= since_ms + CONN_SILENT_MS;
}

/* EVALSHA with the script's sha1, or EVAL with its text if the server said that it does not have it. */
static void put_script(struct conn *conn, const struct redis_command *command)
{
        struct redis_script *script = command->script;
        if (!script->sha[0])
                sha1_text(script->text, script->size, script->sha);
        bool is_read_only = command->argv_size[0] == strlen("EVALSHA_RO");
        redis_socket_put_count(&conn->socket, command->argc);
        if (command->is_eval) {
                redis_socket_put_word(&conn->socket, is_read_only ? "EVAL_RO" : "EVAL", is_read_only ? 7 : 4);
                redis_socket_put_word(&conn->socket, script->text, script->size);
        } else {
                redis_socket_put_word(&conn->socket, command->argv[0], command->argv_size[0]);
                redis_socket_put_word(&conn->socket, script->sha, 40);
        }
        for (int i = 2; i < command->argc; i++)
                redis_socket_put_word(&conn->socket, command->argv[i], command->argv_size[i]);
}

void conn_send(struct conn *conn, struct redis_command *command)
{
        if (command->script)
                put_script(conn, command);
        else
                redis_socket_put(&conn->socket, command->argc, command->argv, command->argv_size);
        command->link = conn;
        command->is_sent = true;
        command->sent_at_ms = clock_boot_ms();
        command->sends++;
        queue_put(&conn->sent, command);
        redis_wake_at(conn->redis, command->due_ms);
        if (conn->kind == CONN_MAIN && redis_has_others(conn->redis))
                redis_wake_at(conn->redis, command->sent_at_ms + CONN_SILENT_MS);
        mark_unflushed(conn);
}

void conn_send_untracked(struct conn *conn, struct redis_command *command)
{
        command->has_prefix = conn->is_tracking;
        if (command->has_prefix) {
                redis_socket_put_count(&conn->socket, 3);
                redis_socket_put_word(&conn->socket, "CLIENT", 6);
                redis_socket_put_word(&conn->socket, "CACHING", 7);
                redis_socket_put_word(&conn->socket, "NO", 2);
        }
        conn_send(conn, command);
}

void conn_ask(struct conn *conn, int argc, const char *const *argv, const size_t *argv_size, told_fn *told, void *self)
{
        struct asked *asked = memory_zero(1, sizeof(*asked));
        asked->told = told;
        asked->self = self;
        asked->command.argc = argc;
        asked->command.argv = (const char **)argv;
        asked->command.argv_size = argv_size;
        asked->command.due_ms = clock_boot_ms() + conn->redis->options.deadline_ms;
        conn_send(conn, &asked->command);
}

#define WORDS_MAX 8

void conn_ask_words(struct conn *conn, const char *const *words, told_fn *told, void *self)
{
        size_t sizes[WORDS_MAX];
        int count = 0;
        for (; words[count]; count++) {
                assert(count < WORDS_MAX);
                sizes[count] = strlen(words[count]);
        }
        conn_ask(conn, count, words, sizes, told, self);
}

void conn_say(struct conn *conn, const char *word)
{
        redis_socket_put_count(&conn->socket, 1);
        redis_socket_put_word(&conn->socket, word, strlen(word));
        mark_unflushed(conn);
}
