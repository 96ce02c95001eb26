/* Several operations in one step. */
#include "harness.h"

static void all_of_it_happens(void **state)
{
        struct client *c = join(*state);
        struct coord_stat stat;
        const char *data;
        assert_int_equal(create(c, "a", "0", 0, NULL, NULL), 0);
        assert_int_equal(create(c, "b", "0", 0, NULL, NULL), 0);
        assert_int_equal(create(c, "old", "0", 0, NULL, NULL), 0);
        struct coord_multi_op ops[] = {
                { .kind = COORD_CHECK, .path = "a", .version = 0 },
                { .kind = COORD_SET, .path = "b", .data = T("1"), .version = 0 },
                { .kind = COORD_CREATE, .path = "new", .data = T("2"), .flags = COORD_EPHEMERAL },
                { .kind = COORD_DELETE, .path = "old", .version = COORD_ANY_VERSION },
        };
        assert_int_equal(multi(c, ops, 4), 0);
        assert_int_equal(ops[1].stat.version, 1);
        assert_int_equal(get(c, "b", false, &data, NULL), 0);
        assert_string_equal(data, "1");
        assert_int_equal(get(c, "new", false, &data, &stat), 0);
        assert_int_equal(stat.owner, session_of(c));
        assert_int_equal(stat.created, ops[2].stat.created);
        assert_int_equal(get(c, "old", false, NULL, NULL), -ENOENT);
}

static void none_of_it_happens_when_one_fails(void **state)
{
        struct client *c = join(*state);
        struct coord_stat stat;
        assert_int_equal(create(c, "b", "0", 0, NULL, NULL), 0);
        assert_int_equal(create(c, "old", "0", 0, NULL, NULL), 0);
        struct coord_multi_op ops[] = {
                { .kind = COORD_SET, .path = "b", .data = T("1"), .version = 0 },
                { .kind = COORD_CREATE, .path = "new", .data = T("2") },
                { .kind = COORD_DELETE, .path = "old", .version = COORD_ANY_VERSION },
                { .kind = COORD_CHECK, .path = "b", .version = 7 },
        };
        assert_int_equal(multi(c, ops, 4), -ESTALE);
        assert_int_equal(ops[0].status, 0);
        assert_int_equal(ops[1].status, 0);
        assert_int_equal(ops[3].status, -ESTALE);
        const char *data;
        assert_int_equal(get(c, "b", false, &data, &stat), 0);
        assert_string_equal(data, "0");
        assert_int_equal(stat.version, 0);
        assert_int_equal(get(c, "new", false, NULL, NULL), -ENOENT);
        assert_int_equal(get(c, "old", false, NULL, NULL), 0);
}

static void a_check_finds_a_node_that_is_gone(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "election/me", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(a, "assign", "0", 0, NULL, NULL), 0);
        struct coord_multi_op ops[] = {
                { .kind = COORD_CHECK, .path = "election/me", .version = COORD_ANY_VERSION },
                { .kind = COORD_SET, .path = "assign", .data = T("1"), .version = 0 },
        };
        assert_int_equal(multi(b, ops, 2), 0);
        client_close(a);
        ops[1].version = 1;
        assert_int_equal(multi(b, ops, 2), -ENOENT);
        assert_int_equal(ops[0].status, -ENOENT);
        const char *data;
        assert_int_equal(get(b, "assign", false, &data, NULL), 0);
        assert_string_equal(data, "1");
}

static void parents_are_not_made_by_a_multi(void **state)
{
        struct client *c = join(*state);
        struct coord_multi_op op = { .kind = COORD_CREATE, .path = "p/child" };
        assert_int_equal(multi(c, &op, 1), -ENOENT);
        assert_int_equal(get(c, "p", false, NULL, NULL), -ENOENT);
        struct coord_multi_op both[] = {
                { .kind = COORD_CREATE, .path = "p" },
                { .kind = COORD_CREATE, .path = "p/child" },
        };
        assert_int_equal(multi(c, both, 2), 0);
        assert_string_equal(children(c, "p", false), "child");
}

static void later_operations_see_earlier_ones(void **state)
{
        struct client *c = join(*state);
        struct coord_multi_op ops[] = {
                { .kind = COORD_CREATE, .path = "n", .data = T("a") },
                { .kind = COORD_SET, .path = "n", .data = T("b"), .version = 0 },
                { .kind = COORD_SET, .path = "n", .data = T("c"), .version = 1 },
        };
        assert_int_equal(multi(c, ops, 3), 0);
        const char *data;
        assert_int_equal(get(c, "n", false, &data, NULL), 0);
        assert_string_equal(data, "c");
}

static void a_multi_rings_its_watches(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "x", "", 0, NULL, NULL), 0);
        assert_int_equal(create(a, "y", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "x", true, NULL, NULL), 0);
        assert_int_equal(get(b, "y", true, NULL, NULL), 0);
        struct coord_multi_op ops[] = {
                { .kind = COORD_SET, .path = "x", .version = 0 },
                { .kind = COORD_DELETE, .path = "y", .version = 0 },
        };
        assert_int_equal(multi(a, ops, 2), 0);
        WAIT_FOR(*state, has_heard(b, "x") && has_heard(b, "y"));
}

const struct CMUnitTest multi_tests[] = {
        IN_WORLD(all_of_it_happens),
        IN_WORLD(none_of_it_happens_when_one_fails),
        IN_WORLD(a_check_finds_a_node_that_is_gone),
        IN_WORLD(parents_are_not_made_by_a_multi),
        IN_WORLD(later_operations_see_earlier_ones),
        IN_WORLD(a_multi_rings_its_watches),
};
GROUP(multi);
