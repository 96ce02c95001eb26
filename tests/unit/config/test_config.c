/* A configuration is either right in every respect, or refused with all that is wrong, by file, line and name. */
#include "config_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* --- what a file means --- */

static void what_is_left_out_has_its_default(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, HANDLER(""));
        const struct config *c = &f->config;
        const struct handler_config *h = &c->handlers[0];
        assert_string_equal(c->app, "demo");
        assert_int_equal(c->shards, 64);
        assert_string_equal(c->state, "/srv/var");
        assert_string_equal(c->plugins, "/srv/plugins");
        assert_int_equal(c->store.url.kind, URL_SQLITE);
        assert_string_equal(c->store.url.path, "/srv/etc/q.db");
        assert_int_equal(c->store.synchronous, SYNCHRONOUS_FULL);
        assert_int_equal(c->store.payload_max_bytes, 1048576);
        assert_int_equal(c->lease.ttl_ms, 10000);
        assert_int_equal(c->window.per_key, 16);
        assert_null(c->http.listen);
        assert_int_equal(c->log.level, LEVEL_INFO);
        assert_int_equal(c->handlers_count, 1);
        assert_string_equal(h->plugin_path, "/srv/plugins/echo.so");
        assert_int_equal(h->tasks.count, 1);
        assert_string_equal(h->tasks.items[0], "echo");
        assert_int_equal(h->timeout_ms, 30000);
        assert_int_equal(h->retry.attempts, 4);
        assert_true(h->retry.factor == 2.0);
        assert_int_equal(h->on_exhausted, ON_EXHAUSTED_DEAD);
        assert_int_equal(h->payload_max_bytes, c->store.payload_max_bytes);
        assert_null(h->limits.user);
}

static void what_is_set_is_taken(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, "app = \"a\"; shards = 0x10; state = \"/s\"; store = { url = \"sqlite:/q\"; synchronous = "
                     "\"normal\"; };\n"
                     "log = { level = \"debug\"; };\n"
                     "handlers = { h = { plugin = \"/p.so\"; tasks = ( \"x\", \"y\" ); timeout = \"1.5s\"; max_result "
                     "= \"2KiB\";\n"
                     "  limits = { memory = \"1GiB\"; cpu = \"2m\"; read = [ \"/usr\", \"data\" ]; }; on_exhausted = "
                     "\"hold\"; }; };");
        const struct handler_config *h = config_handler(&f->config, "h");
        assert_int_equal(f->config.shards, 16);
        assert_string_equal(f->config.coordination.url.text, "local:/s");
        assert_int_equal(f->config.store.synchronous, SYNCHRONOUS_NORMAL);
        assert_int_equal(f->config.log.level, LEVEL_DEBUG);
        assert_string_equal(h->plugin_path, "/p.so");
        assert_int_equal(h->timeout_ms, 1500);
        assert_int_equal(h->result_max_bytes, 2048);
        assert_int_equal(h->limits.cpu_ms, 120000);
        assert_string_equal(h->limits.read.items[1], "/srv/etc/data");
        assert_int_equal(h->on_exhausted, ON_EXHAUSTED_HOLD);
        assert_ptr_equal(config_serving(&f->config, "y"), h);
        assert_null(config_serving(&f->config, "h"));
}

static void an_integer_is_accepted_where_a_float_is_meant(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, HANDLER("retry = { factor = 3; jitter = 1; };"));
        assert_true(f->config.handlers[0].retry.factor == 3.0);
        assert_true(f->config.handlers[0].retry.jitter == 1.0);
}

static void plugin_settings_are_flattened_in_order(void **state)
{
        struct fixture *f = *state;
        assert_ok(
                f, HANDLER("config = { b = \"x\"; db = { url = \"u\"; n = -5; big = 5000000000L; }; on = true; f = 0.1;"
                           " tables = [ \"t0\", \"t1\" ]; deep = ( { a = 1; }, ( 2, 3 ) ); none = { }; };"));
        static const struct setting expected[] = { { "b", "x" }, { "db.url", "u" }, { "db.n", "-5" },
                { "db.big", "5000000000" }, { "on", "true" }, { "f", "0.1" }, { "tables.0", "t0" },
                { "tables.1", "t1" }, { "deep.0.a", "1" }, { "deep.1.0", "2" }, { "deep.1.1", "3" } };
        const struct setting_list *s = &f->config.handlers[0].settings;
        assert_int_equal(s->count, sizeof(expected) / sizeof(expected[0]));
        for (size_t i = 0; i < s->count; i++) {
                assert_string_equal(s->items[i].name, expected[i].name);
                assert_string_equal(s->items[i].value, expected[i].value);
        }
        assert_string_equal(setting_list_get(s, "db.url"), "u");
        assert_null(setting_list_get(s, "db"));
}

