/* What a reload reads, plans and remembers. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/handler/reload_history.h"
#include "host/handler/reload_plan.h"

struct site {
        char root[64];
        char config[96];
        struct reload_read read;
};

static int setup(void **state)
{
        struct site *p = calloc(1, sizeof(*p));
        if (!p)
                return -1;
        strcpy(p->root, "/tmp/quiver-reload-XXXXXX");
        if (!mkdtemp(p->root)) {
                free(p);
                return -1;
        }
        (void)snprintf(p->config, sizeof(p->config), "%s/runtime.cfg", p->root);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct site *p = *state;
        char command[128];
        (void)snprintf(command, sizeof(command), "rm -rf %s", p->root);
        int r = system(command);
        free(p);
        return r;
}

static void write_file(const char *root, const char *name, const char *text)
{
        char path[160];
        (void)snprintf(path, sizeof(path), "%s/%s", root, name);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

/* Handler `echo` with these settings; its plugin has these bytes. */
static void install(const struct site *p, const char *settings, const char *bytes)
{
        char text[1024];
        (void)snprintf(text, sizeof(text),
                "app = \"demo\"; plugins = \".\"; store = { url = \"sqlite:q.db\"; };\n"
                "handlers = { echo = { plugin = \"echo.so\"; %s }; };\n",
                settings);
        write_file(p->root, "runtime.cfg", text);
        write_file(p->root, "echo.so", bytes);
}

static void read_all(struct site *p, bool is_dry, const struct generation_id *known)
{
        p->read = (struct reload_read){ .path = strdup(p->config), .copies = p->root, .is_dry = is_dry };
        if (known) {
                p->read.known = calloc(1, sizeof(*p->read.known));
                assert_non_null(p->read.known);
                p->read.known_count = 1;
                strcpy(p->read.known[0].name, "echo");
                p->read.known[0].id = *known;
        }
        reload_read(&p->read);
}

/* --- reading --- */

static void what_is_new_is_staged_and_what_is_known_is_not(void **state)
{
        struct site *p = *state;
        install(p, "", "one");
        read_all(p, false, NULL);
        assert_int_equal(p->read.status, 0);
        assert_true(p->read.items[0].has_copy);
        struct generation_id id = p->read.items[0].id;
        struct plugin_copy copy = p->read.items[0].copy;
        reload_read_free(&p->read);
        struct stat st;
        assert_int_equal(stat(copy.path, &st), -1); /* nobody took it */

        read_all(p, false, &id);
        assert_false(p->read.items[0].has_copy);
        assert_true(generation_is_same(&p->read.items[0].id, &id));
        reload_read_free(&p->read);

        install(p, "threads = 2;", "one");
        read_all(p, false, &id);
        assert_true(p->read.items[0].has_copy);
        assert_true(p->read.items[0].id.file_hash == id.file_hash);
        assert_true(p->read.items[0].id.settings_hash != id.settings_hash);
        reload_read_free(&p->read);

        install(p, "", "two");
        read_all(p, true, &id);
        assert_false(p->read.items[0].has_copy); /* dry */
        assert_true(p->read.items[0].id.file_hash != id.file_hash);
        reload_read_free(&p->read);
}

static void a_mistake_is_found_before_anything_is_staged(void **state)
{
        struct site *p = *state;
        install(p, "thraeds = 2;", "one");
        read_all(p, false, NULL);
        assert_true(p->read.status < 0);
        assert_int_equal(p->read.problems.errors, 1);
        assert_int_equal(p->read.problems.items[0].line, 2);
        assert_null(p->read.items);
        reload_read_free(&p->read);
}

static void a_missing_plugin_is_its_handlers_problem_only(void **state)
{
        struct site *p = *state;
        install(p, "", "one");
        char path[96];
        (void)snprintf(path, sizeof(path), "%s/echo.so", p->root);
        assert_int_equal(remove(path), 0);
        read_all(p, false, NULL);
        assert_int_equal(p->read.status, 0);
        assert_true(p->read.items[0].status < 0);
        assert_non_null(strstr(p->read.items[0].error.text, "echo.so"));
        reload_read_free(&p->read);
}

