/* The session: who keeps it alive, when it is in doubt, and when it is over.
 *
 * The client says "connected" and "expired" as it learns of it, which may be never.  So every third of the session's
 * timeout an operation is sent whose answer proves that the session is alive as of its sending.  Without proof for a
 * third the session is suspended, without proof for the whole of it, it is over, whatever the client says. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "coord/zookeeper/zookeeper.h"

#define BEATS_PER_SESSION 3
/* Links that find nobody are replaced after a while: names may have got other addresses. */
#define LINK_PATIENCE_MS 30000u
/* When all sessions of a fleet end together, the new ones begin over a while. */
#define START_SPREAD_MS 100u

static uint64_t beat_every_ms(const struct zk *zk)
{
        uint64_t every_ms = zk->coord.session_ms / BEATS_PER_SESSION;
        return every_ms ? every_ms : 1;
}

static void suspend(struct zk *zk)
{
        if (zk->coord.state == COORD_ALIVE)
                coord_tell(&zk->coord, COORD_SUSPENDED, zk->coord.session);
}

/* --- links ------------------------------------------------------------------------------------------------------- */

static void ring(void *self)
{
        zk_ring(self);
}

static void start_link(struct zk *zk, uint64_t now_ms)
{
        struct zk_link *made = calloc(1, sizeof(*made));
        if (!made)
                abort();
        made->handle = zk_handle_start(&(struct zk_handle_options){ .url = &zk->url,
                .addresses = zk->addresses,
                .session_ms = zk->wanted_ms,
                .auth = zk->auth,
                .ring = ring,
                .self = zk });
        made->next = zk->links;
        zk->links = zk->current = made;
        zk->started_ms = now_ms;
}

void zk_session_end(struct zk *zk, bool lingers)
{
        if (!zk->current)
                return;
        char *addresses = zk_handle_addresses(zk->current->handle);
        if (addresses) {
                free(zk->addresses);
                zk->addresses = addresses;
        }
        zk_handle_end(zk->current->handle, lingers);
        zk->current = NULL;
        zk->beat = NULL;
        zk->is_connected = zk->is_proven = zk->has_root = false;
        explicit_bzero(&zk->id, sizeof(zk->id));
        for (struct coord_request *request = zk->coord.requests; request; request = request->next) {
                const struct zk_call *call = request->driver;
                if (call && call->is_out)
                        zk_request_forget(request);
        }
}

/* The session is over.  What was asked of it ends with it; what is asked from now on, also by those who are told here,
 * is for the next one. */
static void expire(struct zk *zk, const char *why, bool lingers)
{
        bool was_told = zk->coord.state == COORD_ALIVE || zk->coord.state == COORD_SUSPENDED;
        uint64_t session = zk->coord.session;
        size_t count = 0;
        zk_session_end(zk, lingers);
        zk->start_at_ms = clock_boot_ms() + (uint64_t)random() % START_SPREAD_MS;
        if (!was_told)
                return;
        for (const struct coord_request *request = zk->coord.requests; request; request = request->next)
                count++;
        log_event(LEVEL_INFO, "zookeeper_expired", "session=0x%" PRIx64 " why=%s", session, LOG_QUOTE(why));
        coord_tell(&zk->coord, COORD_EXPIRED, session);
        for (struct coord_request *request; count && (request = zk->coord.requests); count--) {
                zk_request_forget(request);
                coord_finish_error(request, -EOWNERDEAD, "the session has expired");
        }
}

/* --- heartbeat --------------------------------------------------------------------------------------------------- */

/* In a new session the first one makes the app's root: its answer proves as much. */
static void send_beat(struct zk *zk, uint64_t now_ms)
{
        struct zk_call *call = zk_call_new(zk_path(zk, NULL));
        call->acl = zk->acl;
        call->step = STEP_EXISTS;
        if (!zk->has_root && !zk->coord.is_visitor) {
                call->step = STEP_PARENT;
                call->parent_size = strlen(call->path);
        }
        zk->beat_sent_ms = now_ms;
        zk->next_beat_ms = now_ms + beat_every_ms(zk);
        if (zk_call_send(call, zk->current->handle) == ZOK)
                zk->beat = call;
        else
                zk_call_free(call);
}

/* The server itself has answered, within this session. */
static bool is_proof(int rc)
{
        return rc == ZOK ||
               (rc < ZAPIERROR && rc != ZSESSIONEXPIRED && rc != ZSESSIONMOVED && rc != ZAUTHFAILED && rc != ZCLOSING);
}

static void prove(struct zk *zk)
{
        bool is_new = !zk->is_proven;
        zk->proof_ms = zk->beat_sent_ms;
        zk->coord.answered_ms = clock_boot_ms();
        /* The answer may have lain here while the loop was busy: then it proves nothing any more. */
        if (zk->coord.answered_ms - zk->proof_ms > zk->coord.session_ms)
                return;
        zk->is_proven = true;
        if (zk->coord.state != COORD_ALIVE)
                coord_tell(&zk->coord, COORD_ALIVE, (uint64_t)zk->id.client_id);
        /* Within a session the client arms its watches again by itself. */
        if (is_new && zk->coord.events.look && !zk->is_closing)
                zk->coord.events.look(zk->coord.events.self);
        zk_request_flush(zk);
}

