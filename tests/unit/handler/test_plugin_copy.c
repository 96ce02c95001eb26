/* A private copy of a plugin's file: whole, or a refusal that says why. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/handler/plugin_copy.h"

struct place {
        char root[64];
        char from[4096]; /* where the plugin lies */
        char to[128];    /* the state folder */
        struct plugin_copy copy;
        struct error error;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));
        if (!p)
                return -1;
        strcpy(p->root, "/tmp/quiver-stage-XXXXXX");
        if (!mkdtemp(p->root)) {
                free(p);
                return -1;
        }
        (void)snprintf(p->from, sizeof(p->from), "%s/mine.so", p->root);
        (void)snprintf(p->to, sizeof(p->to), "%s/state", p->root);
        *state = p;
        return mkdir(p->to, 0700);
}

static int teardown(void **state)
{
        struct place *p = *state;
        char command[128];
        (void)snprintf(command, sizeof(command), "rm -rf %s", p->root);
        int r = system(command);
        free(p);
        return r;
}

static void write_file(const char *path, const void *data, size_t size)
{
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(data, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
}

static size_t files_in(const char *folder)
{
        size_t count = 0;
        DIR *dir = opendir(folder);
        assert_non_null(dir);
        const struct dirent *e;
        while ((e = readdir(dir)))
                count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
        (void)closedir(dir);
        return count;
}

static int stage(struct place *p)
{
        return plugin_copy_make(p->from, PLUGIN_TRUSTED, p->to, &p->copy, &p->error);
}

/* Refused with that errno and these words; nothing is left in the state folder. */
static void assert_refused(struct place *p, int expected, const char *words)
{
        assert_int_equal(stage(p), expected);
        if (!strstr(p->error.text, words))
                fail_msg("\"%s\" does not say \"%s\"", p->error.text, words);
        assert_int_equal(files_in(p->to), 0);
        assert_string_equal(p->copy.path, "");
}

static void a_copy_is_whole_executable_and_named_after_its_bytes(void **state)
{
        struct place *p = *state;
        static uint8_t data[200000];
        static uint8_t copy[sizeof(data) + 1];
        struct stat st;
        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(i * 7 + i / 251);
        write_file(p->from, data, sizeof(data));
        assert_int_equal(stage(p), 0);
        assert_string_equal(p->copy.label, "mine.so");
        assert_int_equal(p->copy.size_bytes, sizeof(data));
        assert_int_equal(stat(p->copy.path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0555); /* also if the original is not for everybody to read */
        FILE *file = fopen(p->copy.path, "re");
        assert_non_null(file);
        assert_int_equal(fread(copy, 1, sizeof(copy), file), sizeof(data));
        (void)fclose(file);
        assert_memory_equal(copy, data, sizeof(data));
        assert_int_equal(files_in(p->to), 1);

        struct plugin_copy first = p->copy;
        data[sizeof(data) - 1] ^= 1;
        write_file(p->from, data, sizeof(data));
        assert_int_equal(stage(p), 0);
        assert_true(first.hash != p->copy.hash);
        assert_string_not_equal(first.path, p->copy.path);
        plugin_copy_remove(&first);
        plugin_copy_remove(&p->copy);
        assert_int_equal(files_in(p->to), 0);
}

static void the_hash_is_fnv_1a(void **state)
{
        struct place *p = *state;
        write_file(p->from, "foobar", 6);
        assert_int_equal(stage(p), 0);
        assert_true(p->copy.hash == UINT64_C(0x85944171f73967e8));
}

static void the_longest_file_name_is_staged_too(void **state)
{
        struct place *p = *state;
        char name[256];
        memset(name, 'n', 252);
        strcpy(name + 252, ".so");
        (void)snprintf(p->from, sizeof(p->from), "%s/%s", p->root, name);
        write_file(p->from, "x", 1);
        assert_int_equal(stage(p), 0);
        assert_string_equal(p->copy.label, name);
        assert_int_equal(access(p->copy.path, R_OK), 0);
}

/* --- somebody writes meanwhile --- */

#define BIG (UINT64_C(8) << 20)

struct writer {
        int fd;
        int step; /* bytes to grow by each time; negative: to shrink */
        _Atomic int is_over;
        _Atomic uint64_t writes;
};

static void *keep_changing(void *arg)
{
        struct writer *w = arg;
        off_t size = (off_t)BIG;
        while (!atomic_load(&w->is_over)) {
                size += w->step;
                assert_int_equal(ftruncate(w->fd, size), 0);
                atomic_fetch_add(&w->writes, 1);
        }
        return NULL;
}

static void refuse_while_it_changes(struct place *p, int by)
{
        pthread_t thread;
        struct writer w = { .step = by };
        w.fd = open(p->from, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        assert_true(w.fd >= 0);
        assert_int_equal(ftruncate(w.fd, (off_t)BIG), 0);
        assert_int_equal(pthread_create(&thread, NULL, keep_changing, &w), 0);
        while (!atomic_load(&w.writes))
                (void)sched_yield();
        int r = stage(p);
        atomic_store(&w.is_over, 1);
        (void)pthread_join(thread, NULL);
        (void)close(w.fd);
        assert_int_equal(r, -ETXTBSY);
        assert_non_null(strstr(p->error.text, "changed while it was read"));
        assert_int_equal(files_in(p->to), 0);
}

static void a_file_that_grows_while_it_is_read_is_refused(void **state)
{
        refuse_while_it_changes(*state, 1);
}

static void a_file_that_shrinks_while_it_is_read_is_refused(void **state)
{
        refuse_while_it_changes(*state, -1);
}

/* --- what is no plugin --- */

static void what_is_not_there_is_refused(void **state)
{
        assert_refused(*state, -ENOENT, "mine.so: cannot open it: No such file");
}

static void a_folder_is_refused(void **state)
{
        struct place *p = *state;
        assert_int_equal(mkdir(p->from, 0700), 0);
        assert_refused(p, -EINVAL, "not a regular file");
}

static void a_pipe_is_refused_without_waiting_for_its_writer(void **state)
{
        struct place *p = *state;
        assert_int_equal(mkfifo(p->from, 0600), 0);
        assert_refused(p, -EINVAL, "not a regular file");
}

static void a_huge_file_is_refused_before_it_is_read(void **state)
{
        struct place *p = *state;
        write_file(p->from, "x", 1);
        assert_int_equal(truncate(p->from, (off_t)PLUGIN_FILE_MAX + 1), 0);
        assert_refused(p, -EFBIG, "larger than 512 MiB");
}

/* Root may read anything: somebody else has to try. */
static void what_may_not_be_read_is_refused(void **state)
{
        struct place *p = *state;
        write_file(p->from, "x", 1);
        assert_int_equal(chmod(p->from, 0), 0);
        if (geteuid() != 0) {
                assert_refused(p, -EACCES, "cannot open it: Permission denied");
                return;
        }
        assert_int_equal(chmod(p->root, 0755), 0);
        assert_int_equal(chmod(p->to, 0777), 0);
        pid_t child = fork();
        if (!child) {
                bool is_right = setuid(65534) == 0 && stage(p) == -EACCES && strstr(p->error.text, "Permission denied");
                _exit(is_right ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

static void a_state_folder_that_is_not_there_is_named(void **state)
{
        struct place *p = *state;
        write_file(p->from, "x", 1);
        assert_int_equal(rmdir(p->to), 0);
        assert_int_equal(stage(p), -ENOENT);
        assert_non_null(strstr(p->error.text, "state folder"));
        assert_int_equal(mkdir(p->to, 0700), 0);
}

static void a_state_folder_mounted_noexec_is_refused(void **state)
{
        struct place *p = *state;
        write_file(p->from, "x", 1);
        if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                mount("tmpfs", p->to, "tmpfs", MS_NOEXEC, NULL) < 0) {
                print_message("# needs root and mounts of its own, not a chroot: %s\n", strerror(errno));
                skip();
        }
        int r = stage(p);
        (void)umount(p->to);
        assert_int_equal(r, -EACCES);
        assert_non_null(strstr(p->error.text, "mounted noexec"));
}

static void two_copies_of_the_same_bytes_do_not_share_a_file(void **state)
{
        struct place *p = *state;
        struct plugin_copy first;
        write_file(p->from, "x", 1);
        assert_int_equal(stage(p), 0);
        first = p->copy;
        assert_int_equal(stage(p), 0);
        assert_true(first.hash == p->copy.hash);
        assert_string_not_equal(first.path, p->copy.path);
        plugin_copy_remove(&first);
        assert_int_equal(access(p->copy.path, R_OK), 0);
}

static void the_hash_is_that_of_the_copy(void **state)
{
        struct place *p = *state;
        uint64_t hash = 0;
        write_file(p->from, "some bytes", 10);
        assert_int_equal(plugin_copy_hash(p->from, PLUGIN_TRUSTED, &hash, &p->error), 0);
        assert_int_equal(stage(p), 0);
        assert_true(hash == p->copy.hash);
        assert_int_equal(plugin_copy_hash(p->root, PLUGIN_TRUSTED, &hash, &p->error), -EINVAL);
}

static void what_everybody_can_write_is_refused_unless_it_may_be_anybodys(void **state)
{
        struct place *p = *state;
        uint64_t hash = 0;
        write_file(p->from, "x", 1);
        assert_int_equal(chmod(p->from, 0664), 0);
        assert_int_equal(stage(p), 0);
        plugin_copy_remove(&p->copy);
        p->copy = (struct plugin_copy){ 0 };
        assert_int_equal(chmod(p->from, 0666), 0);
        assert_refused(p, -EPERM, "everybody on this machine can write to it; chmod o-w");
        assert_int_equal(plugin_copy_hash(p->from, PLUGIN_TRUSTED, &hash, &p->error), -EPERM);
        assert_int_equal(chmod(p->from, 0644), 0);
        assert_int_equal(chmod(p->root, 0777), 0);
        assert_refused(p, -EPERM, "everybody on this machine can write to its folder");
        assert_int_equal(plugin_copy_hash(p->from, PLUGIN_ANYBODYS, &hash, &p->error), 0);
        assert_int_equal(plugin_copy_make(p->from, PLUGIN_ANYBODYS, p->to, &p->copy, &p->error), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_copy_is_whole_executable_and_named_after_its_bytes),
                TEST(the_hash_is_fnv_1a),
                TEST(two_copies_of_the_same_bytes_do_not_share_a_file),
                TEST(the_hash_is_that_of_the_copy),
                TEST(what_everybody_can_write_is_refused_unless_it_may_be_anybodys),
                TEST(the_longest_file_name_is_staged_too),
                TEST(a_file_that_grows_while_it_is_read_is_refused),
                TEST(a_file_that_shrinks_while_it_is_read_is_refused),
                TEST(what_is_not_there_is_refused),
                TEST(a_folder_is_refused),
                TEST(a_pipe_is_refused_without_waiting_for_its_writer),
                TEST(a_huge_file_is_refused_before_it_is_read),
                TEST(what_may_not_be_read_is_refused),
                TEST(a_state_folder_that_is_not_there_is_named),
                TEST(a_state_folder_mounted_noexec_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
