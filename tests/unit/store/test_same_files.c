/* The files of a SQLite store: whether they are still those that were opened, and what may stand in their place. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/file/fair_lock.h"
#include "store/sqlite/file/same_files.h"

struct place {
        char folder[32];
        char link[64], database[64], log[80], memory[80];
};

static void make_file(const char *path)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
}

static void place_open(struct place *p)
{
        (void)strcpy(p->folder, "/tmp/quiver-test-XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        (void)snprintf(p->database, sizeof(p->database), "%s/real", p->folder);
        (void)snprintf(p->link, sizeof(p->link), "%s/q.db", p->folder);
        (void)snprintf(p->log, sizeof(p->log), "%s-wal", p->database);
        (void)snprintf(p->memory, sizeof(p->memory), "%s-shm", p->database);
        make_file(p->database);
        make_file(p->log);
        make_file(p->memory);
        assert_int_equal(symlink(p->database, p->link), 0);
}

static void place_close(const struct place *p)
{
        (void)unlink(p->database);
        (void)unlink(p->link);
        (void)unlink(p->log);
        (void)unlink(p->memory);
        assert_int_equal(rmdir(p->folder), 0);
}

static void a_file_that_is_removed_or_replaced_is_noticed_and_one_that_comes_back_is_the_same(void **state)
{
        (void)state;
        struct place p;
        struct same_files same;
        struct error error = { { 0 } };
        place_open(&p);
        assert_int_equal(same_files_note(&same, p.link, p.database, &error), 0);
        const char *const files[] = { p.database, p.log, p.memory };
        for (unsigned i = 0; i < 3; i++) {
                char aside[64];
                (void)snprintf(aside, sizeof(aside), "%s/aside", p.folder);
                assert_int_equal(same_files_check(&same, &error), 0);
                assert_int_equal(rename(files[i], aside), 0);
                assert_int_equal(same_files_check(&same, &error), -ESTALE);
                assert_non_null(strstr(error.text, "removed"));
                make_file(files[i]);
                assert_int_equal(same_files_check(&same, &error), -ESTALE);
                assert_non_null(strstr(error.text, "replaced"));
                assert_int_equal(rename(aside, files[i]), 0);
        }
        assert_int_equal(same_files_check(&same, &error), 0);
        place_close(&p);
}

static void what_is_not_there_cannot_be_noted(void **state)
{
        (void)state;
        struct place p;
        struct same_files same;
        struct error error = { { 0 } };
        place_open(&p);
        assert_int_equal(unlink(p.log), 0);
        assert_int_equal(same_files_note(&same, p.link, p.database, &error), -ENOENT);
        assert_non_null(strstr(error.text, p.log));
        place_close(&p);
}

static void a_lock_is_no_symbolic_link(void **state)
{
        (void)state;
        struct place p;
        struct fair_lock lock;
        struct error error = { { 0 } };
        place_open(&p);
        assert_int_equal(fair_lock_open(&lock, p.link, &error), -ELOOP);
        assert_non_null(strstr(error.text, "symbolic link"));
        assert_int_equal(fair_lock_open(&lock, p.database, &error), 0);
        fair_lock_close(&lock);
        place_close(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_file_that_is_removed_or_replaced_is_noticed_and_one_that_comes_back_is_the_same),
                cmocka_unit_test(what_is_not_there_cannot_be_noted),
                cmocka_unit_test(a_lock_is_no_symbolic_link),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
