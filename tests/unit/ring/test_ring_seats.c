/* What a seat shows and is told: stop flags, progress, checkpoints, service calls, sleep and retirement. */
#include "ring_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define ENTRIES    8
#define PATIENCE_S 30

static const struct ring_shape shape = {
        .seats = 2, .entries = ENTRIES, .task_bytes_max = 8192, .answer_bytes_max = 8192
};

static struct both both;

static int open_ring(void **state)
{
        both_open(&both, &shape);
        *state = &both;
        return 0;
}

static int close_ring(void **state)
{
        both_close(*state);
        return 0;
}

static struct ring_taken start_one(struct both *b, uint32_t seat)
{
        struct ring_taken taken;
        (void)submit_one(b, "x", NULL);
        assert_int_equal(ring_take(&b->runner, seat, &taken, 1), 1);
        return taken;
}

static bool is_stopped(const struct both *b, uint32_t seat, uint64_t ticket)
{
        return atomic_load(&b->host.map.seats[seat].stop) == RING_STOP(ticket);
}

static void a_seat_shows_what_it_holds(void **state)
{
        struct both *b = *state;
        struct ring_seat_view view;
        ring_host_seat(&b->host, 1, &view);
        assert_int_equal(view.ticket, 0);
        struct ring_taken taken = start_one(b, 1);
        struct ring_seat *seat = &b->host.map.seats[1];
        seat->progressed_ns = 5;
        seat->progress_done = 3;
        seat->progress_total = 9;
        ring_host_seat(&b->host, 1, &view);
        assert_int_equal(view.ticket, taken.ticket);
        assert_true(view.started_ns > 0);
        assert_int_equal(view.progressed_ns, 5);
        assert_int_equal(view.progress_done, 3);
        assert_int_equal(view.progress_total, 9);
        assert_int_equal(answer_done(b, &taken), 0);
        ring_seat_idle(&b->runner, 1);
        ring_host_seat(&b->host, 1, &view);
        assert_int_equal(view.ticket, 0);
        (void)start_one(b, 1);
        ring_host_seat(&b->host, 1, &view);
        assert_int_equal(view.progressed_ns + view.progress_done + view.progress_total, 0);
}

static void a_stop_is_for_one_task_only(void **state)
{
        struct both *b = *state;
        struct ring_taken first = start_one(b, 0);
        struct ring_taken other = start_one(b, 1);
        assert_false(is_stopped(b, 0, first.ticket));
        ring_host_stop(&b->host, 0, first.ticket);
        assert_true(is_stopped(b, 0, first.ticket));
        assert_false(is_stopped(b, 1, other.ticket));
        assert_int_equal(answer_done(b, &first), 0);
        struct ring_taken second = start_one(b, 0);
        assert_false(is_stopped(b, 0, second.ticket));
        /* Late: the first has ended in the meantime. */
        ring_host_stop(&b->host, 0, first.ticket);
        assert_false(is_stopped(b, 0, second.ticket));
}

/* A stop value has 31 bits of the ticket: an old one must not be found again by a task 2^31 later. */
static void a_stop_does_not_outlive_its_task(void **state)
{
        struct both *b = *state;
        struct ring_taken first = start_one(b, 0);
        ring_host_stop(&b->host, 0, first.ticket);
        assert_int_equal(answer_done(b, &first), 0);
        b->host.next_ticket = first.ticket + (UINT64_C(1) << 31);
        struct ring_taken later = start_one(b, 0);
        assert_int_equal(RING_STOP(later.ticket), RING_STOP(first.ticket));
        assert_false(is_stopped(b, 0, later.ticket));
        ring_host_stop(&b->host, 0, later.ticket);
        assert_true(is_stopped(b, 0, later.ticket));
}

