/* end_session.c: ends the session of a host that is gone: connects with its number and password, and closes it. Repeats
 * that until the server says that there is no such session, because a host that is not quite gone may take it back
 * meanwhile.
 *
 *         token: 16 hexadecimal digits of the session's number, 32 of its password */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/units.h"
#include "coord/zookeeper/zookeeper.h"

#define NUMBER_DIGITS   16
#define PASSWORD_DIGITS (2 * sizeof(((clientid_t *)0)->passwd))

struct zk_session_end {
        struct coord_end_session *end;
        struct url url;
        clientid_t id;
        uint64_t session_ms;
        struct zk_handle *handle;
        uv_async_t bell;
        uv_timer_t timer;
        bool was_reached; /* the session was taken over */
        bool is_over;     /* the session does not exist any more */
        int status;
};

/* --- tokens ------------------------------------------------------------------------------------------------------ */

void zk_token_write(const clientid_t *id, char ret_token[COORD_TOKEN_MAX])
{
        ret_token[0] = 0;
        if (!id->client_id)
                return;
        int size = snprintf(ret_token, COORD_TOKEN_MAX, "%016" PRIx64, (uint64_t)id->client_id);
        (void)units_hex(ret_token + size, id->passwd, sizeof(id->passwd));
}

static int token_read(const char *token, clientid_t *ret_id, struct error *error)
{
        if (strlen(token) != NUMBER_DIGITS + PASSWORD_DIGITS ||
                strspn(token, "0123456789abcdef") != NUMBER_DIGITS + PASSWORD_DIGITS)
                return error_set(error, -EINVAL, "end session: not the token of a ZooKeeper session");
        char number[NUMBER_DIGITS + 1] = "";
        memcpy(number, token, NUMBER_DIGITS);
        ret_id->client_id = (int64_t)strtoull(number, NULL, 16);
        for (size_t i = 0; i < sizeof(ret_id->passwd); i++) {
                char byte[3] = { token[NUMBER_DIGITS + 2 * i], token[NUMBER_DIGITS + 2 * i + 1], 0 };
                ret_id->passwd[i] = (char)strtoul(byte, NULL, 16);
        }
        return 0;
}

/* --- the ending -------------------------------------------------------------------------------------------------- */

static void on_bell_closed(uv_handle_t *handle)
{
        struct zk_session_end *ending = handle->data;
        struct coord_request *request = &ending->end->request;
        int status = ending->status;
        url_free(&ending->url);
        explicit_bzero(&ending->id, sizeof(ending->id));
        free(ending);
        if (request->status) /* refused at the start */
                coord_finish(request, request->status);
        else if (status)
                coord_finish_error(request, status, "ZooKeeper was not reached; the session ends by itself");
        else
                coord_finish(request, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct zk_session_end *ending = handle->data;
        uv_close((uv_handle_t *)&ending->bell, on_bell_closed);
}

static void finish(struct zk_session_end *ending, int status)
{
        if (uv_is_closing((uv_handle_t *)&ending->timer))
                return;
        ending->status = status;
        zk_handle_leave(ending->handle);
        uv_close((uv_handle_t *)&ending->timer, on_timer_closed);
}

static void on_timer(uv_timer_t *timer)
{
        finish(timer->data, -ETIMEDOUT);
}

static void ring(void *self)
{
        (void)uv_async_send(&((struct zk_session_end *)self)->bell);
}

/* The session's password is enough to close it; the user's password is not needed. */
static void begin(struct zk_session_end *ending)
{
        ending->was_reached = false;
        ending->handle = zk_handle_start(&(struct zk_handle_options){ .url = &ending->url,
                .session_ms = ending->session_ms,
                .id = &ending->id,
                .ring = ring,
                .self = ending });
        zk_handle_end(ending->handle, true);
}

static void on_bell(uv_async_t *bell)
{
        struct zk_session_end *ending = bell->data;
        bool is_gone = false;
        struct post *next;
        if (uv_is_closing((uv_handle_t *)&ending->timer))
                return;
        for (struct post *post = zk_handle_collect(ending->handle); post; post = next) {
                next = post->next;
                if (post->kind == POST_SESSION) {
                        int state = ((struct session_post *)post)->state;
                        ending->is_over |= state == ZOO_EXPIRED_SESSION_STATE;
                        ending->was_reached |= state == ZOO_CONNECTED_STATE;
                }
                is_gone |= post->kind == POST_GONE;
                post_free(post);
        }
        if (!is_gone)
                return;
        if (ending->is_over || !ending->was_reached) {
                finish(ending, ending->is_over ? 0 : -EHOSTUNREACH);
                return;
        }
        zk_handle_leave(ending->handle);
        begin(ending);
}

void zk_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct coord_request *request = &end->request;
        struct zk_session_end *ending = memory_zero(1, sizeof(*ending));
        char *auth = NULL;
        if (!request->status)
                request->status = token_read(end->token, &ending->id, &request->error);
        if (!request->status)
                request->status = zk_read_options(&end->options, &ending->url, &auth, &request->error);
        text_free_secret(auth);
        ending->end = end;
        ending->session_ms = end->options.session_ms ? end->options.session_ms : REMOTE_SESSION_DEFAULT_MS;
        ending->bell.data = ending->timer.data = ending;
        (void)uv_async_init(loop, &ending->bell, on_bell);
        (void)uv_timer_init(loop, &ending->timer);
        if (request->status) {
                uv_close((uv_handle_t *)&ending->timer, on_timer_closed);
                return;
        }
        (void)uv_timer_start(&ending->timer, on_timer, ending->session_ms, 0);
        begin(ending);
}
