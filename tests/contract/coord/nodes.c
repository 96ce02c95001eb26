/* Nodes: making, reading, changing and deleting them. */
#include "harness.h"

static void a_node_has_what_it_was_made_with(void **state)
{
        struct client *c = join(*state);
        const char *data, *made;
        struct coord_stat stat, read;
        assert_int_equal(create(c, "config", "one", 0, &made, &stat), 0);
        assert_string_equal(made, "config");
        assert_int_equal(get(c, "config", false, &data, &read), 0);
        assert_string_equal(data, "one");
        assert_int_equal(read.version, 0);
        assert_int_equal(read.owner, 0);
        assert_true(stat.created != 0 && read.created == stat.created);
}

static void parents_are_made_and_stay(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "a/b/c", "x", 0, NULL, NULL), 0);
        assert_string_equal(children(c, "a", false), "b");
        assert_string_equal(children(c, "a/b", false), "c");
        assert_int_equal(del(c, "a/b/c", COORD_ANY_VERSION), 0);
        assert_int_equal(get(c, "a/b", false, NULL, NULL), 0);
        assert_string_equal(children(c, "a/b", false), "");
}

static void a_name_can_be_had_once(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "a/b", "first", 0, NULL, NULL), 0);
        assert_int_equal(create(c, "a/b", "second", 0, NULL, NULL), -EEXIST);
        const char *data;
        assert_int_equal(get(c, "a/b", false, &data, NULL), 0);
        assert_string_equal(data, "first");
}

static void what_is_not_there_is_not_found(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(get(c, "nothing", false, NULL, NULL), -ENOENT);
        assert_int_equal(set(c, "nothing", "x", COORD_ANY_VERSION, NULL), -ENOENT);
        assert_int_equal(del(c, "nothing", COORD_ANY_VERSION), -ENOENT);
        assert_string_equal(children(c, "nothing", false), "");
        assert_string_equal(children(c, "nothing/at/all", false), "");
}

static void a_set_must_name_the_version(void **state)
{
        struct client *c = join(*state);
        struct coord_stat stat;
        const char *data;
        assert_int_equal(create(c, "n", "0", 0, NULL, NULL), 0);
        assert_int_equal(set(c, "n", "1", 0, &stat), 0);
        assert_int_equal(stat.version, 1);
        assert_int_equal(set(c, "n", "late", 0, NULL), -ESTALE);
        assert_int_equal(set(c, "n", "2", COORD_ANY_VERSION, &stat), 0);
        assert_int_equal(stat.version, 2);
        assert_int_equal(get(c, "n", false, &data, &stat), 0);
        assert_string_equal(data, "2");
        assert_int_equal(stat.version, 2);
}

static void a_delete_must_name_the_version_and_spares_parents(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "p/child", "", 0, NULL, NULL), 0);
        assert_int_equal(del(c, "p", COORD_ANY_VERSION), -ENOTEMPTY);
        assert_int_equal(del(c, "p/child", 7), -ESTALE);
        assert_int_equal(del(c, "p/child", 0), 0);
        assert_int_equal(del(c, "p", COORD_ANY_VERSION), 0);
        assert_int_equal(get(c, "p", false, NULL, NULL), -ENOENT);
}

static void a_node_made_anew_has_a_larger_id(void **state)
{
        struct client *c = join(*state);
        struct coord_stat first, other, again;
        assert_int_equal(create(c, "n", "", 0, NULL, &first), 0);
        assert_int_equal(create(c, "m", "", 0, NULL, &other), 0);
        assert_int_equal(del(c, "n", COORD_ANY_VERSION), 0);
        assert_int_equal(create(c, "n", "", 0, NULL, &again), 0);
        assert_true(first.created < other.created && other.created < again.created);
        assert_int_equal(again.version, 0);
}

static void children_are_sorted_by_bytes(void **state)
{
        struct client *c = join(*state);
        static const char *const names[] = { "d/b", "d/a", "d/Z", "d/a-1", "d/a%1", "d/0" };
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(create(c, names[i], "", 0, NULL, NULL), 0);
        assert_string_equal(children(c, "d", false), "0 Z a a%1 a-1 b");
}

static void sequential_names_grow_within_their_parent(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        const char *last = "";
        for (unsigned i = 0; i < 12; i++) {
                const char *made;
                assert_int_equal(create(i % 2 ? a : b, "line/n-", "", COORD_SEQUENTIAL, &made, NULL), 0);
                assert_int_equal(strlen(made), strlen("line/n-") + 10);
                assert_int_equal(strspn(made + strlen("line/n-"), "0123456789"), 10);
                assert_true(strcmp(made, last) > 0);
                last = made;
        }
}

static void a_sequence_is_not_used_twice(void **state)
{
        struct client *c = join(*state);
        const char *first, *second, *other;
        assert_int_equal(create(c, "s/n-", "", COORD_SEQUENTIAL, &first, NULL), 0);
        assert_int_equal(del(c, first, COORD_ANY_VERSION), 0);
        assert_int_equal(create(c, "s/n-", "", COORD_SEQUENTIAL, &second, NULL), 0);
        assert_true(strcmp(second, first) > 0);
        /* Whatever the name begins with: order of creation. */
        assert_int_equal(create(c, "s/a-", "", COORD_SEQUENTIAL, &other, NULL), 0);
        assert_true(strcmp(other + 4, second + 4) > 0);
}

