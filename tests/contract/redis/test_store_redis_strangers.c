/* On Redis claimed tasks stay in their lists, and their places count.  Whoever writes there with anything but RPUSH
 * moves the places: no task of others may be lost or doubled for that without the owner being told. */
#include "harness.h"

const struct contract_driver *driver = &redis_contract;

#define NORMAL   "quiver:{test:0}:normal"
#define TASK(n)  "qv1|key:k" n "|handler:h||" n
#define STRANGER TASK("X")
#define TASKS    "012345"
#define ROUNDS   40u
#define HELD_MAX 32u

/* Tasks 0 to 5 are queued and three of them claimed; then somebody does this to the list. */
static const struct meddling {
        const char *command;
        const char *removed; /* what it took away itself */
        bool is_added;       /* it put a task of its own in, and none away */
} meddlings[] = {
        { "LPUSH " NORMAL " " STRANGER, "", true },
        { "LPUSH " NORMAL " " STRANGER " " STRANGER " " STRANGER " " STRANGER, "", true },
        { "LINSERT " NORMAL " BEFORE " TASK("1") " " STRANGER, "", true },
        { "LINSERT " NORMAL " AFTER " TASK("2") " " STRANGER, "", true },
        { "LINSERT " NORMAL " AFTER " TASK("4") " " STRANGER, "", true },
        { "LPOP " NORMAL, "0", false },
        { "LTRIM " NORMAL " 2 -1", "01", false },
        { "LTRIM " NORMAL " 4 -1", "0123", false },
        { "LREM " NORMAL " 1 " TASK("1"), "1", false },
        { "LREM " NORMAL " 1 " TASK("2"), "2", false },
        { "LREM " NORMAL " 1 " TASK("4"), "4", false },
        { "LSET " NORMAL " 0 " STRANGER, "0", false },
        { "LSET " NORMAL " 1 " STRANGER, "1", false },
        { "LSET " NORMAL " 2 " STRANGER, "2", false },
        { "RPOPLPUSH " NORMAL " " NORMAL, "", false },
        { "DEL " NORMAL, TASKS, false },
};
#define MEDDLINGS (sizeof(meddlings) / sizeof(meddlings[0]))

struct meddled {
        struct world *w;
        struct owner o;
        uint64_t epoch;
        struct store_task held[HELD_MAX];
        uint32_t held_count;
        char committed[2 * HELD_MAX];
        uint32_t committed_count;
        unsigned lost; /* so often the owner was told that the shard is not its own any more */
};

static void take(struct meddled *m, const struct store_task *tasks, uint32_t count)
{
        assert_in_range(m->held_count + count, 0, HELD_MAX);
        for (uint32_t i = 0; i < count; i++)
                m->held[m->held_count++] = tasks[i];
}

static void own_anew(struct meddled *m)
{
        m->lost++;
        m->held_count = 0;
        m->o = own(m->w, 0, ++m->epoch, 1);
        take(m, m->o.granted.page.tasks, m->o.granted.page.tasks_count);
}

/* The first `count` that the owner has are done, and it claims more. */
static void go_on(struct meddled *m, uint32_t from, uint32_t count)
{
        struct store_outcome outcomes[HELD_MAX] = { 0 };
        for (uint32_t i = 0; i < count; i++)
                outcomes[i] = done(&m->held[from + i]);
        struct store_advance a = advance_call(m->w, &m->o, ++m->o.call, outcomes, count, 3);
        if (a.verdict == STORE_FENCED) {
                own_anew(m);
                return;
        }
        for (uint32_t i = 0; i < count && !a.gone; i++)
                m->committed[m->committed_count++ % sizeof(m->committed)] = m->held[from + i].envelope.payload.data[0];
        m->held_count -= count;
        memmove(&m->held[from], &m->held[from + count], (m->held_count - from) * sizeof(m->held[0]));
        take(m, a.tasks, a.tasks_count);
}

static void begin(struct meddled *m, struct world *w)
{
        *m = (struct meddled){ .w = w, .epoch = m->epoch };
        own_anew(m);
        m->lost = 0;
        for (const char *c = TASKS; *c; c++)
                driver->push(w->place, 0, LANE_NORMAL, F(w, "qv1\nkey:k%c\nhandler:h\n\n%c", *c, *c));
        take(m, claim(w, &m->o, 3).tasks, 3);
        assert_int_equal(m->held_count, 3);
}

/* The rest, one by one.  Then every task that was not removed is committed, and none more than once unless the owner
 * was told; in order but for `early`, which was done before its turn. */
