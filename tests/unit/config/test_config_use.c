/* What others do with a configuration: find it, compare two, show it, take a plugin's settings out of it. */
#include "config_fixture.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "config/field.h"

/* --- compare --- */

static char changes_text[1024];

/* "name effect;…" of what differs between two bodies of one handler. */
static const char *handler_changes(struct fixture *f, const char *before, const char *after, enum config_effect *ret)
{
        struct config old = { 0 };
        struct config_changes changes = { 0 };
        assert_int_equal(parse(f, before), 0);
        old = f->config;
        f->config = (struct config){ 0 };
        assert_int_equal(parse(f, after), 0);
        config_compare_handlers(&old.handlers[0], &f->config.handlers[0], &changes);
        changes_text[0] = 0;
        for (size_t i = 0; i < changes.count; i++)
                (void)snprintf(changes_text + strlen(changes_text), sizeof(changes_text) - strlen(changes_text),
                        "%s %d;", changes.items[i].name, changes.items[i].effect);
        *ret = changes.effect;
        config_changes_free(&changes);
        config_free(&old);
        return changes_text;
}

static void a_changed_handler_says_what_changed_and_what_it_takes(void **state)
{
        struct fixture *f = *state;
        enum config_effect effect = EFFECT_RESTART;
        assert_string_equal(
                handler_changes(f, HANDLER(""), HANDLER("timeout = \"30s\"; tasks = [ \"echo\" ];"), &effect), "");
        assert_int_equal(effect, EFFECT_LIVE);
        assert_string_equal(
                handler_changes(f, HANDLER("timeout = \"1m\";"),
                        HANDLER("processes = 2; retry = { jitter = 0.25; }; tasks = [ \"echo\", \"x\" ];"), &effect),
                "tasks 0;processes 0;timeout 0;retry.jitter 0;");
        assert_int_equal(effect, EFFECT_LIVE);
        assert_string_equal(handler_changes(f, HANDLER("timeout = \"1m\"; limits = { read = [ \"/a\", \"/b\" ]; };"),
                                    HANDLER("threads = 2; limits = { read = [ \"/a\" ]; };"), &effect),
                "threads 1;timeout 0;limits.read 1;");
        assert_int_equal(effect, EFFECT_GENERATION);
        assert_string_equal(handler_changes(f, HANDLER("config = { a = 1; b = { c = 2; d = 3; }; };"),
                                    HANDLER("config = { a = 1; b = { c = 9; }; e = 4; };"), &effect),
                "config.b.c 1;config.b.d 1;config.e 1;");
        assert_string_equal(
                handler_changes(f, HANDLER("limits = { user = \"u\"; };"), HANDLER(""), &effect), "limits.user 1;");
        assert_string_equal(handler_changes(f, HANDLER(""), HANDLER("") "plugins = \"/p\";", &effect), "plugin 1;");
}

#define SCHEDULES(text) "schedules = { " text " }; " HANDLER("")

static void schedules_are_read_checked_and_compared(void **state)
{
        struct fixture *f = *state;
        struct config old = { 0 };
        struct config_changes changes = { 0 };
        assert_int_equal(parse(f, SCHEDULES("a = { cron = \"0 3 * * *\"; handler = \"echo\"; payload = \"x\"; }; "
                                            "b = { every = \"90s\"; handler = \"echo\"; };")),
                0);
        assert_int_equal(f->config.schedules_count, 2);
        assert_string_equal(f->config.schedules[0].named.name, "a");
        assert_string_equal(f->config.schedules[0].payload, "x");
        assert_int_equal(f->config.schedules[1].every_ms, 90000);
        assert_int_equal(f->config.schedules[1].catchup_ms, 3600000);
        old = f->config;
        f->config = (struct config){ 0 };
        assert_int_equal(parse(f, SCHEDULES("b = { every = \"91s\"; handler = \"echo\"; }; "
                                            "c = { every = \"90s\"; handler = \"echo\"; };")),
                0);
        config_compare(&old, &f->config, &changes);
        assert_int_equal(changes.count, 3);
        assert_string_equal(changes.items[0].name, "schedules.a");
        assert_int_equal(changes.effect, EFFECT_LIVE);
        config_changes_free(&changes);
        config_free(&old);
}