static void a_checkpoint_is_seen_by_its_ticket_alone(void **state)
{
        struct both *b = *state;
        static uint8_t got[QV_CHECKPOINT_MAX];
        uint32_t version = 0;
        struct ring_taken taken = start_one(b, 0);
        assert_int_equal(ring_host_checkpoint(&b->host, 0, taken.ticket, got, &version), -ENOENT);
        assert_false(ring_host_has_attention(&b->host));
        ring_checkpoint(&b->runner, 0, taken.ticket, "half", 4);
        assert_true(ring_host_has_attention(&b->host));
        assert_false(ring_host_has_attention(&b->host));
        assert_int_equal(ring_host_checkpoint(&b->host, 0, taken.ticket, got, &version), 4);
        assert_memory_equal(got, "half", 4);
        assert_int_equal(ring_host_checkpoint(&b->host, 0, taken.ticket + 1, got, &version), -ENOENT);
        assert_int_equal(ring_host_checkpoint(&b->host, 1, taken.ticket, got, &version), -ENOENT);
}

static void the_last_checkpoint_wins_and_has_another_version(void **state)
{
        struct both *b = *state;
        static uint8_t got[QV_CHECKPOINT_MAX];
        static uint8_t large[QV_CHECKPOINT_MAX];
        memset(large, 0x5a, sizeof(large));
        uint32_t first = 0;
        uint32_t version = 0;
        ring_checkpoint(&b->runner, 0, 9, "one", 3);
        assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &first), 3);
        ring_checkpoint(&b->runner, 0, 9, large, sizeof(large));
        assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &version), sizeof(large));
        assert_memory_equal(got, large, sizeof(large));
        assert_int_not_equal(version, first);
        for (size_t size = 0; size < 20; size++) {
                ring_checkpoint(&b->runner, 0, 9, "0123456789abcdefghijk", size);
                assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &version), size);
                assert_memory_equal(got, "0123456789abcdefghijk", size);
                assert_int_equal(got[size], 0x5a);
        }
        ring_checkpoint(&b->runner, 0, 10, "next task's", 11);
        assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &version), -ENOENT);
}

/* The process dies while it copies: the bytes end at a page that cannot be read. */
static void a_checkpoint_cut_short_leaves_the_one_before(void **state)
{
        struct both *b = *state;
        static uint8_t got[QV_CHECKPOINT_MAX];
        uint32_t version = 0;
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uint8_t *bytes = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(bytes, MAP_FAILED);
        assert_int_equal(mprotect(bytes + page, page, PROT_NONE), 0);
        ring_checkpoint(&b->runner, 0, 9, "whole", 5);
        for (int i = 0; i < 2; i++) {
                pid_t pid = fork();
                assert_true(pid >= 0);
                if (!pid) {
                        (void)signal(SIGSEGV, SIG_DFL);
                        ring_checkpoint(&b->runner, 0, 9, bytes + page - 64, 128);
                        _exit(0);
                }
                int status = 0;
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
                assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &version), 5);
                assert_memory_equal(got, "whole", 5);
        }
        (void)munmap(bytes, 2 * page);
}

static void a_checkpoint_of_impossible_size_is_not_read(void **state)
{
        struct both *b = *state;
        static uint8_t got[QV_CHECKPOINT_MAX];
        uint32_t version = 0;
        ring_checkpoint(&b->runner, 0, 9, "x", 1);
        b->host.map.seats[0].checkpoints[0].size = QV_CHECKPOINT_MAX + 1;
        b->host.map.seats[0].checkpoints[1].size = QV_CHECKPOINT_MAX + 1;
        assert_int_equal(ring_host_checkpoint(&b->host, 0, 9, got, &version), -ENOENT);
}

/* A seat's thread that asks once. */
struct question {
        struct ring_runner *runner;
        uint32_t seat;
        const char *name;
        uint64_t number, second;
        const void *data;
        size_t size;
        int status;
        pthread_t thread;
};

static bool look_for_call(struct both *b, uint32_t seat, struct ring_call_view *ret)
{
        return ring_host_call(&b->host, seat, 0, ret);
}

static bool reply(struct both *b, uint32_t seat, uint32_t word, int status, uint64_t number)
{
        return ring_host_reply(&b->host, seat, word, status, (const uint64_t[2]){ number, number + 1 });
}

