#include "host/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/process/peer.h"
#include "host/control_socket.h"

struct control {
        uv_loop_t *loop;
        uv_pipe_t listener;
        struct control_socket socket;
        struct control_options options;
        struct control_call *calls; /* open connections, one per call */
        uint32_t count;
};

/* A connection and its request.  Freed when its handles are closed and the verb, if one was called, has answered. */
struct control_call {
        struct control *control; /* NULL after control_close() */
        struct control_call *prev, *next;
        uv_pipe_t pipe;
        uv_timer_t timer;
        uv_write_t write;
        unsigned handles; /* libuv handles that are not closed yet */
        bool is_closing;
        bool is_asked; /* a verb was called and has not answered yet */
        struct buffer request;
        char *reply;
};

static void free_if_over(struct control_call *call)
{
        if (call->handles || call->is_asked)
                return;
        buffer_free(&call->request);
        free(call->reply);
        free(call);
}

static void on_handle_closed(uv_handle_t *handle)
{
        struct control_call *call = handle->data;
        call->handles--;
        free_if_over(call);
}

static void end(struct control_call *call)
{
        if (call->is_closing)
                return;
        call->is_closing = true;
        struct control *control = call->control;
        if (call->prev)
                call->prev->next = call->next;
        else
                control->calls = call->next;
        if (call->next)
                call->next->prev = call->prev;
        control->count--;
        call->control = NULL;
        uv_close((uv_handle_t *)&call->pipe, on_handle_closed);
        uv_close((uv_handle_t *)&call->timer, on_handle_closed);
}

static void on_late(uv_timer_t *timer)
{
        end(timer->data);
}

static void set_deadline(struct control_call *call)
{
        (void)uv_timer_start(&call->timer, on_late, CONTROL_DEADLINE_MS, 0);
}

/* --- answers --- */

static void on_written(uv_write_t *write, int status)
{
        (void)status;
        end(write->data);
}

static void send_text(struct control_call *call, char *text)
{
        call->reply = text;
        call->write.data = call;
        set_deadline(call);
        uv_buf_t bytes = uv_buf_init(text, (unsigned)strlen(text));
        if (uv_write(&call->write, (uv_stream_t *)&call->pipe, &bytes, 1, on_written) < 0)
                end(call);
}

static void answer(struct control_call *call, json_t *reply)
{
        call->is_asked = false;
        if (call->is_closing) {
                json_decref(reply);
                free_if_over(call);
                return;
        }
        char *text = memory_or_abort(json_dumps(reply, JSON_COMPACT | JSON_PRESERVE_ORDER));
        json_decref(reply);
        size_t size = strlen(text);
        char *line = memory_resize(text, size + 2);
        memcpy(line + size, "\n", 2);
        send_text(call, line);
}

void control_reply(struct control_call *call, json_t *reply)
{
        json_t *all = json_pack("{s:b}", "ok", 1);
        (void)json_object_update(all, reply);
        json_decref(reply);
        answer(call, all);
}

void control_refuse(struct control_call *call, const char *format, ...)
{
        char text[ERROR_TEXT_MAX];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        /* The text may quote the request and may be cut inside a UTF-8 character; then json_string() fails. */
        json_t *why = json_string(text);
        answer(call, json_pack("{s:b, s:o}", "ok", 0, "error",
                             why ? why : json_string("the error text is not valid UTF-8")));
}

/* --- requests --- */

static const struct control_verb *find_verb(const struct control *control, const char *name)
{
        for (size_t i = 0; i < control->options.verbs_count; i++)
                if (!strcmp(control->options.verbs[i].name, name))
                        return &control->options.verbs[i];
        return NULL;
}

static void ask(struct control_call *call, size_t size)
{
        json_error_t why;
        json_t *request = json_loadb((const char *)call->request.data, size, JSON_REJECT_DUPLICATES, &why);
        const char *name = json_string_value(json_object_get(request, "verb"));
        const struct control_verb *verb = name ? find_verb(call->control, name) : NULL;
        (void)uv_read_stop((uv_stream_t *)&call->pipe);
        /* A verb may take as long as it needs, for instance until a reload is complete: the deadline ends here. */
        (void)uv_timer_stop(&call->timer);
        call->is_asked = true;
        if (!request)
                control_refuse(call, "not a JSON object on one line: %s", why.text);
        else if (!name)
                control_refuse(call, "not an object with a text \"verb\"");
        else if (!verb)
                control_refuse(call, "this host does not know the verb %.64s", name);
        else
                verb->answer(call->control->options.owner, call, request);
        json_decref(request);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
        struct control_call *call = handle->data;
        (void)suggested;
        size_t room = CONTROL_REQUEST_MAX + 1 - call->request.size;
        room = min_u64(room, 4096);
        *ret = uv_buf_init((char *)buffer_reserve(&call->request, room), (unsigned)room);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
        struct control_call *call = stream->data;
        (void)room;
        if (size == UV_EOF && call->request.size) {
                ask(call, call->request.size); /* the newline may be missing at the end */
                return;
        }
        if (size < 0) {
                end(call);
                return;
        }
        const uint8_t *from = call->request.data + call->request.size;
        const uint8_t *newline = size ? memchr(from, '\n', (size_t)size) : NULL;
        call->request.size += (size_t)size;
        if (newline) {
                ask(call, (size_t)(newline - call->request.data));
                return;
        }
        if (call->request.size <= CONTROL_REQUEST_MAX)
                return;
        (void)uv_read_stop(stream);
        call->is_asked = true;
        control_refuse(call, "a request has at most %u bytes", CONTROL_REQUEST_MAX);
}