static void a_schedule_that_cannot_be_is_refused_by_name(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *schedule, *text;
        } wrong[] = {
                { "a = { cron = \"0 0 31 2 *\"; handler = \"echo\"; };", "schedules.a: 0 0 31 2 * never occurs" },
                { "a = { handler = \"echo\"; };", "schedules.a: say when: one of cron, every and at" },
                { "a = { cron = \"@daily\"; };", "handler" },
                { "a = { cron = \"@daily\"; handler = \"echo\"; zone = \"Mars/Olympus\"; };", "Mars/Olympus" },
                { "a = { at = \"noon\"; handler = \"echo\"; };", "schedules.a: at: noon" },
                { "a = { every = \"1s\"; handler = \"echo\"; when = 3; };", "when" },
                { "a = { every = \"1s\"; handler = \"echo\"; overlap = \"both\"; };", "overlap" },
                { "x123456789x123456789x123456789x123456789x = { every = \"1s\"; handler = \"echo\"; };",
                        "at most 40 letters" },
                { "a = 3;", "schedules.a" },
        };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                char text[512];
                (void)snprintf(text, sizeof(text), SCHEDULES("%s"), wrong[i].schedule);
                assert_refused(f, text, wrong[i].text);
        }
}

static void what_is_doubtful_about_a_schedule_is_a_warning(void **state)
{
        struct fixture *f = *state;
        assert_int_equal(parse(f, SCHEDULES("a = { cron = \"* 0 * * *\"; handler = \"other\"; };")), 0);
        assert_said(f, "schedules.a.cron: * 0 * * *: it runs at every minute");
        assert_said(f, "no handler of this file serves tasks named other");
}

static void a_changed_host_says_what_needs_a_restart(void **state)
{
        struct fixture *f = *state;
        struct config_changes changes = { 0 };
        struct config old = { 0 };
        assert_ok(f, HANDLER("") "log = { level = \"warn\"; };");
        old = f->config;
        f->config = (struct config){ 0 };
        assert_ok(f, "app = \"demo\"; shards = 32; store = { url = \"sqlite:other.db\"; };");
        config_compare(&old, &f->config, &changes);
        assert_int_equal(changes.count, 3);
        assert_string_equal(changes.items[0].name, "shards");
        assert_int_equal(changes.items[0].effect, EFFECT_FIXED);
        assert_string_equal(changes.items[1].name, "store.url");
        assert_int_equal(changes.items[1].effect, EFFECT_RESTART);
        assert_string_equal(changes.items[2].name, "log.level");
        assert_int_equal(changes.items[2].effect, EFFECT_LIVE);
        assert_int_equal(changes.effect, EFFECT_FIXED);
        config_changes_free(&changes);
        config_free(&old);
}

/* --- show --- */

static char *show(const struct config *config)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        config_show(config, out);
        assert_int_equal(fclose(out), 0);
        return text;
}

static void what_is_shown_can_be_loaded_and_means_the_same(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, HANDLER("timeout = \"1234ms\"; max_result = \"1000\"; retry = { jitter = 0.3; factor = 7; };"
                             " limits = { user = \"u\"; write = [ \"/a b\", \"\\\"\" ]; }; on_exhausted = \"hold\";"
                             " config = { a = \"q\\\"\\\\\\n\"; l = ( \"x\", { y = 1; }, [ 2, 3 ] ); l2 = [ 1 ]; g = { "
                             "h = { i = true; }; }; };"));
        char *first = show(&f->config);
        struct setting_list settings = f->config.handlers[0].settings;
        f->config.handlers[0].settings = (struct setting_list){ 0 };
        assert_ok(f, first);
        char *second = show(&f->config);
        assert_string_equal(first, second);
        assert_int_equal(f->config.handlers[0].settings.count, settings.count);
        for (size_t i = 0; i < settings.count; i++) {
                assert_string_equal(f->config.handlers[0].settings.items[i].name, settings.items[i].name);
                assert_string_equal(f->config.handlers[0].settings.items[i].value, settings.items[i].value);
        }
        assert_int_equal(f->config.handlers[0].timeout_ms, 1234);
        setting_list_free(&settings);
        free(first);
        free(second);
}

static void secrets_of_plugins_are_not_shown(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, HANDLER("config = { db = { Password = \"hunter2\"; }; api_token = \"hunter2\"; url = "
                             "\"pg://u:hunter2@h/d\";"
                             " dsn = \"host=h password=hunter2\"; plain = \"seen\"; };"));
        char *text = show(&f->config);
        assert_null(strstr(text, "hunter2"));
        assert_non_null(strstr(text, "plain = \"seen\";"));
        free(text);
}

/* --- the table --- */

static void check_group(const struct group *group, struct buffer *scratch)
{
        for (size_t i = 0; i < group->count; i++) {
                const struct field *field = &group->fields[i];
                struct error error = { "" };
                if (field->type == FIELD_GROUP)
                        check_group(field->group, scratch);
                assert_non_null(field->help);
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(group->fields[k].name, field->name);
                if (!field->fallback)
                        continue;
                memset(scratch->data, 0, scratch->size);
                if (field_parse(field, field->fallback, "/", scratch->data, &error) < 0)
                        fail_msg("%s: %s", field->name, error.text);
                group_free(group, scratch->data);
        }
}

