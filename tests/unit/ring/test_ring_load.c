/* The ring under load: a host and its seats as threads, with random pauses.  QUIVER_TEST_SEED repeats a run. */
#include "ring_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define SEATS       3
#define PATIENCE_MS 30000

static uint64_t seed;

static uint64_t next_random(uint64_t *random)
{
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        return *random;
}

/* One time in `of`. */
static bool happens(uint64_t *random, uint64_t of)
{
        return next_random(random) % of == 0;
}

/* Mostly nothing, sometimes a yield, rarely long enough for the other side to fall asleep. */
static void pause_maybe(uint64_t *random)
{
        uint64_t dice = next_random(random) % 1000;
        if (dice == 0)
                (void)nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
        else if (dice < 10)
                (void)sched_yield();
}

/* The long runs take ten times as many. */
static uint64_t rounds(uint64_t usual)
{
        return getenv("QUIVER_TEST_ALL") ? 10 * usual : usual;
}

static int choose_seed(void **state)
{
        (void)state;
        const char *given = getenv("QUIVER_TEST_SEED");
        seed = given ? strtoull(given, NULL, 10) : clock_boot_ns();
        seed |= 1;
        print_message("# QUIVER_TEST_SEED=%llu\n", (unsigned long long)seed);
        return 0;
}

/* What became of one task, as its owner sees it. */
struct fate {
        _Atomic uint32_t handled; /* by seats */
        uint32_t answered;
        uint32_t taken_back;
};

struct load {
        struct both both;
        uint64_t total;
        uint64_t submitted;
        uint64_t settled;
        uint64_t wrong_answers;
        uint64_t random;
        struct fate *fates;
        struct fate **in_flight; /* by ticket */
        pthread_t seats[SEATS];
        _Atomic uint32_t next_seat;
        bool is_stuck;
};

static void handle(struct load *l, uint32_t seat, const struct ring_taken *taken, uint64_t *random)
{
        struct fate *fate = NULL;
        memcpy(&fate, taken->task.payload, sizeof(fate));
        atomic_fetch_add(&fate->handled, 1);
        if (happens(random, 500))
                ring_checkpoint(&l->both.runner, seat, taken->ticket, &fate, sizeof(fate));
        struct ring_reply reply = reply_done(taken->ticket);
        reply.has_result = true;
        reply.result = &fate;
        reply.result_size = sizeof(fate);
        (void)ring_answer(&l->both.runner, taken, &reply);
}

static void *run_seat(void *argument)
{
        struct load *l = argument;
        uint32_t seat = atomic_fetch_add(&l->next_seat, 1);
        uint64_t random = seed + seat + 1;
        struct ring_taken taken[4];
        uint32_t count;
        while ((count = ring_take(&l->both.runner, seat, taken, 4))) {
                for (uint32_t i = 0; i < count; i++) {
                        pause_maybe(&random);
                        handle(l, seat, &taken[i], &random);
                }
                ring_seat_idle(&l->both.runner, seat);
                pause_maybe(&random);
        }
        return NULL;
}

static void load_open(struct load *l, uint64_t total, const struct ring_shape *shape)
{
        *l = (struct load){ .total = total, .random = seed };
        both_open(&l->both, shape);
        l->fates = calloc(total, sizeof(*l->fates));
        l->in_flight = calloc(total + 1, sizeof(struct fate *));
        assert_true(l->fates && l->in_flight);
        for (uint32_t i = 0; i < SEATS; i++)
                assert_int_equal(pthread_create(&l->seats[i], NULL, run_seat, l), 0);
}

static void load_close(struct load *l)
{
        ring_host_retire(&l->both.host);
        for (uint32_t i = 0; i < SEATS; i++)
                assert_int_equal(pthread_join(l->seats[i], NULL), 0);
        both_close(&l->both);
}

