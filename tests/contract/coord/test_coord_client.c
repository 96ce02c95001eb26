/* Locks, elections and members of the client library, above the driver that QUIVER_COORD_DRIVER names. */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/admin.h"
#include "client/tree.h"
#include "coord/queue.h"

#define HANDLES   10u
#define NOTICE_MS 60000u
#define HOLD_US   1000 /* long enough for the others to ask again */

static bool is_long(void)
{
        return getenv("QUIVER_TEST_LONG") != NULL;
}

struct programs {
        struct world *w; /* has the authority */
        char folder[64];
        struct config config;
        struct qv_client *list[HANDLES];
};

static struct programs programs;

static int setup(void **state)
{
        char path[128];
        struct coord_options options = { 0 };
        struct problems problems = { 0 };
        struct error error = { "" };
        if (world_setup(state) < 0)
                return -1;
        programs = (struct programs){ .w = *state, .folder = "/tmp/quiver-client-XXXXXX" };
        assert_non_null(mkdtemp(programs.folder));
        programs.w->driver->options(programs.w->place, &options);
        (void)snprintf(path, sizeof(path), "%s/runtime.cfg", programs.folder);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        (void)fprintf(file,
                "app = \"test\"; shards = 1; state = \"%s\"; plugins = \"%s\"; handlers = {};\n"
                "store = { url = \"sqlite:%s/q.db\"; };\n"
                "coordination = { url = \"%s\"; session = \"%s\"; };\n",
                programs.folder, programs.folder, programs.folder, options.url, "5s");
        (void)fclose(file);
        assert_int_equal(config_load(path, NULL, &programs.config, &problems), 0);
        problems_free(&problems);
        for (unsigned i = 0; i < HANDLES; i++)
                assert_int_equal(client_open_or_make(&programs.config, &programs.list[i], &error), 0);
        return 0;
}

static int teardown(void **state)
{
        char command[128];
        for (unsigned i = 0; i < HANDLES; i++)
                qv_client_close(programs.list[i]);
        config_free(&programs.config);
        (void)snprintf(command, sizeof(command), "rm -r %s", programs.folder);
        assert_int_equal(system(command), 0);
        return world_teardown(state);
}

/* --- locks -------------------------------------------------------------------------------------------------------- */

static bool is_readable(int fd, int timeout_ms)
{
        struct pollfd one = { .fd = fd, .events = POLLIN };
        return poll(&one, 1, timeout_ms) == 1;
}

static void a_lock_is_held_by_one_program_at_a_time(void **state)
{
        (void)state;
        struct qv_client_lock *first, *second;
        struct qv_client_lock_options options = QV_CLIENT_LOCK_OPTIONS_INIT;
        options.wait_ms = 50;
        assert_int_equal(qv_client_lock(programs.list[0], "one", NULL, &first), 0);
        assert_true(qv_client_lock_is_held(first));
        assert_int_equal(qv_client_trylock(programs.list[1], "one", &second), -EBUSY);
        assert_int_equal(qv_client_trylock(programs.list[0], "one", &second), -EBUSY);
        assert_int_equal(qv_client_lock(programs.list[1], "one", &options, &second), -EBUSY);
        uint64_t token = qv_client_lock_token(first);
        assert_false(is_readable(qv_client_lock_fd(first), 0));
        assert_int_equal(qv_client_unlock(first), 0);
        assert_int_equal(qv_client_trylock(programs.list[1], "one", &second), 0);
        assert_true(qv_client_lock_token(second) > token);
        assert_int_equal(qv_client_unlock(second), 0);
        options.limit = QV_CLIENT_SHARED;
        assert_int_equal(qv_client_lock(programs.list[0], "one", &options, &first), 0);
        assert_int_equal(qv_client_lock(programs.list[1], "one", &options, &second), 0);
        assert_int_equal(qv_client_unlock(first), 0);
        assert_int_equal(qv_client_unlock(second), 0);
}

