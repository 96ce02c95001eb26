/* leases.h: when each lease of this host ends, in memory that runners can read but not write.
 *
 * One memfd per host.  The host maps it writable and then seals it against any further writable mapping, so a plugin
 * that overwrites memory cannot extend a lease.  A runner checks the lease right before handle(), so the runners of a
 * stopped host start nothing once its leases have ended. */
#ifndef QUIVER_RING_LEASES_H
#define QUIVER_RING_LEASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One lease.  The epoch is part of the check: a task claimed under an older one must not start. */
struct lease_slot {
        _Atomic uint64_t epoch;
        _Atomic uint64_t until_ns; /* end of the lease, CLOCK_BOOTTIME; 0: not held; or LEASES_ASKED */
};

/* The host has asked for the lease and has no answer yet, so the store may have granted it.  No task may start, but the
 * guard of a dead host must return this lease too. */
#define LEASES_ASKED UINT64_C(1)

struct leases {
        int fd; /* passed to runners; -1 on the runner's side after mapping */
        uint32_t count;
        struct lease_slot *slots;
};

/* Host: creates `count` leases, none of them held.  0 or -errno. */
int leases_create(struct leases *l, uint32_t count);
/* Runner, guard: maps the host's memfd read-only.  0 or -errno. */
int leases_attach(struct leases *l, int fd, uint32_t count);
void leases_free(struct leases *l);

/* Host only. */
void leases_set(struct leases *l, uint32_t index, uint64_t epoch, uint64_t until_ns);

/* Whether a task of this lease and epoch may start at `now_ns`. */
bool leases_allow(const struct leases *l, uint32_t index, uint64_t epoch, uint64_t now_ns);

#endif