/* Hands over as much as fits, in batches of one to four. */
static void submit_some(struct load *l)
{
        while (l->submitted < l->total) {
                struct ring_task tasks[4];
                void *owners[4];
                struct fate *fates[4];
                uint32_t count = 1 + (uint32_t)(next_random(&l->random) % 4);
                if (count > l->total - l->submitted)
                        count = (uint32_t)(l->total - l->submitted);
                for (uint32_t i = 0; i < count; i++) {
                        owners[i] = fates[i] = &l->fates[l->submitted + i];
                        tasks[i] = task_with(&fates[i], sizeof(fates[i]));
                }
                uint64_t ticket = 0;
                if (ring_host_submit(&l->both.host, tasks, owners, count, &ticket) < 0)
                        break;
                for (uint32_t i = 0; i < count; i++)
                        l->in_flight[ticket + i] = fates[i];
                l->submitted += count;
                if (happens(&l->random, 8))
                        ring_host_ring(&l->both.host);
        }
        ring_host_ring(&l->both.host);
}

static void take_back_some(struct load *l)
{
        if (!l->submitted || !happens(&l->random, 4))
                return;
        uint64_t ticket = l->submitted - next_random(&l->random) % 8 % l->submitted;
        if (ring_host_take_back(&l->both.host, ticket)) {
                l->in_flight[ticket]->taken_back++;
                l->settled++;
        }
}

static bool read_answers(struct load *l)
{
        struct ring_reply reply;
        void *owner = NULL;
        bool any = false;
        int r;
        while ((r = ring_host_next(&l->both.host, &reply, &owner)) == 1) {
                struct fate *fate = owner;
                fate->answered++;
                l->settled++;
                l->wrong_answers +=
                        reply.result_size != sizeof(owner) || memcmp(reply.result, &owner, sizeof(owner)) != 0;
                any = true;
        }
        l->wrong_answers += r < 0;
        return any && r == 0;
}

/* As a host's loop does: sleeps only if there is nothing to see.  Being left asleep is what must not happen. */
static void run_host(struct load *l)
{
        while (l->settled < l->total && !l->is_stuck && !l->wrong_answers) {
                submit_some(l);
                take_back_some(l);
                pause_maybe(&l->random);
                if (read_answers(l) || ring_host_has_attention(&l->both.host))
                        continue;
                if (l->settled < l->total && ring_host_sleep(&l->both.host))
                        l->is_stuck = !wait_for_bell_fd(&l->both, PATIENCE_MS);
                ring_host_awake(&l->both.host);
        }
}

static void expect_one_outcome_each(const struct load *l)
{
        assert_false(l->is_stuck);
        assert_int_equal(l->wrong_answers, 0);
        assert_int_equal(l->settled, l->total);
        for (uint64_t i = 0; i < l->total; i++) {
                const struct fate *fate = &l->fates[i];
                assert_int_equal(fate->answered + fate->taken_back, 1);
                assert_int_equal(fate->handled, fate->answered);
        }
}

static void run_load(uint64_t total, const struct ring_shape *shape)
{
        struct load l;
        load_open(&l, total, shape);
        run_host(&l);
        load_close(&l);
        expect_one_outcome_each(&l);
        free(l.fates);
        free(l.in_flight);
}

static void every_task_has_one_outcome_and_nobody_sleeps_for_ever(void **state)
{
        (void)state;
        run_load(rounds(200000), &(struct ring_shape){ SEATS, 64, 4096, 4096 });
}

/* Seats and host are at each other's heels: every cell is written again as soon as it may be. */
static void the_same_in_a_ring_of_four(void **state)
{
        (void)state;
        run_load(rounds(30000), &(struct ring_shape){ SEATS, 4, 4096, 4096 });
}

static void *answer_each(void *argument)
{
        struct both *b = argument;
        struct ring_taken taken;
        while (ring_take(&b->runner, 0, &taken, 1)) {
                (void)answer_done(b, &taken);
                ring_seat_idle(&b->runner, 0);
        }
        return NULL;
}

/* Hands over one task and waits, wide awake, for its answer; false if nobody ever gives it. */
static bool one_at_a_time(struct both *b)
{
        struct ring_reply reply;
        void *owner;
        (void)submit_one(b, "x", NULL);
        ring_host_ring(&b->host);
        uint64_t deadline_ms = clock_boot_ms() + PATIENCE_MS;
        while (ring_host_next(&b->host, &reply, &owner) != 1)
                if (clock_boot_ms() > deadline_ms)
                        return false;
        return true;
}