/* --- what is refused --- */

static void a_misspelt_setting_is_refused_with_the_nearest_name(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, MINIMAL "\nshard = 3;",
                "/srv/etc/t.cfg:3: no setting \"shard\" in the file; did you mean \"shards\"?\n");
        assert_refused(f, HANDLER("\nretry = { atempts = 3; };"),
                "t.cfg:3: no setting \"atempts\" in handlers.echo.retry; did you mean \"attempts\"?\n");
        assert_refused(f, HANDLER("zzz = 3;"), "no setting \"zzz\" in handlers.echo\n");
        assert_refused(f, HANDLER("on_exhausted = \"holds\";"), "did you mean \"hold\"?");
}

static void a_wrong_type_is_refused(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, MINIMAL "shards = \"64\";", "t.cfg:2: shards wants an integer, not a text\n");
        assert_refused(f, MINIMAL "shards = 1.5;", "shards wants an integer, not a float");
        assert_refused(f, MINIMAL "lease = { ttl = 10; };", "did you mean \"10s\"?");
        assert_refused(f, MINIMAL "lease = { ttl = \"10\"; };", "has no unit");
        assert_refused(f, MINIMAL "lease = 5;", "lease wants a group: { … }, not an integer");
        assert_refused(f, MINIMAL "handlers = { echo = 5; };", "handlers.echo wants a group");
        assert_refused(f, HANDLER("tasks = \"a\";"), "handlers.echo.tasks wants a list of texts");
        assert_refused(f, HANDLER("tasks = ( \"a\", 5 );"), "handlers.echo.tasks.1 wants a text");
        assert_refused(f, HANDLER("tasks = [ ];"), "handlers.echo.tasks is empty");
        assert_refused(f, HANDLER("config = 5;"), "handlers.echo.config wants a group");
        assert_refused(f, HANDLER("threads = true;"), "threads wants an integer, not true or false");
}

static void what_is_out_of_range_is_refused(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, MINIMAL "shards = 0;", "shards: 0 is out of range: 1 to 4096");
        assert_refused(f, MINIMAL "shards = -1;", "-1 is out of range");
        assert_refused(f, MINIMAL "shards = 5000000000L;", "5000000000 is out of range");
        assert_refused(f, MINIMAL "lease = { ttl = \"1ms\"; };", "lease.ttl: 1ms is out of range: 500ms to 10m");
        assert_refused(f, HANDLER("retry = { jitter = 1.5; };"), "out of range: 0.0 to 1.0");
        assert_refused(f, HANDLER("retry = { factor = 1e999; };"), "out of range");
        assert_refused(f, HANDLER("max_result = \"65MiB\";"), "out of range: 0 to 64MiB");
}

static void every_problem_is_reported_at_once(void **state)
{
        struct fixture *f = *state;
        (void)parse(f, "app = \"UPPER\";\nshards = 5000000000;\nlease = { ttl = 1; };\nshard = 1;\n"
                       "handlers = { a = { }; };\n");
        assert_int_equal(f->r, -EINVAL);
        assert_said(f, "t.cfg:1: app: \"UPPER\" is not");
        assert_said(f, "t.cfg:2: 5000000000 does not fit into 32 bits");
        assert_said(f, "t.cfg:3: lease.ttl wants");
        assert_said(f, "t.cfg:4: no setting \"shard\"");
        assert_said(f, "t.cfg:5: handlers.a.plugin is missing");
        assert_said(f, "t.cfg: store.url is missing");
        assert_int_equal(f->problems.errors, 6); /* and nothing is said about what 5000000000 was cut to */
}

