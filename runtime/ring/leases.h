/* leases.h: until when each lease of this host holds, in memory that runners can read and not write.
 *
 * One memfd per host.  The host maps it writable and then seals it against any further writable mapping, so a plugin
 * that runs wild cannot extend a lease.  A runner looks right before handle(): a stopped host's runners start nothing.
 */
#ifndef QUIVER_RING_LEASES_H
#define QUIVER_RING_LEASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One lease.  The epoch is part of the check: a task claimed under an older one must not start. */
struct lease_slot {
        _Atomic uint64_t epoch;
        _Atomic uint64_t until_ns; /* CLOCK_BOOTTIME; 0: not held; LEASES_ASKED */
};

/* Asked for under that epoch, and no answer yet: the store may have granted it.  Nothing may start, but whoever gives
 * back what a dead host had must think of it. */
#define LEASES_ASKED UINT64_C(1)

struct leases {
        int fd; /* to hand to runners; -1 on the runner's side once mapped */
        uint32_t count;
        struct lease_slot *slots;
};

/* Host: `count` leases, none held.  0 or -errno. */
int leases_create(struct leases *l, uint32_t count);
/* Runner: maps what it was handed, read-only.  0 or -errno. */
int leases_attach(struct leases *l, int fd, uint32_t count);
void leases_free(struct leases *l);

/* Host only. */
void leases_set(struct leases *l, uint32_t index, uint64_t epoch, uint64_t until_ns);

/* May a task of this lease and epoch start at `now_ns`? */
bool leases_allow(const struct leases *l, uint32_t index, uint64_t epoch, uint64_t now_ns);

#endif