/* Each task comes when the seat is about to sleep: a little later after one that found it awake, and the reverse. */
static void a_seat_that_falls_asleep_is_woken(void **state)
{
        (void)state;
        struct both b;
        pthread_t thread;
        uint64_t random = seed;
        uint64_t pause_ns = 1000;
        bool is_answered = true;
        both_open(&b, &(struct ring_shape){ 1, 4, 0, 0 });
        assert_int_equal(pthread_create(&thread, NULL, answer_each, &b), 0);
        for (uint64_t i = rounds(20000); i && is_answered; i--) {
                uint64_t until_ns = clock_boot_ns() + pause_ns + next_random(&random) % (pause_ns / 64 + 1);
                while (clock_boot_ns() < until_ns)
                        ;
                if (!atomic_load(&b.host.map.header->seats_asleep))
                        pause_ns += pause_ns / 64 + 1;
                else if (pause_ns > 1000)
                        pause_ns -= pause_ns / 64;
                is_answered = one_at_a_time(&b);
        }
        ring_host_retire(&b.host);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(is_answered);
        both_close(&b);
}

/* The host goes to sleep just when the answer comes: a little later after one that came too late, and the reverse. */
static void a_host_that_falls_asleep_is_woken(void **state)
{
        (void)state;
        struct both b;
        pthread_t thread;
        uint64_t random = seed;
        uint64_t pause_ns = 1000;
        bool is_woken = true;
        both_open(&b, &(struct ring_shape){ 1, 4, 0, 0 });
        assert_int_equal(pthread_create(&thread, NULL, answer_each, &b), 0);
        for (uint64_t i = rounds(20000); i && is_woken; i--) {
                struct ring_reply reply;
                void *owner;
                (void)submit_one(&b, "x", NULL);
                ring_host_ring(&b.host);
                uint64_t until_ns = clock_boot_ns() + next_random(&random) % pause_ns;
                while (clock_boot_ns() < until_ns)
                        ;
                bool is_early = ring_host_sleep(&b.host);
                pause_ns = is_early ? pause_ns + pause_ns / 64 + 1 : pause_ns - pause_ns / 64;
                is_woken = !is_early || wait_for_bell_fd(&b, PATIENCE_MS);
                ring_host_awake(&b.host);
                while (is_woken && ring_host_next(&b.host, &reply, &owner) != 1)
                        ;
        }
        ring_host_retire(&b.host);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(is_woken);
        both_close(&b);
}

/* More large answers than there are spills: seats wait for the host to read some. */
static void *answer_largely(void *argument)
{
        struct both *b = argument;
        static uint8_t large[100000];
        struct ring_taken taken;
        while (ring_take(&b->runner, 0, &taken, 1)) {
                struct ring_reply reply = reply_done(taken.ticket);
                reply.result = large;
                reply.result_size = sizeof(large);
                (void)ring_answer(&b->runner, &taken, &reply);
        }
        return NULL;
}

static void large_answers_wait_for_the_host(void **state)
{
        (void)state;
        struct both b;
        pthread_t thread;
        both_open(&b, &(struct ring_shape){ 1, 64, 4096, 200000 });
        for (int i = 0; i < 64; i++)
                (void)submit_one(&b, "x", NULL);
        assert_int_equal(pthread_create(&thread, NULL, answer_largely, &b), 0);
        ring_host_ring(&b.host);
        uint64_t deadline_ms = clock_boot_ms() + PATIENCE_MS;
        uint64_t answers = 0;
        while (answers < 64 && clock_boot_ms() < deadline_ms) {
                struct ring_reply reply;
                void *owner;
                int r = ring_host_next(&b.host, &reply, &owner);
                answers += r == 1 && reply.result_size == 100000;
                if (!r && ring_host_sleep(&b.host))
                        (void)wait_for_bell_fd(&b, PATIENCE_MS);
        }
        ring_host_retire(&b.host);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(answers, 64);
        both_close(&b);
}

