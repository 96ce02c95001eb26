#include "curl/curl_http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "curl/curl_api.h"

/* TCP keepalive starts after this time: a watch may be silent for hours, and a firewall in between may have dropped the
 * connection. */
#define KEEPALIVE_IDLE_S     10L
#define KEEPALIVE_INTERVAL_S 5L
#define DESCRIPTORS_SEEN     1024
#define RETRY_AFTER_MAX_S    UINT64_C(86400)

struct curl_http {
        const struct curl_api *curl;
        CURLM *multi;
        uv_loop_t *loop;
        uv_timer_t timer;
        struct tls_files tls;
        struct curl_exchange *exchanges; /* under way */
        struct curl_exchange *aborted;   /* done() must still be called */
        void (*freed)(void *self);
        void *freed_self;
};

struct http_socket {
        uv_poll_t poll;
        struct curl_http *http;
        curl_socket_t fd;
};

/* --- results ----------------------------------------------------------------------------------------------------- */

static int status_of(CURLcode code)
{
        if (code == CURLE_OPERATION_TIMEDOUT)
                return -ETIMEDOUT;
        return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ? -ECONNREFUSED : -ECONNRESET;
}

static bool is_about_trust(CURLcode code)
{
        return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
               code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_ISSUER_ERROR;
}

static void detach(struct curl_exchange *exchange)
{
        struct curl_http *http = exchange->http;
        if (!exchange->easy)
                return;
        (void)http->curl->multi_remove_handle(http->multi, exchange->easy);
        http->curl->easy_cleanup(exchange->easy);
        http->curl->slist_free_all(exchange->headers);
        exchange->easy = exchange->headers = NULL;
        DL_DELETE(http->exchanges, exchange);
}

static void finish(struct curl_exchange *exchange, CURLcode code)
{
        const struct curl_api *curl = exchange->http->curl;
        curl_off_t after_s = 0;
        (void)curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &exchange->http_code);
        (void)curl->easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &after_s);
        exchange->retry_after_ms = after_s > 0 ? min_u64((uint64_t)after_s, RETRY_AFTER_MAX_S) * 1000 : 0;
        if (exchange->is_too_long) {
                exchange->status = -EMSGSIZE;
                (void)error_set(&exchange->error, 0, "the answer has more than %zu bytes", exchange->reply_max);
        } else if (code != CURLE_OK) {
                exchange->status = status_of(code);
                exchange->is_untrusted = is_about_trust(code);
                (void)error_set(
                        &exchange->error, 0, "%s", exchange->text[0] ? exchange->text : curl->easy_strerror(code));
        }
        detach(exchange);
        exchange->done(exchange);
}

/* Owners are called here only, outside libcurl, and may start and cancel exchanges.  One at a time, because each call
 * may change the lists. */
static void deliver(struct curl_http *http)
{
        CURLMsg *message;
        int left;
        for (struct curl_exchange *at = http->exchanges; at;) {
                if (!at->has_more) {
                        at = at->next;
                        continue;
                }
                at->has_more = false;
                at->more(at);
                at = http->exchanges;
        }
        while ((message = http->curl->multi_info_read(http->multi, &left))) {
                if (message->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = message->data.result;
                void *owner = NULL;
                (void)http->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
                finish(owner, code);
        }
        while (http->aborted) {
                struct curl_exchange *exchange = http->aborted;
                DL_DELETE(http->aborted, exchange);
                exchange->done(exchange);
        }
}

static void act(struct curl_http *http, curl_socket_t fd, int events)
{
        int running;
        (void)http->curl->multi_socket_action(http->multi, fd, events, &running);
        deliver(http);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
        act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long timeout_ms, void *self)
{
        struct curl_http *http = self;
        (void)multi;
        if (http->aborted)
                timeout_ms = 0;
        if (timeout_ms < 0)
                (void)uv_timer_stop(&http->timer);
        else
                (void)uv_timer_start(&http->timer, on_timer, (uint64_t)timeout_ms, 0);
        return 0;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
        const struct http_socket *socket = poll->data;
        int action = status < 0 ? CURL_CSELECT_ERR : 0;
        action |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
        action |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
        act(socket->http, socket->fd, action);
}

static void on_socket_closed(uv_handle_t *handle)
{
        free(handle->data);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *known)
{
        struct curl_http *http = self;
        struct http_socket *socket = known;
        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                if (socket) {
                        (void)uv_poll_stop(&socket->poll);
                        uv_close((uv_handle_t *)&socket->poll, on_socket_closed);
                        (void)http->curl->multi_assign(http->multi, fd, NULL);
                }
                return 0;
        }
        if (!socket) {
                socket = memory_zero(1, sizeof(*socket));
                socket->http = http;
                socket->fd = fd;
                socket->poll.data = socket;
                (void)uv_poll_init_socket(http->loop, &socket->poll, fd);
                (void)http->curl->multi_assign(http->multi, fd, socket);
        }
        (void)uv_poll_start(&socket->poll,
                (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0), on_ready);
        return 0;
}

