/* Sessions: what hangs on them, how they end, and what their owner is told. */
#include "harness.h"

static void a_session_is_told_and_has_a_number(void **state)
{
        struct client *c = join(*state);
        struct coord_info info;
        coord_info(c->coord, &info);
        assert_int_equal(c->states_count, 1);
        assert_int_equal(c->states[0], COORD_ALIVE);
        assert_true(c->sessions[0] != 0);
        assert_int_equal(info.session, c->sessions[0]);
        assert_int_equal(info.state, COORD_ALIVE);
        assert_true(info.session_ms > 0 && info.answered_ms > 0);
        assert_string_equal(info.driver, ((struct world *)*state)->driver->name);
        assert_int_equal(c->looks, 1);
}

static void ephemeral_nodes_name_their_owner(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        struct coord_stat stat;
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(b, "members/a", false, NULL, &stat), 0);
        assert_int_equal(stat.owner, session_of(a));
        assert_true(session_of(a) != session_of(b));
}

static void ephemeral_nodes_go_with_their_session(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(a, "members/n-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
        assert_int_equal(create(a, "stays", "", 0, NULL, NULL), 0);
        assert_int_equal(create(b, "members/b", "", COORD_EPHEMERAL, NULL, NULL), 0);
        client_close(a);
        /* At once: closing has ended it. */
        assert_string_equal(children(b, "members", false), "b");
        assert_int_equal(get(b, "stays", false, NULL, NULL), 0);
}

static void an_ephemeral_node_has_no_children(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(c, "e/child", "", 0, NULL, NULL), -ENOTDIR);
        assert_int_equal(create(c, "e/deep/child", "", 0, NULL, NULL), -ENOTDIR);
        assert_int_equal(get(c, "e", false, NULL, NULL), 0);
}

static void a_quiet_session_stays(void **state)
{
        struct world *w = *state;
        struct client *a = join(w);
        struct client *b = join(w);
        struct coord_info info;
        uint64_t until_ms;
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        coord_info(a->coord, &info);
        until_ms = info.answered_ms + 3 * info.session_ms;
        WAIT_FOR(w, (coord_info(a->coord, &info), info.answered_ms >= until_ms));
        assert_string_equal(children(b, "members", false), "a");
        assert_int_equal(a->states_count, 1);
        assert_int_equal(b->states_count, 1);
}

static void a_buried_session_takes_its_nodes_along_at_once(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        char token[COORD_TOKEN_MAX];
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(b, "members/b", "", COORD_EPHEMERAL, NULL, NULL), 0);
        coord_token(a->coord, token);
        assert_int_equal(end_session(*state, token), 0);
        assert_string_equal(children(b, "members", false), "b");
        /* A second time there is nothing left to do. */
        assert_int_equal(end_session(*state, token), 0);
        assert_string_equal(children(b, "members", false), "b");
}

static void a_lost_session_is_told_and_followed_by_another(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        uint64_t old = session_of(a);
        forget_heard(a);
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        lose_session(a);
        WAIT_FOR(*state, a->looks);
        assert_true(was_told(a, COORD_EXPIRED, old));
        assert_int_equal(a->states[a->states_count - 1], COORD_ALIVE);
        uint64_t new = a->sessions[a->states_count - 1];
        assert_true(new &&new != old);
        assert_int_equal(session_of(a), new);
        struct coord_stat stat;
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, &stat), 0);
        assert_int_equal(stat.owner, new);
        assert_string_equal(children(b, "members", false), "a");
        assert_int_equal(b->states_count, 1);
}

/* A request, and whether its client had the next session when it was answered. */
struct orphan {
        struct pending pending;
        struct client *client;
        uint64_t session;
        bool had_next;
};

static void on_orphan_done(struct coord_request *request)
{
        struct orphan *o = (struct orphan *)request;
        unsigned last = o->client->states_count - 1;
        o->had_next = o->client->states[last] == COORD_ALIVE && o->client->sessions[last] != o->session;
        pending_done(request);
}

static void requests_of_a_lost_session_do_not_happen_under_the_next(void **state)
{
        struct world *w = *state;
        struct client *a = join(w);
        struct client *b = join(w);
        uint64_t old = session_of(a);
        struct orphan o = { .client = a, .session = old };
        char token[COORD_TOKEN_MAX];
        o.pending.create =
                (struct coord_create){ .request.done = on_orphan_done, .path = "e", .flags = COORD_EPHEMERAL };
        coord_token(a->coord, token);
        assert_int_equal(end_session(w, token), 0);
        bool is_told = was_told(a, COORD_EXPIRED, old);
        coord_create(a->coord, &o.pending.create);
        WAIT_FOR(w, o.pending.done && was_told(a, COORD_EXPIRED, old) && a->states[a->states_count - 1] == COORD_ALIVE);
        assert_int_equal(o.pending.status, is_told ? 0 : -EOWNERDEAD);
        assert_int_equal(o.had_next, is_told);
        assert_int_equal(get(b, "e", false, NULL, NULL), is_told ? 0 : -ENOENT);
}

