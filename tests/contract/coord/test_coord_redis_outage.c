/* What the Redis driver promises beyond the contract of every driver: fenced by the server, alive after a wipe, deaf
 * only for a beat, in a Cluster too. */
#include "harness.h"
#include "place_redis.h"

static struct client *join_at(struct world *w, struct coord_options options)
{
        struct client *c;
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

static long long ask(const char *command)
{
        redisReply *reply = server_do(place_redis(), command);
        assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
        long long number = reply->integer;
        freeReplyObject(reply);
        return number;
}

static void a_session_that_is_over_changes_nothing(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        const char *data;
        char token[COORD_TOKEN_MAX];
        assert_int_equal(create(b, "n", "old", 0, NULL, NULL), 0);
        coord_token(a->coord, token);
        token[strcspn(token, "-")] = 0;
        /* Its loop does not turn between the two: only the server can know. */
        server_ok(place_redis(), "ZADD quiver:{test:coord}:sessions 1 %s", token);
        assert_int_equal(set(a, "n", "new", COORD_ANY_VERSION, NULL), -EOWNERDEAD);
        assert_int_equal(get(b, "n", false, &data, NULL), 0);
        assert_string_equal(data, "old");
}

static void whoever_comes_by_clears_away_many_nodes(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        for (unsigned i = 0; i < 600; i++)
                assert_int_equal(create(a, "crowd/n", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
        client_close(a);
        WAIT_FOR(w, !strcmp(children(b, "crowd", false), ""));
        assert_int_equal(ask("ZCARD quiver:{test:coord}:sessions"), 1);
}

static void a_visitor_holds_no_session(void **state)
{
        struct world *w = *state;
        struct client *visitor;
        assert_int_equal(client_connect(w, (struct coord_options){ 0 }, false, &visitor, NULL), 0);
        assert_int_equal(create(visitor, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(ask("ZCARD quiver:{test:coord}:sessions"), 0);
}

static void ids_do_not_go_back_in_a_wiped_server(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        struct coord_stat before, after;
        assert_int_equal(create(c, "n", "", 0, NULL, &before), 0);
        forget_heard(c);
        server_ok(place_redis(), "FLUSHALL");
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session) && session_of(c) != session && c->looks);
        assert_true(session_of(c) > session);
        assert_int_equal(create(c, "n", "", 0, NULL, &after), 0);
        assert_true(after.created > before.created);
}

static void a_server_that_was_killed_gets_a_new_session(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        server_kill(place_redis());
        WAIT_FOR(w, was_told(c, COORD_SUSPENDED, session));
        server_restart(place_redis());
        WAIT_FOR(w, c->states[c->states_count - 1] == COORD_ALIVE && session_of(c) != session);
        assert_true(was_told(c, COORD_EXPIRED, session));
        assert_int_equal(create(c, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
}

static void a_wrong_password_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        server_ok(place_redis(), "ACL SETUSER fleet on >right ~* &* +@all");
        struct coord_options options = { .url = place_redis()->url, .user = "fleet", .password = "wrong" };
        assert_int_equal(client_connect(w, options, true, NULL, &error), -EACCES);
        assert_null(strstr(error.text, "wrong\""));
        options.password = "right";
        (void)join_at(w, options);
}

static void without_a_bell_everybody_looks_at_every_beat(void **state)
{
        struct world *w = *state;
        server_ok(place_redis(), "ACL SETUSER deaf on >pw ~* &* +@all -client|tracking");
        struct client *a =
                join_at(w, (struct coord_options){ .url = place_redis()->url, .user = "deaf", .password = "pw" });
        struct client *b = join(w);
        assert_int_equal(create(b, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(get(a, "n", true, NULL, NULL), 0);
        forget_heard(a);
        assert_int_equal(set(b, "n", "x", 0, NULL), 0);
        WAIT_FOR(w, a->looks);
        assert_int_equal(a->states_count, 1);
}

static void the_stores_redis_serves_as_well(void **state)
{
        struct world *w = *state;
        struct error error;
        struct client *c = join_at(w, (struct coord_options){ .url = "redis", .store_url = place_redis()->url });
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        struct coord_options options = { .url = "redis", .store_url = "sqlite:/tmp/q.db" };
        assert_int_equal(client_connect(w, options, true, NULL, &error), -EINVAL);
        assert_non_null(strstr(error.text, "redis://"));
}

static void the_tree_works_in_a_cluster(void **state)
{
        struct world *w = *state;
        struct redis_cluster cluster = { 0 };
        redis_cluster_start(&cluster);
        struct coord_options options = { .url = cluster.url };
        struct client *a = join_at(w, options), *b = join_at(w, options);
        struct coord_multi_op ops[] = {
                { .kind = COORD_CREATE, .path = "work" },
                { .kind = COORD_CREATE, .path = "work/mine", .flags = COORD_EPHEMERAL },
        };
        assert_string_equal(children(b, "work", true), "");
        assert_int_equal(multi(a, ops, 2), 0);
        WAIT_FOR(w, has_heard(b, "work"));
        forget_heard(b);
        assert_string_equal(children(b, "work", true), "mine");
        client_close(a);
        WAIT_FOR(w, has_heard(b, "work"));
        assert_string_equal(children(b, "work", false), "");
        client_close(b);
        redis_cluster_free(&cluster);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_session_that_is_over_changes_nothing),
                IN_WORLD(whoever_comes_by_clears_away_many_nodes),
                IN_WORLD(a_visitor_holds_no_session),
                IN_WORLD(ids_do_not_go_back_in_a_wiped_server),
                IN_WORLD(a_server_that_was_killed_gets_a_new_session),
                IN_WORLD(a_wrong_password_is_refused),
                IN_WORLD(without_a_bell_everybody_looks_at_every_beat),
                IN_WORLD(the_stores_redis_serves_as_well),
                IN_WORLD(the_tree_works_in_a_cluster),
        };
        (void)setenv("QUIVER_COORD_DRIVER", "redis", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