/* Close-on-exec, so that no child inherits the connection. */
static curl_socket_t open_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
        (void)self;
        (void)purpose;
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* --- one exchange ------------------------------------------------------------------------------------------------ */

static size_t take_reply(char *data, size_t size, size_t count, void *self)
{
        struct curl_exchange *exchange = self;
        size_t bytes = size * count;
        if (bytes > exchange->reply_max || exchange->reply.size > exchange->reply_max - bytes) {
                exchange->is_too_long = true;
                return 0;
        }
        buffer_put(&exchange->reply, data, bytes);
        exchange->has_more = exchange->more != NULL;
        return bytes;
}

/* The body is read by a function that cannot rewind: otherwise libcurl would resend it on a new connection, although a
 * transaction may have been executed. */
static size_t give_body(char *to, size_t size, size_t count, void *self)
{
        struct curl_exchange *exchange = self;
        size_t left = exchange->body.size - exchange->body_at;
        size_t bytes = left < size * count ? left : size * count;
        exchange->was_sent = true;
        memcpy(to, exchange->body.data + exchange->body_at, bytes);
        exchange->body_at += bytes;
        return bytes;
}

static void add_header(struct curl_exchange *exchange, const char *text)
{
        exchange->headers = memory_or_abort(exchange->http->curl->slist_append(exchange->headers, text));
}

static void set_headers(struct curl_exchange *exchange)
{
        add_header(exchange, "Content-Type: application/json");
        add_header(exchange, "Expect:");
        for (size_t i = 0; exchange->lines && i < exchange->lines->count; i++)
                add_header(exchange, exchange->lines->items[i]);
        if (exchange->token) {
                char *text = text_printf("Authorization: %s", exchange->token);
                add_header(exchange, text);
                text_free_secret(text);
        }
}

static void set_body(struct curl_exchange *exchange)
{
        const struct curl_api *curl = exchange->http->curl;
        CURL *easy = exchange->easy;
        if (!exchange->body.size)
                return;
        (void)curl->easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body.size);
        (void)curl->easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
        (void)curl->easy_setopt(easy, CURLOPT_READDATA, exchange);
}

/* libcurl verifies certificates and names by default. */
static void set_trust(const struct curl_http *http, CURL *easy)
{
        const struct curl_api *curl = http->curl;
        (void)curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (http->tls.ca_file)
                (void)curl->easy_setopt(easy, CURLOPT_CAINFO, http->tls.ca_file);
        if (http->tls.cert_file)
                (void)curl->easy_setopt(easy, CURLOPT_SSLCERT, http->tls.cert_file);
        if (http->tls.key_file)
                (void)curl->easy_setopt(easy, CURLOPT_SSLKEY, http->tls.key_file);
}

