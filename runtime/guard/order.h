/* order.h: the orders that a host sends to its guard, one per packet (SOCK_SEQPACKET).  The guard never answers.
 *
 * End-of-file without a preceding GUARD_BYE means that the host is dead. */
#ifndef QUIVER_GUARD_ORDER_H
#define QUIVER_GUARD_ORDER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "store/store.h"

/* Descriptors that a guard is started with. */
enum guard_fd {
        GUARD_FD_ORDERS = 3,
        GUARD_FD_LEASES = 4,
        GUARD_FD_ALIVE = 5, /* holds a shared lock: the guard lives */
};

#define GUARD_ORDER_MAX   49152 /* includes several paths */
#define GUARD_RUNNERS_MAX 200   /* in one order; the kernel passes at most 253 descriptors with a message */

enum guard_order {
        GUARD_START = 1, /* first: struct guard_start */
        GUARD_SESSION,   /* the coordination session's token; a new one replaces it */
        GUARD_RUNNERS,   /* pids; a pidfd of each is attached, in the same order */
        GUARD_REAPED,    /* a pid: that runner is gone */
        GUARD_TTL,       /* the lease time, which a reload has changed */
        GUARD_BYE,       /* the host has returned its leases itself; the guard ends */
};

/* How to reach the store and the coordination service.  Pointers are borrowed; "" where nothing is set. */
struct guard_start {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t ttl_ms;
        uint32_t leases; /* number of slots in the lease page */
        const char *app;
        const char *cgroup; /* the control group above those of the runners */
        const char *store_url, *store_user, *store_password, *store_sentinel_user, *store_sentinel_password;
        const char *coord_url, *coord_user, *coord_password, *coord_sentinel_user, *coord_sentinel_password;
        struct tls_files store_tls, coord_tls;
};

void order_put_start(struct buffer *to, const struct guard_start *start);
void order_put_session(struct buffer *to, const char *token);
void order_put_runners(struct buffer *to, const pid_t *pids, uint32_t count);
void order_put_reaped(struct buffer *to, pid_t pid);
void order_put_ttl(struct buffer *to, uint64_t ttl_ms);
void order_put_bye(struct buffer *to);

/* Reads the kind and leaves `r` at the body.  0 or -EBADMSG. */
int order_open(struct reader *r, const void *data, size_t size, enum guard_order *ret_order);
int order_get_start(struct reader *r, struct guard_start *ret);

#endif
