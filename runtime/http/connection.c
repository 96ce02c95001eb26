#include "http/connection.h"

#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "http/api/endpoints.h"
#include "http/server.h"

static void process(struct http_connection *c);
static void start_reading(struct http_connection *c);

static void set_deadline(struct http_connection *c, uint64_t ms)
{
        c->deadline_ms = uv_now(c->server->loop) + ms;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Freed when the handle is closed and the endpoint has answered. */
static void free_if_over(struct http_connection *c)
{
        if (!c->is_closed || c->is_pending)
                return;
        http_server_forget(c->server, c);
        buffer_free(&c->body);
        buffer_free(&c->output);
        buffer_free(&c->sent);
        buffer_free(&c->x.fields);
        buffer_free(&c->x.texts);
        free(c);
}

static void drop_body(struct http_connection *c)
{
        c->server->body_bytes -= c->body_counted;
        c->body_counted = 0;
        /* An idle connection keeps no large buffer. */
        if (c->body.room > HTTP_INPUT_SIZE)
                buffer_free(&c->body);
        buffer_clear(&c->body);
}

/* Tells the endpoint once that nobody waits for its answer. */
static void tell_gone(struct http_connection *c)
{
        void (*gone)(struct http_exchange *) = c->x.gone;
        c->x.gone = NULL;
        if (c->is_pending && gone)
                gone(&c->x);
}

/* The endpoint is told only here, from the loop: a write by the endpoint itself may have revealed that the client is
 * gone. */
static void on_closed(uv_handle_t *handle)
{
        struct http_connection *c = handle->data;
        tell_gone(c);
        c->is_closed = true;
        free_if_over(c);
}

void http_connection_close(struct http_connection *c)
{
        if (c->phase == CONNECTION_CLOSING)
                return;
        c->phase = CONNECTION_CLOSING;
        drop_body(c);
        uv_close(&c->handle, on_closed);
}

void http_connection_check_time(struct http_connection *c, uint64_t now_ms)
{
        if (c->phase == CONNECTION_CLOSING || now_ms < c->deadline_ms)
                return;
        if (c->phase == CONNECTION_ANSWERING && !c->is_writing)
                return; /* the endpoint has its own deadline */
        c->server->counts.timed_out++;
        http_connection_close(c);
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* Closing a socket with unread bytes resets it, and the client might not see the answer. */
static void end_politely(struct http_connection *c)
{
        c->phase = CONNECTION_ENDING;
        c->input_at = c->input_size = 0;
        set_deadline(c, HTTP_ENDING_MS);
        if (uv_shutdown(&c->shutdown, &c->stream, NULL) < 0)
                http_connection_close(c);
        else
                start_reading(c);
}

static void request_is_over(struct http_connection *c)
{
        if (c->has_unread && !c->server->is_stopping) {
                end_politely(c);
                return;
        }
        if (c->is_last || c->server->is_stopping) {
                http_connection_close(c);
                return;
        }
        drop_body(c);
        buffer_clear(&c->x.fields);
        c->x.is_cacheable = false;
        buffer_clear(&c->x.texts);
        c->route = NULL;
        c->is_streaming = c->is_head_only = false;
        http_reader_init(&c->reader);
        c->phase = CONNECTION_HEAD;
        set_deadline(c, HTTP_IDLE_MS);
        process(c);
}

static void send_more(struct http_connection *c);

static void on_sent(uv_write_t *write, int status)
{
        struct http_connection *c = write->data;
        c->is_writing = false;
        if (status < 0) {
                http_connection_close(c);
                return;
        }
        send_more(c);
        if (c->is_pending && c->x.drained && !http_stream_is_full(&c->x))
                c->x.drained(&c->x);
}

/* Passes the output to the loop; at once if the socket takes it. */
static void send_more(struct http_connection *c)
{
        if (c->phase == CONNECTION_CLOSING || c->is_writing)
                return;
        buffer_clear(&c->sent);
        if (c->output.size) {
                uv_buf_t bytes = uv_buf_init((char *)c->output.data, (unsigned)c->output.size);
                int taken = uv_try_write(&c->stream, &bytes, 1);
                if (taken < 0 && taken != UV_EAGAIN) {
                        http_connection_close(c);
                        return;
                }
                if ((size_t)(taken < 0 ? 0 : taken) < c->output.size) {
                        struct buffer empty = c->sent;
                        size_t at = taken < 0 ? 0 : (size_t)taken;
                        c->sent = c->output;
                        c->output = empty;
                        bytes = uv_buf_init((char *)c->sent.data + at, (unsigned)(c->sent.size - at));
                        c->write.data = c;
                        c->is_writing = true;
                        set_deadline(c, HTTP_SEND_MS);
                        if (uv_write(&c->write, &c->stream, &bytes, 1, on_sent) < 0)
                                http_connection_close(c);
                        return;
                }
                buffer_clear(&c->output);
        }
        if (c->phase == CONNECTION_SENDING)
                request_is_over(c);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static struct http_connection *connection_of(const struct http_exchange *x)
{
        return container_of((struct http_exchange *)x, struct http_connection, x);
}

static const char *status_text(unsigned status)
{
        static const struct {
                unsigned status;
                const char *text;
        } texts[] = { { 200, "OK" }, { 202, "Accepted" }, { 204, "No Content" }, { 304, "Not Modified" },
                { 400, "Bad Request" }, { 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" },
                { 405, "Method Not Allowed" }, { 408, "Request Timeout" }, { 409, "Conflict" },
                { 413, "Content Too Large" }, { 415, "Unsupported Media Type" }, { 417, "Expectation Failed" },
                { 421, "Misdirected Request" }, { 422, "Unprocessable Content" }, { 429, "Too Many Requests" },
                { 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" },
                { 501, "Not Implemented" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
                { 505, "HTTP Version Not Supported" } };
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (texts[i].status == status)
                        return texts[i].text;
        return "Unknown";
}

static void put_head(struct http_connection *c, unsigned status, const char *type)
{
        /* The rest of a body is not read, because its size is unknown. */
        c->is_last |= (c->phase == CONNECTION_BODY && !c->is_streaming) || c->server->is_stopping ||
                      !c->reader.head.is_kept_alive;
        buffer_printf(&c->output,
                "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nCache-Control: %s\r\nX-Content-Type-Options: nosniff\r\n",
                status, status_text(status), type, c->x.is_cacheable ? "no-cache" : "no-store");
        buffer_put(&c->output, c->x.fields.data, c->x.fields.size);
        if (c->is_last)
                buffer_printf(&c->output, "Connection: close\r\n");
}

/* The endpoint has answered, and `x->call` is no longer used. */
static void answered(struct http_connection *c)
{
        c->is_pending = false;
        c->x.call = NULL;
        c->x.gone = NULL;
        c->x.piece = NULL;
        c->x.drained = NULL;
        if (c->phase == CONNECTION_CLOSING) {
                free_if_over(c);
                return;
        }
        if (c->phase == CONNECTION_BODY)
                c->is_last = c->has_unread = true;
        c->phase = CONNECTION_SENDING;
        set_deadline(c, HTTP_SEND_MS);
        send_more(c);
}

void http_answer_field(struct http_exchange *x, const char *name, const char *value)
{
        for (const char *at = value; *at; at++)
                if ((unsigned char)*at < ' ' || *at == 0x7f)
                        return;
        buffer_printf(&x->fields, "%s: %s\r\n", name, value);
}

void http_answer(struct http_exchange *x, unsigned status, const char *type, struct span body)
{
        struct http_connection *c = connection_of(x);
        if (c->phase != CONNECTION_CLOSING) {
                put_head(c, status, type);
                buffer_printf(&c->output, "Content-Length: %zu\r\n\r\n", body.size);
                if (!c->is_head_only)
                        buffer_put(&c->output, body.data, body.size);
        }
        answered(c);
}

void http_stream_begin(struct http_exchange *x, unsigned status, const char *type)
{
        struct http_connection *c = connection_of(x);
        if (c->phase == CONNECTION_CLOSING)
                return;
        c->is_streaming = true;
        put_head(c, status, type);
        buffer_printf(&c->output, "Transfer-Encoding: chunked\r\n\r\n");
        send_more(c);
}

void http_stream_write(struct http_exchange *x, struct span bytes)
{
        struct http_connection *c = connection_of(x);
        if (c->phase == CONNECTION_CLOSING || !bytes.size || c->is_head_only)
                return;
        buffer_printf(&c->output, "%zx\r\n", bytes.size);
        buffer_put(&c->output, bytes.data, bytes.size);
        buffer_put(&c->output, "\r\n", 2);
        send_more(c);
}

void http_stream_end(struct http_exchange *x)
{
        struct http_connection *c = connection_of(x);
        if (c->phase != CONNECTION_CLOSING && !c->is_head_only)
                buffer_printf(&c->output, "0\r\n\r\n");
        answered(c);
}

bool http_stream_is_full(const struct http_exchange *x)
{
        const struct http_connection *c = connection_of(x);
        return c->output.size + (c->is_writing ? c->sent.size : 0) > HTTP_UNSENT_MAX;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void refuse_bad(struct http_connection *c)
{
        c->server->counts.malformed++;
        c->is_last = c->has_unread = true;
        c->phase = CONNECTION_ANSWERING;
        c->x.head = &c->reader.head;
        http_answer_problem(&c->x, c->reader.status, "%s", c->reader.why);
}

/* Whether the client has a role for the route; otherwise the request is answered. */
static bool may(struct http_connection *c, const struct http_route *route)
{
        struct http_exchange *x = &c->x;
        const struct span *host = http_head_field(x->head, "host");
        if (!c->is_unix && !http_access_has_host(&c->server->access, *host)) {
                http_answer_problem(x, 421, "this server is not known as %.*s; add the name to http.hosts",
                        (int)host->size, host->data);
                return false;
        }
        if (!http_access_is_own_page(x->head)) {
                http_answer_problem(x, 403, "the request comes from a page of another origin");
                return false;
        }
        bool is_known = http_access_by_token(&c->server->access, x->head, &x->who);
        if (c->is_unix && !x->who.roles)
                x->who = c->peer;
        if (!is_known && !c->is_unix) {
                http_answer_field(x, "WWW-Authenticate", "Bearer");
                http_answer_problem(x, 401, "this token is not known; see http.tokens_file");
                return false;
        }
        if (!route->role || (x->who.roles & route->role))
                return true;
        if (c->server->has_open_metrics && route->start == http_get_metrics)
                return true;
        if (!x->who.name[0])
                http_answer_field(x, "WWW-Authenticate", "Bearer");
        http_answer_problem(x, x->who.name[0] ? 403 : 401, "this takes the role %s; send Authorization: Bearer TOKEN",
                http_role_name(route->role));
        return false;
}

/* The largest body that the route accepts. */
static uint64_t body_limit(const struct http_connection *c)
{
        const struct http_services *services = &c->server->services;
        if (!c->route->has_body)
                return 0;
        return c->route->is_streamed ? UINT64_MAX : services->config(services->self)->store.payload_max_bytes;
}

/* Finds the client's roles and the route.  False: the request was answered. */
static bool take_head(struct http_connection *c)
{
        struct http_exchange *x = &c->x;
        struct error error = { { 0 } };
        unsigned status = 0;
        x->head = &c->reader.head;
        x->services = &c->server->services;
        x->server = c->server;
        x->body = (struct span){ 0 };
        x->who = (struct http_who){ 0 };
        c->is_head_only = x->head->verb == VERB_HEAD;
        c->phase = x->head->body_bytes ? CONNECTION_BODY : CONNECTION_ANSWERING;
        c->server->counts.requests++;
        c->route = http_route_find(x, &status, &error);
        if (!c->route) {
                http_answer_problem(x, status, "%s", error.text);
                return false;
        }
        if (!may(c, c->route)) {
                c->server->counts.forbidden++;
                return false;
        }
        c->body_max = body_limit(c);
        if (x->head->body_bytes != UINT64_MAX && x->head->body_bytes > c->body_max) {
                http_answer_problem(x, 413, "the body may have at most %llu bytes", (unsigned long long)c->body_max);
                return false;
        }
        set_deadline(c, HTTP_BODY_MS);
        return true;
}

/* From here on the endpoint must answer, even if the client leaves. */
static void start(struct http_connection *c)
{
        c->is_pending = true;
        c->route->start(&c->x);
}

static void begin_body(struct http_connection *c)
{
        if (!take_head(c))
                return;
        if (c->x.head->expects_continue) {
                buffer_printf(&c->output, "HTTP/1.1 100 Continue\r\n\r\n");
                send_more(c);
        }
        if (c->phase == CONNECTION_BODY && c->route->is_streamed)
                start(c);
}

static void take_body(struct http_connection *c, struct span piece)
{
        struct http_exchange *x = &c->x;
        set_deadline(c, HTTP_BODY_MS);
        if (c->route->is_streamed) {
                c->is_waiting = x->piece && !x->piece(x, piece);
                return;
        }
        if (c->body.size + piece.size > c->body_max) {
                http_answer_problem(x, 413, "the body may have at most %llu bytes", (unsigned long long)c->body_max);
                return;
        }
        if (c->server->body_bytes + piece.size > HTTP_BODIES_MAX) {
                c->server->counts.limited++;
                http_answer_field(x, "Retry-After", "1");
                http_answer_problem(x, 503, "too many bodies at once; nothing was stored, try again");
                return;
        }
        c->server->body_bytes += piece.size;
        c->body_counted += piece.size;
        buffer_put(&c->body, piece.data, piece.size);
}

static void take_end(struct http_connection *c)
{
        struct http_exchange *x = &c->x;
        if (c->phase == CONNECTION_HEAD && !take_head(c))
                return; /* without a body the head is handled here, and was answered */
        bool was_begun = c->phase == CONNECTION_BODY;
        c->phase = CONNECTION_ANSWERING;
        x->body = (struct span){ (const char *)c->body.data, c->body.size };
        if (!c->route->is_streamed || !was_begun)
                start(c);
        if (c->is_pending && x->piece)
                (void)x->piece(x, (struct span){ 0 });
}

static bool wants_input(const struct http_connection *c)
{
        return c->phase == CONNECTION_HEAD || (c->phase == CONNECTION_BODY && !c->is_waiting);
}

/* Processes the input up to the end of a request that must be answered first. */
static void process(struct http_connection *c)
{
        if (c->is_in_process)
                return;
        c->is_in_process = true;
        while (wants_input(c) && c->input_at < c->input_size) {
                size_t taken;
                if (c->phase == CONNECTION_HEAD && !c->reader.head_bytes)
                        set_deadline(c, HTTP_HEAD_MS);
                enum http_reading reading = http_reader_feed(
                        &c->reader, (struct span){ c->input + c->input_at, c->input_size - c->input_at }, &taken);
                /* The piece points into the input, which is not moved before the piece was used. */
                c->input_at += taken;
                if (reading == READING_HEAD && c->reader.head.body_bytes)
                        begin_body(c);
                else if (reading == READING_BODY)
                        take_body(c, c->reader.body);
                else if (reading == READING_END)
                        take_end(c);
                else if (reading == READING_BAD)
                        refuse_bad(c);
        }
        if (c->input_at == c->input_size)
                c->input_at = c->input_size = 0;
        c->is_in_process = false;
        if (c->is_full && c->phase != CONNECTION_CLOSING && c->input_size - c->input_at < sizeof(c->input))
                start_reading(c);
}

void http_exchange_go_on(struct http_exchange *x)
{
        struct http_connection *c = connection_of(x);
        c->is_waiting = false;
        process(c);
}

/* --- the socket --------------------------------------------------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
        struct http_connection *c = handle->data;
        (void)size;
        if (c->input_at) {
                memmove(c->input, c->input + c->input_at, c->input_size - c->input_at);
                c->input_size -= c->input_at;
                c->input_at = 0;
        }
        *ret = uv_buf_init(c->input + c->input_size, (unsigned)(sizeof(c->input) - c->input_size));
}

/* No more requests will come.  An answer in progress may still be wanted: a client may close one direction only. */
static void input_is_over(struct http_connection *c)
{
        if (c->phase != CONNECTION_ANSWERING && c->phase != CONNECTION_SENDING) {
                http_connection_close(c);
                return;
        }
        c->is_last = true;
        (void)uv_read_stop(&c->stream);
        tell_gone(c);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
        struct http_connection *c = stream->data;
        (void)buf;
        if (size == UV_ENOBUFS) {
                /* The input is full while a request is being answered: reading continues when there is room. */
                c->is_full = true;
                (void)uv_read_stop(stream);
                return;
        }
        if (size < 0) {
                if (size == UV_EOF)
                        input_is_over(c);
                else
                        http_connection_close(c);
                return;
        }
        if (c->phase == CONNECTION_ENDING)
                return;
        c->input_size += (size_t)size;
        process(c);
}

static void start_reading(struct http_connection *c)
{
        c->is_full = false;
        int r = uv_read_start(&c->stream, on_room, on_read);
        if (r < 0 && r != UV_EALREADY)
                http_connection_close(c);
}

static void find_peer(struct http_connection *c)
{
        struct socket_peer peer;
        uv_os_fd_t fd;
        if (c->is_unix && uv_fileno(&c->handle, &fd) == 0 && peer_find(fd, &peer) == 0)
                http_access_by_peer(&peer, &c->peer);
}

struct http_connection *http_connection_accept(struct http_server *server, uv_stream_t *listener, bool is_unix)
{
        struct http_connection *c = memory_zero(1, sizeof(*c));
        c->server = server;
        c->is_unix = is_unix;
        if (is_unix)
                (void)uv_pipe_init(server->loop, &c->pipe, 0);
        else
                (void)uv_tcp_init(server->loop, &c->tcp);
        c->handle.data = c;
        http_reader_init(&c->reader);
        set_deadline(c, HTTP_HEAD_MS);
        if (uv_accept(listener, &c->stream) < 0) {
                http_connection_close(c);
                return c;
        }
        if (!is_unix)
                (void)uv_tcp_nodelay(&c->tcp, 1);
        find_peer(c);
        start_reading(c);
        return c;
}
