#include "redis/server.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "redis/cluster.h"
#include "redis/redis_private.h"
#include "redis/sentinel.h"

/* A connection that lasted this long, or answered a command, resets the count of failures. */
#define LIVED_MS 1000
/* How long a replaced master may take for its last answers: a healthy one answers within this, a hung one never
 * does. */
#define REPLACED_MS 100
#define WORD_MAX    24
/* Minimum time between two loads of all scripts: several commands find them gone at once. */
#define LOAD_EVERY_MS 1000

/* Ends all commands that were sent and not answered; they may or may not have been executed. */
static void end_sent(struct conn *conn, int status, const char *text)
{
        conn_end_asked(conn, status);
        while (conn->sent) {
                struct redis_command *command = conn->sent;
                queue_remove(&conn->sent, command);
                redis_end(conn->redis, command, status, text);
        }
}

static int lost_status(int status)
{
        return status == -ETIMEDOUT || status == -ECANCELED ? status : -ECONNRESET;
}

/* --- answers --- */

static void retry_later(struct server *server, struct redis_command *command, const redisReply *reply, int status)
{
        command->status = status;
        (void)error_set(&command->error, 0, "%s", reply->str);
        if (server->redis->cluster && !strncmp(reply->str, "CLUSTERDOWN", 11))
                cluster_refresh(server->redis->cluster);
        /* TRYAGAIN: the slot's move ends soon, so the pause does not grow. */
        unsigned tries = !strncmp(reply->str, "TRYAGAIN", 8) ? 1 : command->tries++;
        redis_wait(server->redis, command, clock_boot_ms() + backoff_ms(tries) / 4 + 1);
}

static void finish(struct redis_command *command, int status, redisReply *reply)
{
        if (!status && command->is_first_refused) {
                redis_end(command->redis, command, -ECONNRESET, "another server answered the first command");
                return;
        }
        const char *user = command->redis->options.user;
        command->status = status;
        command->reply = reply;
        command->redis = NULL;
        if (status == -EPERM)
                denial_describe(command, user, reply->str, &command->error);
        else if (status)
                error_reply_describe(command, reply->str, &command->error);
        command->done(command);
}

/* The server has forgotten its scripts (SCRIPT FLUSH): users who may not load any depend on us to do it. */
static void load_scripts(struct server *server)
{
        const struct redis_options *o = &server->redis->options;
        uint64_t now_ms = clock_boot_ms();
        if (!server->is_up || now_ms < server->load_after_ms)
                return;
        server->load_after_ms = now_ms + LOAD_EVERY_MS;
        for (uint32_t i = 0; i < o->scripts_count; i++)
                conn_ask(server->main, 3, (const char *const[]){ "SCRIPT", "LOAD", o->scripts[i]->text },
                        (const size_t[]){ 6, 4, o->scripts[i]->size }, NULL, NULL);
}

/* The script is not there, and the user may not send it: a host will load it soon. */
static void retry_unloaded(struct server *server, struct redis_command *command, const redisReply *reply)
{
        denial_describe(command, server->redis->options.user, reply->str, &command->error);
        command->status = -EPERM;
        command->is_eval = false;
        redis_wait(server->redis, command, clock_boot_ms() + backoff_ms(command->tries++));
}

/* A command that was not executed is sent again; every other answer ends it. */
static void take_answer(struct server *server, struct redis_command *command, redisReply *reply)
{
        struct redis *redis = server->redis;
        int status = 0;
        enum reply_kind verdict = error_reply_judge(reply, &status);
        command->is_sent = false;
        command->link = NULL;
        if (verdict == REPLY_LATER) {
                retry_later(server, command, reply, status);
        } else if (verdict == REPLY_RELOAD && command->script && !command->is_eval) {
                command->is_eval = true;
                load_scripts(server);
                if (server->is_up)
                        server_send(server, command);
                else
                        redis_wait(redis, command, 0);
        } else if ((verdict == REPLY_MOVED || verdict == REPLY_ASK) && redis->cluster &&
                   cluster_redirect(redis->cluster, server, command, reply, verdict == REPLY_ASK)) {
                return;
        } else if (status == -EPERM && command->is_eval && strstr(reply->str, "'eval")) {
                retry_unloaded(server, command, reply);
        } else {
                if (verdict == REPLY_READONLY)
                        server_doubt(server);
                finish(command, status, reply);
        }
}

static void on_answered(struct conn *conn, struct redis_command *command, redisReply *reply)
{
        struct server *server = conn->owner;
        server->failures = 0;
        take_answer(server, command, reply);
}

/* --- answers that are out of step --- */

static void put_word(const struct server *server, char word[WORD_MAX])
{
        (void)snprintf(word, WORD_MAX, "in step %u", server->words);
}