static int ask_briefly(struct both *b, const char *name)
{
        uint64_t numbers[2];
        const struct ring_question question = { .service = SERVICE_TRYLOCK, .name = name };
        return ring_ask(&b->runner, 0, &question, 1, numbers);
}

static void *ask(void *argument)
{
        struct question *q = argument;
        /* Longer than any test may take: who waits for it has not been woken. */
        const struct ring_question question = { .service = SERVICE_TRYLOCK,
                .ticket = 3,
                .name = q->name,
                .number = q->number,
                .data = q->data,
                .size = q->size };
        uint64_t numbers[2] = { 0 };
        q->status = ring_ask(q->runner, q->seat, &question, 3600 * 1000, numbers);
        q->number = numbers[0];
        q->second = numbers[1];
        return NULL;
}

static void start_asking(struct both *b, struct question *q)
{
        q->runner = &b->runner;
        assert_int_equal(pthread_create(&q->thread, NULL, ask, q), 0);
}

/* Sleeps as a host does until a seat has a question. */
static void wait_for_call(struct both *b, uint32_t seat, struct ring_call_view *ret)
{
        while (!look_for_call(b, seat, ret)) {
                if (ring_host_sleep(&b->host))
                        assert_true(wait_for_bell_fd(b, PATIENCE_S * 1000));
                ring_host_awake(&b->host);
                (void)ring_host_has_attention(&b->host);
        }
}

static void a_question_is_seen_and_answered(void **state)
{
        struct both *b = *state;
        struct ring_call_view call;
        assert_false(look_for_call(b, 1, &call));
        struct question q = { .seat = 1, .name = "locks/one", .number = 5000, .data = "eleven byte", .size = 11 };
        start_asking(b, &q);
        wait_for_call(b, 1, &call);
        assert_int_equal(call.service, SERVICE_TRYLOCK);
        assert_int_equal(call.number, 5000);
        assert_int_equal(call.ticket, 3);
        assert_string_equal(call.name, "locks/one");
        assert_int_equal(call.size, 11);
        assert_memory_equal(call.bytes, "eleven byte", 11);
        /* Whoever has it already need not take it again. */
        assert_false(ring_host_call(&b->host, 1, call.word, &call));
        assert_false(look_for_call(b, 0, &(struct ring_call_view){ 0 }));
        assert_true(reply(b, 1, call.word, -EBUSY, 17));
        assert_false(reply(b, 1, call.word, -EBUSY, 17));
        assert_int_equal(pthread_join(q.thread, NULL), 0);
        assert_int_equal(q.status, -EBUSY);
        assert_int_equal(q.number, 17);
        assert_int_equal(q.second, 18);
        assert_false(look_for_call(b, 1, &call));
}

static void a_question_without_an_answer_ends_at_its_time(void **state)
{
        struct both *b = *state;
        assert_int_equal(ask_briefly(b, ""), -ETIMEDOUT);
        struct ring_call_view call;
        assert_false(look_for_call(b, 0, &call));
}

static void a_late_answer_does_not_answer_the_next_question(void **state)
{
        struct both *b = *state;
        struct ring_call_view call;
        assert_int_equal(ask_briefly(b, "first"), -ETIMEDOUT);
        /* What the host saw of it. */
        const uint32_t late = 1 << 2 | CALL_ASKED;

        struct question second = { .name = "second" };
        start_asking(b, &second);
        wait_for_call(b, 0, &call);
        assert_string_equal(call.name, "second");
        assert_false(reply(b, 0, late, -EBUSY, 11));
        assert_true(look_for_call(b, 0, &call));
        assert_true(reply(b, 0, call.word, 0, 22));
        /* The seat may not have read its answer yet. */
        assert_false(reply(b, 0, late, -EBUSY, 11));
        assert_int_equal(b->host.map.seats[0].call.status, 0);
        assert_int_equal(b->host.map.seats[0].call.answer_numbers[0], 22);
        assert_int_equal(pthread_join(second.thread, NULL), 0);
        assert_int_equal(second.status, 0);
        assert_int_equal(second.number, 22);
}

