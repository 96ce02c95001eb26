/* What a runner refuses to open, and how it says so. */
#include <errno.h>
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
#include "runner/load.h"

static char path[] = "/tmp/quiver-load-XXXXXX";

static void write_file(const void *data, size_t size)
{
        int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, size), (ssize_t)size);
        (void)close(fd);
}

/* The smallest file that passes: a header and one segment that covers it. */
struct tiny {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
};

static struct tiny good(void)
{
        struct tiny t = {
                .header = { .e_type = ET_DYN,
                        .e_machine = (Elf64_Half)elf_own_machine(),
                        .e_phoff = sizeof(Elf64_Ehdr),
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 1 },
                .segment = { .p_type = PT_LOAD, .p_filesz = sizeof(struct tiny) },
        };
        memcpy(t.header.e_ident, ELFMAG, SELFMAG);
        t.header.e_ident[EI_CLASS] = ELFCLASS64;
        t.header.e_ident[EI_DATA] = ELFDATA2LSB;
        return t;
}

static void expect_refusal(const void *data, size_t size, const char *words)
{
        struct error error = { "" };
        write_file(data, size);
        assert_int_equal(load_check_file(path, "bad.so", &error), -ENOEXEC);
        if (!strstr(error.text, words))
                fail_msg("\"%s\" lacks \"%s\"", error.text, words);
        assert_ptr_equal(strstr(error.text, "plugin bad.so: "), error.text);
}

static void a_whole_shared_object_passes(void **state)
{
        (void)state;
        struct error error = { "" };
        struct tiny t = good();
        write_file(&t, sizeof(t));
        assert_int_equal(load_check_file(path, "good.so", &error), 0);
}

static void a_text_file_is_refused(void **state)
{
        (void)state;
        expect_refusal("#!/bin/sh\necho hello\n", 21, "no ELF header");
        expect_refusal("", 0, "no ELF header");
}

static void another_architecture_is_named(void **state)
{
        (void)state;
        struct tiny t = good();
        t.header.e_machine = elf_own_machine() == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
        expect_refusal(&t, sizeof(t), elf_machine_name(t.header.e_machine));
}

static void a_32_bit_object_is_refused(void **state)
{
        (void)state;
        struct tiny t = good();
        t.header.e_ident[EI_CLASS] = ELFCLASS32;
        expect_refusal(&t, sizeof(t), "64-bit");
}

static void an_object_file_is_refused(void **state)
{
        (void)state;
        struct tiny t = good();
        t.header.e_type = ET_REL;
        expect_refusal(&t, sizeof(t), "-shared");
}

static void every_truncation_is_refused(void **state)
{
        (void)state;
        struct error error;
        struct tiny t = good();
        for (size_t size = 0; size < sizeof(t); size++) {
                write_file(&t, size);
                assert_int_equal(load_check_file(path, "cut.so", &error), -ENOEXEC);
        }
}

static void tables_beyond_the_end_are_refused(void **state)
{
        (void)state;
        struct tiny t = good();
        t.header.e_shoff = sizeof(t);
        t.header.e_shnum = 1;
        expect_refusal(&t, sizeof(t), "cut short");
        t = good();
        t.header.e_shoff = UINT64_MAX - 8;
        t.header.e_shnum = 2;
        expect_refusal(&t, sizeof(t), "cut short");
        t = good();
        t.segment.p_offset = UINT64_MAX - 4;
        t.segment.p_filesz = 8;
        expect_refusal(&t, sizeof(t), "cut short");
        t = good();
        t.header.e_phoff = UINT64_MAX - 4;
        expect_refusal(&t, sizeof(t), "cut short");
}

static void what_is_not_a_file_is_refused(void **state)
{
        (void)state;
        struct error error;
        assert_int_equal(load_check_file("/nonexistent/x.so", "x.so", &error), -ENOENT);
        assert_int_equal(load_check_file("/tmp", "tmp", &error), -EINVAL);
        (void)unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(load_check_file(path, "fifo", &error), -EINVAL); /* and does not wait for a writer */
        (void)unlink(path);
}

