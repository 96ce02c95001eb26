/* The etcd driver on a cluster of three: the heart of the contract; and the cluster loses its leader, by death and by
 * silence, then its quorum, and heals. */
#include "coord/harness.h"
#include "coord/place_etcd.h"

#define LONG_MS 20000

static enum coord_state last_state(const struct client *c)
{
        return c->states[c->states_count - 1];
}

static struct client *join_long(struct world *w)
{
        struct client *c;
        assert_int_equal(client_connect(w, (struct coord_options){ .session_ms = LONG_MS }, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

static void the_tree_works_on_a_cluster(void **state)
{
        struct world *w = *state;
        struct client *a = join_long(w), *b = join_long(w);
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
        assert_int_equal(get(b, "work/next", false, NULL, &stat), 0);
        assert_int_equal(stat.created, ops[1].stat.created);
        assert_int_equal(stat.owner, session_of(a));
        ops[0].version = 7;
        assert_int_equal(multi(b, ops, 2), -ESTALE);
        client_close(a);
        assert_string_equal(children(b, "work", false), "doc");
}

static void a_session_is_ended_by_its_token(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join_long(w);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "graves/mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(b, "graves/mine", true, NULL, NULL), 0);
        forget_heard(a);
        lose_session(a);
        WAIT_FOR(w, has_heard(b, "graves/mine"));
        WAIT_FOR(w, a->looks);
        assert_true(was_told(a, COORD_EXPIRED, session));
}

/* Wherever a client is, a server that hangs is left before the session is over, and no change is missed. */
static void a_leader_that_hangs_costs_no_session_and_no_change(void **state)
{
        struct world *w = *state;
        struct etcds *three = place_etcd();
        struct client *c[4];
        uint64_t sessions[4];
        int leader = etcds_leader(three);
        assert_true(leader >= 0);
        for (int i = 0; i < 4; i++) {
                c[i] = join_long(w);
                sessions[i] = session_of(c[i]);
        }
        assert_int_equal(create(c[0], "doc", "", 0, NULL, NULL), 0);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(get(c[i], "doc", true, NULL, NULL), 0);
                forget_heard(c[i]);
        }
        etcds_pause(three, (unsigned)leader);
        WAIT_FOR(w, set(c[1], "doc", "x", COORD_ANY_VERSION, NULL) == 0);
        for (int i = 0; i < 4; i++) {
                WAIT_FOR(w, has_heard(c[i], "doc") || c[i]->looks);
                assert_int_equal(c[i]->looks, 0);
                assert_int_equal(session_of(c[i]), sessions[i]);
        }
        etcds_resume(three, (unsigned)leader);
        etcds_wait(three);
}

static void a_cluster_loses_its_leader_then_its_quorum_and_heals(void **state)
{
        struct world *w = *state;
        struct etcds *three = place_etcd();
        struct client *c = join(w);
        int first = etcds_leader(three);
        assert_true(first >= 0);
        etcds_kill(three, (unsigned)first);
        WAIT_FOR(w, create(c, "after/n", "", COORD_SEQUENTIAL, NULL, NULL) == 0);

        /* The one that is left has no leader, and says so. */
        unsigned second = ((unsigned)first + 1) % three->count;
        etcds_kill(three, second);
        WAIT_FOR(w, last_state(c) == COORD_EXPIRED);
        int r = get(c, "after", false, NULL, NULL);
        assert_true(r == -ETIMEDOUT || r == -ECONNRESET);

        forget_heard(c);
        etcds_restart(three, (unsigned)first);
        etcds_restart(three, second);
        WAIT_FOR(w, c->looks);
        WAIT_FOR(w, last_state(c) == COORD_ALIVE && create(c, "again", "", COORD_EPHEMERAL, NULL, NULL) == 0);
        WAIT_FOR(w, get(c, "after", false, NULL, NULL) == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(the_tree_works_on_a_cluster),
                IN_WORLD(a_session_is_ended_by_its_token),
                IN_WORLD(a_leader_that_hangs_costs_no_session_and_no_change),
                IN_WORLD(a_cluster_loses_its_leader_then_its_quorum_and_heals),
        };
        (void)setenv("QUIVER_COORD_DRIVER", "etcd-cluster", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
