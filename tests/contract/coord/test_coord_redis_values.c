/* Others can write to the keys of the tree in Redis.  What they leave there and cannot be is named in the log, and
 * neither crashes a client nor stops the others; whoever may replace it does. */
#include "actors.h"
#include "place_redis.h"

#define TREE "quiver:{test:coord}:"

static void redis(const char *format, const char *value)
{
        redisReply *reply = server_do(place_redis(), format, value);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
}

static const char *const no_numbers[] = { "nan", "-nan", "inf", "-inf", "-1", "1e300", "0x10", "1.5", "", "abc",
        "99999999999999999999", "9007199254740993" };
#define NO_NUMBERS (sizeof(no_numbers) / sizeof(no_numbers[0]))

static void a_sequence_that_is_no_number_goes_on_above_those_who_wait(void **state)
{
        struct client *c = join(*state);
        const char *made = NULL;
        unsigned flags = COORD_EPHEMERAL | COORD_SEQUENTIAL;
        assert_int_equal(create(c, "line/a-", "", flags, NULL, NULL), 0);
        for (size_t i = 0; i < NO_NUMBERS; i++) {
                char want[32];
                redis("HSET " TREE "node:line sequence %s", no_numbers[i]);
                assert_int_equal(create(c, "line/a-", "", flags, &made, NULL), 0);
                (void)snprintf(want, sizeof(want), "line/a-%010zu", i + 1);
                assert_string_equal(made, want);
        }
        redis("HDEL " TREE "node:line %s", "sequence");
        assert_int_equal(create(c, "line/b-", "", flags, &made, NULL), 0);
        assert_string_equal(made, "line/b-0000000013");
}

