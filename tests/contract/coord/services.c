/* The locks that tasks take from their hosts: two hosts with task_locks above the driver under test.  A seat is a
 * record in a ring's memory; nobody else is on the other side. */
#include "harness.h"

#include <utlist.h>

#include "host/pool/pool_call.h"
#include "host/pool/process.h"
#include "host/service/task_locks.h"

#define SEATS    4u
#define TTL_MS   60000u
#define BEGIN_MS 1000u
#define CALLED   (1u << 2 | CALL_ASKED)

struct test_host {
        struct world *w;
        struct client *client;
        struct task_locks locks;
        struct process process; /* one runner */
        uint64_t now_ms;
};

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        task_locks_session(&((struct test_host *)self)->locks, state, session);
}

static void on_changed(void *self, const char *path)
{
        task_locks_changed(&((struct test_host *)self)->locks, path);
}

static void on_look(void *self)
{
        task_locks_look(&((struct test_host *)self)->locks);
}

static struct test_host *open_host(struct world *w, const char *nonce, pid_t pid)
{
        const struct ring_shape shape = {
                .seats = SEATS, .entries = 4, .task_bytes_max = 1024, .answer_bytes_max = 1024
        };
        struct test_host *h = arena_take(&w->memory, sizeof(*h));
        *h = (struct test_host){ .w = w, .client = join(w), .now_ms = BEGIN_MS };
        assert_int_equal(ring_host_init(&h->process.ring, &shape), 0);
        h->process.handle.pid = pid;
        task_locks_open(&h->locks, h->client->coord, nonce, 0);
        listen_too(h->client, &(struct coord_events){ on_session, on_changed, on_look, h });
        return h;
}

static void close_host(struct test_host *h)
{
        client_close(h->client);
        task_locks_free(&h->locks);
        pool_calls_forget(&h->process);
        ring_host_free(&h->process.ring);
}

static struct ring_call *seat_of(struct test_host *h, uint32_t seat)
{
        return &h->process.ring.map.seats[seat].call;
}

/* What that seat asks, as the pool would pass it on.  Each seat has a task of its own, with the seat's number + 1. */
static struct pool_call *ask(struct test_host *h, uint32_t seat, enum ring_service service, uint64_t number)
{
        struct pool_call *call = calloc(1, sizeof(*call));
        assert_non_null(call);
        *call = (struct pool_call){ .service = service,
                .pid = h->process.handle.pid,
                .ticket = seat + 1,
                .number = number,
                .name = "one",
                .process = &h->process,
                .seat = seat,
                .word = CALLED };
        DL_APPEND(h->process.calls, call);
        atomic_store(&seat_of(h, seat)->word, CALLED);
        return call;
}

static bool is_answered(struct test_host *h, uint32_t seat)
{
        return RING_CALL_STATE(atomic_load(&seat_of(h, seat)->word)) == CALL_ANSWERED;
}

static int answer_of(struct test_host *h, uint32_t seat)
{
        WAIT_FOR(h->w, is_answered(h, seat));
        return seat_of(h, seat)->status;
}

static void begin_trylock(struct test_host *h, uint32_t seat, uint64_t ttl_ms)
{
        task_locks_try(&h->locks, ask(h, seat, SERVICE_TRYLOCK, ttl_ms), "machine=here\n", h->now_ms);
}

static int trylock(struct test_host *h, uint32_t seat, uint64_t *ret_token)
{
        begin_trylock(h, seat, TTL_MS);
        int r = answer_of(h, seat);
        *ret_token = seat_of(h, seat)->answer_numbers[0];
        return r;
}

static int unlock(struct test_host *h, uint32_t seat, uint64_t token)
{
        task_locks_unlock(&h->locks, ask(h, seat, SERVICE_UNLOCK, token), h->now_ms);
        return answer_of(h, seat);
}

static void one_task_of_all_hosts_holds_it(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7), *b = open_host(w, "b", 8);
        uint64_t first, second, token;
        assert_int_equal(trylock(a, 0, &first), 0);
        assert_int_equal(trylock(a, 1, &token), -EBUSY); /* another task of the same host */
        assert_int_equal(trylock(b, 0, &token), -EBUSY);
        assert_int_equal(trylock(a, 0, &second), 0); /* renewed */
        assert_int_equal(second, first);
        assert_int_equal(unlock(a, 1, first), -ENOENT);
        assert_int_equal(unlock(a, 0, first + 1), -ENOENT);
        assert_int_equal(unlock(a, 0, first), 0);
        assert_int_equal(unlock(a, 0, first), -ENOENT);
        assert_int_equal(trylock(b, 0, &second), 0);
        assert_true(second > first);
        close_host(a);
        close_host(b);
}

static void what_a_task_held_is_free_at_its_end(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7);
        uint64_t first, second;
        assert_int_equal(trylock(a, 0, &first), 0);
        task_locks_task_ended(&a->locks, 7, 2);
        assert_int_equal(trylock(a, 1, &second), -EBUSY);
        /* The next task need not ask twice, though the node is still there. */
        task_locks_task_ended(&a->locks, 7, 1);
        assert_int_equal(trylock(a, 1, &second), 0);
        assert_true(second > first);
        task_locks_runner_gone(&a->locks, 7);
        assert_int_equal(trylock(a, 2, &first), 0);
        close_host(a);
}

