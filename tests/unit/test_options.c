/* A command's words: long and short options, clusters, values, help and hints. */
#include "check.h"

#include "cli/options.h"

enum { OPT_JSON = 256, OPT_THREADS };

static const struct option_spec specs[] = {
        { 'c', "config", "FILE", "read settings from FILE" },
        { 'v', "verbose", NULL, "say more" },
        { 'q', "quiet", NULL, "say less" },
        { OPT_JSON, "json", NULL, "print JSON" },
        { OPT_THREADS, "threads", "N", "seats per runner" },
};

static struct options start(int argc, char **argv)
{
        struct options o = { .usage = "try PLUGIN.so [options]",
                .about = "Runs tasks through a plugin.",
                .specs = specs,
                .count = COUNT(specs),
                .examples = "  quiver try echo.so\n" };
        options_start(&o, argc, argv);
        return o;
}

#define START(...) start((int)COUNT(((char *[]){ "try", __VA_ARGS__ })), (char *[]){ "try", __VA_ARGS__, NULL })

static void expect_option(struct options *o, int id, const char *value)
{
        assert_int_equal(options_next(o), id);
        if (value)
                assert_string_equal(o->value, value);
        else
                assert_null(o->value);
}

/* The next word is refused, with `text` in what is said about it. */
static void expect_wrong(struct options *o, const char *text)
{
        char said[1024];
        struct capture c;
        capture_start(&c, STDERR_FILENO);
        int got = options_next(o);
        capture_stop(&c, said, sizeof(said));
        assert_int_equal(got, OPTIONS_WRONG);
        assert_contains(said, "quiver try: ");
        assert_contains(said, text);
        assert_contains(said, "\nTry: quiver try --help\n");
}

static void long_options_take_values_both_ways(void **state)
{
        (void)state;
        struct options o = START("--config", "a.cfg", "--json", "--threads=4", "--config=", "--config", "--json");
        expect_option(&o, 'c', "a.cfg");
        expect_option(&o, OPT_JSON, NULL);
        expect_option(&o, OPT_THREADS, "4");
        expect_option(&o, 'c', "");
        expect_option(&o, 'c', "--json");
        assert_int_equal(options_next(&o), OPTIONS_END);
        assert_int_equal(options_next(&o), OPTIONS_END);
}

static void short_options_stand_alone_or_in_a_cluster(void **state)
{
        (void)state;
        struct options o = START("-v", "-qv", "-c", "a.cfg", "-cb.cfg", "-vcc.cfg", "-vc", "d.cfg");
        expect_option(&o, 'v', NULL);
        expect_option(&o, 'q', NULL);
        expect_option(&o, 'v', NULL);
        expect_option(&o, 'c', "a.cfg");
        expect_option(&o, 'c', "b.cfg");
        expect_option(&o, 'v', NULL);
        expect_option(&o, 'c', "c.cfg");
        expect_option(&o, 'v', NULL);
        expect_option(&o, 'c', "d.cfg");
        assert_int_equal(options_next(&o), OPTIONS_END);
}

static void words_may_stand_between_options(void **state)
{
        (void)state;
        struct options o = START("echo.so", "-v", "-", "", "--json");
        expect_option(&o, OPTIONS_WORD, "echo.so");
        expect_option(&o, 'v', NULL);
        expect_option(&o, OPTIONS_WORD, "-");
        expect_option(&o, OPTIONS_WORD, "");
        expect_option(&o, OPT_JSON, NULL);
        assert_int_equal(options_next(&o), OPTIONS_END);
}

static void after_two_dashes_everything_is_a_word(void **state)
{
        (void)state;
        struct options o = START("-v", "--", "-v", "--json", "--", "x");
        expect_option(&o, 'v', NULL);
        expect_option(&o, OPTIONS_WORD, "-v");
        expect_option(&o, OPTIONS_WORD, "--json");
        expect_option(&o, OPTIONS_WORD, "--");
        expect_option(&o, OPTIONS_WORD, "x");
        assert_int_equal(options_next(&o), OPTIONS_END);
        o = START("--");
        assert_int_equal(options_next(&o), OPTIONS_END);
}

static void a_misspelt_option_is_refused_with_the_nearest(void **state)
{
        (void)state;
        struct options o = START("--thread", "--jsno=1", "--frobnicate", "--hlep", "-x", "-vx", "--=x");
        expect_wrong(&o, "no option --thread; did you mean --threads?");
        expect_wrong(&o, "no option --jsno; did you mean --json?");
        expect_wrong(&o, "no option --frobnicate\n");
        expect_wrong(&o, "did you mean --help?");
        expect_wrong(&o, "no option -x");
        expect_option(&o, 'v', NULL);
        expect_wrong(&o, "no option -x");
        expect_wrong(&o, "no option --\n");
}

static void a_name_of_any_length_is_refused(void **state)
{
        (void)state;
        char word[1000];
        memset(word, 'j', sizeof(word));
        memcpy(word, "--json", 6);
        word[sizeof(word) - 1] = 0;
        struct options o = START(word);
        expect_wrong(&o, "no option --jsonjjj");
}

static void a_missing_or_needless_value_is_refused(void **state)
{
        (void)state;
        struct options o = START("--json=yes", "--config");
        expect_wrong(&o, "--json takes no value");
        expect_wrong(&o, "--config needs a value: --config FILE");
        o = START("-vc");
        expect_option(&o, 'v', NULL);
        expect_wrong(&o, "--config needs a value");
        assert_int_equal(options_next(&o), OPTIONS_END);
}

static void help_names_every_option_and_the_examples(void **state)
{
        (void)state;
        static const char *const ways[] = { "--help", "-h", "-vh" };
        for (size_t i = 0; i < COUNT(ways); i++) {
                char said[2048];
                char word[8];
                (void)snprintf(word, sizeof(word), "%s", ways[i]);
                struct options o = START(word);
                if (i == 2)
                        expect_option(&o, 'v', NULL);
                struct capture c;
                capture_start(&c, STDOUT_FILENO);
                int got = options_next(&o);
                capture_stop(&c, said, sizeof(said));
                assert_int_equal(got, OPTIONS_HELP);
                assert_contains(said, "usage: quiver try PLUGIN.so [options]\n\nRuns tasks through a plugin.\n");
                assert_contains(said, "  -c, --config FILE          read settings from FILE\n");
                assert_contains(said, "      --threads N            seats per runner\n");
                assert_contains(said, "  -h, --help                 show this\n");
                assert_contains(said, "examples:\n  quiver try echo.so\n");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(long_options_take_values_both_ways),
                cmocka_unit_test(short_options_stand_alone_or_in_a_cluster),
                cmocka_unit_test(words_may_stand_between_options),
                cmocka_unit_test(after_two_dashes_everything_is_a_word),
                cmocka_unit_test(a_misspelt_option_is_refused_with_the_nearest),
                cmocka_unit_test(a_name_of_any_length_is_refused),
                cmocka_unit_test(a_missing_or_needless_value_is_refused),
                cmocka_unit_test(help_names_every_option_and_the_examples),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