static void what_cannot_be_a_lock_is_refused(void **state)
{
        (void)state;
        struct qv_client_lock *lock;
        struct qv_client_lock_options options = QV_CLIENT_LOCK_OPTIONS_INIT;
        assert_int_equal(qv_client_trylock(programs.list[0], "a/b", &lock), -EINVAL);
        assert_int_equal(qv_client_trylock(programs.list[0], "", &lock), -EINVAL);
        options.limit = QUEUE_LIMIT_MAX + 1;
        assert_int_equal(qv_client_lock(programs.list[0], "a", &options, &lock), -EINVAL);
        assert_int_equal(qv_client_unlock(NULL), 0);
}

static unsigned counter;
static _Atomic unsigned wins, losses, leaders, leaders_max;

static void *count_once(void *client)
{
        struct qv_client_lock *lock;
        assert_int_equal(qv_client_lock(client, "count", NULL, &lock), 0);
        unsigned before = counter;
        (void)sched_yield();
        counter = before + 1;
        assert_int_equal(qv_client_unlock(lock), 0);
        return NULL;
}

static void threads_that_count_under_the_lock_lose_nothing(void **state)
{
        (void)state;
        static pthread_t threads[1000];
        unsigned count = is_long() ? 1000 : 100;
        counter = 0;
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, count_once, programs.list[i % HANDLES]), 0);
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(counter, count);
}

static pthread_barrier_t together;

static void *try_once(void *client)
{
        struct qv_client_lock *lock;
        (void)pthread_barrier_wait(&together);
        int r = qv_client_trylock(client, "race", &lock);
        wins += r == 0;
        losses += r == -EBUSY;
        (void)pthread_barrier_wait(&together);
        if (r == 0)
                assert_int_equal(qv_client_unlock(lock), 0);
        return NULL;
}

static void of_ten_racing_tries_one_wins(void **state)
{
        (void)state;
        pthread_t threads[HANDLES];
        wins = losses = 0;
        (void)pthread_barrier_init(&together, NULL, HANDLES);
        for (unsigned i = 0; i < HANDLES; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, try_once, programs.list[i]), 0);
        for (unsigned i = 0; i < HANDLES; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)pthread_barrier_destroy(&together);
        assert_int_equal(wins, 1);
        assert_int_equal(losses, HANDLES - 1);
}

static void end_session_of(struct qv_client *client)
{
        char token[COORD_TOKEN_MAX];
        coord_token(client_tree(client)->coord, token);
        assert_int_equal(end_session(programs.w, token), 0);
}

static void a_lost_lock_makes_its_descriptor_readable(void **state)
{
        (void)state;
        struct qv_client_lock *first, *second;
        assert_int_equal(qv_client_lock(programs.list[0], "one", NULL, &first), 0);
        end_session_of(programs.list[0]);
        assert_int_equal(qv_client_lock(programs.list[1], "one", NULL, &second), 0);
        assert_true(is_readable(qv_client_lock_fd(first), (int)NOTICE_MS));
        assert_false(qv_client_lock_is_held(first));
        assert_int_equal(qv_client_unlock(first), -ENOLCK);
        assert_true(qv_client_lock_is_held(second));
        assert_int_equal(qv_client_unlock(second), 0);
}

struct contender {
        struct qv_client *client;
        pthread_t thread;
        unsigned had;
        uint64_t *waits_ns;
};

static _Atomic unsigned had_by_all;
static unsigned wanted_of_all;