static void on_verified(void *self, int status, const redisReply *reply)
{
        struct server *server = self;
        char word[WORD_MAX], address[ADDRESS_TEXT_MAX];
        server->is_verifying = false;
        put_word(server, word);
        /* If the user may not call PING, nothing is learned. */
        bool is_denied = !status && reply->type == REDIS_REPLY_ERROR && denial_is(reply->str);
        if (status || is_denied || (reply->type == REDIS_REPLY_STRING && !strcmp(reply->str, word)))
                return;
        conn_lose(server->main, error_set(&server->main->socket.error, -ECONNRESET,
                                        "%s: its answers do not belong to our commands any more",
                                        address_format(&server->main->socket.address, address)));
}

void redis_verify(struct redis *redis)
{
        struct server *server;
        char word[WORD_MAX];
        for (server = redis->servers; server && !redis->is_closing; server = server->next) {
                if (!server->is_up || server->is_verifying || !server->main)
                        continue;
                server->words++;
                server->is_verifying = true;
                put_word(server, word);
                conn_ask_words(server->main, WORDS("PING", word), on_verified, server);
        }
}

/* --- the main connection --- */

/* After a change of master, blocking commands on the old one would wait for writes that never come. */
static void leave_old_master(struct server *server)
{
        struct conn *conn, *after;
        for (conn = server->redis->conns; conn; conn = after) {
                after = conn->next;
                if (conn->owner == server && conn->kind == CONN_ALONE && !conn->socket.is_closing &&
                        !address_is_equal(&conn->socket.address, &server->address))
                        conn_lose(conn,
                                error_set(&conn->socket.error, -ECONNRESET, "another server has become the master"));
        }
}

static void on_main_ready(struct conn *conn)
{
        struct server *server = conn->owner;
        char address[ADDRESS_TEXT_MAX];
        char text[512];
        server->is_up = true;
        server->is_down_said = false;
        server->up_at_ms = clock_boot_ms();
        server->facts = conn->facts;
        address_format(&server->address, address);
        (void)snprintf(server->facts.server, sizeof(server->facts.server), "%s", address);
        (void)snprintf(text, sizeof(text), "%s answers: Redis %s, %s%s%s", address, conn->facts.version,
                conn->facts.role, conn->facts.tls[0] ? ", " : "", conn->facts.tls);
        redis_state(server->redis, true, text);
        leave_old_master(server);
        if (server->redis->options.wants_bell)
                bell_main_is_ready(server);
        /* With a bell this is done when the bell works. */
        if (server->bell_state == BELL_OFF || server->bell_state == BELL_REFUSED)
                redis_look(server->redis);
        redis_dispatch(server->redis);
        redis_check_open(server->redis);
}

static void on_main_lost(struct conn *conn, int status)
{
        struct server *server = conn->owner;
        struct redis *redis = server->redis;
        uint64_t now_ms = clock_boot_ms();
        end_sent(conn, lost_status(status), conn->socket.error.text);
        if (server->up_at_ms && now_ms - server->up_at_ms > LIVED_MS)
                server->failures = 0;
        server->up_at_ms = server->leave_at_ms = 0;
        server->main = NULL;
        server->is_up = false;
        conn_close(server->spare);
        server->spare = NULL;
        server->retry_at_ms = now_ms + backoff_ms(server->failures++);
        redis_wake_at(redis, server->retry_at_ms);
        if (!server->is_down_said)
                redis_state(redis, false, conn->socket.error.text);
        server->is_down_said = true;
        if (redis->cluster)
                cluster_refresh(redis->cluster);
}

static const struct conn_events main_events = {
        .ready = on_main_ready,
        .answered = on_answered,
        .lost = on_main_lost,
};

void server_connect(struct server *server)
{
        server->retry_at_ms = server->leave_at_ms = 0;
        server->main = conn_open(server->redis, CONN_MAIN, &server->address, &main_events, server);
}

void server_doubt(struct server *server)
{
        if (!server->is_up)
                return;
        server->is_up = false;
        server->main->is_retiring = true;
        /* The connection may be in the middle of reading, so it is not closed here: the answer to this PING lets it
         * retire. */
        if (!server->main->sent)
                conn_ask_words(server->main, WORDS("PING"), NULL, NULL);
}

void server_leave(struct server *server)
{
        struct redis_socket *sock = &server->main->socket;
        char address[ADDRESS_TEXT_MAX];
        server->leave_at_ms = 0;
        conn_lose(server->main,
                error_set(&sock->error, -ECONNRESET, "%s does not answer, and another server has become the master",
                        address_format(&sock->address, address)));
}

void server_replaced(struct server *server)
{
        if (!server->main)
                return;
        server_doubt(server);
        server->leave_at_ms = clock_boot_ms() + REPLACED_MS;
        redis_wake_at(server->redis, server->leave_at_ms);
}

