/* guard_client.h: the host's side of its guard (guard/guard.h): starts it, sends it orders, replaces it when it
 * dies. */
#ifndef QUIVER_HOST_GUARD_CLIENT_H
#define QUIVER_HOST_GUARD_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "coord/coord.h"
#include "guard/order.h"
#include "ring/leases.h"

struct guard_client {
        uv_loop_t *loop;
        const struct leases *leases;
        int alive_fd;        /* a file on which the guard holds a shared lock; -1: none */
        struct buffer start; /* the GUARD_START order, sent to each new guard */
        uint64_t ttl_ms;     /* set by a reload; 0: the one in `start` holds */
        char token[COORD_TOKEN_MAX];
        pid_t *runners;
        size_t runners_count, runners_room;

        uv_process_t process;
        uv_timer_t timer; /* delays the start of the next guard after a death */
        int orders;       /* -1: no guard */
        bool is_running, is_closing;
        bool is_deaf;    /* an order could not be sent */
        uint32_t deaths; /* consecutive deaths, for the backoff */
        void (*closed)(void *self);
        void *self;
};

/* Starts the guard; copies what `start` points to.  0, or -errno with the text set. */
int guard_client_open(struct guard_client *g, uv_loop_t *loop, const struct leases *leases, int alive_fd,
        const struct guard_start *start, struct error *error);

/* Sends the token of a new coordination session. */
void guard_client_session(struct guard_client *g, const char *token);

/* Sends a changed lease time. */
void guard_client_ttl(struct guard_client *g, uint64_t ttl_ms);

/* Must be called before the runner gets its first task. */
void guard_client_spawned(struct guard_client *g, pid_t pid);
void guard_client_reaped(struct guard_client *g, pid_t pid);

/* Dismisses the guard after the host has returned its leases; `closed` is called on the loop when the guard has
 * ended. */
void guard_client_close(struct guard_client *g, void (*closed)(void *self), void *self);

/* Call after closed(). */
void guard_client_free(struct guard_client *g);

#endif
