/* Whatever stands in a file, or is no file at all: an answer with file and line, never a crash, a hang or a wrong
 * value. */
#include "config_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "config/edit.h"

/* --- texts --- */

static void an_integer_that_would_be_cut_is_refused(void **state)
{
        struct fixture *f = *state;
        static const char *const refused[] = { "5000000000", "2147483648", "-2147483649", "0x80000000", "0xFFFFFFFFF",
                "99999999999999999999", "99999999999999999999L", "0xFFFFFFFFFFFFFFFFL" };
        static const char *const accepted[] = { "2147483647", "-2147483648", "+5", "0x7fffffff", "5000000000L",
                "0x1FFFFFFFFLL", "9223372036854775807L", "1.5", "-1e5", ".5", "1.", "010" };
        char text[256];
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
                (void)snprintf(text, sizeof(text), HANDLER("\nconfig = { n = %s; };"), refused[i]);
                assert_refused(f, text, "t.cfg:3: ");
                assert_said(f, "does not fit into");
        }
        for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
                (void)snprintf(text, sizeof(text), HANDLER("config = { n = %s; };"), accepted[i]);
                assert_ok(f, text);
        }
        assert_refused(f, HANDLER("config = { n = 12abc; };"), "12abc is not a number");
        assert_refused(f, HANDLER("config = { n = 1-2; };"), "syntax error");
        assert_refused(f, HANDLER("config = { n = .; };"), ". is not a number");
}

static void digits_in_texts_comments_and_names_are_not_numbers(void **state)
{
        struct fixture *f = *state;
        assert_ok(f,
                HANDLER("config = { a5000000000 = \"5000000000 \\\" 5000000000\"; /* 5000000000\n */ };") "# "
                                                                                                          "500000000"
                                                                                                          "0\n// "
                                                                                                          "500000000"
                                                                                                          "0\n//");
}

static void a_name_cannot_be_set_twice(void **state)
{
        struct fixture *f = *state;
        assert_refused(
                f, MINIMAL "\n\napp = \"x\";", "t.cfg:4: duplicate setting \"app\": already set at /srv/etc/t.cfg:1\n");
        assert_refused(f, HANDLER("retry = { max = \"1m\"; max = \"2m\"; };"), "duplicate setting \"max\"");
        assert_ok(f, HANDLER("retry = { max = \"1m\"; }; batch = { max = 2; };"));
        assert_ok(f, HANDLER("config = { a = { x = 1; }; b = { x = 1; }; c = ( { x = 1; }, { x = 2; } ); };"));
}

static void what_is_opened_has_to_be_closed(void **state)
{
        struct fixture *f = *state;
        assert_refused(f, MINIMAL "lease = {\n ttl = \"1s\";\n", "t.cfg:2: the { that is opened here is never closed");
        assert_refused(f, MINIMAL "}", "} closes nothing");
        assert_refused(
                f, MINIMAL "lease = { ttl = \"1s\" );", ") does not close the { of /srv/etc/t.cfg:2; expected }");
        assert_refused(f, MINIMAL "\nx = \"abc", "t.cfg:3: the text that begins here has no closing quote");
        assert_refused(f, MINIMAL "x = \"abc\\", "no closing quote");
        assert_refused(f, MINIMAL "\n/* abc", "t.cfg:3: the comment that begins here is never closed");
        assert_refused(f, MINIMAL "x = 1;;", "t.cfg:2: syntax error");
        assert_refused(f, MINIMAL "x = abc;", "t.cfg:2: syntax error");
        assert_refused(f, MINIMAL "x = 'abc';", "a character that has no meaning here");
        assert_refused(f, HANDLER("config = { x = [ 1, \"a\" ]; };"), "have to be of one type");
}

static void every_beginning_of_a_file_gets_an_answer(void **state)
{
        struct fixture *f = *state;
        static const char whole[] =
                HANDLER("/* c */ tasks = [ \"a\", \"b\" ]; config = { x = ( 1, { y = \"\\x41\"; } ); };");
        assert_ok(f, whole);
        for (size_t size = 0; size < sizeof(whole) - 3; size++) {
                (void)parse_bytes(f, whole, size);
                /* The first group is complete on its own, after which only handlers come. */
                assert_true(f->r == 0 || f->problems.errors > 0);
                assert_true(f->r == 0 || f->r == -EINVAL);
        }
}

