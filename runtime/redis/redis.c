#include "redis/redis.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "redis/cluster.h"
#include "redis/redis_private.h"
#include "redis/sentinel.h"

#define BACKOFF_FIRST_MS 20
#define BACKOFF_MOST_MS  2000
#define SILENT_ASK_MS    200 /* interval of asking for the master while an answer is overdue */

uint64_t backoff_ms(unsigned failures)
{
        uint64_t most_ms = failures > 6 ? BACKOFF_MOST_MS : BACKOFF_FIRST_MS << failures;
        uint32_t random = 0;
        if (most_ms > BACKOFF_MOST_MS)
                most_ms = BACKOFF_MOST_MS;
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
                random = 0; /* early boot, the kernel has no entropy: no jitter */
        return most_ms / 2 + random % (most_ms / 2 + 1);
}

/* --- callbacks --- */

void redis_state(struct redis *redis, bool is_up, const char *text)
{
        const struct redis_events *events = redis->options.events;
        if (events && events->state && !redis->is_closing)
                events->state(events->self, is_up, text);
}

void redis_look(struct redis *redis)
{
        const struct redis_events *events = redis->options.events;
        /* Until it is open there is no need: users read once after opened() anyway. */
        if (events && events->look && !redis->is_closing && !redis->open)
                events->look(events->self);
}

void redis_failed(struct redis *redis, int status, const char *text)
{
        redis->why = status;
        (void)error_set(&redis->why_text, 0, "%s", text);
}

void redis_refused(struct redis *redis, int status)
{
        bool is_final = status == -EACCES || status == -EINVAL || status == -ENOTSUP || status == -EPROTO;
        if (!redis->open || redis->is_open_ended || !is_final)
                return;
        redis->is_open_ended = true;
        redis->open_status = status;
        redis_soon(redis);
}

void redis_end(struct redis *redis, struct redis_command *command, int status, const char *text)
{
        command->status = status;
        command->link = NULL;
        command->is_ended = true;
        (void)error_set(&command->error, 0, "%s", text);
        queue_put(&redis->ended, command);
        redis_soon(redis);
}

static void tell_ended(struct redis *redis)
{
        struct redis_command *ended = redis->ended;
        redis->ended = NULL;
        while (ended) {
                struct redis_command *command = ended;
                queue_remove(&ended, command);
                command->redis = NULL;
                command->reply = NULL;
                command->done(command);
        }
}

static void tell_opened(struct redis *redis)
{
        struct redis_open *open = redis->open;
        if (!open || !redis->is_open_ended)
                return;
        redis->open = NULL;
        if (redis->open_status) {
                (void)error_set(&open->error, 0, "%s", redis->why_text.text);
                open->redis = NULL;
                if (!redis->is_closing)
                        redis_close(redis, NULL, NULL);
        }
        open->opened(open, redis->open_status);
}

void redis_flush(struct redis *redis)
{
        conns_flush(redis);
        /* There is nothing left for on_prepare() to do, so the loop may sleep. */
        if (!redis->ended && !redis->open && !redis->is_closing)
                (void)uv_idle_stop(&redis->idle);
}

static void on_prepare(uv_prepare_t *prepare)
{
        struct redis *redis = prepare->data;
        (void)uv_idle_stop(&redis->idle);
        if (redis->is_closing)
                redis_tear_down(redis);
        tell_opened(redis);
        tell_ended(redis);
        conns_flush(redis);
        if (redis->is_closing)
                redis_free_when_idle(redis);
}

static void on_idle(uv_idle_t *idle)
{
        (void)idle;
}

void redis_soon(struct redis *redis)
{
        (void)uv_idle_start(&redis->idle, on_idle);
}

/* --- time --- */

static void on_timer(uv_timer_t *timer);