static void *contend(void *self)
{
        struct contender *c = self;
        struct qv_client_lock *lock;
        (void)pthread_barrier_wait(&together);
        while (had_by_all < wanted_of_all) {
                uint64_t from_ns = clock_boot_ns();
                assert_int_equal(qv_client_lock(c->client, "share", NULL, &lock), 0);
                c->waits_ns[c->had++ % wanted_of_all] = clock_boot_ns() - from_ns;
                had_by_all++;
                (void)usleep(HOLD_US);
                assert_int_equal(qv_client_unlock(lock), 0);
        }
        return NULL;
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

/* Each asks again at once.  The long form prints what it measured. */
static void measure_contenders(unsigned count)
{
        struct contender list[4] = { 0 };
        unsigned least = UINT32_MAX, most = 0;
        wanted_of_all = (is_long() ? 1000 : 15) * count;
        had_by_all = 0;
        uint64_t *waits = calloc((size_t)count * wanted_of_all, sizeof(*waits));
        assert_non_null(waits);
        (void)pthread_barrier_init(&together, NULL, count);
        uint64_t from_ns = clock_boot_ns();
        for (unsigned i = 0; i < count; i++) {
                list[i] =
                        (struct contender){ .client = programs.list[i], .waits_ns = waits + (size_t)i * wanted_of_all };
                assert_int_equal(pthread_create(&list[i].thread, NULL, contend, &list[i]), 0);
        }
        size_t all = 0;
        for (unsigned i = 0; i < count; i++) {
                assert_int_equal(pthread_join(list[i].thread, NULL), 0);
                least = list[i].had < least ? list[i].had : least;
                most = list[i].had > most ? list[i].had : most;
                memmove(waits + all, list[i].waits_ns, list[i].had * sizeof(*waits));
                all += list[i].had;
        }
        uint64_t took_ns = clock_boot_ns() - from_ns;
        (void)pthread_barrier_destroy(&together);
        qsort(waits, all, sizeof(*waits), by_size);
        if (is_long())
                print_message("%s: %u contenders, %zu acquisitions, shares %.1f to %.1f %%, %.0f a second, "
                              "waits p50 %.1f ms, p99 %.1f ms\n",
                        programs.w->driver->name, count, all, 100.0 * least / (double)all, 100.0 * most / (double)all,
                        (double)all * 1e9 / (double)took_ns, (double)waits[all / 2] / 1e6,
                        (double)waits[all * 99 / 100] / 1e6);
        free(waits);
        /* Of equal shares, each has 1/n: no one is further from it than 5 %. */
        if (is_long())
                assert_true(most - least <= all / 20);
        assert_true(least > 0);
}

static void contenders_share_it_equally(void **state)
{
        (void)state;
        for (unsigned count = 2; count <= 4; count++)
                measure_contenders(count);
}

/* --- elections ---------------------------------------------------------------------------------------------------- */

static struct qv_client_notice expect(int r, struct qv_client_notice *notice, uint32_t kind)
{
        assert_int_equal(r, 0);
        struct qv_client_notice copy = *notice;
        qv_client_notice_free(notice);
        assert_int_equal(copy.kind, kind);
        return copy;
}

static uint64_t hear(struct qv_client_election *election, uint32_t kind)
{
        struct qv_client_notice *notice = NULL;
        int r = qv_client_election_next(election, NOTICE_MS, &notice);
        return expect(r, notice, kind).token;
}

static void *lead_once(void *client)
{
        struct qv_client_election *election;
        assert_int_equal(qv_client_elect(client, "boss", &election), 0);
        (void)hear(election, QV_CLIENT_ELECTED);
        unsigned now = ++leaders;
        if (now > leaders_max)
                leaders_max = now;
        wins++;
        (void)sched_yield();
        leaders--;
        assert_int_equal(qv_client_resign(election, false), 0);
        (void)hear(election, QV_CLIENT_RESIGNED);
        qv_client_election_close(election);
        return NULL;
}

static void of_ten_candidates_that_resign_all_have_led_one_at_a_time(void **state)
{
        (void)state;
        pthread_t threads[HANDLES];
        wins = leaders = leaders_max = 0;
        for (unsigned i = 0; i < HANDLES; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, lead_once, programs.list[i]), 0);
        for (unsigned i = 0; i < HANDLES; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wins, HANDLES);
        assert_int_equal(leaders_max, 1);
}

/* Both are candidates. */
static void wait_for_both(struct client *eye)
{
        while (!strchr(children(eye, "elections/boss", false), ' '))
                (void)usleep(1000);
}

