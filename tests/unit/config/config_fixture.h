/* config_fixture.h: a configuration out of a text, and what was said about it. */
#ifndef QUIVER_TESTS_CONFIG_FIXTURE_H
#define QUIVER_TESTS_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

/* The least that is valid. */
#define MINIMAL "app = \"demo\"; store = { url = \"sqlite:q.db\"; };\n"
/* One handler; `body` goes inside. */
#define HANDLER(body) MINIMAL "handlers = { echo = { plugin = \"echo.so\"; " body " }; };\n"

struct fixture {
        struct config config;
        struct problems problems;
        int r;
        char said[64 * 1024]; /* all problems, one a line */
};

static int fixture_setup(void **state)
{
        *state = calloc(1, sizeof(struct fixture));
        return *state ? 0 : -1;
}

static void fixture_clear(struct fixture *f)
{
        config_free(&f->config);
        problems_free(&f->problems);
        f->said[0] = 0;
}

static int fixture_teardown(void **state)
{
        fixture_clear(*state);
        free(*state);
        return 0;
}

static void fixture_note(struct fixture *f)
{
        size_t used = 0;
        for (size_t i = 0; i < f->problems.count; i++) {
                char line[4096];
                used += (size_t)snprintf(f->said + used, sizeof(f->said) - used, "%s\n",
                        problem_format(&f->problems.items[i], line, sizeof(line)));
        }
}

static inline int parse_bytes(struct fixture *f, const char *text, size_t size)
{
        fixture_clear(f);
        f->r = config_parse("/srv/etc/t.cfg", text, size, &f->config, &f->problems);
        fixture_note(f);
        return f->r;
}

static inline int parse(struct fixture *f, const char *text)
{
        return parse_bytes(f, text, strlen(text));
}

/* With what the command line has set; NULL: nothing. */
static inline int load_set(struct fixture *f, const char *path, const struct strings *set)
{
        fixture_clear(f);
        f->r = config_load(path, set, &f->config, &f->problems);
        fixture_note(f);
        return f->r;
}

static inline int load(struct fixture *f, const char *path)
{
        return load_set(f, path, NULL);
}

/* It loads, and nothing is said. */
#define assert_ok(f, text)                                                                                             \
        do {                                                                                                           \
                (void)parse(f, text);                                                                                  \
                assert_string_equal((f)->said, "");                                                                    \
                assert_int_equal((f)->r, 0);                                                                           \
        } while (0)

#define assert_said(f, words)                                                                                          \
        do {                                                                                                           \
                if (!strstr((f)->said, words))                                                                         \
                        fail_msg("expected \"%s\" in:\n%s", words, (f)->said);                                         \
        } while (0)

/* It does not load, and `words` are said about it. */
#define assert_refused(f, text, words)                                                                                 \
        do {                                                                                                           \
                (void)parse(f, text);                                                                                  \
                assert_said(f, words);                                                                                 \
                assert_true((f)->r < 0);                                                                               \
        } while (0)

#define config_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif
