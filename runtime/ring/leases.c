#include "ring/leases.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Since Linux 5.1; older C library headers lack it. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int leases_create(struct leases *l, uint32_t count)
{
        size_t size = count * sizeof(struct lease_slot);
        int fd = memfd_create("quiver-leases", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        int r = 0;
        void *slots = MAP_FAILED;
        if (ftruncate(fd, (off_t)size) < 0)
                goto fail;
        slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (slots == MAP_FAILED)
                goto fail;
        /* Our own mapping stays writable; the seal refuses every later writable mapping. */
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                goto fail;
        *l = (struct leases){ .fd = fd, .count = count, .slots = slots };
        return 0;
fail:
        r = -errno;
        if (slots != MAP_FAILED)
                (void)munmap(slots, size);
        (void)close(fd);
        return r;
}

int leases_attach(struct leases *l, int fd, uint32_t count)
{
        void *slots = mmap(NULL, count * sizeof(struct lease_slot), PROT_READ, MAP_SHARED, fd, 0);
        if (slots == MAP_FAILED)
                return -errno;
        *l = (struct leases){ .fd = -1, .count = count, .slots = slots };
        return 0;
}

void leases_free(struct leases *l)
{
        if (!l || !l->slots)
                return;
        (void)munmap(l->slots, l->count * sizeof(struct lease_slot));
        if (l->fd >= 0)
                (void)close(l->fd);
        *l = (struct leases){ .fd = -1 };
}

void leases_set(struct leases *l, uint32_t index, uint64_t epoch, uint64_t until_ns)
{
        /* No task may start while the epoch changes: until_ns becomes 0 first, then the epoch changes, then until_ns
         * is set.  Pairs with leases_allow(), which reads until_ns first. */
        if (atomic_load_explicit(&l->slots[index].epoch, memory_order_relaxed) != epoch) {
                atomic_store_explicit(&l->slots[index].until_ns, 0, memory_order_release);
                atomic_store_explicit(&l->slots[index].epoch, epoch, memory_order_release);
        }
        atomic_store_explicit(&l->slots[index].until_ns, until_ns, memory_order_release);
}

bool leases_allow(const struct leases *l, uint32_t index, uint64_t epoch, uint64_t now_ns)
{
        if (index >= l->count)
                return false;
        uint64_t until_ns = atomic_load_explicit(&l->slots[index].until_ns, memory_order_acquire);
        return now_ns < until_ns && atomic_load_explicit(&l->slots[index].epoch, memory_order_acquire) == epoch;
}
