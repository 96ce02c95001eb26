/* Who may: users and passwords of etcd, a token that was forgotten, rights, and certificates. */
#include "etcds.h"
#include "harness.h"

#define LONG_MS 20000

static struct ensemble servers;
static char url[128], ca[128];

static int start(void **state)
{
        (void)state;
        if (!etcd_kind.is_here()) {
                print_message("etcd is not on this machine\n");
                return -1;
        }
        etcds_start_tls(&servers);
        ensemble_url(&servers, "quiver", url, sizeof(url));
        (void)snprintf(ca, sizeof(ca), "%s/ca.pem", servers.folder);
        static const char *const users[] = { "user add root:root", "user grant-role root root", "user add fleet:right",
                "role add fleet", "role grant-permission fleet --prefix=true readwrite /quiver/test/",
                "user grant-role fleet fleet", "user add guest:right", "auth enable" };
        for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
                (void)etcds_ctl(&servers, 0, users[i]);
        return 0;
}

static int stop(void **state)
{
        (void)state;
        ensemble_stop(&servers);
        return 0;
}

/* The clients' world is that of a folder, whose URL nobody uses. */
static struct coord_options options_of(const char *user, const char *password)
{
        return (struct coord_options){
                .url = url, .tls.ca_file = ca, .user = user, .password = password, .session_ms = LONG_MS
        };
}

