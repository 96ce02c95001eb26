/* Several seats of the mock at once: what they share, and what each has to itself. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <quiver/mock.h>

#define SEATS 4
#define TASKS 50

static int loads, unloads, inits, closes, lockers;
static pthread_barrier_t all_inside;
static uint64_t ids[SEATS * TASKS];
static int ids_count;

static int32_t on_load(const struct qv_host *host)
{
        (void)host;
        return loads++ < 0;
}

static void on_unload(void)
{
        unloads++;
}

static int32_t on_init(const struct qv_host *host, void **self)
{
        *self = malloc(1);
        (void)__atomic_add_fetch(&inits, 1, __ATOMIC_RELAXED);
        return strcmp(qv_config(host, "greeting", ""), "hi");
}

static void on_close(void *self)
{
        free(self);
        (void)__atomic_add_fetch(&closes, 1, __ATOMIC_RELAXED);
}

/* "together": no seat goes on before all are here, so that they do run at once. */
static int32_t on_handle(void *self, const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t token = 0;
        (void)self;
        if (!strcmp(task->payload, "together")) {
                (void)pthread_barrier_wait(&all_inside);
                int32_t r = host->trylock(host, "report", 1000, &token);
                (void)__atomic_add_fetch(&lockers, r == 0, __ATOMIC_RELAXED);
                (void)pthread_barrier_wait(&all_inside); /* The lock is free when its task has ended. */
                return r == 0 || r == -EBUSY ? QV_DONE : QV_RETRY;
        }
        uint64_t id = 0;
        if (host->next_id(host, &id) < 0)
                return QV_RETRY;
        ids[__atomic_fetch_add(&ids_count, 1, __ATOMIC_RELAXED)] = id;
        return QV_DONE;
}

static const struct qv_plugin plugin = { .size = sizeof(struct qv_plugin),
        .abi_major = QV_ABI_MAJOR,
        .abi_minor = QV_ABI_MINOR,
        .flags = QV_THREADS,
        .name = "seats",
        .version = "1",
        .init = on_init,
        .handle = on_handle,
        .close = on_close,
        .load = on_load,
        .unload = on_unload };

static void run(struct qv_mock *seat, uint32_t number, void *arg)
{
        char *seen = arg;
        (void)__atomic_add_fetch(&seen[number], 1, __ATOMIC_RELAXED);
        QV_EXPECT_INT(qv_mock_init(seat), 0);
        QV_EXPECT_INT(qv_mock_handle(seat, qv_mock_new_task(seat, "k", "together")), QV_DONE);
        for (int i = 0; i < TASKS; i++)
                QV_EXPECT_INT(qv_mock_handle(seat, qv_mock_new_task(seat, NULL, "id")), QV_DONE);
}

static int by_value(const void *a, const void *b)
{
        const uint64_t *x = a;
        const uint64_t *y = b;
        return *x < *y ? -1 : *x > *y;
}

static void seats_run_at_once_and_share_load_locks_and_ids(void **state)
{
        (void)state;
        char seen[SEATS] = { 0 };
        struct qv_mock *mock = qv_mock_new(&plugin);
        qv_mock_config(mock, "greeting", "hi");
        (void)pthread_barrier_init(&all_inside, NULL, SEATS);
        assert_int_equal(qv_mock_run_seats(mock, SEATS, run, seen), 0);
        (void)pthread_barrier_destroy(&all_inside);
        assert_int_equal(qv_mock_failures(), 0);
        for (int i = 0; i < SEATS; i++)
                assert_int_equal(seen[i], 1);
        assert_int_equal(loads, 1);
        assert_int_equal(unloads, 0);
        assert_int_equal(inits, SEATS);
        assert_int_equal(closes, SEATS);
        assert_int_equal(lockers, 1);
        assert_int_equal(ids_count, SEATS * TASKS);
        qsort(ids, SEATS * TASKS, sizeof(*ids), by_value);
        for (int i = 1; i < SEATS * TASKS; i++)
                assert_true(ids[i] > ids[i - 1]);
        /* It is one seat again. */
        assert_int_equal(qv_mock_init(mock), 0);
        assert_int_equal(loads, 1);
        qv_mock_free(mock);
        assert_int_equal(unloads, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(seats_run_at_once_and_share_load_locks_and_ids) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
