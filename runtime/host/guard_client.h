/* guard_client.h: a host and its guard (guard/guard.h): starts it, tells it what it has to know, replaces it when it
 * dies.
 */
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
        struct buffer start; /* the order, for every guard anew */
        uint64_t ttl_ms;     /* 0: as the order says */
        char token[COORD_TOKEN_MAX];
        pid_t *runners;
        size_t runners_count, runners_room;

        uv_process_t process;
        uv_timer_t timer; /* a guard that dies is replaced, but not in a hurry */
        int orders;       /* -1: no guard */
        bool is_running, is_closing;
        bool is_deaf;    /* it did not take an order */
        uint32_t deaths; /* in a row */
        void (*closed)(void *self);
        void *self;
};

/* What `start` points to is copied.  0, or -errno with the text set: no guard could be started. */
int guard_client_open(struct guard_client *g, uv_loop_t *loop, const struct leases *leases,
        const struct guard_start *start, struct error *error);

/* A new session's token. */
void guard_client_session(struct guard_client *g, const char *token);

/* Leases are held for so long from now on. */
void guard_client_ttl(struct guard_client *g, uint64_t ttl_ms);

/* Before the runner gets its first task. */
void guard_client_spawned(struct guard_client *g, pid_t pid);
void guard_client_reaped(struct guard_client *g, pid_t pid);

/* Everything was given back: dismisses the guard; `closed` is called on the loop when it is gone. */
void guard_client_close(struct guard_client *g, void (*closed)(void *self), void *self);

/* After closed(). */
void guard_client_free(struct guard_client *g);

#endif
