/* A command's words: long and short options, clusters, values of every kind, help and hints. */
#include "check.h"

#include <errno.h>

#include "cli/options.h"

static const struct option_choice lanes[] = { { "high", 1 }, { "normal", 0 }, { "low", -1 }, { NULL, 0 } };

/* What the words of a test are read into. */
static struct {
        const char *config;
        bool is_verbose, is_quiet, has_json;
        uint32_t threads;
        uint64_t bench, timeout_ms, memory;
        int32_t lane;
        struct strings sets;
        char called[64];
} q;

static int on_call(void *self, const char *value, struct error *error)
{
        if (!strchr(value, '='))
                return error_set(error, -EINVAL, "%s has no =", value);
        (void)strncat(self, value, 20);
        return 0;
}

static const struct option table[] = {
        OPT_TEXT("-c, --config FILE", &q.config, "read settings from FILE"),
        OPT_FLAG("-v, --verbose", &q.is_verbose, "say more"),
        OPT_FLAG("-q, --quiet", &q.is_quiet, "say less"),
        OPT_FLAG("--json", &q.has_json, "print JSON"),
        OPT_NUMBER("--threads N", &q.threads, 1, 64, "seats per runner"),
        OPT_NUMBER("--bench N", &q.bench, 0, UINT64_MAX, "tasks"),
        OPT_DURATION("--timeout TIME", &q.timeout_ms, 1, "how long"),
        OPT_SIZE("--memory SIZE", &q.memory, "how much"),
        OPT_CHOICE("--lane LANE", &q.lane, lanes, "how soon"),
        OPT_LIST("--set NAME=VALUE", &q.sets, "one setting"),
        OPT_CALL("--header NAME=VALUE", on_call, q.called, "one header"),
};

static struct options o;

/* Reads the words; whether the command goes on, else *ret_code. */
static bool read_words(int argc, char **argv, int *ret_code)
{
        strings_free(&q.sets);
        memset(&q, 0, sizeof(q));
        o = (struct options){ .usage = "try PLUGIN.so [options]",
                .about = "Runs tasks through a plugin.",
                OPTIONS_TABLE(table),
                .words_max = 4,
                .examples = "  quiver try echo.so\n" };
        return options_read(&o, argc, argv, ret_code);
}

#define READ(ret_code, ...)                                                                                            \
        read_words((int)COUNT(((char *[]){ "try", __VA_ARGS__ })), (char *[]){ "try", __VA_ARGS__, NULL }, ret_code)

#define EXPECT_READ(...) assert_true(READ(&(int){ 0 }, __VA_ARGS__))

/* The words are refused, with `text` in what is said about them. */
#define EXPECT_WRONG(text, ...)                                                                                        \
        do {                                                                                                           \
                char said_[1024];                                                                                      \
                int code_ = 77;                                                                                        \
                struct capture c_;                                                                                     \
                capture_start(&c_, STDERR_FILENO);                                                                     \
                bool goes_on_ = READ(&code_, __VA_ARGS__);                                                             \
                capture_stop(&c_, said_, sizeof(said_));                                                               \
                assert_false(goes_on_);                                                                                \
                assert_int_equal(code_, EXIT_USAGE);                                                                   \
                assert_contains(said_, "quiver try: ");                                                                \
                assert_contains(said_, text);                                                                          \
                assert_contains(said_, "\nTry: quiver try --help\n");                                                  \
        } while (0)

static void expect_words(const char *const *words, size_t count)
{
        assert_int_equal(o.words_count, count);
        for (size_t i = 0; i < count; i++)
                assert_string_equal(o.words[i], words[i]);
        assert_null(o.words[count]);
}

static void long_options_take_values_both_ways(void **state)
{
        (void)state;
        EXPECT_READ("--config", "a.cfg", "--json", "--threads=4");
        assert_string_equal(q.config, "a.cfg");
        assert_true(q.has_json);
        assert_int_equal(q.threads, 4);
        EXPECT_READ("--config=");
        assert_string_equal(q.config, "");
        assert_false(q.has_json);
        EXPECT_READ("--config", "--json");
        assert_string_equal(q.config, "--json");
        assert_false(q.has_json);
        EXPECT_READ("--config", "a", "--config", "b");
        assert_string_equal(q.config, "b");
}

static void short_options_stand_alone_or_in_a_cluster(void **state)
{
        (void)state;
        EXPECT_READ("-v");
        assert_true(q.is_verbose && !q.is_quiet);
        EXPECT_READ("-qv", "-c", "a.cfg");
        assert_true(q.is_verbose && q.is_quiet);
        assert_string_equal(q.config, "a.cfg");
        EXPECT_READ("-cb.cfg");
        assert_string_equal(q.config, "b.cfg");
        EXPECT_READ("-vcc.cfg");
        assert_true(q.is_verbose);
        assert_string_equal(q.config, "c.cfg");
        EXPECT_READ("-vc", "d.cfg");
        assert_string_equal(q.config, "d.cfg");
}

static void words_may_stand_between_options(void **state)
{
        (void)state;
        EXPECT_READ("echo.so", "-v", "-", "", "--json");
        expect_words((const char *[]){ "echo.so", "-", "" }, 3);
        assert_true(q.is_verbose && q.has_json);
}

