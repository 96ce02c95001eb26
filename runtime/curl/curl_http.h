/* curl_http.h: HTTP exchanges on the loop, several at once, by libcurl: for etcd, and for traces.
 *
 * libcurl is loaded when the first curl_http is made: it loads two dozen libraries, which would cost every runner 8 MB
 * and 7 ms.  On the loop only. */
#ifndef QUIVER_CURL_CURL_HTTP_H
#define QUIVER_CURL_CURL_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/tls_files.h"
#include "base/strings.h"

struct curl_http;

struct curl_http_options {
        struct tls_files tls; /* without server_name */
};

/* One request and its answer.  The caller zeroes it and fills in the upper half; it must live until done(). */
struct curl_exchange {
        const char *url;
        const char *token;           /* the value of Authorization; NULL: none */
        const struct strings *lines; /* further header lines, "Name: value"; NULL: none */
        struct buffer body;          /* sent by POST; empty: a GET */
        size_t reply_max;            /* a longer reply fails */
        uint64_t limit_ms;           /* for the whole exchange; 0: none, for a stream */
        uint64_t connect_ms;         /* for the connection */
        /* Called exactly once, on the loop, never inside a call of the owner. */
        void (*done)(struct curl_exchange *exchange);
        /* For streams: there is more in `reply`, which the owner consumes. */
        void (*more)(struct curl_exchange *exchange);

        int status;        /* 0: there is an answer, of any HTTP status; -ECONNRESET and the like: there is none */
        bool was_sent;     /* a part of it may have reached the server */
        bool is_untrusted; /* the server's certificate could not be verified */
        long http_code;
        uint64_t retry_after_ms; /* from Retry-After; 0: not given */
        struct buffer reply;
        struct error error; /* libcurl's text */

        /* private */
        struct curl_exchange *prev, *next;
        struct curl_http *http;
        void *easy;
        void *headers;
        size_t body_at;
        bool has_more;
        bool is_too_long;
        char text[256];
};

/* NULL with -ENOTSUP in the error: libcurl is not installed. */
struct curl_http *curl_http_new(uv_loop_t *loop, const struct curl_http_options *options, struct error *error);
/* No exchange may be under way.  `freed` is called on the loop. */
void curl_http_free(struct curl_http *http, void (*freed)(void *self), void *self);

void curl_http_start(struct curl_http *http, struct curl_exchange *exchange);
/* Ends the exchange without done().  The owner frees it with curl_exchange_free(). */
void curl_http_cancel(struct curl_exchange *exchange);
/* Ends all exchanges with -ECONNABORTED; done() is called soon, not inside this call. */
void curl_http_abort_all(struct curl_http *http);
/* Frees what an exchange has allocated, not the struct. */
void curl_exchange_free(struct curl_exchange *exchange);

#endif
