/* seats.c: several seats of one process at once, each on a thread of its own. */
#include "internal.h"

/* One seat and its thread. */
struct seat_run {
        struct qv_mock *mock;
        uint32_t number;
        void (*run)(struct qv_mock *seat, uint32_t number, void *arg);
        void *arg;
        pthread_barrier_t *begin;
        pthread_t thread;
};

static void *run_seat(void *argument)
{
        struct seat_run *seat = argument;
        (void)pthread_barrier_wait(seat->begin);
        seat->run(seat->mock, seat->number, seat->arg);
        if (seat->mock->seat)
                qv_mock_close(seat->mock);
        return NULL;
}

/* A seat with the settings of the first. */
static struct qv_mock *add_seat(struct qv_mock *first, struct qv_mock **last)
{
        struct qv_mock *mock = qv_mock_new(&first->plugin);
        mock->first = first;
        for (const struct setting *setting = first->settings; setting; setting = setting->next)
                qv_mock_config(mock, setting->name, setting->value);
        (*last)->next_seat = mock;
        *last = mock;
        return mock;
}

static void free_seats(struct qv_mock *first)
{
        struct qv_mock *next = first->next_seat;
        first->next_seat = NULL;
        while (next) {
                struct qv_mock *mock = next;
                next = mock->next_seat;
                for (struct lock *lock = first->locks; lock; lock = lock->next)
                        lock->holder = lock->holder == mock ? NULL : lock->holder;
                qv_mock_free(mock);
        }
}

int32_t qv_mock_run_seats(
        struct qv_mock *mock, uint32_t count, void (*run)(struct qv_mock *seat, uint32_t number, void *arg), void *arg)
{
        struct qv_mock *last = mock;
        pthread_barrier_t begin;
        if (mock->seat)
                qv_mock_wrong(
                        "init was called already; call qv_mock_close() first: each seat calls it on its own thread");
        if (!count || (count > 1 && !(mock->plugin.flags & QV_THREADS)))
                qv_mock_wrong("%u seats; without QV_THREADS in its flags a plugin gets one", count);
        int32_t r = qv_mock_load(mock);
        if (r)
                return r;
        struct seat_run *seats = calloc(count, sizeof(*seats));
        if (!seats)
                qv_mock_wrong("out of memory");
        (void)pthread_barrier_init(&begin, NULL, count);
        for (uint32_t i = 0; i < count; i++)
                seats[i] = (struct seat_run){
                        .mock = i ? add_seat(mock, &last) : mock, .number = i, .run = run, .arg = arg, .begin = &begin
                };
        for (uint32_t i = 0; i < count; i++)
                if (pthread_create(&seats[i].thread, NULL, run_seat, &seats[i]) != 0)
                        qv_mock_wrong("no thread for seat %u", i);
        for (uint32_t i = 0; i < count; i++)
                (void)pthread_join(seats[i].thread, NULL);
        (void)pthread_barrier_destroy(&begin);
        free(seats);
        free_seats(mock);
        return 0;
}