static void beat_answered(struct zk *zk, struct zk_call *call)
{
        if (!is_proof(call->rc)) {
                zk->beat = NULL;
                zk_call_free(call);
                return;
        }
        if (call->step == STEP_PARENT && zk_parent_next(call, strlen(call->path)) &&
                zk_call_send(call, zk->current->handle) == ZOK)
                return;
        if (call->rc == ZNOAUTH)
                log_event(LEVEL_ERROR, "zookeeper_refused",
                        "path=%s what=\"it belongs to another user; look at user and password\"", LOG_QUOTE(zk->root));
        zk->beat = NULL;
        zk->has_root = true;
        zk_call_free(call);
        prove(zk);
}

/* --- what the client tells --------------------------------------------------------------------------------------- */

static void connected(struct zk *zk, const struct session_post *session)
{
        uint64_t now_ms = clock_boot_ms();
        char *server = strdup(session->server);
        if (!server)
                abort();
        free(zk->coord.server);
        zk->coord.server = server;
        zk->coord.session_ms = session->session_ms;
        zk->refusal.text[0] = 0;
        zk->is_connected = true;
        if (session->id.client_id != zk->id.client_id) {
                zk->id = session->id;
                zk->proof_ms = now_ms;
        }
        if (!zk->beat)
                send_beat(zk, now_ms);
        if (zk->is_proven)
                zk_request_flush(zk);
}

static void refused(struct zk *zk)
{
        (void)error_set(&zk->refusal, 0, "ZooKeeper refused the authentication; look at user and password");
        log_event(LEVEL_ERROR, "zookeeper_refused", "what=\"the authentication; look at user and password\"");
        expire(zk, "authentication refused", false);
        zk->start_at_ms = clock_boot_ms() + zk->wanted_ms;
        zk_request_refuse_all(zk, -EACCES, zk->refusal.text);
}

static void session_changed(struct zk *zk, const struct session_post *session)
{
        if (session->state == ZOO_CONNECTED_STATE) {
                connected(zk, session);
        } else if (session->state == ZOO_EXPIRED_SESSION_STATE) {
                expire(zk, "the server says so", false);
        } else if (session->state == ZOO_AUTH_FAILED_STATE) {
                refused(zk);
        } else {
                zk->is_connected = false;
                suspend(zk);
        }
}

static void changed(struct zk *zk, const char *path)
{
        size_t size = strlen(zk->root);
        if (zk->coord.events.changed && !strncmp(path, zk->root, size) && path[size] == '/')
                zk->coord.events.changed(zk->coord.events.self, path + size + 1);
}

static void answered(struct zk *zk, struct zk_call *call)
{
        call->is_out = false;
        if (call == zk->beat)
                beat_answered(zk, call);
        else if (call->request)
                zk_request_answered(zk, call);
        else
                zk_call_free(call);
}

static void failed(struct zk *zk, const struct failed_post *post)
{
        log_event(LEVEL_WARN, "zookeeper_unreachable", "error=%s", LOG_QUOTE(post->error.text));
        zk_session_end(zk, false);
        zk->start_at_ms = clock_boot_ms() + zk->wanted_ms / BEATS_PER_SESSION;
}

void zk_session_take(struct zk *zk, struct zk_link *from, struct post *post)
{
        bool is_ours = from == zk->current && !zk->is_closing;
        if (post->kind == POST_GONE)
                from->is_gone = true;
        /* Answers are freed where their calls are. */
        if (post->kind == POST_ANSWER) {
                answered(zk, (struct zk_call *)post);
                return;
        }
        if (is_ours && post->kind == POST_SESSION)
                session_changed(zk, (struct session_post *)post);
        else if (is_ours && post->kind == POST_CHANGED)
                changed(zk, ((struct changed_post *)post)->path);
        else if (is_ours && post->kind == POST_FAILED)
                failed(zk, (struct failed_post *)post);
        else if (is_ours && post->kind == POST_GONE)
                expire(zk, "the loop was busy for longer than a session", false);
        post_free(post);
}

/* --- time -------------------------------------------------------------------------------------------------------- */

static void tick_beat(struct zk *zk, uint64_t now_ms)
{
        if (now_ms < zk->next_beat_ms)
                return;
        zk->next_beat_ms = now_ms + beat_every_ms(zk);
        if (zk->beat)
                suspend(zk);
        else if (zk->is_connected)
                send_beat(zk, now_ms);
}

uint64_t zk_session_tick(struct zk *zk, uint64_t now_ms)
{
        if (!zk->current && now_ms >= zk->start_at_ms)
                start_link(zk, now_ms);
        if (!zk->current)
                return zk->start_at_ms;
        zk_handle_pulse(zk->current->handle);
        if (zk->id.client_id && now_ms - zk->proof_ms > zk->coord.session_ms) {
                expire(zk, "no answer for a session's time", true);
                return zk->start_at_ms;
        }
        if (!zk->id.client_id && now_ms - zk->started_ms > LINK_PATIENCE_MS) {
                zk_session_end(zk, false);
                zk->start_at_ms = now_ms;
                return now_ms;
        }
        tick_beat(zk, now_ms);
        uint64_t over_ms = zk->proof_ms + zk->coord.session_ms + 1;
        return zk->id.client_id && over_ms < zk->next_beat_ms ? over_ms : zk->next_beat_ms;
}