/* Every checkpoint is of one byte's kind. */
static void *write_checkpoints(void *argument)
{
        struct both *b = argument;
        uint64_t random = seed;
        static uint8_t bytes[QV_CHECKPOINT_MAX];
        for (uint64_t i = rounds(20000); i; i--) {
                size_t size = 1 + next_random(&random) % sizeof(bytes);
                memset(bytes, (int)i, size);
                ring_checkpoint(&b->runner, 0, 9, bytes, size);
        }
        atomic_store(&b->host.map.header->is_retiring, 1);
        return NULL;
}

static void a_checkpoint_is_never_seen_torn(void **state)
{
        (void)state;
        struct both b;
        pthread_t thread;
        both_open(&b, &(struct ring_shape){ 1, 4, 0, 0 });
        assert_int_equal(pthread_create(&thread, NULL, write_checkpoints, &b), 0);
        static uint8_t got[QV_CHECKPOINT_MAX];
        uint64_t torn = 0;
        uint64_t whole = 0;
        while (!atomic_load(&b.host.map.header->is_retiring) || !whole) {
                uint32_t version = 0;
                int size = ring_host_checkpoint(&b.host, 0, 9, got, &version);
                for (int i = 1; i < size; i++)
                        torn += got[i] != got[0];
                whole += size > 0;
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(torn, 0);
        both_close(&b);
}

/* A seat that gives up at once and asks for another lock; how many answers were for another question. */
static void *ask_impatiently(void *argument)
{
        struct both *b = argument;
        char name[RING_CALL_NAME_MAX + 1] = "";
        uintptr_t wrong = 0;
        for (uint64_t i = rounds(500000); i; i--) {
                uint64_t numbers[2];
                memset(name, (int)('a' + i % 26), sizeof(name) - 1);
                const struct ring_question question = {
                        .service = SERVICE_TRYLOCK, .name = name, .number = i, .data = name, .size = sizeof(name) - 1
                };
                if (ring_ask(&b->runner, 0, &question, 0, numbers) == 0)
                        wrong += numbers[0] != i + 1;
        }
        atomic_store(&b->host.map.header->is_retiring, 1);
        return (void *)wrong;
}

/* The host may still be copying the first question, or answering it, when the second one is written. */
static void a_question_is_never_seen_torn_and_answered_only_for_itself(void **state)
{
        (void)state;
        struct both b;
        pthread_t thread;
        void *wrong = NULL;
        both_open(&b, &(struct ring_shape){ 1, 4, 0, 0 });
        assert_int_equal(pthread_create(&thread, NULL, ask_impatiently, &b), 0);
        uint64_t torn = 0;
        while (!atomic_load(&b.host.map.header->is_retiring)) {
                struct ring_call_view call;
                if (!ring_host_call(&b.host, 0, 0, &call))
                        continue;
                for (size_t i = 0; i < RING_CALL_NAME_MAX; i++)
                        torn += call.name[i] != (char)('a' + call.number % 26) ||
                                call.bytes[i] != (uint8_t)call.name[i];
                (void)ring_host_reply(&b.host, 0, call.word, 0, (const uint64_t[2]){ call.number + 1 });
        }
        assert_int_equal(pthread_join(thread, &wrong), 0);
        assert_int_equal(torn, 0);
        assert_int_equal((uintptr_t)wrong, 0);
        both_close(&b);
}

static void *take_the_rest(void *argument)
{
        struct both *b = argument;
        struct ring_taken taken;
        uintptr_t count = 0;
        while (ring_take(&b->runner, 0, &taken, 1))
                count++;
        return (void *)count;
}

static void what_was_submitted_before_retirement_is_done(void **state)
{
        (void)state;
        uint64_t random = seed;
        uint64_t left = 0;
        for (uint64_t i = rounds(3000); i; i--) {
                struct both b;
                pthread_t thread;
                void *count = NULL;
                both_open(&b, &(struct ring_shape){ 1, 4, 0, 0 });
                assert_int_equal(pthread_create(&thread, NULL, take_the_rest, &b), 0);
                for (uint64_t spin = next_random(&random) % 20000; spin; spin--)
                        atomic_signal_fence(memory_order_seq_cst);
                (void)submit_one(&b, "x", NULL);
                ring_host_retire(&b.host);
                assert_int_equal(pthread_join(thread, &count), 0);
                left += (uintptr_t)count != 1;
                both_close(&b);
        }
        assert_int_equal(left, 0);
}

/* A runner process without a plugin: answers until it is killed. */
static void run_until_killed(struct both *b)
{
        struct ring_runner runner;
        struct ring_taken taken[4];
        uint32_t count;
        if (ring_attach(&runner, b->host.fd, b->bell_fd) < 0)
                _exit(1);
        while ((count = ring_take(&runner, 0, taken, 4))) {
                for (uint32_t i = 0; i < count; i++) {
                        struct ring_reply reply = reply_done(taken[i].ticket);
                        (void)ring_answer(&runner, &taken[i], &reply);
                }
        }
        _exit(0);
}

/* Works with a runner for a moment, kills it, and counts what became of its tasks.  Returns how many had no outcome, or
 * two. */
static uint64_t kill_under_load(uint64_t *random)
{
        struct both b;
        both_open(&b, &(struct ring_shape){ 1, 256, 4096, 4096 });
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid)
                run_until_killed(&b);
        enum { TASKS = 4096 };
        static uint8_t outcomes[TASKS];
        memset(outcomes, 0, sizeof(outcomes));
        uint64_t kill_after = next_random(random) % (TASKS - 256);
        uint64_t submitted = 0;
        uint64_t answered = 0;
        struct ring_reply reply;
        void *owner;
        while (answered < kill_after) {
                static const char *const names[] = { "a", "b", "c", "d" };
                struct ring_task tasks[4];
                void *owners[4];
                uint32_t count = 1 + (uint32_t)(next_random(random) % 4);
                for (uint32_t i = 0; i < count; i++) {
                        tasks[i] = task_with(names[i], 1);
                        owners[i] = &outcomes[submitted + i];
                }
                uint64_t ticket;
                if (submitted + count <= TASKS && !ring_host_submit(&b.host, tasks, owners, count, &ticket))
                        submitted += count;
                ring_host_ring(&b.host);
                while (ring_host_next(&b.host, &reply, &owner) == 1) {
                        ++*(uint8_t *)owner;
                        answered++;
                }
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while (ring_host_next(&b.host, &reply, &owner) == 1)
                ++*(uint8_t *)owner;
        uint32_t cursor = 0;
        struct ring_view view;
        while (ring_host_each(&b.host, &cursor, &view))
                ++*(uint8_t *)ring_host_forget(&b.host, view.ticket);
        uint64_t wrong = b.host.in_flight;
        for (uint64_t i = 0; i < submitted; i++)
                wrong += outcomes[i] != 1;
        both_close(&b);
        return wrong;
}

static void a_killed_runner_leaves_every_task_one_outcome(void **state)
{
        (void)state;
#ifdef __SANITIZE_THREAD__
        skip(); /* the runner is another process */
#endif
        uint64_t random = seed;
        uint64_t wrong = 0;
        for (uint64_t i = rounds(100); i; i--)
                wrong += kill_under_load(&random);
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_task_has_one_outcome_and_nobody_sleeps_for_ever),
                cmocka_unit_test(the_same_in_a_ring_of_four),
                cmocka_unit_test(a_seat_that_falls_asleep_is_woken),
                cmocka_unit_test(a_host_that_falls_asleep_is_woken),
                cmocka_unit_test(large_answers_wait_for_the_host),
                cmocka_unit_test(a_checkpoint_is_never_seen_torn),
                cmocka_unit_test(a_question_is_never_seen_torn_and_answered_only_for_itself),
                cmocka_unit_test(what_was_submitted_before_retirement_is_done),
                cmocka_unit_test(a_killed_runner_leaves_every_task_one_outcome),
        };
        return cmocka_run_group_tests(tests, choose_seed, NULL);
}