static struct client *join_as(struct world *w, const char *user, const char *password)
{
        struct client *c;
        assert_int_equal(client_connect(w, options_of(user, password), true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

static void who_has_a_user_and_the_right_may(void **state)
{
        struct client *c = join_as(*state, "fleet", "right");
        assert_int_equal(create(c, "login/n", "x", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(c, "login/n", true, NULL, NULL), 0);
        assert_int_equal(set(c, "login/n", "y", 0, NULL), 0);
        WAIT_FOR((struct world *)*state, has_heard(c, "login/n"));
}

static void a_wrong_password_is_refused_and_not_repeated(void **state)
{
        struct error error;
        assert_int_equal(client_connect(*state, options_of("fleet", "secret77"), true, NULL, &error), -EACCES);
        assert_non_null(strstr(error.text, "look at user and password"));
        assert_non_null(strstr(error.text, "127.0.0.1:"));
        assert_null(strstr(error.text, "secret77"));
}

static void who_has_no_user_is_told_to_set_one(void **state)
{
        struct world *w = *state;
        struct client *c;
        struct pending p = { .get = { .request.done = pending_done, .path = "n" } };
        assert_int_equal(client_connect(w, options_of(NULL, NULL), true, &c, NULL), 0);
        coord_get(c->coord, &p.get);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, -EACCES);
        assert_non_null(strstr(p.request.error.text, "coordination.user"));
        assert_int_equal(c->states_count, 0);
}

static void who_lacks_the_right_is_told_how_to_get_it(void **state)
{
        struct world *w = *state;
        struct client *c;
        struct pending p = { .get = { .request.done = pending_done, .path = "n" } };
        assert_int_equal(client_connect(w, options_of("guest", "right"), true, &c, NULL), 0);
        coord_get(c->coord, &p.get);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, -EACCES);
        assert_non_null(
                strstr(p.request.error.text, "role grant-permission ROLE --prefix=true readwrite /quiver/test/"));
}

/* The server forgets tokens when it is started anew, and revises them when users change. */
static void a_forgotten_token_is_replaced_in_the_same_session(void **state)
{
        struct world *w = *state;
        struct client *c = join_as(w, "fleet", "right"), *visitor;
        uint64_t session = session_of(c);
        assert_int_equal(client_connect(w, options_of("fleet", "right"), false, &visitor, NULL), 0);
        assert_int_equal(create(c, "login/again", "0", 0, NULL, NULL), 0);
        assert_int_equal(get(visitor, "login/again", false, NULL, NULL), 0);
        assert_int_equal(get(c, "login/again", true, NULL, NULL), 0);
        ensemble_kill(&servers, 0);
        ensemble_restart(&servers, 0);
        WAIT_FOR(w, set(c, "login/again", "1", COORD_ANY_VERSION, NULL) == 0);
        WAIT_FOR(w, has_heard(c, "login/again"));
        /* It has no watch by which it could have learned of that. */
        assert_int_equal(get(visitor, "login/again", false, NULL, NULL), 0);
        (void)etcds_ctl(&servers, 0, "--user root:root user add other:pw");
        assert_int_equal(set(c, "login/again", "2", COORD_ANY_VERSION, NULL), 0);
        assert_int_equal(get(c, "login/again", true, NULL, NULL), 0);
        assert_int_equal(session_of(c), session);
        assert_false(was_told(c, COORD_EXPIRED, session));
        assert_int_equal(del(c, "login/again", COORD_ANY_VERSION), 0);
}

static bool has_ended;
static int ended_with;

static void on_ended(struct coord_request *request)
{
        has_ended = true;
        ended_with = request->status;
}

static void a_guard_ends_a_session_with_the_same_login(void **state)
{
        struct world *w = *state;
        struct client *a = join_as(w, "fleet", "right"), *b = join_as(w, "fleet", "right");
        char token[COORD_TOKEN_MAX];
        struct coord_end_session end = {
                .request.done = on_ended, .options = options_of("fleet", "right"), .token = token
        };
        assert_int_equal(create(a, "login/mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(get(b, "login/mine", true, NULL, NULL), 0);
        coord_token(a->coord, token);
        end.options.app = "test";
        coord_end_session(&w->loop, &end);
        WAIT_FOR(w, has_heard(b, "login/mine"));
        assert_int_equal(get(b, "login/mine", false, NULL, NULL), -ENOENT);
        WAIT_FOR(w, has_ended);
        assert_int_equal(ended_with, 0);
}

static void a_certificate_that_nobody_has_signed_is_refused(void **state)
{
        struct error error;
        struct coord_options options = options_of("fleet", "right");
        options.tls.ca_file = NULL;
        assert_int_equal(client_connect(*state, options, true, NULL, &error), -EACCES);
        assert_non_null(strstr(error.text, "coordination.tls.ca_file"));
}

static void a_certificate_for_another_name_is_refused(void **state)
{
        struct error error;
        struct coord_options options = options_of("fleet", "right");
        char other[128];
        (void)snprintf(other, sizeof(other), "etcd+tls://localhost:%u/quiver", servers.servers[0].port);
        options.url = other;
        assert_int_equal(client_connect(*state, options, true, NULL, &error), -EACCES);
        assert_non_null(strstr(error.text, "localhost"));
}

static void without_tls_a_tls_server_is_no_etcd(void **state)
{
        struct world *w = *state;
        struct client *c;
        struct coord_options options = options_of("fleet", "right");
        char plain[128];
        (void)snprintf(plain, sizeof(plain), "etcd://127.0.0.1:%u/quiver", servers.servers[0].port);
        options.url = plain;
        options.session_ms = 1000;
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        assert_int_equal(get(c, "n", false, NULL, NULL), -ETIMEDOUT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(who_has_a_user_and_the_right_may),
                IN_WORLD(a_wrong_password_is_refused_and_not_repeated),
                IN_WORLD(who_has_no_user_is_told_to_set_one),
                IN_WORLD(who_lacks_the_right_is_told_how_to_get_it),
                IN_WORLD(a_forgotten_token_is_replaced_in_the_same_session),
                IN_WORLD(a_guard_ends_a_session_with_the_same_login),
                IN_WORLD(a_certificate_that_nobody_has_signed_is_refused),
                IN_WORLD(a_certificate_for_another_name_is_refused),
                IN_WORLD(without_tls_a_tls_server_is_no_etcd),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
