/* connection.h: a client's connection: requests in, answers out, one after the other.  Private to http/. */
#ifndef QUIVER_HTTP_CONNECTION_H
#define QUIVER_HTTP_CONNECTION_H

#include <uv.h>

#include "http/exchange.h"
#include "http/route.h"

#define HTTP_INPUT_SIZE 16384u
#define HTTP_BODIES_MAX (64u * 1024u * 1024u) /* in memory, over all connections */
#define HTTP_UNSENT_MAX (1024u * 1024u)       /* per connection; beyond it a stream must wait */
#define HTTP_HEAD_MS    10000u                /* for the head of a request, from its first byte */
#define HTTP_BODY_MS    30000u                /* between two pieces of a body */
#define HTTP_IDLE_MS    60000u                /* between two requests */
#define HTTP_ENDING_MS  2000u
#define HTTP_SEND_MS    30000u /* for a client to accept some of the output */

enum connection_phase {
        CONNECTION_HEAD,      /* reads or waits for a head */
        CONNECTION_BODY,      /* reads a body */
        CONNECTION_ANSWERING, /* the endpoint has the request */
        CONNECTION_SENDING,   /* the answer is complete, but not all of it is sent */
        CONNECTION_ENDING,    /* everything was sent, but the client still sends: its input is discarded for a moment */
        CONNECTION_CLOSING
};

struct http_connection {
        union {
                uv_handle_t handle;
                uv_stream_t stream;
                uv_tcp_t tcp;
                uv_pipe_t pipe;
        };
        struct http_server *server;
        struct http_connection *prev, *next;
        enum connection_phase phase;
        struct http_who peer; /* from the Unix socket's user; no role for TCP */
        bool is_unix;

        struct http_reader reader;
        char input[HTTP_INPUT_SIZE];
        size_t input_at, input_size;
        struct buffer body;
        uint64_t body_max;
        uint64_t body_counted; /* bytes of the body that count towards HTTP_BODIES_MAX */
        const struct http_route *route;
        struct http_exchange x;

        struct buffer output; /* not passed to the loop yet */
        struct buffer sent;   /* being written by the loop */
        uv_write_t write;
        bool is_writing;
        bool is_streaming; /* the answer is sent in chunks */
        bool is_head_only; /* HEAD: fields without a body */
        bool is_last;      /* close after the answer */
        uv_shutdown_t shutdown;
        bool has_unread;      /* a body was refused before it was read */
        bool is_full;         /* reading has stopped, because the input is full */
        bool is_waiting;      /* the endpoint wants no more of the body for now */
        bool is_pending;      /* the endpoint has the request and has not answered */
        bool is_in_process;   /* process() is on the stack */
        bool is_closed;       /* the handle is closed: freed as soon as nothing is pending */
        uint64_t deadline_ms; /* by the loop's clock */
};

struct http_connection *http_connection_accept(struct http_server *server, uv_stream_t *listener, bool is_unix);
void http_connection_close(struct http_connection *c);
/* Closes the connection if its deadline has passed. */
void http_connection_check_time(struct http_connection *c, uint64_t now_ms);

#endif
