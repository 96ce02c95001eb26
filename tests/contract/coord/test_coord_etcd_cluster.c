/* The etcd driver on a cluster of three: what every driver promises there; and a leader falls silent. */
#include "clusters.h"
#include "outages.h"
#include "place_servers.h"

/* Wherever a client is, a server that hangs is left before the session is over, and no change is missed. */
static void a_leader_that_hangs_costs_no_session_and_no_change(void **state)
{
        struct world *w = *state;
        struct ensemble *three = place_servers();
        struct client *c[4];
        uint64_t sessions[4];
        int leader = ensemble_leader(three);
        assert_true(leader >= 0);
        for (int i = 0; i < 4; i++) {
                c[i] = join_for(w, NULL, LONG_MS);
                sessions[i] = session_of(c[i]);
        }
        assert_int_equal(create(c[0], "doc", "", 0, NULL, NULL), 0);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(get(c[i], "doc", true, NULL, NULL), 0);
                forget_heard(c[i]);
        }
        ensemble_pause(three, (unsigned)leader);
        WAIT_FOR(w, set(c[1], "doc", "x", COORD_ANY_VERSION, NULL) == 0);
        for (int i = 0; i < 4; i++) {
                WAIT_FOR(w, has_heard(c[i], "doc") || c[i]->looks);
                assert_int_equal(c[i]->looks, 0);
                assert_int_equal(session_of(c[i]), sessions[i]);
        }
        ensemble_resume(three, (unsigned)leader);
        ensemble_wait(three);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_leader_that_hangs_costs_no_session_and_no_change),
                CLUSTER_TESTS,
        };
        (void)setenv("QUIVER_COORD_DRIVER", "etcd-cluster", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