static void a_whole_header_over_rubbish_is_a_refusal_and_no_signal(void **state)
{
        (void)state;
        struct error error = { "" };
        struct qv_plugin plugin;
        struct tiny t = good();
        write_file(&t, sizeof(t));
        assert_int_equal(load_plugin(path, "hollow.so", 1, &plugin, &error), -ELIBACC);
        assert_null(strstr(error.text, path));
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

static struct qv_plugin table(void)
{
        return (struct qv_plugin){ sizeof(struct qv_plugin), QV_ABI_MAJOR, QV_ABI_MINOR, 0, "name", "1", NULL, handle,
                NULL, NULL, NULL, NULL };
}

static void expect_table_refusal(const struct qv_plugin *t, uint32_t seats, int r, const char *text)
{
        struct error error = { "" };
        struct qv_plugin known;
        assert_int_equal(load_check_table(t, "sql.so", seats, &known, &error), r);
        assert_string_equal(error.text, text);
}

static void another_abi_is_refused_by_its_number(void **state)
{
        (void)state;
        struct qv_plugin t = table();
        t.abi_major = 2;
        expect_table_refusal(
                &t, 1, -EPROTO, "plugin sql.so: abi 2.0, this host speaks 1.x; rebuild it against sdk/include");
        t.abi_major = 0;
        t.abi_minor = 9;
        expect_table_refusal(
                &t, 1, -EPROTO, "plugin sql.so: abi 0.9, this host speaks 1.x; rebuild it against sdk/include");
}

static void a_wrong_field_is_named(void **state)
{
        (void)state;
        struct qv_plugin t = table();
        t.size = 8;
        expect_table_refusal(&t, 1, -EINVAL, "plugin sql.so: size is 8, too small for a table; use QV_PLUGIN()");
        t.size = offsetof(struct qv_plugin, handle);
        expect_table_refusal(&t, 1, -EINVAL, "plugin sql.so: size is 40, so handle is missing; use QV_PLUGIN()");
        t = table();
        t.name = "";
        expect_table_refusal(&t, 1, -EINVAL, "plugin sql.so: name is empty; give it one in QV_PLUGIN()");
        t = table();
        t.handle = NULL;
        expect_table_refusal(
                &t, 1, -EINVAL, "plugin sql.so: handle is missing; QV_PLUGIN() takes it as its fifth argument");
}

static void several_seats_need_the_plugins_consent(void **state)
{
        (void)state;
        struct error error;
        struct qv_plugin t = table();
        struct qv_plugin known;
        expect_table_refusal(&t, 4, -EINVAL,
                "plugin sql.so: threads = 4, but its flags lack QV_THREADS; set threads = 1 and raise processes");
        t.flags = QV_THREADS;
        assert_int_equal(load_check_table(&t, "sql.so", 4, &known, &error), 0);
}

static void a_shorter_table_reads_as_zero_and_a_longer_one_is_fine(void **state)
{
        (void)state;
        struct error error;
        struct {
                struct qv_plugin table;
                void *from_the_future;
        } longer = { .table = table() };
        struct qv_plugin known;
        longer.table.size = sizeof(longer);
        longer.table.abi_minor = 7;
        assert_int_equal(load_check_table(&longer.table, "new.so", 1, &known, &error), 0);

        struct qv_plugin shorter = table();
        shorter.size = offsetof(struct qv_plugin, close);
        shorter.close = (void (*)(void *))(uintptr_t)1;
        memset(&known, 0xff, sizeof(known));
        assert_int_equal(load_check_table(&shorter, "old.so", 1, &known, &error), 0);
        assert_true(known.handle == handle);
        assert_null(known.close);
        assert_null(known.handle_many);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_whole_shared_object_passes),
                cmocka_unit_test(a_text_file_is_refused),
                cmocka_unit_test(another_architecture_is_named),
                cmocka_unit_test(a_32_bit_object_is_refused),
                cmocka_unit_test(an_object_file_is_refused),
                cmocka_unit_test(every_truncation_is_refused),
                cmocka_unit_test(tables_beyond_the_end_are_refused),
                cmocka_unit_test(a_whole_header_over_rubbish_is_a_refusal_and_no_signal),
                cmocka_unit_test(what_is_not_a_file_is_refused),
                cmocka_unit_test(another_abi_is_refused_by_its_number),
                cmocka_unit_test(a_wrong_field_is_named),
                cmocka_unit_test(several_seats_need_the_plugins_consent),
                cmocka_unit_test(a_shorter_table_reads_as_zero_and_a_longer_one_is_fine),
        };
        int fd = mkstemp(path);
        if (fd < 0)
                return 1;
        (void)close(fd);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)unlink(path);
        return failed;
}
