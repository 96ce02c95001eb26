/* A seat that polls instead of sleeping: after a short task, or woken ahead of one. */
#include "ring_fixture.h"

#include "base/clock.h"
#include "ring_clock.h"

static const struct ring_shape shape = { .seats = 4, .entries = 8, .task_bytes_max = 8192, .answer_bytes_max = 8192 };

static struct both both;

static int open_ring(void **state)
{
        is_time_still = true;
        both_open(&both, &shape);
        *state = &both;
        return 0;
}

static int close_ring(void **state)
{
        on_clock = NULL;
        both_close(*state);
        return 0;
}

static uint32_t bell(void)
{
        return atomic_load(&both.host.map.header->seat_bell);
}

static void submit_behind(void)
{
        uint32_t before = bell();
        (void)submit_one(&both, "b", NULL);
        ring_host_ring(&both.host);
        assert_int_equal(bell(), before); /* left to the seat that polls, which has just won another one */
}

static void submit_while_looking(void)
{
        (void)submit_one(&both, "a", NULL);
        on_clock = submit_behind;
}

/* Other seats sleep: a task that nobody was woken for must not wait for a sleeper. */
static void a_seat_that_polled_wakes_another_for_what_it_does_not_take(void **state)
{
        struct both *b = *state;
        struct ring_taken taken;
        uint32_t before = bell();
        atomic_store(&b->host.map.header->seats_asleep, 2);
        atomic_store(&b->host.map.seats[0].started_ns, clock_boot_ns());
        on_clock = submit_while_looking;
        assert_int_equal(ring_take(&b->runner, 0, &taken, 1), 1);
        assert_null(on_clock);
        assert_true(has_waiting(b));
        assert_int_equal(bell(), before + 1);
        assert_int_equal(atomic_load(&b->host.map.header->seat_is_looking), 0);
        /* Nobody polls now: the host wakes a seat for each. */
        (void)submit_one(b, "c", NULL);
        ring_host_ring(&b->host);
        assert_int_equal(bell(), before + 2);
}

static void see_it_polls(void)
{
        assert_int_equal(atomic_load(&both.host.map.header->seat_is_looking), 1);
}

static void submit_and_see_it_polls(void)
{
        (void)submit_one(&both, "a", NULL);
        on_clock = see_it_polls;
}

static void a_seat_that_is_woken_ahead_of_a_task_polls_for_it(void **state)
{
        struct both *b = *state;
        struct ring_header *h = b->host.map.header;
        struct ring_taken taken;
        uint32_t before = bell();
        ring_host_expect(&b->host); /* nobody sleeps */
        assert_int_equal(bell(), before);
        atomic_store(&h->seats_asleep, 1);
        atomic_store(&h->seat_is_looking, 1);
        ring_host_expect(&b->host); /* one polls already */
        assert_int_equal(bell(), before);
        atomic_store(&h->seat_is_looking, 0);
        ring_host_expect(&b->host);
        assert_int_equal(bell(), before + 1);
        atomic_store(&h->seats_asleep, 0);
        /* The seat has run nothing for long, and would sleep at once. */
        on_clock = submit_and_see_it_polls;
        assert_int_equal(ring_take(&b->runner, 0, &taken, 1), 1);
        assert_null(on_clock);
        assert_int_equal(atomic_load(&h->seat_is_looking), 0);
        assert_int_equal(atomic_load(&h->task_is_expected), 0); /* the next time it sleeps */
}

#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
        const struct CMUnitTest tests[] = {
                RING_TEST(a_seat_that_polled_wakes_another_for_what_it_does_not_take),
                RING_TEST(a_seat_that_is_woken_ahead_of_a_task_polls_for_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