static void every_default_is_within_its_own_range(void **state)
{
        struct buffer scratch = { 0 };
        (void)state;
        (void)buffer_reserve(&scratch, sizeof(struct config) + sizeof(struct handler_config));
        scratch.size = sizeof(struct config) + sizeof(struct handler_config);
        check_group(&config_table, &scratch);
        check_group(&handler_table, &scratch);
        buffer_free(&scratch);
}

/* --- find, and a plugin's settings --- */

static char folder[PATH_MAX];

static void put_file(const char *name, const char *text)
{
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

static void the_first_place_that_has_a_file_wins(void **state)
{
        char *path = NULL;
        const char *how = NULL;
        struct error error;
        (void)state;
        assert_int_equal(unsetenv("QUIVER_CONFIG"), 0);
        if (access("/etc/quiver/runtime.cfg", F_OK) != 0) {
                assert_int_equal(config_find(NULL, &path, &how, &error), -ENOENT);
                assert_non_null(strstr(error.text, "./etc/runtime.cfg"));
                assert_non_null(strstr(error.text, "/etc/quiver/runtime.cfg"));
        }
        assert_int_equal(mkdir("etc", 0700), 0);
        put_file("etc/runtime.cfg", MINIMAL);
        assert_int_equal(config_find(NULL, &path, &how, &error), 0);
        assert_string_equal(path, "./etc/runtime.cfg");
        free(path);
        assert_int_equal(setenv("QUIVER_CONFIG", "/from/environment", 1), 0);
        assert_int_equal(config_find(NULL, &path, &how, &error), 0);
        assert_string_equal(path, "/from/environment");
        assert_string_equal(how, "$QUIVER_CONFIG");
        free(path);
        assert_int_equal(config_find("given", &path, &how, &error), 0);
        assert_string_equal(path, "given");
        assert_string_equal(how, "-c");
        free(path);
        assert_int_equal(unsetenv("QUIVER_CONFIG"), 0);
}

static void a_bare_file_of_settings_is_taken_as_it_is(void **state)
{
        struct setting_list s = { 0 };
        struct error error;
        (void)state;
        put_file("bare.cfg", "greeting = \"hi\"; db = { url = \"u\"; };");
        assert_int_equal(config_load_settings("bare.cfg", "echo.so", &s, &error), 0);
        assert_int_equal(s.count, 2);
        assert_string_equal(setting_list_get(&s, "greeting"), "hi");
        assert_string_equal(setting_list_get(&s, "db.url"), "u");
        setting_list_free(&s);
        put_file("bare.cfg", "a = 1;\nb = 5000000000;");
        assert_int_equal(config_load_settings("bare.cfg", "echo.so", &s, &error), -EINVAL);
        assert_non_null(strstr(error.text, "bare.cfg:2: 5000000000 does not fit"));
        assert_int_equal(config_load_settings("missing.cfg", "echo.so", &s, &error), -ENOENT);
        assert_non_null(strstr(error.text, "missing.cfg: cannot open"));
        assert_int_equal(s.count, 0);
}

static void a_whole_file_gives_the_settings_of_one_handler(void **state)
{
        struct setting_list s = { 0 };
        struct error error;
        (void)state;
        /* Not a valid runtime.cfg: that is not what is asked. */
        put_file("whole.cfg", "handlers = { a = { plugin = \"x/one.so\"; config = { n = 1; }; };\n"
                              "b = { plugin = \"two.so\"; config = { n = 2; }; }; c = { plugin = \"two.so\"; };\n"
                              "two = { plugin = \"one.so2\"; }; bad = { plugin = \"bad.so\"; config = 5; }; };");
        assert_int_equal(config_load_settings("whole.cfg", "./build/one.so", &s, &error), 0);
        assert_string_equal(setting_list_get(&s, "n"), "1");
        setting_list_free(&s);
        assert_int_equal(config_load_settings("whole.cfg", "b", &s, &error), 0);
        assert_string_equal(setting_list_get(&s, "n"), "2");
        setting_list_free(&s);
        assert_int_equal(config_load_settings("whole.cfg", "c", &s, &error), 0);
        assert_int_equal(s.count, 0);
        assert_int_equal(config_load_settings("whole.cfg", "two.so", &s, &error), -EEXIST);
        assert_non_null(strstr(error.text, "handlers b and c both have the plugin two.so"));
        assert_int_equal(config_load_settings("whole.cfg", "three.so", &s, &error), -ENOENT);
        assert_non_null(strstr(error.text, "whole.cfg: no handler is called \"three.so\""));
        assert_int_equal(config_load_settings("whole.cfg", "bad", &s, &error), -EINVAL);
        assert_non_null(strstr(error.text, "whole.cfg:3: config wants a group"));
}

/* --- limits of the whole app --- */

#define LIMITED(limits, by) "limits = { " limits " };\n" HANDLER("limited_by = ( " by " );")

static void a_limit_is_a_rate_or_a_concurrency(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, LIMITED("api = { rate = 100; burst = 20; by = \"header.tenant\"; }; smtp = { concurrency = 5; };",
                             "\"api\", \"smtp\""));
        const struct limit_config *api = config_limit(&f->config, "api");
        assert_int_equal(api->rate, 100);
        assert_int_equal(api->per_ms, 1000);
        assert_int_equal(api->burst, 20);
        assert_string_equal(api->by, "header.tenant");
        assert_int_equal(config_limit(&f->config, "smtp")->concurrency, 5);
        assert_int_equal(f->config.handlers[0].limited_by.count, 2);
        assert_ok(f, LIMITED("api = { rate = 100; };", "\"api\""));
        assert_int_equal(config_limit(&f->config, "api")->burst, 21);
        assert_ok(f, LIMITED("slow = { rate = 1; per = \"1m\"; burst = 1; };", "\"slow\""));
        assert_refused(
                f, LIMITED("api = { rate = 1; concurrency = 1; };", "\"api\""), "either a rate or a concurrency");
        assert_refused(f, LIMITED("api = { };", "\"api\""), "either a rate or a concurrency");
        assert_refused(f, LIMITED("api = { concurrency = 2; burst = 2; };", "\"api\""), "only a rate has one");
        assert_refused(f, LIMITED("api = { rate = 100; burst = 1; };", "\"api\""), "at least 3");
        assert_refused(f, LIMITED("api = { rate = 1; by = \"x\"; };", "\"api\""), "neither \"key\" nor");
        assert_refused(f, LIMITED("api = { rate = 1; };", "\"apo\""), "no \"apo\" in limits");
        assert_refused(f, LIMITED("a-b = { rate = 1; }; c = 3;", "\"a-b\""), "limits.c wants a group");
}