void redis_wake_at(struct redis *redis, uint64_t at_ms)
{
        if (redis->is_closing || (redis->timer_at_ms && redis->timer_at_ms <= at_ms))
                return;
        uint64_t now_ms = clock_boot_ms();
        redis->timer_at_ms = at_ms;
        (void)uv_timer_start(&redis->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

/* Whether an answer is overdue. */
static bool is_late(struct conn *conn, uint64_t now_ms)
{
        const struct redis_command *command;
        bool is_so = false;
        for (command = conn->sent; command; command = command->next) {
                if (now_ms < command->due_ms)
                        redis_wake_at(conn->redis, command->due_ms);
                else
                        is_so = true;
        }
        return is_so;
}

/* Closes connections with an overdue answer: answers come in order, so later commands get none either.  If this process
 * was suspended, the answers may be waiting to be read.  So a connection is closed only at the second check, after the
 * loop has polled. */
static void check_sent(struct redis *redis, uint64_t now_ms)
{
        struct conn *conn, *after;
        char address[ADDRESS_TEXT_MAX];
        for (conn = redis->conns; conn; conn = after) {
                bool was_late = conn->is_late;
                after = conn->next;
                if (conn->socket.is_closing)
                        continue;
                conn->is_late = is_late(conn, now_ms);
                if (conn->is_late && was_late)
                        conn_lose(conn, error_set(&conn->socket.error, -ETIMEDOUT, "%s: no answer in time",
                                                address_format(&conn->socket.address, address)));
                else if (conn->is_late)
                        redis_wake_at(redis, now_ms + 1);
        }
}

/* A hung master keeps its connections and answers nothing.  Ask repeatedly whether another server has taken its place,
 * so that no command waits for a deadline longer than the failover took. */
static void check_silent(struct redis *redis, uint64_t now_ms)
{
        const struct conn *conn;
        bool is_one_silent = false;
        for (conn = redis->conns; conn; conn = conn->next) {
                if (conn->kind != CONN_MAIN || conn->socket.is_closing || !conn_owes_since_ms(conn))
                        continue;
                if (conn_is_silent(conn, now_ms))
                        is_one_silent = true;
                else
                        redis_wake_at(redis, conn_owes_since_ms(conn) + CONN_SILENT_MS);
        }
        if (!is_one_silent)
                return;
        if (redis->sentinel)
                sentinel_ask(redis->sentinel);
        else
                cluster_refresh(redis->cluster);
        redis_wake_at(redis, now_ms + SILENT_ASK_MS);
}

/* Ends a command that waited until its deadline, for a connection or for its next try. */
static void end_waiting(struct redis *redis, struct redis_command *command)
{
        queue_remove(&redis->waiting, command);
        if (command->status) {
                char text[ERROR_TEXT_MAX];
                (void)snprintf(text, sizeof(text), "%s", command->error.text);
                redis_end(redis, command, command->status, text);
                return;
        }
        bool is_kept = redis->why == -EACCES || redis->why == -ENOTSUP || redis->why == -ECONNREFUSED;
        redis_end(redis, command, is_kept ? redis->why : -EHOSTUNREACH,
                redis->why ? redis->why_text.text : "not connected in time");
}

static void check_waiting(struct redis *redis, uint64_t now_ms)
{
        struct redis_command *command, *after;
        for (command = redis->waiting; command; command = after) {
                after = command->next;
                if (now_ms >= command->due_ms)
                        end_waiting(redis, command);
                else
                        redis_wake_at(redis, command->due_ms);
        }
        redis_dispatch(redis);
}

static void on_timer(uv_timer_t *timer)
{
        struct redis *redis = timer->data;
        uint64_t now_ms = clock_boot_ms();
        struct server *server, *after;
        redis->timer_at_ms = 0;
        check_sent(redis, now_ms);
        if (redis_has_others(redis))
                check_silent(redis, now_ms);
        check_waiting(redis, now_ms);
        for (server = redis->servers; server; server = after) {
                after = server->next;
                server_tick(server, now_ms);
        }
        if (redis->sentinel)
                sentinel_tick(redis->sentinel, now_ms);
        if (redis->cluster)
                cluster_tick(redis->cluster, now_ms);
        redis_check_open(redis);
}

/* --- commands --- */

static struct server *route(struct redis *redis, const struct redis_command *command)
{
        if (redis->cluster)
                return cluster_route(redis->cluster, command);
        return redis->servers && redis->servers->is_up ? redis->servers : NULL;
}

void redis_wait(struct redis *redis, struct redis_command *command, uint64_t at_ms)
{
        command->retry_at_ms = at_ms;
        queue_put(&redis->waiting, command);
        redis_wake_at(redis, at_ms && at_ms < command->due_ms ? at_ms : command->due_ms);
}

void redis_dispatch(struct redis *redis)
{
        struct redis_command *command, *after;
        uint64_t now_ms = clock_boot_ms();
        for (command = redis->waiting; command; command = after) {
                after = command->next;
                if (command->retry_at_ms > now_ms) {
                        redis_wake_at(redis, command->retry_at_ms);
                        continue;
                }
                struct server *server = route(redis, command);
                if (!server)
                        continue;
                queue_remove(&redis->waiting, command);
                server_send(server, command);
        }
}

void redis_send(struct redis *redis, struct redis_command *command)
{
        uint64_t deadline_ms = command->deadline_ms ? command->deadline_ms : redis->options.deadline_ms;
        command->redis = redis;
        command->status = 0;
        command->error.text[0] = 0;
        command->reply = NULL;
        command->link = NULL;
        command->tries = command->sends = 0;
        command->retry_at_ms = 0;
        command->target = NULL;
        command->is_sent = command->is_eval = command->is_ended = false;
        command->due_ms = clock_boot_ms() + deadline_ms;
        if (redis->is_closing) {
                redis_end(redis, command, -ECANCELED, "closed");
                return;
        }
        struct server *server = route(redis, command);
        if (server)
                server_send(server, command);
        else
                redis_wait(redis, command, 0);
}

void redis_cancel(struct redis_command *command)
{
        struct redis *redis = command->redis;
        struct conn *conn = command->link;
        if (!redis || command->is_ended)
                return;
        if (!conn) {
                queue_remove(&redis->waiting, command);
        } else if (conn->kind == CONN_ALONE) {
                queue_remove(&conn->sent, command);
                conn_close(conn);
        } else {
                return;
        }
        redis_end(redis, command, -ECANCELED, "cancelled");
}

void redis_start(struct redis *redis)
{
        (void)uv_timer_init(redis->loop, &redis->timer);
        (void)uv_prepare_init(redis->loop, &redis->prepare);
        (void)uv_idle_init(redis->loop, &redis->idle);
        redis->timer.data = redis->prepare.data = redis->idle.data = redis;
        redis->handles = 3;
        (void)uv_prepare_start(&redis->prepare, on_prepare);
}
