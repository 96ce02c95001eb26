/* Names for addresses, in files that may be anything. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/elf.h"
#include "runner/symbol.h"

/* Static, so no dynamic symbol table knows it; and called through a pointer, so it is not inlined away. */
__attribute__((noinline)) static int hidden_function(int n)
{
        return n * 3 + 1;
}

static int (*volatile keep)(int) = hidden_function;

static void a_hidden_function_is_named(void **state)
{
        (void)state;
        char text[256];
        struct signal_text to;
        signal_text_init(&to, text, sizeof(text));
        symbol_put(&to, (uintptr_t)keep + 2, false);
        assert_string_equal(text, "hidden_function+0x2 (test_runner_symbol)");
}

static void a_return_address_belongs_to_the_call_before_it(void **state)
{
        (void)state;
        char text[256];
        char start[256];
        struct signal_text to;
        signal_text_init(&to, text, sizeof(text));
        /* One past the first byte: still the same function, with its own offset shown. */
        symbol_put(&to, (uintptr_t)keep + 1, true);
        assert_string_equal(text, "hidden_function+0x1 (test_runner_symbol)");
        /* At the very start it is the end of whatever stands before. */
        signal_text_init(&to, start, sizeof(start));
        symbol_put(&to, (uintptr_t)keep, true);
        assert_null(strstr(start, "hidden_function"));
}

static void a_library_function_is_found_by_its_dynamic_name(void **state)
{
        (void)state;
        char text[256];
        struct signal_text to;
        signal_text_init(&to, text, sizeof(text));
        symbol_put(&to, (uintptr_t)&getpid, false);
        assert_non_null(strstr(text, "getpid+0x0"));
}

static void an_address_of_nowhere_is_shown_as_it_is(void **state)
{
        (void)state;
        char text[64];
        struct signal_text to;
        signal_text_init(&to, text, sizeof(text));
        symbol_put(&to, 0x10, false);
        assert_string_equal(text, "0x10");
        signal_text_init(&to, text, sizeof(text));
        symbol_put(&to, UINTPTR_MAX, false);
        assert_string_equal(text, "0xffffffffffffffff");
}

static void a_private_copy_goes_by_its_label(void **state)
{
        (void)state;
        char text[256];
        struct signal_text to;
        struct stat st;
        assert_int_equal(stat("/proc/self/exe", &st), 0);
        symbol_call_file(st.st_dev, st.st_ino, "mine.so");
        signal_text_init(&to, text, sizeof(text));
        symbol_put(&to, (uintptr_t)keep, false);
        symbol_call_file(0, 0, NULL);
        assert_string_equal(text, "hidden_function+0x0 (mine.so)");
}

static void text_that_does_not_fit_is_cut(void **state)
{
        (void)state;
        char text[8];
        struct signal_text to;
        signal_text_init(&to, text, sizeof(text));
        signal_text_put(&to, "abc");
        signal_text_put_number(&to, -42);
        signal_text_put_hex(&to, 0xbeef);
        assert_string_equal(text, "abc-420");
        signal_text_init(&to, text, sizeof(text));
        signal_text_put_number(&to, INT64_MIN);
        assert_string_equal(text, "-922337");
}

/* Any byte of a real file may be wrong: the answer may be, too, but nothing is read that is not there. */
static void a_damaged_file_does_no_harm(void **state)
{
        (void)state;
        char path[] = "/tmp/quiver-symbol-XXXXXX";
        char name[64];
        uint64_t start;
        struct elf elf;
        unsigned seed = (unsigned)getpid();
        print_message("seed %u\n", seed);
        int from = open("/proc/self/exe", O_RDONLY);
        int fd = mkstemp(path);
        assert_true(from >= 0 && fd >= 0);
        (void)unlink(path);
        static uint8_t bytes[1 << 16];
        ssize_t size = pread(from, bytes, sizeof(bytes), 0);
        assert_true(size > (ssize_t)sizeof(Elf64_Ehdr));
        struct stat st;
        assert_int_equal(fstat(from, &st), 0);
        assert_int_equal(ftruncate(fd, st.st_size), 0);
        for (int round = 0; round < 300; round++) {
                uint8_t damaged[1024];
                memcpy(damaged, bytes, sizeof(damaged));
                for (int i = 0; i < 8; i++)
                        damaged[16 + (unsigned)rand_r(&seed) % (sizeof(damaged) - 16)] = (uint8_t)rand_r(&seed);
                assert_int_equal(pwrite(fd, damaged, sizeof(damaged), 0), sizeof(damaged));
                if (elf_open(&elf, fd) == ELF_FINE)
                        (void)elf_function_at(&elf, (uint64_t)rand_r(&seed), name, sizeof(name), &start);
        }
        (void)close(fd);
        (void)close(from);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_hidden_function_is_named),
                cmocka_unit_test(a_return_address_belongs_to_the_call_before_it),
                cmocka_unit_test(a_library_function_is_found_by_its_dynamic_name),
                cmocka_unit_test(an_address_of_nowhere_is_shown_as_it_is),
                cmocka_unit_test(a_private_copy_goes_by_its_label),
                cmocka_unit_test(text_that_does_not_fit_is_cut),
                cmocka_unit_test(a_damaged_file_does_no_harm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