static void bytes_that_are_no_text_are_refused(void **state)
{
        struct fixture *f = *state;
        (void)parse_bytes(f, MINIMAL "\nx\0y = 1;", sizeof(MINIMAL "\nx\0y = 1;") - 1);
        assert_int_equal(f->r, -EINVAL);
        assert_said(f, "t.cfg:3: a NUL byte");
        assert_refused(f, MINIMAL "x = \"\xff\";", "t.cfg:2: not UTF-8");
        assert_refused(f, MINIMAL "x = \"\xed\xa0\x80\";", "not UTF-8");
        assert_refused(f, MINIMAL "x = \"\xc3", "not UTF-8");
        assert_refused(f, HANDLER("config = { x = \"a\\x00b\"; };"), "a text cannot hold a NUL");
        assert_refused(f, HANDLER("config = { x = \"a\\xffb\"; };"), "in UTF-8");
        assert_ok(f, HANDLER("config = { x = \"h\xc3\xa9\\x41\\n\"; };"));
        assert_string_equal(setting_list_get(&f->config.handlers[0].settings, "x"), "h\xc3\xa9"
                                                                                    "A\n");
        assert_refused(f, "app = \"\\x1b[31m\"; store = { url = \"sqlite:q\"; };", "\"?[31m\"");
}

static void windows_line_ends_and_marks_do_not_matter(void **state)
{
        struct fixture *f = *state;
        assert_ok(f, "\xef\xbb\xbf"
                     "app = \"demo\";\r\nstore = { url = \"sqlite:q\"; };\r\n# comment\r\n");
        assert_refused(f,
                "\xef\xbb\xbf"
                "app = \"demo\";\r\nstore = { url = \"sqlite:q\"; };\r\nshard = 1;\r\n",
                "t.cfg:3: no setting \"shard\"");
}

static void depth_and_length_are_bounded(void **state)
{
        struct fixture *f = *state;
        struct buffer b = { 0 };
        buffer_printf(&b, MINIMAL "\nx = ");
        for (int i = 0; i < 100000; i++)
                buffer_put(&b, "(", 1);
        assert_refused(f, buffer_text(&b), "t.cfg:3: nested deeper than 32");
        buffer_clear(&b);
        buffer_printf(&b, MINIMAL "x = [ 0");
        for (int i = 0; i < 5000; i++)
                buffer_put(&b, ",0", 2);
        assert_refused(f, buffer_text(&b), "more than 4096 members");
        buffer_clear(&b);
        for (int i = 0; i < 5000; i++)
                buffer_printf(&b, "x%d=1;", i);
        assert_refused(f, buffer_text(&b), "more than 4096 members");
        buffer_clear(&b);
        for (int i = 0; i < 1024 * 1024 + 1; i++)
                buffer_put(&b, "\n", 1);
        assert_refused(f, buffer_text(&b), "larger than 1 MiB");
        buffer_free(&b);
}

/* --- files --- */

static char folder[PATH_MAX];

