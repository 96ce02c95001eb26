/* server.h: the server, for the files of http/. */
#ifndef QUIVER_HTTP_SERVER_H
#define QUIVER_HTTP_SERVER_H

#include "http/connection.h"

struct http_server {
        uv_loop_t *loop;
        struct http_services services;
        struct http_access access;
        uint32_t connections_max;
        bool has_open_metrics;
        bool is_strict_ready;

        uv_pipe_t pipe;
        uv_tcp_t tcp;
        uv_timer_t timer; /* once a second while there is a connection */
        bool has_pipe, has_tcp;
        unsigned handles; /* not closed yet */
        char *socket_path;
        char *address; /* where the port is open; NULL: nowhere */

        struct http_connection *connections;
        uint32_t connections_count;
        uint64_t body_bytes;        /* of all connections */
        uint32_t waits;             /* clients that wait for an outcome */
        uint32_t looks;             /* looks at the store that are under way (look_io.h) */
        struct http_events *events; /* NULL: nobody has asked for them yet */
        bool is_stopping;           /* no new requests */
        bool is_closing;
        struct http_counts counts;
};

/* events.c: ends every stream that is open: its client asks again, and is looked at again.  Accepts NULL. */
void http_events_end_all(struct http_events *events);
/* The same, and takes no more. */
void http_events_stop(struct http_events *events);
/* Something that kept a closing server is over. */
void http_server_free_if_over(struct http_server *server);
/* A connection is gone from the list. */
void http_server_forget(struct http_server *server, struct http_connection *c);

#endif
