#include "coord/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers.h"
#include "base/units.h"

static void on_timer(uv_timer_t *timer)
{
        struct remote *remote = timer->data;
        remote->timer_at_ms = UINT64_MAX;
        remote_turn(remote);
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

void remote_init(struct remote *remote, const struct remote_hooks *hooks, uv_loop_t *loop, struct coord_open *open,
        const struct coord_driver *driver, const char *url)
{
        remote->hooks = hooks;
        remote->opening = open;
        remote->timer_at_ms = UINT64_MAX;
        remote->timer.data = remote;
        (void)uv_timer_init(loop, &remote->timer);
        if (open->request.status) {
                remote->is_closing = true;
        } else {
                coord_base_init(&remote->coord, driver, &open->options, url);
                if (!remote->coord.session_ms)
                        remote->coord.session_ms = REMOTE_SESSION_DEFAULT_MS;
        }
        remote_wake_at(remote, 0);
}

void remote_tell_opened(struct remote *remote)
{
        struct coord_open *open = remote->opening;
        remote->opening = NULL;
        open->coord = &remote->coord;
        coord_finish(&open->request, 0);
}

void remote_forget_beat(struct remote *remote)
{
        if (remote->beat)
                remote->hooks->forget(remote->beat);
        remote->beat = NULL;
}

void remote_close(struct remote *remote, void (*closed)(void *self), void *self)
{
        remote->is_closing = true;
        remote->closed = closed;
        remote->closed_self = self;
        remote_forget_beat(remote);
        for (struct coord_request *request = remote->coord.requests; request; request = request->next)
                remote_forget(request);
        remote_wake_at(remote, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct remote *remote = handle->data;
        void (*closed)(void *self) = remote->closed;
        void *self = remote->closed_self;
        struct coord_open *failed = remote->opening;
        coord_base_free(&remote->coord);
        remote->hooks->free(remote);
        if (failed)
                coord_finish(&failed->request, failed->request.status);
        if (closed)
                closed(self);
}

void remote_end(struct remote *remote)
{
        uv_close((uv_handle_t *)&remote->timer, on_timer_closed);
}

/* --- time -------------------------------------------------------------------------------------------------------- */

void remote_wake_at(struct remote *remote, uint64_t at_ms)
{
        uint64_t now_ms = clock_boot_ms();
        if (remote->timer_at_ms <= at_ms || uv_is_closing((uv_handle_t *)&remote->timer))
                return;
        remote->timer_at_ms = at_ms;
        (void)uv_timer_start(&remote->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void finish_refused(struct remote *remote)
{
        struct coord_request *request = remote->coord.requests;
        while (request) {
                if (request->status < 0) {
                        coord_finish(request, request->status);
                        /* done() may have changed the list anywhere: start over from its beginning. */
                        request = remote->coord.requests;
                } else {
                        request = request->next;
                }
        }
}

void remote_turn(struct remote *remote)
{
        uint64_t now_ms = clock_boot_ms();
        if (!remote->is_closing) {
                remote_wake_at(remote, remote->hooks->tick(remote, now_ms));
                finish_refused(remote);
                remote_wake_at(remote, coord_sweep(&remote->coord, now_ms, remote_forget));
        }
        /* A callback may have closed the tree meanwhile. */
        if (remote->is_closing) {
                coord_cancel(&remote->coord, -ECANCELED);
                remote->hooks->close(remote);
        }
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

void remote_start(struct coord *coord, struct coord_request *request)
{
        struct remote *remote = (struct remote *)coord;
        if (request->status || remote->is_closing) {
                remote_wake_at(remote, 0);
                return;
        }
        if (remote->refusal.text[0]) {
                remote_refuse(remote, request, -EACCES, remote->refusal.text);
                return;
        }
        request->driver = remote->hooks->make(remote, request);
        request->deadline_ms = clock_boot_ms() + coord->session_ms;
        remote_wake_at(remote, request->deadline_ms);
        remote->hooks->send(remote, request);
}

void remote_flush(struct remote *remote)
{
        /* send() finishes no request, so the list does not change. */
        for (struct coord_request *request = remote->coord.requests; request; request = request->next)
                if (request->driver)
                        remote->hooks->send(remote, request);
}

void remote_forget(struct coord_request *request)
{
        void *call = request->driver;
        request->driver = NULL;
        if (call)
                ((struct remote *)request->coord)->hooks->forget(call);
}

void remote_refuse(struct remote *remote, struct coord_request *request, int status, const char *why)
{
        remote_forget(request);
        request->status = error_set(
                &request->error, status, "%s %.512s: %s", coord_op_name(request->op), coord_op_path(request), why);
        remote_wake_at(remote, 0);
}

void remote_refuse_all(struct remote *remote, int status, const char *why)
{
        /* The attempt is repeated, but each reason is logged once. */
        bool is_new = strcmp(remote->refusal.text, why) != 0;
        (void)error_set(&remote->refusal, 0, "%s", why);
        if (is_new)
                log_event(LEVEL_ERROR, "coordination-refused", "driver=%s error=%s", remote->coord.driver->scheme,
                        LOG_QUOTE(remote->refusal.text));
        for (struct coord_request *request = remote->coord.requests; request; request = request->next)
                remote_refuse(remote, request, status, remote->refusal.text);
}

/* --- the session ------------------------------------------------------------------------------------------------- */

bool remote_is_proven(const struct remote *remote)
{
        return remote->coord.state == COORD_ALIVE || remote->coord.state == COORD_SUSPENDED;
}

bool remote_is_over(const struct remote *remote, uint64_t now_ms)
{
        return remote->has_session && now_ms - remote->proof_ms > remote->coord.session_ms;
}

void remote_make_nonce(char ret_nonce[REMOTE_NONCE_DIGITS + 1])
{
        uint8_t bytes[REMOTE_NONCE_DIGITS / 2];
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                abort();
        (void)units_hex(ret_nonce, bytes, sizeof(bytes));
}

uint64_t remote_beat_every_ms(const struct remote *remote)
{
        uint64_t every_ms = remote->coord.session_ms / REMOTE_BEATS;
        return every_ms ? every_ms : 1;
}

void remote_send_beat(struct remote *remote, uint64_t now_ms)
{
        remote->beat_sent_ms = now_ms;
        remote->next_beat_ms = now_ms + remote_beat_every_ms(remote);
        remote->beat = remote->hooks->beat(remote);
}

void remote_beat_soon(struct remote *remote)
{
        remote->next_beat_ms = clock_boot_ms();
        remote_wake_at(remote, remote->next_beat_ms);
}

uint64_t remote_beat_tick(struct remote *remote, uint64_t now_ms)
{
        if (now_ms >= remote->next_beat_ms) {
                remote->next_beat_ms = now_ms + remote_beat_every_ms(remote);
                if (remote->beat)
                        remote_suspend(remote);
                else
                        remote_send_beat(remote, now_ms);
        }
        uint64_t over_ms = remote->proof_ms + remote->coord.session_ms + 1;
        return remote->has_session && over_ms < remote->next_beat_ms ? over_ms : remote->next_beat_ms;
}

bool remote_prove(struct remote *remote, uint64_t number, bool must_look)
{
        const struct coord_events *events = &remote->coord.events;
        must_look |= !remote_is_proven(remote);
        remote->proof_ms = remote->beat_sent_ms;
        remote->coord.answered_ms = clock_boot_ms();
        /* If the answer was read too late because the loop was busy, it no longer proves that the session is alive. */
        if (remote->coord.answered_ms - remote->proof_ms > remote->coord.session_ms)
                return false;
        if (remote->coord.state != COORD_ALIVE)
                coord_tell(&remote->coord, COORD_ALIVE, number);
        if (must_look && events->look && !remote->is_closing)
                events->look(events->self);
        remote_flush(remote);
        return true;
}

void remote_suspend(struct remote *remote)
{
        if (remote->coord.state == COORD_ALIVE)
                coord_tell(&remote->coord, COORD_SUSPENDED, remote->coord.session);
}

void remote_expired(struct remote *remote, const char *why)
{
        struct coord *coord = &remote->coord;
        uint64_t session = coord->session;
        size_t count = 0;
        remote->has_session = false;
        remote_forget_beat(remote);
        if (!remote_is_proven(remote))
                return;
        for (const struct coord_request *request = coord->requests; request; request = request->next)
                count++;
        log_event(LEVEL_INFO, "session-expired", "driver=%s session=%" PRIx64 " why=%s", coord->driver->scheme, session,
                LOG_QUOTE(why));
        coord_tell(coord, COORD_EXPIRED, session);
        for (struct coord_request *request; count && (request = coord->requests); count--) {
                remote_forget(request);
                coord_finish_error(request, -EOWNERDEAD, "the session has expired");
        }
}

/* --- replies ----------------------------------------------------------------------------------------------------- */

void remote_names_begin(struct coord_children *children, size_t count_max)
{
        children->names = arena_take(coord_arena(&children->request), (count_max + 1) * sizeof(*children->names));
        children->names_count = 0;
}

void remote_names_add(struct coord_children *children, struct span name)
{
        struct error text;
        if (coord_name_is_good(name)) {
                children->names[children->names_count++] = arena_copy(coord_arena(&children->request), name).data;
                return;
        }
        (void)error_set(&text, 0, "%.512s: a child \"%.*s\", which is no name", children->path,
                (int)min_u64(name.size, 64), name.data ? name.data : "");
        coord_note(children->request.coord, text.text);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void remote_names_end(struct coord_children *children)
{
        if (children->names_count)
                qsort(children->names, children->names_count, sizeof(*children->names), compare_names);
}