static const char *in_folder(const char *name)
{
        static char path[PATH_MAX + 256];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void put_file(const char *name, const char *text)
{
        FILE *file = fopen(in_folder(name), "w");
        assert_non_null(file);
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

static void includes_are_found_from_their_own_folder(void **state)
{
        struct fixture *f = *state;
        assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
        put_file("main.cfg",
                "app = \"a\";\n  @include \"sub/one.cfg\" # comment\nlease = { ttl = \"3s\"; };\nhandlers = {\n"
                "@include \"sub/two.cfg\"\n};\n");
        put_file("sub/one.cfg", "store = { url = \"sqlite:q.db\"; };\n@include \"three.cfg\"\n");
        put_file("sub/two.cfg", "h = { plugin = \"h.so\"; };");
        put_file("sub/three.cfg", "\nplugins = \"p\";\n");
        assert_int_equal(load(f, in_folder("main.cfg")), 0);
        assert_string_equal(f->config.store.url.path, in_folder("sub/q.db"));
        assert_string_equal(f->config.plugins, in_folder("sub/p"));
        assert_int_equal(f->config.lease.ttl_ms, 3000);
        assert_string_equal(f->config.handlers[0].name, "h");
        put_file("sub/three.cfg", "\nplugin = \"p\";\n");
        put_file("sub/two.cfg", "h = { plugin = \"h.so\"; };\nh2 = { };\n");
        assert_int_equal(load(f, in_folder("main.cfg")), -EINVAL);
        assert_said(f, "sub/three.cfg:2: no setting \"plugin\" in the file; did you mean \"plugins\"?");
        assert_said(f, "sub/two.cfg:2: handlers.h2.plugin is missing");
        put_file("sub/three.cfg", "app = \"b\";\n");
        assert_int_equal(load(f, in_folder("main.cfg")), -EINVAL);
        assert_said(f, "sub/three.cfg:1: duplicate setting \"app\": already set at ");
        assert_said(f, "main.cfg:1");
}

static void what_stands_beside_an_include_overrides_it(void **state)
{
        struct fixture *f = *state;
        put_file("base.cfg", "app = \"a\";\nstore = { url = \"sqlite:q.db\"; max_backlog = 7; };\n"
                             "log = { level = \"debug\"; };\n"
                             "handlers = { h = { plugin = \"h.so\"; threads = 3; timeout = \"1m\"; }; };\n");
        put_file("own.cfg", "@include \"base.cfg\"\n"
                            "app = \"b\";\nstore = { url = \"sqlite:r.db\"; };\nlog = { rate = 5; };\n"
                            "handlers = { h = { threads = 4; }; g = { plugin = \"g.so\"; }; };\n");
        assert_int_equal(load(f, in_folder("own.cfg")), 0);
        assert_string_equal(f->config.app, "b");
        assert_string_equal(f->config.store.url.path, in_folder("r.db"));
        assert_int_equal(f->config.store.backlog_max, 7); /* a group is merged, not replaced */
        assert_int_equal(f->config.log.level, 3);
        assert_int_equal(f->config.log.rate, 5);
        assert_int_equal(f->config.handlers_count, 2);
        assert_int_equal(f->config.handlers[0].threads, 4);
        assert_int_equal(f->config.handlers[0].timeout_ms, 60000);
        /* Twice in one file stays a mistake, whatever was included before. */
        put_file("own.cfg", "@include \"base.cfg\"\napp = \"b\";\napp = \"c\";\n");
        assert_int_equal(load(f, in_folder("own.cfg")), -EINVAL);
        assert_said(f, "own.cfg:3: duplicate setting \"app\": already set at ");
}

static int set(struct fixture *f, const char *first, const char *second)
{
        struct strings given = { 0 };
        strings_add(&given, first);
        if (second)
                strings_add(&given, second);
        int r = load_set(f, in_folder("set.cfg"), &given);
        strings_free(&given);
        return r;
}

static void the_command_line_overrides_the_file(void **state)
{
        struct fixture *f = *state;
        put_file("set.cfg", "app = \"a\";\nshards = 4;\nstore = { url = \"sqlite:q.db\"; };\n"
                            "handlers = { h = { plugin = \"h.so\"; config = { greeting = \"hello\"; }; }; };\n");
        assert_int_equal(set(f, "http.listen=127.0.0.1:7071", "shards=8"), 0);
        assert_string_equal(f->config.http.listen, "127.0.0.1:7071");
        assert_int_equal(f->config.shards, 8);
        assert_int_equal(f->config.set.count, 2); /* for whoever reads the file again */
        assert_int_equal(set(f, "lease.ttl=3s", "lease.ttl=4s"), 0);
        assert_int_equal(f->config.lease.ttl_ms, 4000); /* the later one */
        assert_int_equal(set(f, "handlers.h.config.greeting=say \"hi\"", "handlers.h.threads=2"), 0);
        assert_string_equal(setting_list_get(&f->config.handlers[0].settings, "greeting"), "say \"hi\"");
        assert_int_equal(f->config.handlers[0].threads, 2);
        assert_int_equal(set(f, "handlers.h.limits.read=/tmp", "host.name=7"), 0);
        assert_string_equal(f->config.handlers[0].limits.read.items[0], "/tmp");
        assert_string_equal(f->config.host.name, "7");
        assert_int_equal(set(f, "http.hosts=[ \"a\", \"b\" ]", NULL), 0);
        assert_int_equal(f->config.http.hosts.count, 2);
}

static void a_wrong_setting_of_the_command_line_is_named(void **state)
{
        static const struct {
                const char *given, *said;
        } cases[] = {
                { "lease.tll=3s", "--set lease.tll:1: no setting \"tll\" in lease; did you mean \"ttl\"?" },
                { "lease.ttl=soon", "--set lease.ttl:1: lease.ttl: " },
                { "shards=many", "--set shards:1: syntax error" },
                { "shards", "NAME=VALUE" },
                { "=4", "NAME=VALUE" },
                { "a..b=4", "is no name of a setting" },
                { "a b=4", "is no name of a setting" },
                { "a.=4", "is no name of a setting" },
                { "a.b.c.d.e.f.g.h.i=4", "is no name of a setting" },
        };
        struct fixture *f = *state;
        put_file("set.cfg", "app = \"a\";\nstore = { url = \"sqlite:q.db\"; };\nhandlers = { };\n");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                assert_int_equal(set(f, cases[i].given, NULL), -EINVAL);
                assert_said(f, cases[i].said);
        }
}

static void a_handler_is_added_and_all_else_stays(void **state)
{
        static const struct {
                const char *before, *after;
                uint32_t line;
        } cases[] = {
                { "a = 1;\nhandlers = {\n  h = { plugin = \"h.so\"; }; // }\n};\nb = 2;\n",
                        "a = 1;\nhandlers = {\n  h = { plugin = \"h.so\"; }; // }\n  NEW\n};\nb = 2;\n", 4 },
                { "handlers : { h = { x = \"}\"; } };", "handlers : { h = { x = \"}\"; } \n  NEW\n};", 2 },
                { "handlers = { };\n", "handlers = { \n  NEW\n};\n", 2 },
                { "log = { handlers = { }; };\n", "log = { handlers = { }; };\n\nhandlers = {\n  NEW\n};\n", 4 },
                { "@include \"base.cfg\"", "@include \"base.cfg\"\n\nhandlers = {\n  NEW\n};\n", 4 },
                { "", "\nhandlers = {\n  NEW\n};\n", 3 },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct buffer text = { 0 };
                uint32_t line = 0;
                edit_add_handler(cases[i].before, "NEW", &text, &line);
                assert_string_equal(buffer_text(&text), cases[i].after);
                assert_int_equal(line, cases[i].line);
                buffer_free(&text);
        }
}

/* Producers and commands need the store; only a host needs handlers. */
static void a_mistake_in_a_handler_does_not_stop_a_command(void **state)
{
        static const char text[] =
                "app = \"a\";\nstore = { url = \"sqlite:q.db\"; };\n"
                "handlers = { h = { plugn = \"h.so\"; timeout = 5; }; g = { plugin = \"g.so\"; stall = "
                "\"2m\"; timeout = \"1m\"; }; i = 5; };\n";
        struct fixture *f = *state;
        struct problems problems = { .reader = READER_COMMAND };
        struct config config = { 0 };
        assert_int_equal(parse(f, text), -EINVAL);
        assert_int_equal(config_parse("/srv/etc/t.cfg", text, strlen(text), &config, &problems), 0);
        assert_int_equal(problems.errors, 0);
        assert_true(problems.count >= 4);
        assert_string_equal(config.app, "a");
        config_free(&config);
        problems_free(&problems);
        /* What a command needs is still refused. */
        problems = (struct problems){ .reader = READER_COMMAND };
        assert_int_equal(config_parse("/srv/etc/t.cfg", "app = 5;", 8, &config, &problems), -EINVAL);
        problems_free(&problems);
}

static void defaults_start_at_the_folder_of_the_file_that_was_asked_for(void **state)
{
        struct fixture *f = *state;
        assert_int_equal(mkdir(in_folder("etc"), 0700), 0);
        assert_int_equal(mkdir(in_folder("etc/d"), 0700), 0);
        put_file("etc/main.cfg", "@include \"d/all.cfg\"\n");
        put_file("etc/d/all.cfg", MINIMAL);
        assert_int_equal(load(f, in_folder("etc/main.cfg")), 0);
        assert_string_equal(f->config.plugins, in_folder("plugins"));
        assert_string_equal(f->config.store.url.path, in_folder("etc/d/q.db"));
}

static void an_include_that_does_not_work_is_named_where_it_stands(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *line;
                const char *said;
        } cases[] = {
                { "@include \"missing.cfg\"", "loop.cfg:2: @include \"missing.cfg\": " },
                { "@include \"loop.cfg\"", "loop.cfg:2: @include \"loop.cfg\": that file is being read already" },
                { "@include \"link.cfg\"", "include each other without end" },
                { "@include \".\"", "is a folder" },
                { "@include \"/dev/zero\"", "not a regular file" },
                { "@include \"pipe\"", "not a regular file" },
                { "@include missing.cfg", "expected @include \"FILE\"" },
                { "@include \"missing.cfg", "expected @include \"FILE\"" },
                { "@include \"\"", "expected @include \"FILE\"" },
                { "@include \"a\" b = 1;", "expected @include \"FILE\" on a line of its own" },
                { "b = 1; @include \"a\"", "expected @include \"FILE\" on a line of its own" },
                { "@included \"a\"", "expected @include \"FILE\"" },
        };
        assert_int_equal(symlink("loop.cfg", in_folder("link.cfg")), 0);
        assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char text[256];
                (void)snprintf(text, sizeof(text), MINIMAL "%s\n", cases[i].line);
                put_file("loop.cfg", text);
                assert_true(load(f, in_folder("loop.cfg")) < 0);
                assert_said(f, cases[i].said);
        }
        for (int i = 0; i < 12; i++) {
                char name[32];
                char text[64];
                (void)snprintf(name, sizeof(name), "n%d.cfg", i);
                (void)snprintf(text, sizeof(text), "@include \"n%d.cfg\"\n", i + 1);
                put_file(name, text);
        }
        assert_true(load(f, in_folder("n0.cfg")) < 0);
        assert_said(f, "more than 10 files within files");
}