static void the_number_of_problems_is_bounded(void **state)
{
        struct fixture *f = *state;
        char text[16384] = MINIMAL;
        for (int i = 0; i < 200; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "nonsense%d = 1;\n", i);
        assert_int_equal(parse(f, text), -EINVAL);
        assert_int_equal(f->problems.count, PROBLEMS_MAX);
        assert_int_equal(f->problems.errors, 200);
        assert_int_equal(f->problems.left_off, 200 - PROBLEMS_MAX);
}

static void names_are_checked(void **state)
{
        struct fixture *f = *state;
        char text[512];
        assert_refused(f, "app = \"\"; store = { url = \"sqlite:q\"; };", "app: \"\" is not 1 to 64");
        assert_refused(f, "app = \"a/b\"; store = { url = \"sqlite:q\"; };", "app:");
        (void)snprintf(text, sizeof(text), MINIMAL "handlers = { %064d = { plugin = \"x\"; }; };", 0);
        memset(strstr(text, "00000"), 'h', 64);
        assert_ok(f, text);
        (void)snprintf(text, sizeof(text), MINIMAL "handlers = { %065d = { plugin = \"x\"; }; };", 0);
        memset(strstr(text, "00000"), 'h', 65);
        assert_refused(f, text, "a handler's name: ");
        assert_refused(f, MINIMAL "handlers = { *x = { plugin = \"x\"; }; };", "a handler's name: \"*x\"");
        assert_refused(f, MINIMAL "host = { name = \"a b\"; };", "host.name:");
        assert_refused(f, MINIMAL "http = { listen = \"7070\"; };", "is not ADDRESS:PORT");
        assert_refused(f, MINIMAL "http = { listen = \"h:70700\"; };", "is not ADDRESS:PORT");
        assert_ok(f, MINIMAL "http = { listen = \"[::1]:0\"; };");
        assert_refused(f, MINIMAL "handlers = { h = { plugin = \"\"; }; };", "does not name a file");
}

static void two_handlers_cannot_serve_one_task_name(void **state)
{
        struct fixture *f = *state;
        assert_refused(f,
                MINIMAL "handlers = { a = { plugin = \"x\"; };\n b = { plugin = \"x\"; tasks = [ \"b\", \"a\" ]; }; };",
                "t.cfg:3: tasks named \"a\" are served by handler a (/srv/etc/t.cfg:2) already");
        assert_refused(f, HANDLER("tasks = [ \"a\", \"a\" ];"), "\"a\" stands twice");
}

static void settings_that_do_not_fit_together_are_refused(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, HANDLER("retry = { backoff = \"10m\"; };"), "backoff 10m is longer than max 5m");
        assert_refused(f, HANDLER("stall = \"1m\";"), "stall 1m is longer than timeout 30s");
        assert_ok(f, HANDLER("stall = \"1m\"; timeout = \"0\";"));
        assert_refused(f, HANDLER("max_payload = \"2MiB\";"), "larger than store.max_payload");
        assert_refused(f, HANDLER("limits = { cpu = \"1500ms\"; };"), "whole seconds");
        assert_refused(f, HANDLER("limits = { descriptors = 3; };"), "too few");
        assert_refused(f, MINIMAL "window = { tasks = 16; per_key = 17; };", "per_key 17 is more than tasks 16");
        assert_refused(f, HANDLER("batch = { same_key = true; };"), "needs a batch.max of 2 or more");
        assert_refused(f, HANDLER("batch = { max = 9; same_key = true; };") "window = { tasks = 17; };",
                "up to 2 x batch.max = 18 tasks of a key, but window.tasks is 17");
        assert_ok(f, HANDLER("batch = { max = 8; same_key = true; };")); /* 16 are the window's own */
        assert_refused(f, MINIMAL "handlers = { a = { batch = { max = 2; same_key = true; }; }; };",
                "handlers.a.plugin is missing");
        assert_refused(f, MINIMAL "coordination = { url = \"redis\"; };", "is the Redis of the store");
}