static void leadership_is_told_in_order(void **state)
{
        (void)state;
        struct qv_client_election *a, *b;
        struct qv_client_notice *notice;
        assert_int_equal(qv_client_elect(programs.list[0], "boss", &a), 0);
        uint64_t first = hear(a, QV_CLIENT_ELECTED);
        assert_int_equal(qv_client_elect(programs.list[1], "boss", &b), 0);
        struct client *eye = NULL; /* has no session that could be lost while this thread waits */
        assert_int_equal(client_connect(programs.w, (struct coord_options){ 0 }, false, &eye, NULL), 0);
        wait_for_both(eye);
        assert_int_equal(qv_client_election_next(b, 0, &notice), -EAGAIN);
        end_session_of(programs.list[0]);
        (void)hear(a, QV_CLIENT_LOST);
        uint64_t second = hear(b, QV_CLIENT_ELECTED);
        assert_true(second > first);
        wait_for_both(eye);
        assert_int_equal(qv_client_resign(b, true), 0);
        (void)hear(b, QV_CLIENT_RESIGNED);
        assert_true(hear(a, QV_CLIENT_ELECTED) > second);
        assert_false(is_readable(qv_client_election_fd(a), 0));
        wait_for_both(eye);
        qv_client_election_close(a);
        assert_true(is_readable(qv_client_election_fd(b), (int)NOTICE_MS));
        (void)hear(b, QV_CLIENT_ELECTED);
        qv_client_election_close(b);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static void hear_member(struct qv_client_members *members, uint32_t kind, const char *name)
{
        struct qv_client_notice *notice = NULL;
        assert_int_equal(qv_client_members_next(members, NOTICE_MS, &notice), 0);
        assert_int_equal(notice->kind, kind);
        assert_string_equal(notice->name, name);
        if (kind == QV_CLIENT_JOINED)
                assert_string_equal(notice->data, "hello");
        qv_client_notice_free(notice);
}

static void each_member_hears_of_every_join_and_leave_once(void **state)
{
        (void)state;
        static const char *const names[] = { "a", "b", "c", "d" };
        struct qv_client_members *m[4];
        struct qv_client_notice *notice;
        for (unsigned k = 0; k < 4; k++) {
                assert_int_equal(qv_client_members(programs.list[k], "crowd", names[k], "hello", 5, &m[k]), 0);
                for (unsigned i = 0; i < k; i++)
                        hear_member(m[i], QV_CLIENT_JOINED, names[k]);
                for (unsigned i = 0; i <= k; i++) { /* The k-th has k mates, in whichever order they were read. */
                        assert_int_equal(qv_client_members_next(m[k], NOTICE_MS, &notice), 0);
                        assert_int_equal(notice->kind, QV_CLIENT_JOINED);
                        qv_client_notice_free(notice);
                }
        }
        end_session_of(programs.list[3]);
        for (unsigned i = 0; i < 3; i++) {
                hear_member(m[i], QV_CLIENT_LEFT, "d");
                hear_member(m[i], QV_CLIENT_JOINED, "d");
        }
        for (unsigned k = 0; k < 3; k++) {
                qv_client_members_close(m[k]);
                for (unsigned i = k + 1; i < 3; i++)
                        hear_member(m[i], QV_CLIENT_LEFT, names[k]);
        }
        qv_client_members_close(m[3]);
        assert_int_equal(qv_client_members(programs.list[0], NULL, "x", NULL, 0, &m[0]), -EINVAL);
}

#define WITH_PROGRAMS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_PROGRAMS(a_lock_is_held_by_one_program_at_a_time),
                WITH_PROGRAMS(what_cannot_be_a_lock_is_refused),
                WITH_PROGRAMS(threads_that_count_under_the_lock_lose_nothing),
                WITH_PROGRAMS(of_ten_racing_tries_one_wins),
                WITH_PROGRAMS(contenders_share_it_equally),
                WITH_PROGRAMS(a_lost_lock_makes_its_descriptor_readable),
                WITH_PROGRAMS(of_ten_candidates_that_resign_all_have_led_one_at_a_time),
                WITH_PROGRAMS(leadership_is_told_in_order),
                WITH_PROGRAMS(each_member_hears_of_every_join_and_leave_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
