/* Called wrongly: refused, with a text, and nothing happens. */
#include "harness.h"

static void odd_paths_are_refused(void **state)
{
        struct client *c = join(*state);
        static const char *const bad[] = { "", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "a\n", "ä", "a*" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(create(c, bad[i], "", 0, NULL, NULL), -EINVAL);
                assert_int_equal(get(c, bad[i], false, NULL, NULL), -EINVAL);
                assert_int_equal(del(c, bad[i], COORD_ANY_VERSION), -EINVAL);
        }
        assert_int_equal(create(c, NULL, "", 0, NULL, NULL), -EINVAL);
        assert_int_equal(create(c, "Az09._:@%+-/...", "", 0, NULL, NULL), 0);
}

static void long_paths_are_refused(void **state)
{
        struct client *c = join(*state);
        char path[COORD_PATH_MAX + 1];
        memset(path, 'x', sizeof(path));
        path[256] = 0;
        assert_int_equal(create(c, path, "", 0, NULL, NULL), -EINVAL);
        path[255] = 0;
        assert_int_equal(create(c, path, "", 0, NULL, NULL), 0);
        assert_int_equal(create(c, path, "", COORD_SEQUENTIAL, NULL, NULL), -E2BIG);
        path[245] = 0;
        assert_int_equal(create(c, path, "", COORD_SEQUENTIAL, NULL, NULL), 0);
        memset(path, 'x', sizeof(path));
        path[200] = path[400] = '/';
        path[COORD_PATH_MAX] = 0;
        assert_int_equal(create(c, path, "", 0, NULL, NULL), -E2BIG);
        path[COORD_PATH_MAX - 1] = 0;
        assert_int_equal(create(c, path, "", 0, NULL, NULL), 0);
}

static void odd_flags_and_multis_are_refused(void **state)
{
        struct client *c = join(*state);
        struct coord_multi_op many[COORD_MULTI_MAX + 1];
        for (unsigned i = 0; i <= COORD_MULTI_MAX; i++)
                many[i] = (struct coord_multi_op){
                        .kind = COORD_SET, .path = "n", .version = COORD_ANY_VERSION, .status = 0
                };
        assert_int_equal(create(c, "n", "", 4, NULL, NULL), -EINVAL);
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        assert_int_equal(multi(c, many, 0), -EINVAL);
        assert_int_equal(multi(c, many, COORD_MULTI_MAX + 1), -EINVAL);
        assert_int_equal(multi(c, many, COORD_MULTI_MAX), 0);
        struct coord_multi_op op = { .kind = COORD_CREATE, .path = "s", .flags = COORD_SEQUENTIAL };
        assert_int_equal(multi(c, &op, 1), -EINVAL);
}

static void an_unknown_url_or_app_is_refused(void **state)
{
        struct error error;
        assert_int_equal(
                client_connect(*state, (struct coord_options){ .url = "consul://here" }, true, NULL, &error), -EINVAL);
        assert_non_null(strstr(error.text, "consul"));
        assert_int_equal(
                client_connect(*state, (struct coord_options){ .app = "No/App" }, true, NULL, &error), -EINVAL);
        assert_non_null(strstr(error.text, "app"));
}

static void a_wrong_token_buries_nobody(void **state)
{
        struct client *c = join(*state);
        char token[COORD_TOKEN_MAX];
        assert_int_equal(end_session(*state, ""), -EINVAL);
        coord_token(c->coord, token);
        assert_true(strlen(token) >= 16);
        assert_int_equal(create(c, "e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        char *last = &token[strlen(token) - 1];
        *last = *last == '0' ? '1' : '0';
        (void)end_session(*state, token);
        assert_int_equal(get(c, "e", false, NULL, NULL), 0);
        assert_false(was_told(c, COORD_EXPIRED, session_of(c)));
}

const struct CMUnitTest wrong_tests[] = {
        IN_WORLD(odd_paths_are_refused),
        IN_WORLD(long_paths_are_refused),
        IN_WORLD(odd_flags_and_multis_are_refused),
        IN_WORLD(an_unknown_url_or_app_is_refused),
        IN_WORLD(a_wrong_token_buries_nobody),
};
GROUP(wrong);