static void what_is_no_file_is_refused(void **state)
{
        struct fixture *f = *state;
        assert_int_equal(load(f, folder), -EISDIR);
        assert_said(f, "is a folder, not a file");
        assert_int_equal(load(f, in_folder("nowhere.cfg")), -ENOENT);
        assert_said(f, "nowhere.cfg: cannot open: No such file or directory");
        assert_int_equal(load(f, "/dev/null"), -EINVAL);
        assert_int_equal(load(f, ""), -ENOENT);
        put_file("secret.cfg", MINIMAL);
        assert_int_equal(chmod(in_folder("secret.cfg"), 0), 0);
        if (geteuid() != 0) /* root may read it all the same */
                assert_int_equal(load(f, in_folder("secret.cfg")), -EACCES);
        put_file("empty.cfg", "");
        assert_int_equal(load(f, in_folder("empty.cfg")), -EINVAL);
        assert_said(f, "empty.cfg: app is missing");
}

static void a_huge_file_is_refused_unread(void **state)
{
        struct fixture *f = *state;
        put_file("huge.cfg", "app");
        assert_int_equal(truncate(in_folder("huge.cfg"), 10 * 1024 * 1024), 0);
        assert_int_equal(load(f, in_folder("huge.cfg")), -EFBIG);
        assert_said(f, "huge.cfg: larger than 1 MiB");
        put_file("main.cfg", MINIMAL "@include \"huge.cfg\"\n");
        assert_int_equal(load(f, in_folder("main.cfg")), -EFBIG);
        assert_said(f, "main.cfg:2: @include \"huge.cfg\": the files together are larger than 1 MiB");
}