static void after_two_dashes_everything_is_a_word(void **state)
{
        (void)state;
        EXPECT_READ("-v", "--", "-v", "--json", "--", "x");
        expect_words((const char *[]){ "-v", "--json", "--", "x" }, 4);
        assert_true(q.is_verbose && !q.has_json);
        EXPECT_READ("--");
        expect_words(NULL, 0);
}

static void a_word_too_many_is_named(void **state)
{
        (void)state;
        EXPECT_WRONG("unexpected argument e\n", "a", "b", "c", "d", "e", "f");
        EXPECT_READ("a", "b", "c", "d");
}

static void a_misspelt_option_is_refused_with_the_nearest(void **state)
{
        (void)state;
        EXPECT_WRONG("no option --thread; did you mean --threads?", "--thread");
        EXPECT_WRONG("no option --jsno; did you mean --json?", "--jsno=1");
        EXPECT_WRONG("no option --frobnicate\n", "--frobnicate");
        EXPECT_WRONG("did you mean --help?", "--hlep");
        EXPECT_WRONG("no option -x", "-x");
        EXPECT_WRONG("no option -x", "-vx");
        EXPECT_WRONG("no option --\n", "--=x");
        EXPECT_WRONG("no option --\n", "-v-");
}

static void a_name_of_any_length_is_refused(void **state)
{
        (void)state;
        char word[1000];
        memset(word, 'j', sizeof(word));
        memcpy(word, "--json", 6);
        word[sizeof(word) - 1] = 0;
        EXPECT_WRONG("no option --jsonjjj", word);
}

static void a_missing_or_needless_value_is_refused(void **state)
{
        (void)state;
        EXPECT_WRONG("--json takes no value", "--json=yes");
        EXPECT_WRONG("--config needs a value: --config FILE", "--config");
        EXPECT_WRONG("--config needs a value", "-vc");
}

static void a_number_has_a_range(void **state)
{
        (void)state;
        static char *const wrong[] = { "0", "65", "", "-1", "+1", "1x", " 1", "99999999999999999999999" };
        for (size_t i = 0; i < COUNT(wrong); i++)
                EXPECT_WRONG("is not a number from 1 to 64", "--threads", wrong[i]);
        EXPECT_WRONG("--bench: \"x\" is not a number from 0\n", "--bench", "x");
        EXPECT_READ("--threads", "64", "--bench=5000000000");
        assert_int_equal(q.threads, 64);
        assert_int_equal(q.bench, 5000000000);
}

static void durations_and_sizes_have_units(void **state)
{
        (void)state;
        EXPECT_READ("--timeout", "1.5s", "--memory=64KiB");
        assert_int_equal(q.timeout_ms, 1500);
        assert_int_equal(q.memory, 65536);
        EXPECT_WRONG("--timeout: \"5\" has no unit", "--timeout", "5");
        EXPECT_WRONG("--timeout: \"0\" is too short", "--timeout=0");
        EXPECT_WRONG("--memory: \"lots\" is not", "--memory", "lots");
}

static void a_choice_is_one_of_a_few_names(void **state)
{
        (void)state;
        EXPECT_READ("--lane", "low");
        assert_int_equal(q.lane, -1);
        EXPECT_READ("--lane=high");
        assert_int_equal(q.lane, 1);
        EXPECT_WRONG("--lane: \"top\" is none of high, normal, low", "--lane", "top");
}

static void a_list_keeps_all_and_a_call_may_refuse(void **state)
{
        (void)state;
        EXPECT_READ("--set", "a=1", "--set=b=2", "--header", "x=1", "--header=y=2");
        assert_int_equal(q.sets.count, 2);
        assert_string_equal(q.sets.items[0], "a=1");
        assert_string_equal(q.sets.items[1], "b=2");
        assert_string_equal(q.called, "x=1y=2");
        EXPECT_WRONG("--header: z has no =", "--header", "z");
        strings_free(&q.sets);
}

static void help_names_every_option_and_the_examples(void **state)
{
        (void)state;
        static const char *const ways[] = { "--help", "-h", "-vh" };
        for (size_t i = 0; i < COUNT(ways); i++) {
                char said[4096];
                char word[8];
                int code = 77;
                (void)snprintf(word, sizeof(word), "%s", ways[i]);
                struct capture c;
                capture_start(&c, STDOUT_FILENO);
                bool goes_on = READ(&code, "--json", word, "--frobnicate");
                capture_stop(&c, said, sizeof(said));
                assert_false(goes_on);
                assert_int_equal(code, EXIT_DONE);
                assert_contains(said, "usage: quiver try PLUGIN.so [options]\n\nRuns tasks through a plugin.\n");
                assert_contains(said, "  -c, --config FILE          read settings from FILE\n");
                assert_contains(said, "      --threads N            seats per runner\n");
                assert_contains(said, "      --json                 print JSON\n");
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
                cmocka_unit_test(a_word_too_many_is_named),
                cmocka_unit_test(a_misspelt_option_is_refused_with_the_nearest),
                cmocka_unit_test(a_name_of_any_length_is_refused),
                cmocka_unit_test(a_missing_or_needless_value_is_refused),
                cmocka_unit_test(a_number_has_a_range),
                cmocka_unit_test(durations_and_sizes_have_units),
                cmocka_unit_test(a_choice_is_one_of_a_few_names),
                cmocka_unit_test(a_list_keeps_all_and_a_call_may_refuse),
                cmocka_unit_test(help_names_every_option_and_the_examples),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
