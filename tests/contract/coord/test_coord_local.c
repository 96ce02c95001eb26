/* The folder of the local driver: who may use it, and what may lie about in it. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coord/local/identity.h"
#include "harness.h"

static const char *path_in(struct world *w, const char *name)
{
        struct coord_options options = { 0 };
        char path[256];
        w->driver->options(w->place, &options);
        int size = snprintf(path, sizeof(path), "%s%s", strchr(options.url, ':') + 1, name);
        return keep(w, path, (size_t)size);
}

static int try_open(struct world *w, struct error *error)
{
        return client_connect(w, (struct coord_options){ 0 }, true, NULL, error);
}

static void put(const char *path, const void *data, size_t size, int flags)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, size), size);
        (void)close(fd);
}

static void the_folder_is_private(void **state)
{
        struct world *w = *state;
        struct stat st;
        (void)join(w);
        assert_int_equal(stat(path_in(w, "/coord-test"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(stat(path_in(w, "/coord-test/log-1"), &st), 0);
        assert_int_equal(st.st_mode & 0077, 0);
}

static void a_folder_that_others_can_enter_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(mkdir(path_in(w, "/coord-test"), 0700), 0);
        assert_int_equal(chmod(path_in(w, "/coord-test"), 0750), 0);
        assert_int_equal(try_open(w, &error), -EACCES);
        assert_non_null(strstr(error.text, "0700"));
        assert_int_equal(chmod(path_in(w, "/coord-test"), 0700), 0);
        assert_int_equal(try_open(w, &error), 0);
}

static void a_folder_that_others_can_replace_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(chmod(path_in(w, ""), 0777), 0);
        assert_int_equal(try_open(w, &error), -EACCES);
        assert_int_equal(chmod(path_in(w, ""), 01777), 0);
        assert_int_equal(try_open(w, &error), 0);
}

static void another_users_folder_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        if (geteuid() != 0)
                skip();
        assert_int_equal(mkdir(path_in(w, "/coord-test"), 0700), 0);
        assert_int_equal(chown(path_in(w, "/coord-test"), 12345, 12345), 0);
        assert_int_equal(try_open(w, &error), -EACCES);
        assert_non_null(strstr(error.text, "12345"));
}

static void a_link_in_the_place_of_the_folder_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(mkdir(path_in(w, "/elsewhere"), 0700), 0);
        assert_int_equal(symlink("elsewhere", path_in(w, "/coord-test")), 0);
        assert_int_equal(try_open(w, &error), -EACCES);
}

static void a_link_in_the_place_of_the_log_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(mkdir(path_in(w, "/coord-test"), 0700), 0);
        assert_int_equal(symlink("/etc/hostname", path_in(w, "/coord-test/log-1")), 0);
        assert_int_equal(try_open(w, &error), -EACCES);
}

static void what_is_no_log_is_refused_by_name(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(mkdir(path_in(w, "/coord-test"), 0700), 0);
        put(path_in(w, "/coord-test/log-1"), "hello, I am a text file\n", 24, O_CREAT);
        assert_int_equal(try_open(w, &error), -EPROTO);
        assert_non_null(strstr(error.text, "log-1"));
}

static void foreign_files_are_left_alone(void **state)
{
        struct world *w = *state;
        static const char *const names[] = { "/coord-test/log-", "/coord-test/log-x", "/coord-test/log-07",
                "/coord-test/session-ffffffffffffffffffffffffffffffff", "/coord-test/bell-1", "/coord-test/README" };
        assert_int_equal(mkdir(path_in(w, "/coord-test"), 0700), 0);
        for (unsigned i = 0; i < 6; i++)
                put(path_in(w, names[i]), "junk", 4, O_CREAT);
        assert_int_equal(mkfifo(path_in(w, "/coord-test/session-00000000000000000000000000000000"), 0600), 0);
        struct client *a = join(w), *b = join(w);
        assert_int_equal(create(a, "n", "x", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "n", false, NULL, NULL), 0);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(access(path_in(w, names[i]), F_OK), 0);
}

/* What a writer leaves that is killed in the middle: the beginning of a record, then others' records. */
static void half_a_record_is_passed_over(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        const char *path = path_in(w, "/coord-test/log-1");
        char start[4096];
        assert_int_equal(create(a, "n", "0123456789012345678901234567890123456789", 0, NULL, NULL), 0);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = read(fd, start, sizeof(start));
        (void)close(fd);
        assert_true(size > 100);
        /* All that was written so far, once more and without its head, cut in the middle of the last record. */
        put(path, start + 24, (size_t)size - 24 - 20, O_APPEND);
        put(path, "garbage", 7, O_APPEND);
        assert_int_equal(create(b, "m", "", 0, NULL, NULL), 0);
        assert_int_equal(get(a, "m", false, NULL, NULL), 0);
        struct client *c = join(w);
        assert_int_equal(get(c, "m", false, NULL, NULL), 0);
        assert_int_equal(get(c, "n", false, NULL, NULL), 0);
        assert_int_equal(create(c, "k", "", 0, NULL, NULL), 0);
        assert_int_equal(get(b, "k", false, NULL, NULL), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static void hosts_meet_again_after_the_folder_was_wiped(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        struct coord_stat before, after;
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, &before), 0);
        forget_heard(a);
        forget_heard(b);
        assert_int_equal(nftw(path_in(w, "/coord-test"), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        WAIT_FOR(w, a->looks && b->looks);
        assert_string_equal(children(b, "members", false), "");
        assert_int_equal(create(a, "members/a", "", COORD_EPHEMERAL, NULL, &after), 0);
        assert_string_equal(children(b, "members", false), "a");
        assert_true(after.created > before.created);
}

static void a_log_that_grows_is_written_anew(void **state)
{
        struct world *w = *state;
        struct client *a = join(w), *b = join(w);
        char data[20001];
        struct coord_stat before, after;
        memset(data, 'x', sizeof(data) - 1);
        data[sizeof(data) - 1] = 0;
        assert_int_equal(create(a, "keep/e", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(a, "keep/n-", "", COORD_SEQUENTIAL, NULL, NULL), 0);
        assert_int_equal(create(a, "n", "0", 0, NULL, &before), 0);
        for (unsigned i = 0; i < 200; i++)
                assert_int_equal(set(i % 2 ? a : b, "n", data, i, NULL), 0);
        assert_true(access(path_in(w, "/coord-test/log-1"), F_OK) != 0);
        struct client *c = join(w);
        struct client *all[] = { a, b, c };
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(get(all[i], "n", false, NULL, &after), 0);
                assert_true(after.created == before.created && after.version == 200);
                assert_string_equal(children(all[i], "keep", false), "e n-0000000000");
        }
        const char *made;
        assert_int_equal(create(c, "keep/n-", "", COORD_SEQUENTIAL, &made, NULL), 0);
        assert_string_equal(made, "keep/n-0000000001");
        assert_int_equal(a->states_count + b->states_count, 2);
}

static void two_apps_share_a_folder(void **state)
{
        struct client *c;
        struct stat st;
        (void)join(*state);
        assert_int_equal(client_connect(*state, (struct coord_options){ .app = "other" }, true, &c, NULL), 0);
        assert_int_equal(stat(path_in(*state, "/coord-other"), &st), 0);
        assert_int_equal(stat(path_in(*state, "/coord-test"), &st), 0);
}

/* What one looks like to identity_ensure(): `fd` is the folder, `machine` what it calls itself. */
static bool is_known_as(int fd, const char *machine, const char *host, const char *boot, char id[IDENTITY_ID_MAX])
{
        struct identity_facts facts = { 0 };
        (void)snprintf(facts.machine_id, sizeof(facts.machine_id), "%s", machine);
        (void)snprintf(facts.host_name, sizeof(facts.host_name), "%s", host);
        (void)snprintf(facts.boot_id, sizeof(facts.boot_id), "%s", boot);
        return identity_ensure(fd, &facts, id);
}

static void a_folder_is_recognised_while_one_fact_of_its_machine_holds(void **state)
{
        char first[IDENTITY_ID_MAX], id[IDENTITY_ID_MAX];
        int fd = open(path_in(*state, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_true(is_known_as(fd, "", "bare", "boot-1", first));
        /* A package makes /etc/machine-id; the machine is renamed; it is started again. */
        assert_true(is_known_as(fd, "m", "bare", "boot-1", id));
        assert_string_equal(id, first);
        assert_true(is_known_as(fd, "m", "named", "boot-1", id));
        assert_true(is_known_as(fd, "m", "named", "boot-2", id));
        assert_string_equal(id, first);
        /* A copy on another machine, which leaves it as it is. */
        assert_false(is_known_as(fd, "other", "elsewhere", "boot-3", id));
        assert_true(is_known_as(fd, "m", "named", "boot-2", id));
        assert_string_equal(id, first);
        (void)close(fd);
}

static void an_identity_that_cannot_be_read_is_none(void **state)
{
        char id[IDENTITY_ID_MAX];
        int fd = open(path_in(*state, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        static const char *const texts[] = { "", "quiver-identity 1\n", "quiver-identity 1\nxyz\nm\nh\nb\n", "\n\n\n" };
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                FILE *f = fopen(path_in(*state, "/identity"), "we");
                assert_non_null(f);
                (void)fputs(texts[i], f);
                (void)fclose(f);
                assert_false(is_known_as(fd, "m", "h", "b", id));
        }
        (void)close(fd);
}

static void the_url_names_the_machine(void **state)
{
        struct client *c = join(*state);
        struct coord_info info;
        coord_info(c->coord, &info);
        assert_int_equal(strncmp(info.url, "local:/", 7), 0);
        const char *machine = strstr(info.url, "?machine=");
        assert_non_null(machine);
        assert_true(strlen(machine) > strlen("?machine="));
        const char *id = strstr(machine, "&id=");
        assert_non_null(id);
        assert_int_equal(strlen(id), strlen("&id=") + IDENTITY_ID_MAX - 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(the_folder_is_private),
                IN_WORLD(a_folder_that_others_can_enter_is_refused),
                IN_WORLD(a_folder_that_others_can_replace_is_refused),
                IN_WORLD(another_users_folder_is_refused),
                IN_WORLD(a_link_in_the_place_of_the_folder_is_refused),
                IN_WORLD(a_link_in_the_place_of_the_log_is_refused),
                IN_WORLD(what_is_no_log_is_refused_by_name),
                IN_WORLD(foreign_files_are_left_alone),
                IN_WORLD(half_a_record_is_passed_over),
                IN_WORLD(hosts_meet_again_after_the_folder_was_wiped),
                IN_WORLD(a_log_that_grows_is_written_anew),
                IN_WORLD(two_apps_share_a_folder),
                IN_WORLD(a_folder_is_recognised_while_one_fact_of_its_machine_holds),
                IN_WORLD(an_identity_that_cannot_be_read_is_none),
                IN_WORLD(the_url_names_the_machine),
        };
        (void)unsetenv("QUIVER_COORD_DRIVER");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