/* --- blocking commands --- */

static void put_asking(struct conn *conn, const struct redis_command *command)
{
        if (command->target)
                conn_ask_words(conn, WORDS("ASKING"), NULL, NULL);
}

static void first_told(void *self, int status, const redisReply *reply)
{
        struct redis_command *command = self;
        command->is_first_refused = status || reply->type == REDIS_REPLY_ERROR ||
                                    (command->first_least && (reply->type != REDIS_REPLY_INTEGER ||
                                                                     (uint64_t)reply->integer < command->first_least));
}

static void put_alone(struct conn *conn, struct redis_command *command)
{
        command->is_first_refused = false;
        if (command->first_argc) {
                put_asking(conn, command);
                conn_ask(conn, command->first_argc, command->first_argv, command->first_size, first_told, command);
        }
        put_asking(conn, command);
        command->target = NULL;
        conn_send(conn, command);
}

static void on_alone_ready(struct conn *conn)
{
        struct redis_command *command = conn->sent;
        queue_remove(&conn->sent, command);
        put_alone(conn, command);
}

static void on_alone_answered(struct conn *conn, struct redis_command *command, redisReply *reply)
{
        struct server *server = conn->owner;
        if (server->spare)
                conn_close(conn);
        else
                server->spare = conn;
        take_answer(server, command, reply);
}

static void on_alone_lost(struct conn *conn, int status)
{
        struct server *server = conn->owner;
        struct redis_command *command = conn->sent;
        if (server->spare == conn)
                server->spare = NULL;
        if (command && !command->is_sent) {
                /* It was not executed, so it is safe to send again. */
                queue_remove(&conn->sent, command);
                command->link = NULL;
                redis_wait(server->redis, command, clock_boot_ms() + backoff_ms(command->tries++));
        }
        end_sent(conn, lost_status(status), conn->socket.error.text);
}

static const struct conn_events alone_events = {
        .ready = on_alone_ready,
        .answered = on_alone_answered,
        .lost = on_alone_lost,
};

static void send_alone(struct server *server, struct redis_command *command)
{
        struct conn *conn = server->spare;
        server->spare = NULL;
        if (conn) {
                put_alone(conn, command);
                return;
        }
        conn = conn_open(server->redis, CONN_ALONE, &server->address, &alone_events, server);
        command->link = conn;
        queue_put(&conn->sent, command);
        redis_wake_at(server->redis, command->due_ms);
}

void server_send(struct server *server, struct redis_command *command)
{
        if (command->is_blocking) {
                send_alone(server, command);
                return;
        }
        /* ASKING and CLIENT CACHING both apply to the very next command, so only one of them can precede it. */
        if (command->is_untracked && !command->target) {
                conn_send_untracked(server->main, command);
                return;
        }
        put_asking(server->main, command);
        command->target = NULL;
        conn_send(server->main, command);
}

/* --- open and close --- */

struct server *server_add(struct redis *redis, const struct address *address)
{
        struct server *server = memory_zero(1, sizeof(*server));
        server->redis = redis;
        server->address = *address;
        DL_APPEND(redis->servers, server);
        return server;
}

static void close_with(struct conn *conn, int status, const char *text)
{
        end_sent(conn, status, text);
        conn_close(conn);
}

void server_remove(struct server *server)
{
        struct redis *redis = server->redis;
        int status = redis->is_closing ? -ECANCELED : -ECONNRESET;
        struct conn *conn, *after;
        server->is_up = false;
        bell_stop(server);
        for (conn = redis->conns; conn; conn = after) {
                after = conn->next;
                if (conn->owner == server && !conn->socket.is_closing)
                        close_with(conn, status, "the connection was closed");
        }
        struct redis_command *command;
        for (command = redis->waiting; command; command = command->next) {
                if (command->target == server)
                        command->target = NULL;
        }
        DL_DELETE(redis->servers, server);
        free(server);
}

bool server_is_settled(const struct server *server)
{
        if (!server->is_up)
                return false;
        return server->bell_state != BELL_OPENING || server->bell_failures > 0;
}

void server_tick(struct server *server, uint64_t now_ms)
{
        if (server->retry_at_ms && now_ms >= server->retry_at_ms) {
                server->retry_at_ms = 0;
                if (server->redis->sentinel)
                        sentinel_look(server->redis->sentinel);
                else
                        server_connect(server);
        }
        if (server->retry_at_ms)
                redis_wake_at(server->redis, server->retry_at_ms);
        if (server->leave_at_ms && now_ms >= server->leave_at_ms && server->main)
                server_leave(server);
        else if (server->leave_at_ms)
                redis_wake_at(server->redis, server->leave_at_ms);
        bell_tick(server, now_ms);
}
