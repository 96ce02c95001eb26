/* http.h: the HTTP server of a host: intake, API, health, metrics.
 *
 * It listens on the Unix socket STATE/NAME.http, and on http.listen if that is set.  Everything runs in the host's
 * loop; a slow client costs others nothing, because what it can occupy is bounded in bytes, number and time. */
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

/* The host's state for /readyz and /livez. */
struct http_health {
        bool is_member;        /* known to the coordination */
        const char *endangers; /* why tasks in the store may be lost; "": they are safe */
        bool sees_store;       /* the store has answered within lease.ttl */
        bool is_draining;      /* the host stops */
        uint32_t refused;      /* handlers that this host refused to load */
};

/* What the host provides to its server.  Everything must be valid until the server is closed. */
struct http_services {
        struct store *store;
        const struct config *(*config)(void *self); /* the configuration in force */
        void (*health)(void *self, struct http_health *ret_health);
        /* What became of a task that this host has done, as a document for view/done.h.  The caller owns it. */
        json_t *(*done)(void *self, struct span id);
        struct coord *(*coord)(void *self); /* NULL: not open */
        /* Reloads, or only reports what would happen; `done` is called once, with the reply, which it owns, or with the
         * reason why there is none. */
        void (*reload)(void *self, const char *by, bool is_dry,
                void (*done)(struct http_exchange *x, json_t *reply, const char *refused), struct http_exchange *x);
        /* Calls waiter->done() when the host's metrics are up to date, never from inside this call; then put_metrics()
         * writes them. */
        void (*want_metrics)(void *self, struct waiter *waiter);
        void (*put_metrics)(void *self, struct metrics *to);
        const struct work_services *work; /* for workers */
        void *self;
};

/* Counted since the server was opened. */
struct http_counts {
        uint64_t accepted; /* connections, including refused ones */
        uint64_t requests;
        uint64_t refused;   /* connections beyond the limit */
        uint64_t limited;   /* requests refused because too many clients wait, or too many bodies are in memory */
        uint64_t malformed; /* requests that could not be parsed */
        uint64_t forbidden; /* requests without the required role, or on behalf of another origin */
        uint64_t timed_out; /* connections closed at their deadline */
};

struct http_options {
        const char *socket;          /* path of the Unix socket; NULL: none */
        const char *token_file;      /* created if it does not exist */
        const char *tokens_file;     /* further tokens; NULL: none */
        const char *listen;          /* "ADDRESS:PORT"; NULL: only the Unix socket */
        int listen_fd;               /* a listening TCP socket to use instead of `listen`; -1: none */
        const struct strings *hosts; /* further names accepted in the Host field */
        uint32_t connections_max;
        bool has_open_metrics; /* /metrics needs no token */
        bool is_strict_ready;  /* a refused handler makes the host not ready */
};

/* Opens the sockets that the options name.  A port in use is only a warning: the Unix socket remains.  0, or -errno
 * with the text set: an address beyond loopback without tokens, or tokens that cannot be read. */
int http_open(uv_loop_t *loop, const struct http_options *options, const struct http_services *services,
        struct http_server **ret_server, struct error *error);

/* Applies other tokens, hosts and limits; the sockets stay as they are.  On an error nothing changes. */
int http_reconfigure(struct http_server *server, const struct http_options *options, struct error *error);

/* "ADDRESS:PORT" where the server listens; NULL: only on the Unix socket. */
const char *http_address(const struct http_server *server);
/* Accepts NULL: all zero. */
struct http_counts http_count(const struct http_server *server);

/* Accepts no new connections and requests; requests in progress may be answered for a moment.  http_close() follows. */
void http_stop_accepting(struct http_server *server);

/* Ends every connection and frees the server once the loop has closed the handles.  Requests of endpoints to the store
 * must have ended before, or end with the store.  Accepts NULL. */
void http_close(struct http_server *server);

#endif
