/* session.c: the session: keeps it alive, and decides when it is in doubt and when it is over.
 *
 * The client reports "connected" and "expired" when it learns of them, which may be never.  So every third of the
 * session's timeout an operation is sent whose answer proves that the session was alive when it was sent.  Without
 * proof for a third the session is suspended; without proof for the whole timeout it is over, whatever the client
 * says. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "coord/zookeeper/zookeeper.h"

/* A link that reaches no server is replaced after this time: the names may have other addresses by then. */
#define LINK_PATIENCE_MS 30000u
/* When all sessions of a fleet end together, new ones are spread over this time. */
#define START_SPREAD_MS 100u

/* --- links ------------------------------------------------------------------------------------------------------- */

static void ring(void *self)
{
        (void)uv_async_send(&((struct zk *)self)->bell);
}

static void start_link(struct zk *zk, uint64_t now_ms)
{
        struct zk_link *made = memory_zero(1, sizeof(*made));
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
        remote_forget_beat(&zk->remote);
        zk->is_connected = zk->has_root = zk->remote.has_session = false;
        explicit_bzero(&zk->id, sizeof(zk->id));
}

static void expire(struct zk *zk, const char *why, bool lingers)
{
        zk_session_end(zk, lingers);
        zk->start_at_ms = clock_boot_ms() + (uint64_t)random() % START_SPREAD_MS;
        remote_expired(&zk->remote, why);
}

/* --- heartbeat --------------------------------------------------------------------------------------------------- */

/* In a new session the first heartbeat makes the app's root; its answer proves the session, too. */
void *zk_beat(struct remote *remote)
{
        struct zk *zk = (struct zk *)remote;
        if (!zk->is_connected)
                return NULL;
        struct zk_call *call = zk_call_new(zk_path(zk, NULL));
        call->acl = zk->acl;
        call->step = STEP_EXISTS;
        if (!zk->has_root && !remote->coord.is_visitor) {
                call->step = STEP_PARENT;
                call->parent_size = strlen(call->path);
        }
        if (zk_call_send(call, zk->current->handle) == ZOK)
                return call;
        zk_call_free(call);
        return NULL;
}

/* Whether the answer came from the server, within this session. */
static bool is_proof(int rc)
{
        return rc == ZOK ||
               (rc < ZAPIERROR && rc != ZSESSIONEXPIRED && rc != ZSESSIONMOVED && rc != ZAUTHFAILED && rc != ZCLOSING);
}

static void beat_answered(struct zk *zk, struct zk_call *call)
{
        if (!is_proof(call->rc)) {
                zk->remote.beat = NULL;
                zk_call_free(call);
                return;
        }
        if (call->step == STEP_PARENT && zk_parent_next(call, strlen(call->path)) &&
                zk_call_send(call, zk->current->handle) == ZOK)
                return;
        if (call->rc == ZNOAUTH)
                log_event(LEVEL_ERROR, "zookeeper-refused",
                        "path=%s what=\"it belongs to another user; look at user and password\"", LOG_QUOTE(zk->root));
        zk->remote.beat = NULL;
        zk->has_root = true;
        zk_call_free(call);
        (void)remote_prove(&zk->remote, (uint64_t)zk->id.client_id, false);
}

/* --- events of the client ---------------------------------------------------------------------------------------- */

static void connected(struct zk *zk, const struct session_post *session)
{
        struct remote *remote = &zk->remote;
        uint64_t now_ms = clock_boot_ms();
        char *server = memory_text(session->server);
        free(remote->coord.server);
        remote->coord.server = server;
        remote->coord.session_ms = session->session_ms;
        remote->refusal.text[0] = 0;
        zk->is_connected = true;
        if (session->id.client_id != zk->id.client_id) {
                zk->id = session->id;
                remote->has_session = true;
                remote->proof_ms = now_ms;
        }
        if (!remote->beat)
                remote_send_beat(remote, now_ms);
        remote_flush(remote);
}

static void refused(struct zk *zk)
{
        expire(zk, "authentication refused", false);
        zk->start_at_ms = clock_boot_ms() + zk->wanted_ms;
        remote_refuse_all(&zk->remote, -EACCES, "ZooKeeper refused the authentication; look at user and password");
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
                remote_suspend(&zk->remote);
        }
}

static void changed(struct zk *zk, const char *path)
{
        const struct coord_events *events = &zk->remote.coord.events;
        size_t size = strlen(zk->root);
        if (events->changed && !strncmp(path, zk->root, size) && path[size] == '/')
                events->changed(events->self, path + size + 1);
}

static void answered(struct zk *zk, struct zk_call *call)
{
        call->is_out = false;
        if (call == zk->remote.beat)
                beat_answered(zk, call);
        else if (call->request)
                zk_request_answered(zk, call);
        else
                zk_call_free(call);
}

static void failed(struct zk *zk, const struct failed_post *post)
{
        log_event(LEVEL_WARN, "zookeeper-unreachable", "error=%s", LOG_QUOTE(post->error.text));
        zk_session_end(zk, false);
        zk->start_at_ms = clock_boot_ms() + zk->wanted_ms / REMOTE_BEATS;
}

void zk_session_take(struct zk *zk, struct zk_link *from, struct post *post)
{
        bool is_ours = from == zk->current && !zk->remote.is_closing;
        if (post->kind == POST_GONE)
                from->is_gone = true;
        /* An answer is freed with its call. */
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

uint64_t zk_session_tick(struct zk *zk, uint64_t now_ms)
{
        if (!zk->current && now_ms >= zk->start_at_ms)
                start_link(zk, now_ms);
        if (!zk->current)
                return zk->start_at_ms;
        zk_handle_pulse(zk->current->handle);
        if (remote_is_over(&zk->remote, now_ms)) {
                expire(zk, "no answer for a session's time", true);
                return zk->start_at_ms;
        }
        if (!zk->remote.has_session && now_ms - zk->started_ms > LINK_PATIENCE_MS) {
                zk_session_end(zk, false);
                zk->start_at_ms = now_ms;
                return now_ms;
        }
        return remote_beat_tick(&zk->remote, now_ms);
}
