/* The lease page: who may start what until when, and that no runner can change it. */
#include "check.h"

#include <errno.h>

#include "ring/leases.h"

static int open_leases(void **state)
{
        static struct leases leases;
        *state = &leases;
        return leases_create(&leases, 300);
}

static int close_leases(void **state)
{
        leases_free(*state);
        return 0;
}

static void nothing_may_start_before_a_lease_is_held(void **state)
{
        const struct leases *l = *state;
        assert_false(leases_allow(l, 0, 0, 0));
        assert_false(leases_allow(l, 299, 0, 0));
}

static void a_lease_holds_until_its_deadline(void **state)
{
        struct leases *l = *state;
        leases_set(l, 7, 42, 1000);
        assert_true(leases_allow(l, 7, 42, 999));
        assert_false(leases_allow(l, 7, 42, 1000));
        leases_set(l, 7, 42, 2000);
        assert_true(leases_allow(l, 7, 42, 1000));
        leases_set(l, 7, 42, 0);
        assert_false(leases_allow(l, 7, 42, 0));
}

static void another_epoch_or_lease_is_not_covered(void **state)
{
        struct leases *l = *state;
        leases_set(l, 7, 42, 1000);
        assert_false(leases_allow(l, 7, 41, 1));
        assert_false(leases_allow(l, 7, 43, 1));
        assert_false(leases_allow(l, 6, 42, 1));
        assert_false(leases_allow(l, 8, 42, 1));
        leases_set(l, 7, 43, 1000);
        assert_false(leases_allow(l, 7, 42, 1));
        assert_true(leases_allow(l, 7, 43, 1));
}

static void an_index_beyond_the_page_is_refused(void **state)
{
        const struct leases *l = *state;
        assert_false(leases_allow(l, 300, 0, 0));
        assert_false(leases_allow(l, UINT32_MAX, 0, 0));
}

static void a_runner_sees_what_the_host_sets(void **state)
{
        struct leases *l = *state;
        struct leases seen;
        assert_int_equal(leases_attach(&seen, l->fd, l->count), 0);
        assert_false(leases_allow(&seen, 3, 5, 10));
        leases_set(l, 3, 5, 100);
        assert_true(leases_allow(&seen, 3, 5, 10));
        leases_free(&seen);
        assert_true(leases_allow(l, 3, 5, 10));
}

static void a_runner_cannot_make_the_page_writable(void **state)
{
        struct leases *l = *state;
        size_t size = l->count * sizeof(struct lease_slot);
        struct leases seen;
        assert_int_equal(leases_attach(&seen, l->fd, l->count), 0);

        errno = 0;
        assert_ptr_equal(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0), MAP_FAILED);
        assert_int_equal(errno, EPERM);
        assert_int_equal(mprotect(seen.slots, size, PROT_READ | PROT_WRITE), -1);
        uint64_t for_ever = UINT64_MAX;
        assert_int_equal(pwrite(l->fd, &for_ever, sizeof(for_ever), 8), -1);
        assert_int_equal(ftruncate(l->fd, 0), -1);
        assert_int_equal(fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);

        /* Nor through a descriptor of its own. */
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_ptr_equal(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        (void)close(fd);

        /* The host still can. */
        leases_set(l, 0, 1, 10);
        assert_true(leases_allow(&seen, 0, 1, 9));
        leases_free(&seen);
}

static void freeing_twice_is_harmless(void **state)
{
        (void)state;
        struct leases l;
        assert_int_equal(leases_create(&l, 1), 0);
        leases_free(&l);
        leases_free(&l);
        leases_free(NULL);
        assert_int_equal(leases_create(&l, 0), -EINVAL);
}

#define LEASE_TEST(test) cmocka_unit_test_setup_teardown(test, open_leases, close_leases)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LEASE_TEST(nothing_may_start_before_a_lease_is_held),
                LEASE_TEST(a_lease_holds_until_its_deadline),
                LEASE_TEST(another_epoch_or_lease_is_not_covered),
                LEASE_TEST(an_index_beyond_the_page_is_refused),
                LEASE_TEST(a_runner_sees_what_the_host_sets),
                LEASE_TEST(a_runner_cannot_make_the_page_writable),
                cmocka_unit_test(freeing_twice_is_harmless),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