static void a_session_survives_a_short_cut(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        struct coord_stat stat;
        if (!w->driver->cut)
                skip();
        assert_int_equal(create(c, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        w->driver->cut(w->place);
        WAIT_FOR(w, was_told(c, COORD_SUSPENDED, session));
        w->driver->heal(w->place);
        WAIT_FOR(w, c->states[c->states_count - 1] == COORD_ALIVE);
        if (was_told(c, COORD_EXPIRED, session))
                skip(); /* this machine was too slow to heal it in time */
        assert_int_equal(session_of(c), session);
        assert_int_equal(get(c, "e", false, NULL, &stat), 0);
        assert_int_equal(stat.owner, session);
}

static void requests_wait_while_suspended_and_then_fail(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        struct pending p = { .get = { .request.done = pending_done, .path = "n" } };
        if (!w->driver->cut)
                skip();
        w->driver->cut(w->place);
        WAIT_FOR(w, c->states_count > 1);
        coord_get(c->coord, &p.get);
        WAIT_FOR(w, p.done);
        assert_true(p.status == -ETIMEDOUT || p.status == -EOWNERDEAD || p.status == -ECONNRESET);
        w->driver->heal(w->place);
}

static void a_long_cut_ends_the_session(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        if (!w->driver->cut)
                skip();
        assert_int_equal(create(c, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        w->driver->cut(w->place);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        assert_true(was_told(c, COORD_SUSPENDED, session));
        forget_heard(c);
        w->driver->heal(w->place);
        WAIT_FOR(w, c->looks);
        assert_true(session_of(c) && session_of(c) != session);
        WAIT_FOR(w, get(c, "e", false, NULL, NULL) == -ENOENT);
}

static void a_tree_opens_while_its_authority_is_away(void **state)
{
        struct world *w = *state;
        struct client *first = join(w), *c;
        struct coord_info info;
        if (!w->driver->cut || !strcmp(w->driver->name, "local"))
                skip(); /* a folder that cannot be entered is refused */
        client_close(first);
        w->driver->cut(w->place);
        assert_int_equal(client_connect(w, (struct coord_options){ 0 }, true, &c, NULL), 0);
        coord_info(c->coord, &info);
        assert_int_equal(info.state, COORD_CONNECTING);
        assert_int_equal(info.session, 0);
        w->driver->heal(w->place);
        WAIT_FOR(w, c->looks);
        assert_true(session_of(c) != 0);
}

static void closing_ends_what_is_under_way(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        struct pending p[3] = { 0 };
        for (unsigned i = 0; i < 3; i++) {
                p[i].get = (struct coord_get){ .request.done = pending_done, .path = "n" };
                coord_get(c->coord, &p[i].get);
        }
        client_close(c);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(p[i].done, 1);
                assert_true(p[i].status == -ECANCELED || p[i].status == -ENOENT);
        }
        assert_int_equal(c->closed, 1);
}

static void a_visitor_reads_and_writes_but_keeps_nothing(void **state)
{
        struct world *w = *state;
        struct client *c = join(w), *visitor;
        const char *data;
        assert_int_equal(create(c, "n", "x", 0, NULL, NULL), 0);
        assert_int_equal(client_connect(w, (struct coord_options){ 0 }, false, &visitor, NULL), 0);
        assert_int_equal(get(visitor, "n", false, &data, NULL), 0);
        assert_string_equal(data, "x");
        assert_int_equal(set(visitor, "n", "y", 0, NULL), 0);
        assert_int_equal(create(visitor, "e", "", COORD_EPHEMERAL, NULL, NULL), -EINVAL);
        assert_int_equal(get(visitor, "n", true, NULL, NULL), -EINVAL);
        assert_int_equal(get(c, "n", false, &data, NULL), 0);
        assert_string_equal(data, "y");
}

const struct CMUnitTest session_tests[] = {
        IN_WORLD(a_session_is_told_and_has_a_number),
        IN_WORLD(ephemeral_nodes_name_their_owner),
        IN_WORLD(ephemeral_nodes_go_with_their_session),
        IN_WORLD(an_ephemeral_node_has_no_children),
        IN_WORLD(a_quiet_session_stays),
        IN_WORLD(a_buried_session_takes_its_nodes_along_at_once),
        IN_WORLD(a_lost_session_is_told_and_followed_by_another),
        IN_WORLD(requests_of_a_lost_session_do_not_happen_under_the_next),
        IN_WORLD(a_session_survives_a_short_cut),
        IN_WORLD(requests_wait_while_suspended_and_then_fail),
        IN_WORLD(a_long_cut_ends_the_session),
        IN_WORLD(a_tree_opens_while_its_authority_is_away),
        IN_WORLD(closing_ends_what_is_under_way),
        IN_WORLD(a_visitor_reads_and_writes_but_keeps_nothing),
};
GROUP(session);
