/* http.h: the HTTP server of a host: intake, API, health, metrics.
 *
 * It listens on the Unix socket STATE/NAME.http, and on http.listen if that is set.  All of it runs in the host's loop;
 * a slow client costs nobody else anything: what it may hold up is bounded in bytes, in number and in time. */
#ifndef QUIVER_HTTP_HTTP_H
#define QUIVER_HTTP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"
#include "config/config.h"

struct coord;
struct http_exchange;
struct http_server;
struct metrics;
struct store;
struct waiter;
struct work_services;

/* What /readyz and /livez say. */
struct http_health {
        bool is_member;        /* known to the coordination */
        const char *endangers; /* what may lose tasks in the store; "": nothing */
        bool sees_store;       /* it has answered within the lease's ttl */
        bool is_draining;      /* it stops */
        uint32_t refused;      /* handlers that this host refused to load */
};

/* What the host lends to its server.  All of it is valid until the server is closed. */
struct http_services {
        struct store *store;
        const struct config *(*config)(void *self); /* the one in force */
        void (*health)(void *self, struct http_health *ret_health);
        /* What became of a task that this host has done: a document as view/done.h reads it.  The caller's. */
        json_t *(*done)(void *self, struct span id);
        struct coord *(*coord)(void *self); /* NULL: it is not open */
        /* Reloads, or only says what would happen; `done` is called once, with the reply, which it takes, or with a
         * text that says why there is none. */
        void (*reload)(void *self, const char *by, bool is_dry,
                void (*done)(struct http_exchange *x, json_t *reply, const char *refused), struct http_exchange *x);
        /* Calls waiter->done() when the host's metrics are up to date, not inside this call; then put_metrics() writes
         * them. */
        void (*want_metrics)(void *self, struct waiter *waiter);
        void (*put_metrics)(void *self, struct metrics *to);
        const struct work_services *work; /* who has tasks for workers */
        void *self;
};

/* Counted since the server was opened. */
struct http_counts {
        uint64_t accepted; /* connections, those that were refused among them */
        uint64_t requests;
        uint64_t refused;   /* connections beyond the most that are allowed */
        uint64_t limited;   /* requests refused since too many clients wait, or too many bodies are in memory */
        uint64_t malformed; /* requests that could not be read */
        uint64_t forbidden; /* requests without the role, or for a page of another origin */
        uint64_t timed_out; /* connections closed since their time was over */
};

struct http_options {
        const char *socket;          /* path of the Unix socket; NULL: none */
        const char *token_file;      /* made if it is not there */
        const char *tokens_file;     /* further tokens; NULL: none */
        const char *listen;          /* "ADDRESS:PORT"; NULL: the Unix socket alone */
        int listen_fd;               /* a TCP socket that listens already, taken instead of `listen`; -1: none */
        const struct strings *hosts; /* further names for the Host field */
        uint32_t connections_max;
        bool has_open_metrics; /* /metrics without a token, too */
        bool is_strict_ready;  /* A refused handler makes the host not ready. */
};

/* Opens what the options name.  A port that is taken is a warning: the Unix socket remains.  0, or -errno with the text
 * set: an address beyond loopback without tokens, tokens that cannot be read. */
int http_open(uv_loop_t *loop, const struct http_options *options, const struct http_services *services,
        struct http_server **ret_server, struct error *error);

/* Takes up other tokens, hosts and limits; the sockets stay as they are.  On an error all remains as it was. */
int http_reconfigure(struct http_server *server, const struct http_options *options, struct error *error);

/* "ADDRESS:PORT" where it listens; NULL: on the Unix socket alone. */
const char *http_address(const struct http_server *server);
/* Accepts NULL: all zero. */
struct http_counts http_count(const struct http_server *server);

/* No new connections and requests: what is being answered is, for a moment.  Then http_close(). */
void http_stop_accepting(struct http_server *server);

/* Ends every connection and frees the server once the loop has closed the handles.  What endpoints have under way at
 * the store must have ended before, or ends with the store.  Accepts NULL. */
void http_close(struct http_server *server);

#endif
