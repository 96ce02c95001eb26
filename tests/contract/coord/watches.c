/* Watches: told once, never missed. */
#include "harness.h"

static void a_change_of_data_is_told(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "n", "0", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", true, NULL, NULL), 0);
        assert_int_equal(set(a, "n", "1", 0, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
        const char *data;
        assert_int_equal(get(b, "n", true, &data, NULL), 0);
        assert_string_equal(data, "1");
        forget_heard(b);
        assert_int_equal(set(a, "n", "2", 1, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
}

static void making_and_deleting_a_node_are_told(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(get(b, "n", true, NULL, NULL), -ENOENT);
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
        forget_heard(b);
        assert_int_equal(get(b, "n", true, NULL, NULL), 0);
        assert_int_equal(del(a, "n", 0), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
}

static void a_node_deleted_and_made_anew_is_told(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", true, NULL, NULL), 0);
        assert_int_equal(del(a, "n", 0), 0);
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
}

static void a_child_that_comes_or_goes_is_told(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "p/x", "", 0, NULL, NULL), 0);
        assert_string_equal(children(b, "p", true), "x");
        assert_int_equal(create(a, "p/y", "", 0, NULL, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "p"));
        forget_heard(b);
        assert_string_equal(children(b, "p", true), "x y");
        assert_int_equal(del(a, "p/x", COORD_ANY_VERSION), 0);
        WAIT_FOR(*state, has_heard(b, "p"));
        assert_string_equal(children(b, "p", true), "y");
}

static void children_of_what_is_not_there_can_be_watched(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_string_equal(children(b, "later", true), "");
        assert_int_equal(create(a, "later/x", "", 0, NULL, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "later"));
        assert_string_equal(children(b, "later", true), "x");
}

static void one_that_leaves_is_told_as_a_child_that_goes(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_string_equal(children(b, "members", true), "a");
        assert_int_equal(get(b, "members/a", true, NULL, NULL), 0);
        client_close(a);
        WAIT_FOR(*state, has_heard(b, "members") && has_heard(b, "members/a"));
        assert_string_equal(children(b, "members", true), "");
}

static void own_changes_are_told_too(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(get(c, "n", true, NULL, NULL), 0);
        assert_int_equal(set(c, "n", "x", 0, NULL), 0);
        WAIT_FOR(*state, has_heard(c, "n"));
}

static void a_watch_is_told_once(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(create(a, "m", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", true, NULL, NULL), 0);
        assert_int_equal(set(a, "n", "1", 0, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "n"));
        forget_heard(b);
        assert_int_equal(set(a, "n", "2", 1, NULL), 0);
        /* What is told about m would have been preceded by what is told about n. */
        assert_int_equal(get(b, "m", true, NULL, NULL), 0);
        assert_int_equal(set(a, "m", "1", 0, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "m"));
        assert_false(has_heard(b, "n"));
}

static void who_only_reads_hears_nothing(void **state)
{
        struct client *a = join(*state), *b = join(*state);
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(create(a, "m", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", false, NULL, NULL), 0);
        assert_int_equal(get(b, "m", true, NULL, NULL), 0);
        assert_int_equal(set(a, "n", "1", 0, NULL), 0);
        assert_int_equal(set(a, "m", "1", 0, NULL), 0);
        WAIT_FOR(*state, has_heard(b, "m"));
        assert_false(has_heard(b, "n"));
}

/* Reads until it sees the last value; every change in between may merge, the last may not be lost. */
static void no_change_is_lost_in_a_crowd_of_them(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        struct pending p[200] = { 0 };
        const char *data = "";
        assert_int_equal(create(a, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", true, NULL, NULL), 0);
        for (unsigned i = 0; i < 200; i++) {
                p[i].set = (struct coord_set){ .request.done = pending_done,
                        .path = "n",
                        .data = T(i == 199 ? "last" : "more"),
                        .version = COORD_ANY_VERSION };
                coord_set(a->coord, &p[i].set);
        }
        while (strcmp(data, "last") != 0) {
                WAIT_FOR(w, has_heard(b, "n") || b->looks > 1);
                forget_heard(b);
                assert_int_equal(get(b, "n", true, &data, NULL), 0);
        }
        WAIT_FOR(w, p[199].done);
}

/* Somebody who reads the new state does not take the news from whoever read the old one. */
static void a_later_reader_does_not_hush_an_earlier_one(void **state)
{
        struct client *c = join(*state);
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        for (unsigned i = 0; i < 50; i++) {
                struct pending changed = { .set = { .request.done = pending_done,
                                                   .path = "n",
                                                   .data = T("x"),
                                                   .version = COORD_ANY_VERSION } };
                struct pending read = { .get = { .request.done = pending_done, .path = "n", .watch = true } };
                assert_int_equal(get(c, "n", true, NULL, NULL), 0);
                forget_heard(c);
                coord_set(c->coord, &changed.set);
                coord_get(c->coord, &read.get);
                WAIT_FOR(*state, changed.done && read.done);
                WAIT_FOR(*state, has_heard(c, "n"));
        }
}

const struct CMUnitTest watch_tests[] = {
        IN_WORLD(a_change_of_data_is_told),
        IN_WORLD(making_and_deleting_a_node_are_told),
        IN_WORLD(a_node_deleted_and_made_anew_is_told),
        IN_WORLD(a_child_that_comes_or_goes_is_told),
        IN_WORLD(children_of_what_is_not_there_can_be_watched),
        IN_WORLD(one_that_leaves_is_told_as_a_child_that_goes),
        IN_WORLD(own_changes_are_told_too),
        IN_WORLD(a_watch_is_told_once),
        IN_WORLD(who_only_reads_hears_nothing),
        IN_WORLD(no_change_is_lost_in_a_crowd_of_them),
        IN_WORLD(a_later_reader_does_not_hush_an_earlier_one),
};
GROUP(watch);