static void plugin_settings_that_no_message_could_carry_are_refused(void **state)
{
        struct fixture *f = *state;
        char *text = calloc(1, 128 * 1024);
        (void)sprintf(text, MINIMAL "handlers = { echo = { plugin = \"e\"; config = { a = \"");
        memset(text + strlen(text), 'x', 70 * 1024);
        (void)strcat(text, "\"; }; }; };");
        assert_refused(f, text, "more than 64 KiB of settings");
        free(text);
}

/* --- secrets --- */

static char secret_path[] = "/tmp/quiver-secret-XXXXXX";

static void write_secret(const char *text, mode_t mode)
{
        FILE *file = fopen(secret_path, "w");
        assert_non_null(file);
        (void)fputs(text, file);
        (void)fclose(file);
        assert_int_equal(chmod(secret_path, mode), 0);
}

static const char *with_password_file(char *text, size_t size)
{
        (void)snprintf(
                text, size, "app = \"a\"; store = { url = \"redis://h\"; password_file = \"%s\"; };", secret_path);
        return text;
}

static void a_password_comes_from_a_file(void **state)
{
        struct fixture *f = *state;
        char text[512];
        char password[SECRET_MAX];
        struct error error;
        write_secret("hunter2\r\n", 0600);
        assert_ok(f, with_password_file(text, sizeof(text)));
        assert_int_equal(config_secret(&f->config.store.password, password, NULL, &error), 0);
        assert_string_equal(password, "hunter2");
        write_secret("hunter2\n", 0640);
        assert_int_equal(parse(f, text), 0);
        assert_said(f, "warning: store.password_file: ");
        assert_said(f, "is open to others (mode 640); chmod 600");
        write_secret("\n", 0600);
        assert_refused(f, text, "the password is empty");
        assert_int_equal(unlink(secret_path), 0);
        assert_refused(f, text, "cannot open: No such file");
}

static void a_password_comes_from_the_environment(void **state)
{
        struct fixture *f = *state;
        char password[SECRET_MAX];
        struct error error;
        static const char text[] = "app = \"a\"; store = { url = \"redis://h\"; password_env = \"QUIVER_TEST_PW\"; };";
        assert_int_equal(setenv("QUIVER_TEST_PW", "hunter2", 1), 0);
        assert_ok(f, text);
        assert_int_equal(config_secret(&f->config.store.password, password, NULL, &error), 0);
        assert_string_equal(password, "hunter2");
        assert_int_equal(unsetenv("QUIVER_TEST_PW"), 0);
        assert_int_equal(parse(f, text), 0);
        assert_said(f, "warning: store.password_env: the environment has no QUIVER_TEST_PW");
        assert_true(config_secret(&f->config.store.password, password, NULL, &error) < 0);
        assert_int_equal(config_secret(&f->config.coordination.password, password, NULL, &error), -ENOENT);
}

/* What /proc/PID/environ shows is the memory that the process was started with. */
static void a_password_that_a_host_has_read_leaves_the_memory(void **state)
{
        struct fixture *f = *state;
        struct config_secrets secrets;
        struct error error = { "" };
        char password[] = "QUIVER_TEST_PW=hunter2";
        char other[] = "OTHER=stays";
        char *variables[] = { other, password, NULL };
        char **before = environ;
        static const char text[] = "app = \"a\"; store = { url = \"redis://h\"; password_env = \"QUIVER_TEST_PW\"; };";
        environ = variables;
        assert_ok(f, text);
        assert_int_equal(config_secrets_read(&f->config, false, &secrets, &error), 0);
        assert_string_equal(secrets.store, "hunter2");
        assert_string_equal(password, "QUIVER_TEST_PW=hunter2");
        assert_int_equal(config_secrets_read(&f->config, true, &secrets, &error), 0);
        assert_string_equal(secrets.store, "hunter2");
        assert_null(memmem(password, sizeof(password), "hunter2", 7));
        assert_null(getenv("QUIVER_TEST_PW"));
        assert_string_equal(getenv("OTHER"), "stays");
        environ = before;
}