static void data_is_bytes_and_may_be_large(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        char *data = malloc(COORD_DATA_MAX + 1);
        struct pending p = { .create = { .request.done = pending_done, .path = "big" } };
        assert_non_null(data);
        memset(data, 'x', COORD_DATA_MAX);
        data[COORD_DATA_MAX] = 0;
        data[100] = 0;
        p.create.data = (struct span){ data, COORD_DATA_MAX };
        coord_create(c->coord, &p.create);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, 0);
        const char *read;
        assert_int_equal(get(c, "big", false, &read, NULL), 0);
        assert_memory_equal(read, data, COORD_DATA_MAX);
        p = (struct pending){ .create = { .request.done = pending_done, .path = "bigger" } };
        p.create.data = (struct span){ data, COORD_DATA_MAX + 1 };
        coord_create(c->coord, &p.create);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, -E2BIG);
        free(data);
}

static void all_clients_see_one_tree(void **state)
{
        struct client *a = join(*state);
        struct client *b = join(*state);
        const char *data;
        assert_int_equal(create(a, "shared", "from a", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "shared", false, &data, NULL), 0);
        assert_string_equal(data, "from a");
        assert_int_equal(set(b, "shared", "from b", 0, NULL), 0);
        assert_int_equal(set(a, "shared", "again a", 0, NULL), -ESTALE);
        assert_int_equal(get(a, "shared", false, &data, NULL), 0);
        assert_string_equal(data, "from b");
}

static void requests_take_effect_in_the_order_of_starting(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        struct pending p[20] = { 0 };
        char texts[20][4];
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        for (unsigned i = 0; i < 20; i++) {
                (void)snprintf(texts[i], sizeof(texts[i]), "%u", i);
                p[i].set = (struct coord_set){
                        .request.done = pending_done, .path = "n", .data = T(texts[i]), .version = i
                };
                coord_set(c->coord, &p[i].set);
        }
        const char *data;
        assert_int_equal(get(c, "n", false, &data, NULL), 0);
        assert_string_equal(data, "19");
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(p[i].done, 1);
                assert_int_equal(p[i].status, 0);
        }
}

static unsigned answered_count;
static const struct coord_request *answered[8];

static void on_answered(struct coord_request *request)
{
        answered[answered_count++ % 8] = request;
}

/* The first has to bring half a megabyte, the others nothing. */
static void reads_are_answered_in_the_order_of_starting(void **state)
{
        struct client *c = join(*state);
        struct coord_get reads[8];
        char *data = calloc(1, COORD_DATA_MAX);
        assert_non_null(data);
        memset(data, 'x', COORD_DATA_MAX - 1);
        assert_int_equal(create(c, "big", data, 0, NULL, NULL), 0);
        assert_int_equal(create(c, "small", "", 0, NULL, NULL), 0);
        free(data);
        for (unsigned round = 0; round < 4; round++) {
                answered_count = 0;
                for (unsigned i = 0; i < 8; i++) {
                        reads[i] = (struct coord_get){ .request.done = on_answered, .path = i ? "small" : "big" };
                        coord_get(c->coord, &reads[i]);
                }
                WAIT_FOR((struct world *)*state, answered_count == 8);
                for (unsigned i = 0; i < 8; i++)
                        assert_ptr_equal(answered[i], &reads[i].request);
        }
}

static void apps_do_not_see_each_other(void **state)
{
        struct client *c = join(*state), *other;
        assert_int_equal(create(c, "mine", "x", 0, NULL, NULL), 0);
        assert_int_equal(client_connect(*state, (struct coord_options){ .app = "other" }, true, &other, NULL), 0);
        assert_int_equal(get(other, "mine", false, NULL, NULL), -ENOENT);
}

static void the_tree_outlives_its_clients(void **state)
{
        struct client *a = join(*state), *b;
        struct coord_stat before, after, next;
        const char *made, *again, *data;
        assert_int_equal(create(a, "keep/this", "x", 0, NULL, NULL), 0);
        assert_int_equal(set(a, "keep/this", "y", 0, &before), 0);
        assert_int_equal(create(a, "keep/n-", "", COORD_SEQUENTIAL, &made, NULL), 0);
        client_close(a);
        b = join(*state);
        assert_int_equal(get(b, "keep/this", false, &data, &after), 0);
        assert_string_equal(data, "y");
        assert_int_equal(after.created, before.created);
        assert_int_equal(after.version, 1);
        assert_int_equal(create(b, "keep/n-", "", COORD_SEQUENTIAL, &again, &next), 0);
        assert_true(strcmp(again, made) > 0);
        assert_true(next.created > before.created);
}

const struct CMUnitTest node_tests[] = {
        IN_WORLD(a_node_has_what_it_was_made_with),
        IN_WORLD(parents_are_made_and_stay),
        IN_WORLD(a_name_can_be_had_once),
        IN_WORLD(what_is_not_there_is_not_found),
        IN_WORLD(a_set_must_name_the_version),
        IN_WORLD(a_delete_must_name_the_version_and_spares_parents),
        IN_WORLD(a_node_made_anew_has_a_larger_id),
        IN_WORLD(children_are_sorted_by_bytes),
        IN_WORLD(sequential_names_grow_within_their_parent),
        IN_WORLD(a_sequence_is_not_used_twice),
        IN_WORLD(data_is_bytes_and_may_be_large),
        IN_WORLD(all_clients_see_one_tree),
        IN_WORLD(requests_take_effect_in_the_order_of_starting),
        IN_WORLD(reads_are_answered_in_the_order_of_starting),
        IN_WORLD(apps_do_not_see_each_other),
        IN_WORLD(the_tree_outlives_its_clients),
};
GROUP(node);
