/* The ZooKeeper driver on an ensemble of three: the heart of the contract; and the ensemble loses its leader, then its
 * quorum, and heals.  A server may be behind the others: what one client did, another sees soon. */
#include "coord/harness.h"
#include "coord/place_zookeeper.h"

static void the_tree_works_on_an_ensemble(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        struct coord_stat stat;
        assert_int_equal(create(a, "work/mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(b, "work/mine", "", 0, NULL, NULL), -EEXIST);
        assert_int_equal(create(a, "work/doc", "", 0, NULL, NULL), 0);
        assert_int_equal(get(a, "work/doc", true, NULL, NULL), 0);
        assert_int_equal(set(b, "work/doc", "x", 0, NULL), 0);
        WAIT_FOR(w, has_heard(a, "work/doc"));
        struct coord_multi_op ops[] = {
                { .kind = COORD_CHECK, .path = "work/mine", .version = 0 },
                { .kind = COORD_CREATE, .path = "work/next", .data = T("n"), .flags = COORD_EPHEMERAL },
        };
        assert_int_equal(multi(a, ops, 2), 0);
        assert_int_equal(get(a, "work/next", false, NULL, &stat), 0);
        assert_int_equal(stat.created, ops[1].stat.created);
        assert_int_equal(stat.owner, session_of(a));
        ops[0].version = 7;
        assert_int_equal(multi(b, ops, 2), -ESTALE);
        client_close(a);
        WAIT_FOR(w, !strcmp(children(b, "work", false), "doc"));
}

static void a_session_is_buried_by_its_token(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "graves/mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        WAIT_FOR(w, get(b, "graves/mine", true, NULL, NULL) == 0);
        forget_heard(a);
        lose_session(a);
        WAIT_FOR(w, has_heard(b, "graves/mine"));
        WAIT_FOR(w, a->looks);
        assert_true(was_told(a, COORD_EXPIRED, session));
}

static void an_ensemble_loses_its_leader_then_its_quorum_and_heals(void **state)
{
        struct world *w = *state;
        struct zookeepers *three = place_zookeeper();
        struct client *c = join(w);
        int first = zookeepers_leader(three);
        assert_true(first >= 0);
        zookeepers_kill(three, (unsigned)first);
        WAIT_FOR(w, create(c, "after/n", "", COORD_SEQUENTIAL, NULL, NULL) == 0);

        unsigned second = ((unsigned)first + 1) % three->count;
        zookeepers_kill(three, second);
        WAIT_FOR(w, c->states[c->states_count - 1] == COORD_EXPIRED);
        assert_int_equal(get(c, "after", false, NULL, NULL), -ETIMEDOUT);

        forget_heard(c);
        zookeepers_restart(three, (unsigned)first);
        zookeepers_restart(three, second);
        WAIT_FOR(w, c->looks);
        assert_int_equal(create(c, "again", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(c, "after", false, NULL, NULL), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(the_tree_works_on_an_ensemble),
                IN_WORLD(a_session_is_buried_by_its_token),
                IN_WORLD(an_ensemble_loses_its_leader_then_its_quorum_and_heals),
        };
        (void)setenv("QUIVER_COORD_DRIVER", "zookeeper-ensemble", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
