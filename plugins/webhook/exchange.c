#include "exchange.h"

#include <strings.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS          100 /* how soon a stop is noticed */
#define HEAD_MAX         65536
#define IDLE_CONNECTIONS 8L
#define LIFETIME_S       300L /* of a connection: after that the name is looked up anew */

uint64_t now_boot_ms(void)
{
        struct timespec now;
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int exchange_open(struct exchange *x)
{
        *x = (struct exchange){ .multi = curl_multi_init(), .easy = curl_easy_init() };
        if (!x->multi || !x->easy)
                return -ENOMEM;
        (void)curl_multi_setopt(x->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
        return 0;
}

void exchange_close(struct exchange *x)
{
        curl_easy_cleanup(x->easy);
        if (x->multi)
                (void)curl_multi_cleanup(x->multi);
        bytes_free(&x->body);
        *x = (struct exchange){ 0 };
}

/* --- what libcurl calls ------------------------------------------------------------------------------------------ */

/* libcurl connects to the very address that it shows here.  With a proxy that is the proxy's, which the settings name.
 */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
        struct exchange *x = arg;
        char text[ADDRESS_TEXT];
        (void)purpose;
        const char *what = x->settings->proxy ? NULL : address_refused(&address->addr, &x->settings->allowed);
        if (what) {
                x->refused++;
                (void)snprintf(
                        x->refused_text, sizeof(x->refused_text), "%s is %s", address_text(&address->addr, text), what);
                return CURL_SOCKET_BAD;
        }
        x->tried++;
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_head(char *data, size_t size, size_t count, void *arg)
{
        struct exchange *x = arg;
        long status = 0;
        size *= count;
        x->head_size += size;
        if (x->head_size > HEAD_MAX) {
                x->is_head_long = true;
                return 0;
        }
        if (size <= 2 && (*data == '\r' || *data == '\n')) {
                (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
                x->is_head_whole |= status >= 200;
        }
        return size;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
        struct exchange *x = arg;
        size *= count;
        size_t room = x->settings->max_result - x->body.size;
        x->is_cut = size > room;
        bytes_put(&x->body, data, x->is_cut ? room : size);
        return x->is_cut ? 0 : size;
}

/* --- the request ------------------------------------------------------------------------------------------------- */

static void set_connection(struct exchange *x, const struct settings *s, const struct request *r)
{
        CURL *c = x->easy;
        uint64_t now = now_boot_ms();
        long left = r->deadline_ms > now ? (long)(r->deadline_ms - now) : 1;
        (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        /* A resolver that hangs must not hold the seat beyond the deadline. */
        (void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
        (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->problem);
        (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, left);
        (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_timeout_ms);
        (void)curl_easy_setopt(c, CURLOPT_MAXLIFETIME_CONN, LIFETIME_S);
        (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
        (void)curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, x);
        (void)curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (s->ca_file)
                (void)curl_easy_setopt(c, CURLOPT_CAINFO, s->ca_file);
        if (s->cert_file) {
                (void)curl_easy_setopt(c, CURLOPT_SSLCERT, s->cert_file);
                (void)curl_easy_setopt(c, CURLOPT_SSLKEY, s->key_file);
        }
        /* An empty text: not even the proxy that the environment names. */
        (void)curl_easy_setopt(c, CURLOPT_PROXY, s->proxy ? s->proxy : "");
        (void)curl_easy_setopt(c, CURLOPT_NOPROXY, "");
        (void)curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        if (s->proxy_user.text)
                (void)curl_easy_setopt(c, CURLOPT_PROXYUSERPWD, s->proxy_user.text);
}

static void set_request(struct exchange *x, const struct settings *s, const struct request *r)
{
        CURL *c = x->easy;
        (void)curl_easy_setopt(c, CURLOPT_CURLU, r->url);
        (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->fields);
        if (s->has_body) {
                (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_size);
                (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body_size ? r->body : "");
        }
        (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, s->method);
        (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_head);
        (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
        (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
        (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
}

/* CURLE_OK or why not; CURLE_ABORTED_BY_CALLBACK if the task had to stop. */
static CURLcode perform(struct exchange *x, const struct qv_task *task)
{
        CURLcode result = CURLE_FAILED_INIT;
        const CURLMsg *message;
        int running = 1, left;
        if (curl_multi_add_handle(x->multi, x->easy) != CURLM_OK)
                return CURLE_OUT_OF_MEMORY;
        while (running) {
                if (curl_multi_perform(x->multi, &running) != CURLM_OK)
                        break;
                if (running && qv_stop(task)) {
                        result = CURLE_ABORTED_BY_CALLBACK;
                        break;
                }
                if (running)
                        (void)curl_multi_poll(x->multi, NULL, 0, TICK_MS, NULL);
        }
        while ((message = curl_multi_info_read(x->multi, &left)))
                if (message->msg == CURLMSG_DONE)
                        result = message->data.result;
        (void)curl_multi_remove_handle(x->multi, x->easy);
        return result;
}

/* --- the answer -------------------------------------------------------------------------------------------------- */

/* Whether anything of the request may have reached the other side. */
static bool is_sent(const struct exchange *x, CURLcode code)
{
        curl_off_t sent = 0;
        switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_PROXY:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
                return false;
        default:
                (void)curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
                return sent > 0;
        }
}

static struct answer answer_of(struct exchange *x, const struct settings *s, CURLcode code)
{
        struct answer a = { .kind = SILENT };
        long status = 0;
        curl_off_t seconds = 0;
        (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &seconds);
        if (code == CURLE_ABORTED_BY_CALLBACK) {
                a.kind = STOPPED;
                return a;
        }
        /* The status says what became of the request.  Only a result that is wanted has to be whole.  libcurl takes a
         * head that ends in the middle for a whole one. */
        bool is_good = status >= 200 && status < 300;
        bool is_enough = code == CURLE_OK || x->is_cut || !is_good || !s->has_result;
        if (x->is_head_whole && !x->is_head_long && is_enough) {
                a.kind = ANSWERED;
                a.status = (int)status;
                a.retry_after_ms = seconds > 0 && seconds < INT32_MAX ? (uint64_t)seconds * 1000 : 0;
                return a;
        }
        if (x->is_head_long)
                (void)snprintf(
                        x->problem, sizeof(x->problem), "the head of the answer is longer than %d bytes", HEAD_MAX);
        else if (code == CURLE_OK)
                (void)snprintf(x->problem, sizeof(x->problem), "the head of the answer ended too early");
        else if (!x->problem[0])
                (void)snprintf(x->problem, sizeof(x->problem), "%s", curl_easy_strerror(code));
        if (x->refused && !x->tried)
                a.kind = FORBIDDEN;
        else if (!is_sent(x, code))
                a.kind = DOWN;
        return a;
}

struct answer exchange_run(
        struct exchange *x, const struct settings *s, const struct qv_task *task, const struct request *r)
{
        bytes_clear(&x->body);
        x->settings = s;
        x->head_size = 0;
        x->is_head_whole = x->is_head_long = x->is_cut = false;
        x->tried = x->refused = 0;
        x->problem[0] = 0;
        curl_easy_reset(x->easy);
        set_connection(x, s, r);
        set_request(x, s, r);
        return answer_of(x, s, perform(x, task));
}

const char *exchange_redirect(const struct exchange *x)
{
        char *url = NULL;
        (void)curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_URL, &url);
        return url;
}