static void settings_that_need_no_new_runners_do_not_change_the_hash(void **state)
{
        struct site *p = *state;
        static const struct {
                const char *settings;
                bool is_same;
        } cases[] = {
                { "processes = 4; timeout = \"9s\"; retry = { attempts = 9; }; crashes = 9;", true },
                { "batch = { wait = \"9ms\"; };", true },
                { "batch = { max = 9; };", false },
                { "limits = { memory = \"9MiB\"; };", false },
                { "config = { a = \"b\"; };", false },
                { "config = { ab = \"\"; };", false },
        };
        uint64_t hashes[sizeof(cases) / sizeof(cases[0])];
        install(p, "", "one");
        read_all(p, true, NULL);
        uint64_t plain = p->read.items[0].id.settings_hash;
        reload_read_free(&p->read);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                install(p, cases[i].settings, "one");
                read_all(p, true, NULL);
                assert_int_equal(p->read.status, 0);
                hashes[i] = p->read.items[0].id.settings_hash;
                assert_int_equal(hashes[i] == plain, cases[i].is_same);
                reload_read_free(&p->read);
        }
        assert_true(hashes[4] != hashes[5]);
}

/* --- the plan --- */

static void the_plan_says_what_changes_and_why(void **state)
{
        struct site *p = *state;
        struct rollout rollout = { 0 };
        struct reload_read old;
        struct generation target = { 0 };
        struct buffer why = { 0 };
        install(p, "", "one");
        read_all(p, true, NULL);
        old = p->read;
        target.settings = old.items[0].handler;
        target.version.id = old.items[0].id;
        assert_int_equal(plan_item(&old.items[0], &rollout, &target, &why), PLAN_KEEP);
        assert_int_equal(plan_item(&old.items[0], NULL, NULL, &why), PLAN_ADD);
        assert_int_equal(why.size, 0);

        install(p, "crashes = 7;", "one");
        read_all(p, true, NULL);
        assert_int_equal(plan_item(&p->read.items[0], &rollout, &target, &why), PLAN_ADJUST);
        assert_string_equal(buffer_text(&why), "crashes");
        reload_read_free(&p->read);

        install(p, "threads = 3; crashes = 7;", "two");
        read_all(p, true, NULL);
        buffer_clear(&why);
        assert_int_equal(plan_item(&p->read.items[0], &rollout, &target, &why), PLAN_REPLACE);
        assert_string_equal(buffer_text(&why), "file, threads, crashes");
        rollout.has_bad = true;
        rollout.bad = p->read.items[0].id;
        assert_int_equal(plan_item(&p->read.items[0], &rollout, &target, &why), PLAN_HOLD_BACK);
        p->read.items[0].status = -1;
        assert_int_equal(plan_item(&p->read.items[0], &rollout, &target, &why), PLAN_REFUSE);
        reload_read_free(&p->read);
        reload_read_free(&old);
        buffer_free(&why);
}

/* --- history --- */

static void the_history_keeps_the_latest(void **state)
{
        (void)state;
        struct history *h = calloc(1, sizeof(*h));
        assert_non_null(h);
        for (uint32_t i = 1; i <= HISTORY_MAX + 10; i++) {
                struct history_entry *e = history_add(h, "echo");
                e->generation = i;
                e->reload = i;
                history_set(h, e, i == HISTORY_MAX + 5 ? "rolled back" : "good", "");
        }
        assert_null(history_find(h, "echo", 10));
        assert_null(history_find(h, "other", 11));
        assert_int_equal(history_find(h, "echo", 11)->reload, 11);
        assert_true(history_has_failed(h, HISTORY_MAX + 5));
        assert_false(history_has_failed(h, HISTORY_MAX + 6));
        json_t *all = history_json(h, UINT32_MAX);
        assert_int_equal(json_array_size(all), HISTORY_MAX);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 0), "generation")), 11);
        json_decref(all);
        json_t *one = history_json(h, HISTORY_MAX + 5);
        assert_int_equal(json_array_size(one), 1);
        assert_string_equal(json_string_value(json_object_get(json_array_get(one, 0), "outcome")), "rolled back");
        json_decref(one);
        free(h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_new_is_staged_and_what_is_known_is_not),
                TEST(a_mistake_is_found_before_anything_is_staged),
                TEST(a_missing_plugin_is_its_handlers_problem_only),
                TEST(settings_that_need_no_new_runners_do_not_change_the_hash),
                TEST(the_plan_says_what_changes_and_why),
                cmocka_unit_test(the_history_keeps_the_latest),
        };
        return cmocka_run_group_tests_name("reload", tests, NULL, NULL);
}
