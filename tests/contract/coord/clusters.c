/* The heart of the contract on three servers; and they lose their leader, then their quorum, and heal. */
#include "clusters.h"

#include "outages.h"
#include "place_servers.h"

/* What the drivers differ in. */
struct cluster_row {
        const char *driver;
        uint64_t session_ms; /* of those whose session is not to end; 0: the place's */
        bool is_behind;      /* a server may be: what one client did, another sees soon, not at once */
        bool may_reset;      /* the server that is left has no leader and says so, and a new leader may change again */
};

static const struct cluster_row rows[] = {
        { "etcd-cluster", LONG_MS, false, true },
        { "zookeeper-ensemble", 0, true, false },
};

static const struct cluster_row *row(const struct world *w)
{
        return row_of(w, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]));
}

void the_tree_works_on_three_servers(void **state)
{
        struct world *w = *state;
        struct client *a = join_for(w, NULL, row(w)->session_ms), *b = join_for(w, NULL, row(w)->session_ms);
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
        assert_int_equal(get(row(w)->is_behind ? a : b, "work/next", false, NULL, &stat), 0);
        assert_int_equal(stat.created, ops[1].stat.created);
        assert_int_equal(stat.owner, session_of(a));
        ops[0].version = 7;
        assert_int_equal(multi(b, ops, 2), -ESTALE);
        client_close(a);
        if (!row(w)->is_behind)
                assert_string_equal(children(b, "work", false), "doc");
        WAIT_FOR(w, !strcmp(children(b, "work", false), "doc"));
}

void a_session_is_ended_by_its_token(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join_for(w, NULL, row(w)->session_ms);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "graves/mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        if (row(w)->is_behind)
                WAIT_FOR(w, get(b, "graves/mine", false, NULL, NULL) == 0);
        assert_int_equal(get(b, "graves/mine", true, NULL, NULL), 0);
        forget_heard(a);
        lose_session(a);
        WAIT_FOR(w, has_heard(b, "graves/mine"));
        WAIT_FOR(w, a->looks);
        assert_true(was_told(a, COORD_EXPIRED, session));
}

void three_servers_lose_their_leader_then_their_quorum_and_heal(void **state)
{
        struct world *w = *state;
        struct ensemble *three = place_servers();
        struct client *c = join(w);
        int first = ensemble_leader(three);
        assert_true(first >= 0);
        ensemble_kill(three, (unsigned)first);
        WAIT_FOR(w, create(c, "after/n", "", COORD_SEQUENTIAL, NULL, NULL) == 0);

        unsigned second = ((unsigned)first + 1) % three->count;
        ensemble_kill(three, second);
        WAIT_FOR(w, last_state(c) == COORD_EXPIRED);
        int r = get(c, "after", false, NULL, NULL);
        assert_true(r == -ETIMEDOUT || (row(w)->may_reset && r == -ECONNRESET));

        forget_heard(c);
        ensemble_restart(three, (unsigned)first);
        ensemble_restart(three, second);
        WAIT_FOR(w, c->looks);
        if (row(w)->may_reset) {
                WAIT_FOR(w, last_state(c) == COORD_ALIVE && create(c, "again", "", COORD_EPHEMERAL, NULL, NULL) == 0);
                WAIT_FOR(w, get(c, "after", false, NULL, NULL) == 0);
                return;
        }
        assert_int_equal(create(c, "again", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(c, "after", false, NULL, NULL), 0);
}