static void a_long_name_is_cut_not_overrun(void **state)
{
        struct both *b = *state;
        char name[1000];
        memset(name, 'n', sizeof(name));
        name[sizeof(name) - 1] = 0;
        struct question q = { .name = name };
        struct ring_call_view call;
        start_asking(b, &q);
        wait_for_call(b, 0, &call);
        assert_int_equal(strlen(call.name), RING_CALL_NAME_MAX);
        assert_true(reply(b, 0, call.word, 0, 1));
        assert_int_equal(pthread_join(q.thread, NULL), 0);
        assert_int_equal(q.status, 0);
}

static void the_bell_is_rung_only_for_a_sleeping_host(void **state)
{
        struct both *b = *state;
        struct ring_taken taken = start_one(b, 0);
        assert_int_equal(answer_done(b, &taken), 0);
        assert_false(wait_for_bell_fd(b, 0));
        assert_false(ring_host_sleep(&b->host)); /* there is an answer */
        struct ring_reply reply;
        void *owner;
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), 1);
        assert_true(ring_host_sleep(&b->host));
        taken = start_one(b, 0);
        struct ring_taken second = start_one(b, 1);
        assert_false(wait_for_bell_fd(b, 0));
        assert_int_equal(answer_done(b, &taken), 0);
        assert_true(wait_for_bell_fd(b, 0));
        assert_int_equal(answer_done(b, &second), 0);
        assert_false(wait_for_bell_fd(b, 0)); /* once is enough */
        ring_host_awake(&b->host);
}

static void a_checkpoint_keeps_the_host_from_sleeping(void **state)
{
        struct both *b = *state;
        assert_true(ring_host_sleep(&b->host));
        ring_checkpoint(&b->runner, 0, 1, "x", 1);
        assert_true(wait_for_bell_fd(b, 0));
        assert_false(ring_host_sleep(&b->host));
        assert_true(ring_host_has_attention(&b->host));
        assert_true(ring_host_sleep(&b->host));
}

/* No answer will tell the host that it can submit again. */
static void room_after_take_back_is_announced(void **state)
{
        struct both *b = *state;
        struct ring_taken taken;
        for (int i = 0; i < ENTRIES; i++)
                assert_true(ring_host_take_back(&b->host, submit_one(b, "x", NULL)));
        assert_false(ring_host_has_room(&b->host, 1, 1));
        assert_true(ring_host_sleep(&b->host));
        ring_host_retire(&b->host);
        assert_int_equal(ring_take(&b->runner, 0, &taken, 1), 0);
        assert_true(wait_for_bell_fd(b, 0));
        assert_false(ring_host_sleep(&b->host));
        assert_true(ring_host_has_attention(&b->host));
        assert_true(ring_host_has_room(&b->host, ENTRIES, 1));
}

