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
        uv_timer_t timer; /* fires once a second while there is a connection */
        bool has_pipe, has_tcp;
        unsigned handles; /* handles that are not closed yet */
        char *socket_path;
        char *address; /* where the TCP port is open; NULL: nowhere */

        struct http_connection *connections;
        uint32_t connections_count;
        uint64_t body_bytes;        /* over all connections */
        uint32_t waits;             /* clients that wait for an outcome */
        uint32_t looks;             /* looks under way (look_io.h) */
        struct http_events *events; /* NULL: no client has asked for events yet */
        bool is_stopping;           /* no new requests */
        bool is_closing;
        struct http_counts counts;
};

/* events.c: ends every open stream; its client connects again, and its token is checked again.  Accepts NULL. */
void http_events_end_all(struct http_events *events);
/* Ends every stream and accepts no more. */
void http_events_stop(struct http_events *events);
/* Frees a closing server if nothing holds it any more. */
void http_server_free_if_over(struct http_server *server);
/* Removes a connection from the list. */
void http_server_forget(struct http_server *server, struct http_connection *c);

#endif