/* It may have been changed after the settings were looked at. */
static void a_host_does_not_read_a_password_that_others_could_have_written(void **state)
{
        struct fixture *f = *state;
        struct config_secrets secrets;
        struct error error = { "" };
        char text[256];
        write_secret("hunter2\n", 0600);
        assert_ok(f, with_password_file(text, sizeof(text)));
        assert_int_equal(chmod(secret_path, 0602), 0);
        assert_int_equal(config_secrets_read(&f->config, false, &secrets, &error), 0);
        assert_int_equal(config_secrets_read(&f->config, true, &secrets, &error), -EPERM);
        assert_non_null(strstr(error.text, "everybody on this machine can write to it; chmod o-w"));
        assert_int_equal(unlink(secret_path), 0);
}

static void a_password_in_the_file_is_refused_and_not_repeated(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, "app = \"a\"; store = { url = \"redis://u:hunter2@h\"; };", "password_file or password_env");
        assert_null(strstr(f->said, "hunter2"));
        assert_refused(
                f, "app = \"a\"; store = { url = \"redis://h\"; password = \"hunter2\"; };", "no setting \"password\"");
        assert_null(strstr(f->said, "hunter2"));
        assert_refused(f, "app = \"a\"; store = { url = \"redis://h\"; password_env = \"hunter 2\"; };",
                "environment variable");
        assert_null(strstr(f->said, "hunter"));
        assert_refused(f, MINIMAL "coordination = { url = \"zookeeper://h\"; user = \"u\"; };", "needs password_file");
        assert_refused(f, "app = \"a\"; store = { url = \"sqlite:q\"; user = \"u\"; };", "no user or password");
}

static void etcd_takes_whole_seconds_and_tls_where_it_is_spoken(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, MINIMAL "coordination = { url = \"etcd://h\"; session = \"1500ms\"; };",
                "etcd counts whole seconds");
        assert_refused(f, MINIMAL "coordination = { url = \"etcd://h\"; tls = { ca_file = \"ca.pem\"; }; };",
                "coordination.url speaks no TLS");
        assert_refused(f, MINIMAL "coordination = { url = \"etcd+tls://h\"; tls = { cert_file = \"c.pem\"; }; };",
                "belong together");
        assert_refused(f, MINIMAL "coordination = { url = \"etcd+tls://h\"; tls = { server_name = \"n\"; }; };",
                "server_name is for Redis");
        assert_refused(f, MINIMAL "coordination = { url = \"etcd://h\"; user = \"u\"; };", "needs password_file");
}

#define OVER(scheme, tls) "app = \"a\"; store = { url = \"" scheme "://h\"; tls = { " tls " }; };"

static void redis_takes_tls_where_it_is_spoken(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, OVER("redis", "ca_file = \"ca.pem\";"), "store.url speaks no TLS; it would be rediss://");
        assert_refused(f, OVER("rediss", "key_file = \"k.pem\";"), "cert_file and key_file belong together");
        assert_refused(f, OVER("rediss", "") "coordination = { url = \"redis\"; tls = { ca_file = \"ca.pem\"; }; };",
                "is the store's Redis; set store.tls");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                config_test(what_is_left_out_has_its_default),
                config_test(what_is_set_is_taken),
                config_test(an_integer_is_accepted_where_a_float_is_meant),
                config_test(plugin_settings_are_flattened_in_order),
                config_test(a_misspelt_setting_is_refused_with_the_nearest_name),
                config_test(a_wrong_type_is_refused),
                config_test(what_is_out_of_range_is_refused),
                config_test(every_problem_is_reported_at_once),
                config_test(the_number_of_problems_is_bounded),
                config_test(names_are_checked),
                config_test(two_handlers_cannot_serve_one_task_name),
                config_test(settings_that_do_not_fit_together_are_refused),
                config_test(plugin_settings_that_no_message_could_carry_are_refused),
                config_test(a_password_comes_from_a_file),
                config_test(a_password_comes_from_the_environment),
                config_test(a_password_that_a_host_has_read_leaves_the_memory),
                config_test(a_host_does_not_read_a_password_that_others_could_have_written),
                config_test(a_password_in_the_file_is_refused_and_not_repeated),
                config_test(etcd_takes_whole_seconds_and_tls_where_it_is_spoken),
                config_test(redis_takes_tls_where_it_is_spoken),
        };
        int fd = mkstemp(secret_path);
        if (fd < 0)
                return 1;
        (void)close(fd);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
