/* Who else could have put a file there: the whole way to it counts. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
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

#include "base/file/file_trust.h"

#define STRANGER 12345

static char root[] = "/tmp/quiver-trust-XXXXXX";

static const char *in(const char *name)
{
        static char paths[8][PATH_MAX];
        static unsigned next;
        char *path = paths[next++ % 8];
        (void)snprintf(path, PATH_MAX, "%s/%s", root, name);
        return path;
}

/* The verdict on a file whose text is to be found through the descriptor. */
static enum file_trust_verdict verdict_of(const char *path, const char *words)
{
        struct file_trust trust;
        struct error error = { "" };
        char text[8] = "";
        int fd = file_trust_open(path, FILE_TRUST_OF_FILE, &trust, &error);
        if (fd < 0)
                fail_msg("%s: %s", path, error.text);
        assert_int_equal(read(fd, text, sizeof(text) - 1), 4);
        assert_string_equal(text, "here");
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(close(fd), 0);
        if (!strstr(trust.why.text, words))
                fail_msg("\"%s\" does not say \"%s\"", trust.why.text, words);
        if (trust.verdict == FILE_TRUST_SOUND)
                assert_string_equal(trust.why.text, "");
        return trust.verdict;
}

static void mode(const char *name, mode_t bits)
{
        assert_int_equal(chmod(in(name), bits), 0);
}

static void what_is_ours_alone_is_sound(void **state)
{
        (void)state;
        assert_int_equal(verdict_of(in("a/b/file"), ""), FILE_TRUST_SOUND);
        assert_int_equal(verdict_of(in("a//./b/../b/file"), ""), FILE_TRUST_SOUND);
        mode("a/b/file", 0444);
        assert_int_equal(verdict_of(in("a/b/file"), ""), FILE_TRUST_SOUND);
}

static void everybody_counts_on_the_whole_way(void **state)
{
        (void)state;
        static const char *const names[] = { "a", "a/b", "a/b/file" };
        char remedy[128];
        for (size_t i = 0; i < 3; i++) {
                mode(names[i], 0777);
                (void)snprintf(remedy, sizeof(remedy), "; chmod o-w %s", in(names[i]));
                assert_int_equal(verdict_of(in("a/b/file"), remedy), FILE_TRUST_EVERYBODY);
                mode(names[i], 0755);
        }
}

static void where_only_owners_replace_an_entry_of_ours_is_sound(void **state)
{
        (void)state;
        mode("a/b", 01777);
        assert_int_equal(verdict_of(in("a/b/file"), ""), FILE_TRUST_SOUND);
        if (geteuid() == 0) {
                assert_int_equal(chown(in("a/b/file"), STRANGER, 0), 0);
                assert_int_equal(verdict_of(in("a/b/file"), "belongs to user 12345"), FILE_TRUST_STRANGER);
        }
        mode("a/b", 0755);
}

static void a_folder_that_we_write_in_is_for_us_alone(void **state)
{
        (void)state;
        struct file_trust trust;
        struct error error = { "" };
        mode("a/b", 01777);
        int fd = file_trust_open(in("a/b"), FILE_TRUST_FOLDER, &trust, &error);
        assert_true(fd >= 0);
        assert_int_equal(trust.verdict, FILE_TRUST_EVERYBODY);
        assert_int_equal(close(fd), 0);
        fd = file_trust_open(in("a/b"), FILE_TRUST_FOLDER_ABOVE, &trust, &error);
        assert_true(fd >= 0);
        assert_int_equal(trust.verdict, FILE_TRUST_SOUND);
        assert_int_equal(close(fd), 0);
        mode("a/b", 0700);
        fd = file_trust_open(in("a/b/."), FILE_TRUST_FOLDER, &trust, &error);
        assert_true(fd >= 0);
        assert_int_equal(trust.verdict, FILE_TRUST_SOUND);
        assert_int_equal(close(fd), 0);
        assert_int_equal(file_trust_open(in("a/b/file"), FILE_TRUST_FOLDER, &trust, &error), -ENOTDIR);
}

static void other_users_and_groups_are_strangers(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip();
        assert_int_equal(chown(in("a"), STRANGER, 0), 0);
        assert_int_equal(verdict_of(in("a/b/file"), "chown 0 "), FILE_TRUST_STRANGER);
        assert_int_equal(chown(in("a"), 0, STRANGER), 0);
        assert_int_equal(verdict_of(in("a/b/file"), ""), FILE_TRUST_SOUND);
        mode("a", 0775);
        assert_int_equal(verdict_of(in("a/b/file"), "chmod g-w "), FILE_TRUST_STRANGER);
        /* Root being in the group changes nothing. */
        gid_t groups[64];
        int groups_count = getgroups(64, groups);
        assert_true(groups_count >= 0);
        assert_int_equal(setgroups(1, (const gid_t[]){ STRANGER }), 0);
        assert_int_equal(verdict_of(in("a/b/file"), "chmod g-w "), FILE_TRUST_STRANGER);
        assert_int_equal(setgroups((size_t)groups_count, groups), 0);
        mode("a", 0777);
        assert_int_equal(verdict_of(in("a/b/file"), "chmod go-w "), FILE_TRUST_EVERYBODY);
        mode("a", 0775);
        /* What everybody can do is worse, wherever it is found. */
        mode("a/b", 0777);
        assert_int_equal(verdict_of(in("a/b/file"), "/a/b; chmod o-w "), FILE_TRUST_EVERYBODY);
        mode("a/b", 0755);
        assert_int_equal(chown(in("a"), 0, 0), 0);
        assert_int_equal(verdict_of(in("a/b/file"), ""), FILE_TRUST_SOUND);
}