static void a_sequence_without_a_number_left_is_refused(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "line/x-9999999999", "", COORD_EPHEMERAL, NULL, NULL), 0);
        redis("HSET " TREE "node:line sequence %s", "10000000000");
        assert_int_equal(create(c, "line/a-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), -EBADMSG);
        assert_int_equal(del(c, "line/x-9999999999", COORD_ANY_VERSION), 0);
        assert_int_equal(create(c, "line/a-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
}

static void a_second_candidate_comes_after_the_first_whatever_the_sequence_says(void **state)
{
        struct world *w = *state;
        for (size_t i = 0; i < CLIENTS_MAX / 2; i++) {
                struct actor *a = actor(w, "a"), *b = actor(w, "b");
                leader_stand(&a->leader, true);
                WAIT_FOR(w, leader_is_leading(&a->leader));
                redis("HSET " TREE "node:election sequence %s", no_numbers[i]);
                leader_stand(&b->leader, true);
                WAIT_FOR(w, leader_is_settled(&b->leader));
                assert_true(leader_is_leading(&a->leader));
                assert_false(leader_is_leading(&b->leader));
                leave(a);
                WAIT_FOR(w, leader_is_leading(&b->leader));
                leave(b);
        }
}

static void a_node_that_cannot_be_is_refused_watched_and_mended(void **state)
{
        struct client *c = join(*state);
        static const char *const fields[] = { "version", "created", "owner" };
        struct coord_stat stat;
        for (size_t f = 0; f < 3; f++) {
                for (size_t i = 0; i < NO_NUMBERS; i++) {
                        char command[128];
                        const char *data;
                        (void)set(c, "n", "", COORD_ANY_VERSION, NULL);
                        (void)create(c, "n", "old", 0, NULL, NULL);
                        (void)snprintf(command, sizeof(command), "HSET " TREE "node:n %s %%s", fields[f]);
                        redis(command, no_numbers[i]);
                        forget_heard(c);
                        assert_int_equal(get(c, "n", true, NULL, NULL), -EBADMSG);
                        assert_int_equal(set(c, "n", "new", 0, NULL), -ESTALE);
                        assert_int_equal(set(c, "n", "new", COORD_ANY_VERSION, &stat), 0);
                        WAIT_FOR((struct world *)*state, has_heard(c, "n"));
                        assert_int_equal(get(c, "n", false, &data, &stat), 0);
                        assert_string_equal(data, "new");
                        assert_int_equal(stat.owner, 0);
                        assert_true(stat.created > 0);
                        redis(command, no_numbers[i]);
                        assert_int_equal(del(c, "n", COORD_ANY_VERSION), 0);
                        assert_int_equal(get(c, "n", false, NULL, NULL), -ENOENT);
                }
        }
}

/* Its session's end removes it, although it no longer says whose it is. */
static void a_node_that_forgot_its_owner_goes_with_it(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        redis("HSET " TREE "node:e owner %s", "nan");
        client_close(a);
        WAIT_FOR((struct world *)*state, get(b, "e", false, NULL, NULL) == -ENOENT);
}

static void ids_go_on_from_the_clock(void **state)
{
        struct client *a = join(*state);
        for (size_t i = 0; i < NO_NUMBERS; i++) {
                struct coord_stat before, after;
                assert_int_equal(create(a, "n", "", 0, NULL, &before), 0);
                redis("SET " TREE "ids %s", no_numbers[i]);
                struct client *b = join(*state);
                assert_true(session_of(b) > before.created);
                assert_int_equal(del(a, "n", COORD_ANY_VERSION), 0);
                redis("SET " TREE "ids %s", no_numbers[i]);
                assert_int_equal(create(b, "n", "", 0, NULL, &after), 0);
                assert_true(after.created > before.created);
                assert_int_equal(del(a, "n", COORD_ANY_VERSION), 0);
                client_close(b);
        }
}

static void no_session_lasts_for_ever(void **state)
{
        struct client *a = join(*state);
        for (size_t i = 0; i < NO_NUMBERS; i++) {
                redis("HSET " TREE "session:77 nonce x ttl %s", no_numbers[i]);
                redis("ZADD " TREE "sessions %s 77", "inf");
                redis("SADD " TREE "nodes:77 %s", "ghost");
                redis("HSET " TREE "node:ghost created 5 version 0 owner %s", "77");
                WAIT_FOR((struct world *)*state, get(a, "ghost", false, NULL, NULL) == -ENOENT);
        }
}

static void names_that_are_none_are_left_out(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        struct client *c = join(w);
        static const char *const odd[] = { "", "a/b", "..", "a b", "\xff\xfe", "x\ny" };
        assert_int_equal(create(c, "members/x", "", COORD_EPHEMERAL, NULL, NULL), 0);
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
                redis("SADD " TREE "children:members %s", odd[i]);
        assert_string_equal(children(c, "members", false), "x");
        member_set(&a->member, T("here"));
        WAIT_FOR(w, a->mates == 2 && a->is_known);
        leave(a);
}

/* Neither one that no session holds, nor one that cannot be read. */
static void ghosts_are_no_members(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        struct client *c = join(w);
        assert_int_equal(create(c, "members/g", "", 0, NULL, NULL), 0);
        assert_int_equal(create(c, "members/h", "", COORD_EPHEMERAL, NULL, NULL), 0);
        redis("HSET " TREE "node:members/h created %s", "nan");
        member_set(&a->member, T("here"));
        member_look(&a->member);
        WAIT_FOR(w, a->mates == 1 && a->is_known);
        leave(a);
}

static void a_member_whose_node_was_spoilt_joins_again(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        struct coord_stat stat;
        member_set(&a->member, T("here"));
        WAIT_FOR(w, member_is_settled(&a->member));
        redis("HSET " TREE "node:members/a owner %s", "nan");
        WAIT_FOR(w, get(a->client, "members/a", false, NULL, &stat) == 0 && stat.owner == session_of(a->client));
        leave(a);
}

static void keys_of_another_type_stop_only_their_own_node(void **state)
{
        struct client *c = join(*state);
        redis("SET " TREE "node:n %s", "text");
        redis("SET " TREE "children:m %s", "text");
        redis("DEL " TREE "%s", "ids");
        redis("RPUSH " TREE "ids %s", "text");
        assert_int_equal(get(c, "n", false, NULL, NULL), -EBADMSG);
        assert_int_equal(set(c, "n", "", COORD_ANY_VERSION, NULL), -EBADMSG);
        assert_int_equal(create(c, "n/x", "", 0, NULL, NULL), -EBADMSG);
        assert_int_equal(create(c, "m/x", "", 0, NULL, NULL), -EBADMSG);
        assert_int_equal(create(c, "o/x", "", 0, NULL, NULL), 0);
        assert_string_equal(children(c, "o", false), "x");
}

/* --- anything at all --- */

static unsigned long draw(unsigned long below)
{
        return (unsigned long)random() % below;
}

/* One of the tree's own keys, or one that could be. */
static redisReply *choose_key(void)
{
        redisReply *keys = server_do(place_redis(), "KEYS " TREE "*");
        assert_int_equal(keys->type, REDIS_REPLY_ARRAY);
        return keys;
}

static void spoil(void)
{
        static const char *const fields[] = { "data", "version", "created", "owner", "sequence", "nonce", "ttl" };
        static const char *const others[] = { "SET %s text", "DEL %s", "RPUSH %s x", "SADD %s x/y", "ZADD %s inf 5",
                "HSET %s owner 0", "HSET %s sequence 9999999999" };
        redisReply *keys = choose_key();
        if (keys->elements) {
                const char *key = keys->element[draw(keys->elements)]->str;
                const char *value = no_numbers[draw(NO_NUMBERS)];
                redisReply *reply;
                if (draw(4))
                        reply = server_do(place_redis(), "HSET %s %s %s", key, fields[draw(7)], value);
                else
                        reply = server_do(place_redis(), others[draw(7)], key);
                freeReplyObject(reply); /* of the wrong type, as often as not */
        }
        freeReplyObject(keys);
}

static void whatever_is_written_there_clients_go_on_after_it(void **state)
{
        struct world *w = *state;
        struct actor *a[3];
        const char *text = getenv("QUIVER_TEST_SEED");
        unsigned seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)(uv_hrtime() >> 10);
        print_message("QUIVER_TEST_SEED=%u\n", seed);
        srandom(seed);
        for (unsigned i = 0; i < 3; i++) {
                a[i] = actor(w, (char[]){ (char)('a' + i), 0 });
                member_set(&a[i]->member, T("here"));
                leader_stand(&a[i]->leader, true);
                lock_acquire(&a[i]->lock);
        }
        for (unsigned i = 0; i < 400; i++) {
                spoil();
                (void)uv_run(&w->loop, UV_RUN_NOWAIT);
                if (i % 10 == 0)
                        member_set(&a[draw(3)]->member, T("again"));
                (void)get(a[draw(3)]->client, draw(2) ? "members/a" : "election", false, NULL, NULL);
        }
        server_ok(place_redis(), "FLUSHALL");
        for (unsigned i = 0; i < 3; i++) {
                WAIT_FOR(w,
                        (member_retry(&a[i]->member), leader_retry(&a[i]->leader), a[i]->is_known && a[i]->mates == 3));
                WAIT_FOR(w, (leader_retry(&a[i]->leader), leader_is_settled(&a[i]->leader)));
        }
        unsigned leaders = 0;
        for (unsigned i = 0; i < 3; i++)
                leaders += leader_is_leading(&a[i]->leader);
        assert_int_equal(leaders, 1);
        for (unsigned i = 0; i < 3; i++)
                leave(a[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_sequence_that_is_no_number_goes_on_above_those_who_wait),
                IN_WORLD(a_sequence_without_a_number_left_is_refused),
                IN_CROWD(a_second_candidate_comes_after_the_first_whatever_the_sequence_says),
                IN_WORLD(a_node_that_cannot_be_is_refused_watched_and_mended),
                IN_WORLD(a_node_that_forgot_its_owner_goes_with_it),
                IN_WORLD(ids_go_on_from_the_clock),
                IN_WORLD(no_session_lasts_for_ever),
                IN_CROWD(names_that_are_none_are_left_out),
                IN_CROWD(ghosts_are_no_members),
                IN_CROWD(a_member_whose_node_was_spoilt_joins_again),
                IN_WORLD(keys_of_another_type_stop_only_their_own_node),
                IN_CROWD(whatever_is_written_there_clients_go_on_after_it),
        };
        (void)setenv("QUIVER_COORD_DRIVER", "redis", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