void curl_http_start(struct curl_http *http, struct curl_exchange *exchange)
{
        const struct curl_api *curl = http->curl;
        CURL *easy = memory_or_abort(curl->easy_init());
        exchange->http = http;
        exchange->easy = easy;
        exchange->headers = NULL;
        exchange->body_at = exchange->reply.size = 0;
        exchange->was_sent = exchange->has_more = exchange->is_too_long = exchange->is_untrusted = false;
        exchange->status = 0;
        exchange->http_code = 0;
        exchange->retry_after_ms = 0;
        exchange->error.text[0] = exchange->text[0] = 0;
        set_headers(exchange);
        set_body(exchange);
        set_trust(http, easy);
        (void)curl->easy_setopt(easy, CURLOPT_URL, exchange->url);
        (void)curl->easy_setopt(easy, CURLOPT_PRIVATE, exchange);
        (void)curl->easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
        (void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_reply);
        (void)curl->easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
        (void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->text);
        (void)curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)exchange->limit_ms);
        (void)curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)exchange->connect_ms);
        (void)curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        (void)curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        /* A proxy of the environment is meant for the web, not for this. */
        (void)curl->easy_setopt(easy, CURLOPT_PROXY, "");
        (void)curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        /* Closing does not wait for a name server that does not answer. */
        (void)curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
        (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        (void)curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        DL_APPEND(http->exchanges, exchange);
        (void)curl->multi_add_handle(http->multi, easy);
}

void curl_http_cancel(struct curl_exchange *exchange)
{
        if (exchange->easy)
                detach(exchange);
        else
                DL_DELETE(exchange->http->aborted, exchange);
}

void curl_http_abort_all(struct curl_http *http)
{
        for (struct curl_exchange *exchange = http->exchanges, *next; exchange; exchange = next) {
                next = exchange->next;
                detach(exchange);
                exchange->status = -ECONNABORTED;
                (void)error_set(&exchange->error, 0, "another server is tried");
                DL_APPEND(http->aborted, exchange);
        }
        if (http->aborted)
                (void)uv_timer_start(&http->timer, on_timer, 0, 0);
}

void curl_exchange_free(struct curl_exchange *exchange)
{
        buffer_free(&exchange->body);
        buffer_free(&exchange->reply);
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

/* libcurl makes a socket pair for its own use, which no child may inherit. */
static CURLM *make_multi(const struct curl_api *curl)
{
        bool was_open[DESCRIPTORS_SEEN];
        for (int fd = 0; fd < DESCRIPTORS_SEEN; fd++)
                was_open[fd] = fcntl(fd, F_GETFD) >= 0;
        CURLM *multi = memory_or_abort(curl->multi_init());
        for (int fd = 0; fd < DESCRIPTORS_SEEN; fd++) {
                int flags = was_open[fd] ? -1 : fcntl(fd, F_GETFD);
                if (flags >= 0)
                        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
        return multi;
}

struct curl_http *curl_http_new(uv_loop_t *loop, const struct curl_http_options *options, struct error *error)
{
        const struct curl_api *curl = curl_api(error);
        if (!curl)
                return NULL;
        struct curl_http *http = memory_zero(1, sizeof(*http));
        http->curl = curl;
        http->loop = loop;
        http->tls = tls_files_copy(&options->tls);
        http->timer.data = http;
        (void)uv_timer_init(loop, &http->timer);
        http->multi = make_multi(curl);
        (void)curl->multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
        (void)curl->multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
        (void)curl->multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer);
        (void)curl->multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
        return http;
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct curl_http *http = handle->data;
        void (*freed)(void *self) = http->freed;
        void *self = http->freed_self;
        tls_files_free(&http->tls);
        free(http);
        freed(self);
}

void curl_http_free(struct curl_http *http, void (*freed)(void *self), void *self)
{
        http->freed = freed;
        http->freed_self = self;
        (void)http->curl->multi_cleanup(http->multi);
        uv_close((uv_handle_t *)&http->timer, on_timer_closed);
}