/* A link in a good folder to a file in a bad one, and the other way round. */
static void both_ends_of_a_link_count(void **state)
{
        (void)state;
        assert_int_equal(symlink("../a/b/file", in("links/relative")), 0);
        assert_int_equal(symlink(in("links/relative"), in("links/absolute")), 0);
        assert_int_equal(symlink("../a/b", in("links/folder")), 0);
        static const char *const ways[] = { "links/relative", "links/absolute", "links/folder/file" };
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(verdict_of(in(ways[i]), ""), FILE_TRUST_SOUND);
                mode("a/b", 0777);
                assert_int_equal(verdict_of(in(ways[i]), "a/b; chmod o-w"), FILE_TRUST_EVERYBODY);
                mode("a/b", 0755);
                mode("links", 0777);
                assert_int_equal(verdict_of(in(ways[i]), "links; chmod o-w"), FILE_TRUST_EVERYBODY);
                mode("links", 0755);
        }
}

static void a_strange_link_is_not_sound(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip();
        assert_int_equal(symlink("../a/b/file", in("links/strange")), 0);
        assert_int_equal(lchown(in("links/strange"), STRANGER, 0), 0);
        assert_int_equal(verdict_of(in("links/strange"), "; chown -h 0 "), FILE_TRUST_STRANGER);
}

static void what_cannot_be_opened_is_an_error(void **state)
{
        (void)state;
        struct file_trust trust;
        struct error error = { "" };
        assert_int_equal(symlink("circle", in("links/circle")), 0);
        assert_int_equal(file_trust_open(in("links/circle"), FILE_TRUST_OF_FILE, &trust, &error), -ELOOP);
        assert_int_equal(file_trust_open(in("a/nothing"), FILE_TRUST_OF_FILE, &trust, &error), -ENOENT);
        assert_string_equal(error.text, "cannot open: No such file or directory");
        assert_int_equal(file_trust_open(in("a/b/file/more"), FILE_TRUST_OF_FILE, &trust, &error), -ENOTDIR);
        char name[300];
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = 0;
        assert_int_equal(file_trust_open(in(name), FILE_TRUST_OF_FILE, &trust, &error), -ENAMETOOLONG);
}

static void a_relative_path_begins_where_we_are(void **state)
{
        (void)state;
        char here[PATH_MAX];
        assert_non_null(getcwd(here, sizeof(here)));
        assert_int_equal(chdir(in("a")), 0);
        assert_int_equal(verdict_of("b/file", ""), FILE_TRUST_SOUND);
        mode("", 0777);
        assert_int_equal(verdict_of("./b/file", "its folder"), FILE_TRUST_EVERYBODY);
        mode("", 0755);
        assert_int_equal(chdir(here), 0);
}

static void the_remedy_can_be_pasted(void **state)
{
        (void)state;
        assert_int_equal(mkdir(in("a/two words"), 0755), 0);
        assert_int_equal(link(in("a/b/file"), in("a/two words/file")), 0);
        mode("a/two words", 0777);
        assert_int_equal(verdict_of(in("a/two words/file"), "/a/two words'"), FILE_TRUST_EVERYBODY);
}

static int make(void **state)
{
        (void)state;
        strcpy(root + sizeof(root) - 7, "XXXXXX");
        assert_non_null(mkdtemp(root));
        assert_int_equal(chmod(root, 0755), 0);
        assert_int_equal(mkdir(in("a"), 0755) | mkdir(in("a/b"), 0755) | mkdir(in("links"), 0755), 0);
        int fd = open(in("a/b/file"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "here", 4), 4);
        return close(fd);
}

static int remove_all(void **state)
{
        (void)state;
        char command[64];
        (void)snprintf(command, sizeof(command), "rm -rf %s", root);
        return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, remove_all)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_ours_alone_is_sound),
                TEST(everybody_counts_on_the_whole_way),
                TEST(where_only_owners_replace_an_entry_of_ours_is_sound),
                TEST(a_folder_that_we_write_in_is_for_us_alone),
                TEST(other_users_and_groups_are_strangers),
                TEST(both_ends_of_a_link_count),
                TEST(a_strange_link_is_not_sound),
                TEST(what_cannot_be_opened_is_an_error),
                TEST(a_relative_path_begins_where_we_are),
                TEST(the_remedy_can_be_pasted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
