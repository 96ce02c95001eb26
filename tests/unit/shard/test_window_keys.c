/* The table of a window's keys: whatever is added and removed, every key that is there is found, and no other. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "host/shard/window.h"

#define NAMES 500

struct table {
        struct window_keys keys;
        struct window_key *of[NAMES]; /* by the number of their names; NULL: not in the table */
};

/* Names that begin alike, with one of NULs, and the empty one. */
static struct span name_of(unsigned number, char room[32])
{
        if (!number)
                return (struct span){ room, 0 };
        memset(room, 0, 32);
        if (number == 1)
                return (struct span){ room, 8 };
        return (struct span){ room, (size_t)snprintf(room, 32, "user-%u", number) };
}

static void add(struct table *t, unsigned number)
{
        char room[32];
        struct span name = name_of(number, room);
        struct window_key *key = memory_zero(1, sizeof(*key) + name.size + 1);
        key->size = name.size;
        memcpy(key->key, name.data, name.size);
        window_keys_add(&t->keys, key);
        t->of[number] = key;
}

static void drop(struct table *t, unsigned number)
{
        window_keys_remove(&t->keys, t->of[number]);
        free(t->of[number]);
        t->of[number] = NULL;
}

static void check(const struct table *t)
{
        uint32_t there = 0;
        uint32_t walked = 0;
        for (unsigned i = 0; i < NAMES; i++) {
                char room[32];
                assert_ptr_equal(window_keys_find(&t->keys, name_of(i, room)), t->of[i]);
                there += t->of[i] != NULL;
        }
        for (const struct window_key *key = window_keys_first(&t->keys); key; key = window_keys_next(&t->keys, key))
                walked++;
        assert_int_equal(t->keys.count, there);
        assert_int_equal(walked, there);
}

static void every_key_that_was_added_is_found_until_it_is_removed(void **state)
{
        (void)state;
        unsigned seed = (unsigned)time(NULL);
        const char *given = getenv("QUIVER_TEST_SEED");
        if (given)
                seed = (unsigned)strtoul(given, NULL, 10);
        print_message("QUIVER_TEST_SEED=%u\n", seed);
        struct table t = { 0 };
        check(&t);
        for (unsigned i = 0; i < 20000; i++) {
                unsigned number = (unsigned)rand_r(&seed) % NAMES;
                if (t.of[number])
                        drop(&t, number);
                else
                        add(&t, number);
                if (i % 100 == 0)
                        check(&t);
        }
        for (unsigned i = 0; i < NAMES; i++)
                if (t.of[i])
                        drop(&t, i);
        check(&t);
        window_keys_free(&t.keys);
}

static void a_table_that_has_been_emptied_is_small(void **state)
{
        (void)state;
        struct table t = { 0 };
        for (unsigned i = 0; i < NAMES; i++)
                add(&t, i);
        assert_true(t.keys.buckets_count >= NAMES);
        for (unsigned i = 0; i < NAMES; i++)
                drop(&t, i);
        assert_true(t.keys.buckets_count <= 64);
        add(&t, 7);
        check(&t);
        drop(&t, 7);
        window_keys_free(&t.keys);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_key_that_was_added_is_found_until_it_is_removed),
                cmocka_unit_test(a_table_that_has_been_emptied_is_small),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