static void a_changed_limit_takes_a_reload(void **state)
{
        struct fixture *f = *state;
        struct config old = { 0 };
        struct config_changes changes = { 0 };
        assert_int_equal(parse(f, LIMITED("a = { rate = 1; }; b = { concurrency = 1; };", "\"a\"")), 0);
        old = f->config;
        f->config = (struct config){ 0 };
        assert_int_equal(parse(f, LIMITED("a = { rate = 2; }; c = { concurrency = 1; };", "\"a\"")), 0);
        config_compare(&old, &f->config, &changes);
        assert_int_equal(changes.count, 3);
        assert_string_equal(changes.items[0].name, "limits.a");
        assert_string_equal(changes.items[1].name, "limits.b");
        assert_string_equal(changes.items[2].name, "limits.c");
        assert_int_equal(changes.effect, EFFECT_LIVE);
        config_changes_free(&changes);
        config_free(&old);
}

static int folder_setup(void **state)
{
        char template[] = "/tmp/quiver-config-XXXXXX";
        (void)state;
        return mkdtemp(template) && realpath(template, folder) && !chdir(folder) ? 0 : -1;
}

static int folder_teardown(void **state)
{
        static const char *const files[] = { "etc/runtime.cfg", "bare.cfg", "whole.cfg" };
        (void)state;
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                (void)unlink(files[i]);
        (void)rmdir("etc");
        return chdir("/") || rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                config_test(a_changed_handler_says_what_changed_and_what_it_takes),
                config_test(a_changed_host_says_what_needs_a_restart),
                config_test(schedules_are_read_checked_and_compared),
                config_test(a_schedule_that_cannot_be_is_refused_by_name),
                config_test(what_is_doubtful_about_a_schedule_is_a_warning),
                config_test(what_is_shown_can_be_loaded_and_means_the_same),
                config_test(secrets_of_plugins_are_not_shown),
                config_test(a_limit_is_a_rate_or_a_concurrency),
                config_test(a_changed_limit_takes_a_reload),
                cmocka_unit_test(every_default_is_within_its_own_range),
                cmocka_unit_test(the_first_place_that_has_a_file_wins),
                cmocka_unit_test(a_bare_file_of_settings_is_taken_as_it_is),
                cmocka_unit_test(a_whole_file_gives_the_settings_of_one_handler),
        };
        return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