static int folder_setup(void **state)
{
        char template[] = "/tmp/quiver-config-XXXXXX";
        (void)state;
        return mkdtemp(template) && realpath(template, folder) ? 0 : -1;
}

static int folder_teardown(void **state)
{
        char command[PATH_MAX + 16];
        (void)state;
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        return system(command); /* NOLINT(cert-env33-c): a folder of our own making */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                config_test(an_integer_that_would_be_cut_is_refused),
                config_test(digits_in_texts_comments_and_names_are_not_numbers),
                config_test(a_name_cannot_be_set_twice),
                config_test(what_is_opened_has_to_be_closed),
                config_test(every_beginning_of_a_file_gets_an_answer),
                config_test(bytes_that_are_no_text_are_refused),
                config_test(windows_line_ends_and_marks_do_not_matter),
                config_test(depth_and_length_are_bounded),
                config_test(includes_are_found_from_their_own_folder),
                config_test(what_stands_beside_an_include_overrides_it),
                config_test(the_command_line_overrides_the_file),
                config_test(a_wrong_setting_of_the_command_line_is_named),
                config_test(a_mistake_in_a_handler_does_not_stop_a_command),
                config_test(a_handler_is_added_and_all_else_stays),
                config_test(defaults_start_at_the_folder_of_the_file_that_was_asked_for),
                config_test(an_include_that_does_not_work_is_named_where_it_stands),
                config_test(what_is_no_file_is_refused),
                config_test(a_huge_file_is_refused_unread),
        };
        return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