static void it_ends_at_its_time_unless_it_is_renewed(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7), *b = open_host(w, "b", 8);
        uint64_t first, token;
        assert_int_equal(trylock(a, 0, &first), 0);
        a->now_ms += TTL_MS - 1;
        task_locks_tick(&a->locks, a->now_ms);
        assert_int_equal(trylock(a, 0, &token), 0);
        a->now_ms += TTL_MS - 1;
        task_locks_tick(&a->locks, a->now_ms);
        assert_int_equal(trylock(b, 0, &token), -EBUSY);
        assert_true(a->locks.due_ms <= a->now_ms + 1);
        task_locks_tick(&a->locks, ++a->now_ms);
        assert_int_equal(unlock(a, 0, first), -ENOENT);
        while (trylock(b, 0, &token) == -EBUSY)
                ;
        assert_int_equal(seat_of(b, 0)->status, 0);
        assert_true(token > first);
        close_host(a);
        close_host(b);
}

static void a_lock_that_was_lost_with_the_session_has_another_token(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7);
        uint64_t first, second;
        assert_int_equal(trylock(a, 0, &first), 0);
        uint64_t before = session_of(a->client);
        lose_session(a->client);
        WAIT_FOR(w, a->locks.session && a->locks.session != before);
        assert_int_equal(unlock(a, 0, first), -ENOENT);
        assert_int_equal(trylock(a, 0, &second), 0);
        assert_true(second > first);
        close_host(a);
}

/* A seat that gave up, or died, would hold it without knowing. */
static void what_nobody_waits_for_is_given_back(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7), *b = open_host(w, "b", 8);
        uint64_t token;
        begin_trylock(a, 0, TTL_MS);
        atomic_store(&seat_of(a, 0)->word, CALL_IDLE);
        WAIT_FOR(w, !a->process.calls);
        WAIT_FOR(w, a->locks.by_name->state == TASK_LOCK_REST);
        assert_int_equal(trylock(b, 0, &token), 0);
        assert_int_equal(unlock(b, 0, token), 0);
        begin_trylock(a, 0, TTL_MS);
        pool_calls_forget(&a->process);
        task_locks_runner_gone(&a->locks, 7);
        WAIT_FOR(w, a->locks.by_name->state == TASK_LOCK_REST);
        assert_int_equal(trylock(b, 0, &token), 0);
        close_host(a);
        close_host(b);
}

static void a_seat_is_answered_while_the_coordination_is_away(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7);
        uint64_t token;
        w->driver->cut(w->place);
        begin_trylock(a, 0, TTL_MS);
        task_locks_tick(&a->locks, a->locks.due_ms - 1);
        assert_false(is_answered(a, 0));
        task_locks_tick(&a->locks, a->locks.due_ms);
        assert_true(is_answered(a, 0));
        assert_int_equal(seat_of(a, 0)->status, -ETIMEDOUT);
        w->driver->heal(w->place);
        a->now_ms = a->locks.now_ms;
        do
                WAIT_FOR(w, a->locks.session);
        while (trylock(a, 1, &token) == -EBUSY);
        assert_int_equal(seat_of(a, 1)->status, 0);
        close_host(a);
}

static void what_cannot_be_a_lock_is_refused(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7);
        static const char *const names[] = { "", ".", ".hidden", "a/b", "a b", "a\n", "caf\xc3\xa9" };
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct pool_call *call = ask(a, 0, SERVICE_TRYLOCK, TTL_MS);
                (void)snprintf(call->name, sizeof(call->name), "%s", names[i]);
                task_locks_try(&a->locks, call, "", a->now_ms);
                assert_int_equal(answer_of(a, 0), -EINVAL);
        }
        begin_trylock(a, 0, 0);
        assert_int_equal(answer_of(a, 0), -EINVAL);
        begin_trylock(a, 0, QV_LOCK_TTL_MAX_MS + UINT64_C(1));
        assert_int_equal(answer_of(a, 0), -EINVAL);
        assert_null(a->locks.by_name);
        close_host(a);
}

static void what_nobody_uses_is_forgotten_here_and_in_the_tree(void **state)
{
        struct world *w = *state;
        struct test_host *a = open_host(w, "a", 7);
        uint64_t token;
        assert_int_equal(trylock(a, 0, &token), 0);
        assert_int_equal(unlock(a, 0, token), 0);
        assert_string_equal(children(a->client, "locks", false), "");
        assert_non_null(a->locks.by_name);
        task_locks_tick(&a->locks, a->locks.due_ms);
        assert_null(a->locks.by_name);
        assert_int_equal(a->locks.due_ms, UINT64_MAX);
        close_host(a);
}

const struct CMUnitTest service_tests[] = {
        IN_WORLD(one_task_of_all_hosts_holds_it),
        IN_WORLD(what_a_task_held_is_free_at_its_end),
        IN_WORLD(it_ends_at_its_time_unless_it_is_renewed),
        IN_WORLD(a_lock_that_was_lost_with_the_session_has_another_token),
        IN_WORLD(what_nobody_waits_for_is_given_back),
        IN_WORLD(a_seat_is_answered_while_the_coordination_is_away),
        IN_WORLD(what_cannot_be_a_lock_is_refused),
        IN_WORLD(what_nobody_uses_is_forgotten_here_and_in_the_tree),
};
GROUP(service);