static void end(struct meddled *m, const struct meddling *by, char early)
{
        for (unsigned i = 0; i < ROUNDS; i++)
                go_on(m, 0, m->held_count ? 1 : 0);
        char expected[sizeof(TASKS)] = "", first[sizeof(m->committed) + 1] = "";
        uint32_t count = 0, doubled = 0, strangers = 0;
        for (const char *c = TASKS; *c; c++)
                if (!strchr(by->removed, *c) && *c != early)
                        expected[count++] = *c;
        count = 0;
        for (uint32_t i = 0; i < m->committed_count; i++) {
                char c = m->committed[i];
                strangers += c == 'X';
                if (c == 'X' || strchr(by->removed, c) || c == early)
                        continue;
                doubled += strchr(first, c) != NULL;
                if (!strchr(first, c))
                        first[count++] = c;
        }
        bool is_moved = strncmp(by->command, "RPOPLPUSH", 9) == 0; /* it changes the order itself */
        bool is_right = is_moved ? strlen(first) == strlen(expected) : strcmp(first, expected) == 0;
        if (!is_right || (doubled && !m->lost) || (by->is_added && !strangers) || m->held_count)
                fail_msg("%s: expected are %s, the store has committed %s; the owner lost the shard %u times",
                        by->command, expected, m->committed, m->lost);
        expect_sound(m->w);
}

#define EACH_MEDDLING(m, w, by)                                                                                        \
        struct meddled m = { .epoch = 0 };                                                                             \
        for (const struct meddling *by = meddlings; by < meddlings + MEDDLINGS && (begin(&m, w), true); by++)

static void places_are_compared_when_all_is_done(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                (void)redis_place_do(w, by->command);
                go_on(&m, 0, 3);
                end(&m, by, 0);
        }
}

static void places_are_compared_when_the_first_is_done(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                (void)redis_place_do(w, by->command);
                end(&m, by, 0);
        }
}

static void places_are_compared_when_more_is_claimed(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                (void)redis_place_do(w, by->command);
                go_on(&m, 0, 0);
                end(&m, by, 0);
        }
}

/* What is done behind others is a mark at a place. */
static void places_are_compared_when_one_is_done_early(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                go_on(&m, 2, 1);
                (void)redis_place_do(w, by->command);
                end(&m, by, '2');
        }
}

static void a_new_owner_compares_them_too(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                go_on(&m, 1, 1);
                (void)redis_place_do(w, by->command);
                own_anew(&m);
                end(&m, by, '1');
        }
}

/* Somebody holds a key: what is claimed leaves the list. */
static void places_are_compared_when_tasks_leave_the_list(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                (void)redis_place_do(w, by->command);
                assert_int_equal(key_act(w, CONTROL_HOLD, "other"), 0);
                go_on(&m, 1, 1);
                assert_int_equal(key_act(w, CONTROL_UNHOLD, "other"), 0);
                end(&m, by, '1');
        }
}

/* The answer to a claim is lost, and it is said again. */
static void places_are_compared_when_a_call_is_repeated(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                w->lose_next = true;
                (void)advance_call(w, &m.o, m.o.call + 1, NULL, 0, 2);
                (void)redis_place_do(w, by->command);
                go_on(&m, 0, 0);
                end(&m, by, 0);
        }
}

/* The owner does not know what the store has of the lists: it speaks of seqs. */
static void places_are_compared_when_all_is_said_anew(void **state)
{
        struct world *w = *state;
        EACH_MEDDLING(m, w, by)
        {
                (void)redis_place_do(w, by->command);
                (void)redis_place_do(w, "HSET quiver:{test:0}:shard claimed 00~3~0");
                go_on(&m, 1, 1);
                end(&m, by, '1');
        }
}

/* Somebody writes while a call is under way: after so many turns of the loop. */
static unsigned meddle_turn;

static void meddle_in_turn(struct world *w, unsigned turn)
{
        if (turn == meddle_turn)
                (void)redis_place_do(w, meddlings[0].command);
}

/* What no host can run is sent away by a call of its own, right after it was claimed. */
static void places_are_compared_when_a_task_is_sent_away(void **state)
{
        struct world *w = *state;
        struct meddled m = { .epoch = 0 };
        for (meddle_turn = 1; meddle_turn < 10; meddle_turn++) {
                begin(&m, w);
                go_on(&m, 0, 0);
                driver->push(w->place, 0, LANE_NORMAL, T("nonsense"));
                w->on_turn = meddle_in_turn;
                go_on(&m, 0, 0);
                w->on_turn = NULL;
                end(&m, &(struct meddling){ "LPUSH during a call", "", false }, 0);
                assert_int_equal(counts(w, 0).dead, meddle_turn);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(places_are_compared_when_all_is_done),
                IN_WORLD(places_are_compared_when_the_first_is_done),
                IN_WORLD(places_are_compared_when_more_is_claimed),
                IN_WORLD(places_are_compared_when_one_is_done_early),
                IN_WORLD(a_new_owner_compares_them_too),
                IN_WORLD(places_are_compared_when_tasks_leave_the_list),
                IN_WORLD(places_are_compared_when_a_call_is_repeated),
                IN_WORLD(places_are_compared_when_all_is_said_anew),
                IN_WORLD(places_are_compared_when_a_task_is_sent_away),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