/* Rather than to pass over a task that nobody would ever start. */
static void a_damaged_cell_ends_the_runner(void **state)
{
        struct both *b = *state;
        (void)submit_one(b, "x", NULL);
        atomic_store(&b->host.map.submit_cells[0], 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                struct ring_taken taken;
                (void)alarm(PATIENCE_S);
                (void)ring_take(&b->runner, 0, &taken, 1);
                _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void *take_until_retired(void *argument)
{
        struct both *b = argument;
        struct ring_taken taken;
        uintptr_t count = 0;
        while (ring_take(&b->runner, 0, &taken, 1)) {
                (void)answer_done(b, &taken);
                count++;
        }
        return (void *)count;
}

static void a_retiring_runner_does_what_is_queued_and_leaves(void **state)
{
        struct both *b = *state;
        for (int i = 0; i < 3; i++)
                (void)submit_one(b, "x", NULL);
        ring_host_retire(&b->host);
        assert_int_equal((uintptr_t)take_until_retired(b), 3);
}

static void retirement_wakes_a_sleeping_seat(void **state)
{
        struct both *b = *state;
        pthread_t thread;
        void *count = NULL;
        assert_int_equal(pthread_create(&thread, NULL, take_until_retired, b), 0);
        while (!atomic_load(&b->host.map.header->seats_asleep))
                (void)sched_yield();
        ring_host_retire(&b->host);
        assert_int_equal(pthread_join(thread, &count), 0);
        assert_int_equal((uintptr_t)count, 0);
        assert_int_equal(b->host.map.header->seats_asleep, 0);
}

#define SEAT_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

/* --- the race for an entry --- */

#define RACES 200000

static struct {
        struct both *both;
        _Atomic uint64_t started; /* the latest ticket that a seat has won */
} race;

static void *win_or_lose(void *arg)
{
        struct ring_taken taken;
        (void)arg;
        while (ring_take(&race.both->runner, 0, &taken, 1)) {
                atomic_store(&race.started, taken.ticket);
                (void)answer_done(race.both, &taken);
                ring_seat_idle(&race.both->runner, 0);
        }
        return NULL;
}

/* Host and seat want the same entry at the same moment: one of them gets it. */
static void a_task_is_either_started_or_taken_back(void **state)
{
        pthread_t seat;
        struct ring_reply reply;
        void *owner;
        unsigned taken_back = 0;
        race.both = *state;
        atomic_store(&race.started, 0);
        assert_int_equal(pthread_create(&seat, NULL, win_or_lose, NULL), 0);
        for (unsigned i = 0; i < RACES; i++) {
                /* What was taken back leaves its cell to the seat, which may be behind. */
                uint64_t ticket = 0;
                struct ring_task task = task_with("x", 1);
                void *none = NULL;
                while (ring_host_submit(&race.both->host, &task, &none, 1, &ticket) < 0)
                        ring_host_ring(&race.both->host);
                ring_host_ring(&race.both->host);
                for (unsigned spin = i % 64; spin; spin--)
                        atomic_signal_fence(memory_order_seq_cst);
                bool is_back = ring_host_take_back(&race.both->host, ticket);
                taken_back += is_back;
                while (!is_back && ring_host_next(&race.both->host, &reply, &owner) != 1)
                        ;
                assert_true(!is_back || atomic_load(&race.started) != ticket);
        }
        ring_host_retire(&race.both->host);
        assert_int_equal(pthread_join(seat, NULL), 0);
        /* What was taken back was never started, not even later. */
        assert_true(taken_back > 0 && taken_back < RACES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                SEAT_TEST(a_seat_shows_what_it_holds),
                SEAT_TEST(a_stop_is_for_one_task_only),
                SEAT_TEST(a_stop_does_not_outlive_its_task),
                SEAT_TEST(a_checkpoint_is_seen_by_its_ticket_alone),
                SEAT_TEST(the_last_checkpoint_wins_and_has_another_version),
                SEAT_TEST(a_checkpoint_cut_short_leaves_the_one_before),
                SEAT_TEST(a_checkpoint_of_impossible_size_is_not_read),
                SEAT_TEST(a_question_is_seen_and_answered),
                SEAT_TEST(a_question_without_an_answer_ends_at_its_time),
                SEAT_TEST(a_late_answer_does_not_answer_the_next_question),
                SEAT_TEST(a_long_name_is_cut_not_overrun),
                SEAT_TEST(the_bell_is_rung_only_for_a_sleeping_host),
                SEAT_TEST(a_checkpoint_keeps_the_host_from_sleeping),
                SEAT_TEST(room_after_take_back_is_announced),
                SEAT_TEST(a_damaged_cell_ends_the_runner),
                SEAT_TEST(a_retiring_runner_does_what_is_queued_and_leaves),
                SEAT_TEST(retirement_wakes_a_sleeping_seat),
                cmocka_unit_test_setup_teardown(a_task_is_either_started_or_taken_back, open_ring, close_ring),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