/* --- connections --- */

static int descriptor(const void *handle)
{
        uv_os_fd_t fd = -1;
        return uv_fileno(handle, &fd) < 0 ? -1 : fd;
}

/* Why this client is not served; NULL: it is served.  The user alone is not enough: a runner may have the host's own
 * user. */
static const char *objection_to(const struct control_call *call)
{
        struct socket_peer peer;
        if (peer_find(descriptor(&call->pipe), &peer) < 0 || (peer.uid != geteuid() && peer.uid != 0))
                return "only the host's own user and root may use this socket";
        return peer.is_ours ? "runners, and what they start, may not use this socket" : NULL;
}

/* Ends connections whose client has gone while a verb works.  Called only when the limit of connections is reached. */
static void end_abandoned(struct control *control)
{
        for (struct control_call *call = control->calls, *next; call; call = next) {
                next = call->next;
                struct pollfd look = { .fd = descriptor(&call->pipe) };
                if (call->is_asked && poll(&look, 1, 0) > 0 && look.revents & (POLLHUP | POLLERR))
                        end(call);
        }
}

static struct control_call *add(struct control *control)
{
        struct control_call *call = memory_zero(1, sizeof(*call));
        call->control = control;
        call->next = control->calls;
        if (call->next)
                call->next->prev = call;
        control->calls = call;
        control->count++;
        call->handles = 2;
        (void)uv_pipe_init(control->loop, &call->pipe, 0);
        (void)uv_timer_init(control->loop, &call->timer);
        call->pipe.data = call->timer.data = call;
        return call;
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct control *control = listener->data;
        if (status < 0)
                return;
        if (control->count >= CONTROL_CONNECTIONS_MAX)
                end_abandoned(control);
        struct control_call *call = add(control);
        if (uv_accept(listener, (uv_stream_t *)&call->pipe) < 0) {
                end(call);
                return;
        }
        const char *objection = objection_to(call);
        if (!objection && control->count > CONTROL_CONNECTIONS_MAX)
                objection = "too many requests at once; try again";
        if (objection) {
                char text[160];
                int size = snprintf(text, sizeof(text), "{\"ok\":false,\"error\":\"%s\"}\n", objection);
                uv_buf_t bytes = uv_buf_init(text, (unsigned)size);
                (void)uv_try_write((uv_stream_t *)&call->pipe, &bytes, 1);
                end(call);
                return;
        }
        set_deadline(call);
        (void)uv_read_start((uv_stream_t *)&call->pipe, on_room, on_read);
}

/* --- open and close --- */

int control_open(
        uv_loop_t *loop, const struct control_options *options, struct control **ret_control, struct error *error)
{
        struct control *control = memory_zero(1, sizeof(*control));
        *control = (struct control){ .loop = loop, .options = *options };
        int r = control_socket_open(&control->socket, options->folder, options->name, options->second, error);
        if (r < 0) {
                free(control);
                return r;
        }
        (void)uv_pipe_init(loop, &control->listener, 0);
        control->listener.data = control;
        r = uv_pipe_open(&control->listener, control->socket.fd);
        if (r < 0)
                (void)close(control->socket.fd);
        else
                r = uv_listen((uv_stream_t *)&control->listener, CONTROL_CONNECTIONS_MAX, on_connection);
        if (r < 0) {
                (void)error_set(
                        error, r, "control socket %s/%s: %s", options->folder, control->socket.file, uv_strerror(r));
                control_close(control);
                return r;
        }
        *ret_control = control;
        return 0;
}

const char *control_file(const struct control *control)
{
        return control->socket.file;
}

static void on_listener_closed(uv_handle_t *handle)
{
        free(handle->data);
}

void control_close(struct control *control)
{
        if (!control)
                return;
        control_socket_remove(&control->socket);
        while (control->calls)
                end(control->calls);
        uv_close((uv_handle_t *)&control->listener, on_listener_closed);
}
