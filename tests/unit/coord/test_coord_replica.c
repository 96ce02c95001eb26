/* Two processes as far as the log can tell: what one appends meets what the other did meanwhile. */
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "coord/local/folder.h"
#include "coord/local/replica.h"

struct pair {
        char above[64];
        struct folder folder;
        struct replica a, b;
        struct error error;
};

static int setup(void **state)
{
        struct pair *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        (void)snprintf(p->above, sizeof(p->above), "/tmp/quiver-replica-XXXXXX");
        assert_non_null(mkdtemp(p->above));
        assert_int_equal(folder_open(&p->folder, p->above, "test", &p->error), 0);
        assert_int_equal(replica_open(&p->a, p->folder.fd, &p->error), 0);
        assert_int_equal(replica_open(&p->b, p->folder.fd, &p->error), 0);
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static int teardown(void **state)
{
        struct pair *p = *state;
        replica_close(&p->a);
        replica_close(&p->b);
        folder_close(&p->folder);
        (void)nftw(p->above, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(p);
        return 0;
}

static uint64_t session(struct pair *p, struct replica *replica, uint8_t who)
{
        struct tree_session session = { .nonce = { who }, .session_ms = 1000 };
        uint64_t id = 0;
        assert_int_equal(replica_session_open(replica, &session, &id, &p->error), 0);
        assert_true(id > 0);
        return id;
}

static int change(struct pair *p, struct replica *replica, uint64_t of, struct coord_multi_op op)
{
        struct tree_change made = { .session = of, .makes_parents = true, .ops = &op, .ops_count = 1 };
        int failure = 0;
        int r = replica_change(replica, &made, &failure, &p->error);
        assert_int_equal(failure, 0);
        return r;
}

static bool has(struct pair *p, struct replica *replica, const char *path)
{
        assert_int_equal(replica_catch_up(replica, &p->error), 0);
        return tree_get(&replica->tree, path) != NULL;
}

static struct coord_multi_op make(const char *path, unsigned flags)
{
        return (struct coord_multi_op){ .kind = COORD_CREATE, .path = path, .flags = flags };
}

/* It was stopped after it looked and before it wrote: the log's order decides. */
static void whoever_was_ended_meanwhile_changes_nothing(void **state)
{
        struct pair *p = *state;
        uint64_t id = session(p, &p->a, 1);
        assert_int_equal(change(p, &p->a, id, make("mine", COORD_EPHEMERAL)), 0);
        assert_true(has(p, &p->b, "mine"));
        assert_int_equal(replica_session_end(&p->b, id, &p->error), 0);
        /* `a` has not read that. */
        assert_non_null(tree_session_get(&p->a.tree, id));
        assert_int_equal(change(p, &p->a, id, make("late", 0)), -EOWNERDEAD);
        assert_null(tree_session_get(&p->a.tree, id));
        assert_false(has(p, &p->a, "late"));
        assert_false(has(p, &p->b, "late"));
        assert_false(has(p, &p->b, "mine"));
}

static void of_two_who_make_it_at_once_one_does(void **state)
{
        struct pair *p = *state;
        assert_int_equal(change(p, &p->b, 0, make("n", 0)), 0);
        assert_null(tree_get(&p->a.tree, "n"));
        assert_int_equal(change(p, &p->a, 0, make("n", 0)), -EEXIST);
        assert_int_equal(tree_get(&p->a.tree, "n")->stat.created, tree_get(&p->b.tree, "n")->stat.created);
}

static void seal(struct pair *p, struct replica *replica)
{
        char big[30000];
        unsigned number = replica->log.number;
        memset(big, 'x', sizeof(big));
        struct coord_multi_op op = {
                .kind = COORD_SET, .path = "n", .data = { big, sizeof(big) }, .version = COORD_ANY_VERSION
        };
        for (unsigned i = 0; i < 200 && replica->log.number == number; i++) {
                assert_int_equal(change(p, replica, 0, op), 0);
                assert_int_equal(replica_tidy(replica, &p->error), 0);
        }
        assert_int_equal(replica->log.number, number + 1);
}

/* What is written behind a seal is void; it is said again in the new log, and happens once. */
static void a_change_into_a_sealed_log_happens_once_in_the_next(void **state)
{
        struct pair *p = *state;
        assert_int_equal(change(p, &p->a, 0, make("n", 0)), 0);
        assert_true(has(p, &p->b, "n"));
        seal(p, &p->a);
        assert_int_equal(p->b.log.number, 1);
        assert_int_equal(change(p, &p->b, 0, make("line/x-", COORD_SEQUENTIAL)), 0);
        assert_int_equal(p->b.log.number, 2);
        assert_true(has(p, &p->a, "line/x-0000000000"));
        assert_false(has(p, &p->a, "line/x-0000000001"));
}

/* Long gone logs are not made anew by who was asleep. */
static void who_slept_through_several_logs_finds_the_newest(void **state)
{
        struct pair *p = *state;
        uint64_t id = session(p, &p->a, 1);
        assert_int_equal(change(p, &p->a, 0, make("n", 0)), 0);
        assert_int_equal(change(p, &p->a, id, make("mine", COORD_EPHEMERAL)), 0);
        assert_true(has(p, &p->b, "n"));
        for (unsigned i = 0; i < 4; i++)
                seal(p, &p->a);
        assert_true(has(p, &p->b, "mine"));
        assert_int_equal(p->b.log.number, p->a.log.number);
        assert_int_equal(p->b.tree.next_id, p->a.tree.next_id);
        const struct tree_node *ours = tree_get(&p->a.tree, "n"), *theirs = tree_get(&p->b.tree, "n");
        assert_int_equal(ours->stat.version, theirs->stat.version);
        assert_int_equal(ours->stat.created, theirs->stat.created);
        assert_non_null(tree_session_get(&p->b.tree, id));
}

static void a_multi_that_fails_leaves_no_trace(void **state)
{
        struct pair *p = *state;
        assert_int_equal(change(p, &p->a, 0, make("d/x", 0)), 0);
        struct coord_multi_op ops[] = {
                { .kind = COORD_DELETE, .path = "d/x", .version = 0 },
                { .kind = COORD_CREATE, .path = "d/x", .data = SPAN_TEXT("new") },
                { .kind = COORD_SET, .path = "d/x", .data = SPAN_TEXT("newer"), .version = 0 },
                { .kind = COORD_DELETE, .path = "d", .version = 0 },
        };
        struct tree_change made = { .ops = ops, .ops_count = 4 };
        int failure = 0;
        uint64_t created = tree_get(&p->a.tree, "d/x")->stat.created;
        assert_int_equal(replica_change(&p->a, &made, &failure, &p->error), -ENOTEMPTY);
        assert_int_equal(tree_get(&p->a.tree, "d/x")->stat.created, created);
        assert_int_equal(tree_get(&p->a.tree, "d/x")->size, 0);
        assert_int_equal(ops[2].status, 0);
        assert_int_equal(ops[3].status, -ENOTEMPTY);
        assert_true(has(p, &p->b, "d/x"));
}

/* A node as a log begins with it; the kinds are replica.c's. */
static void append_node(struct pair *p, const char *path, uint64_t created, uint64_t owner, uint64_t sequence)
{
        struct buffer b = { 0 };
        buffer_put_u32(&b, 6);
        buffer_put_u64(&b, 0);
        buffer_put_u64(&b, 0);
        buffer_put_text(&b, path);
        buffer_put_block(&b, "", 0);
        buffer_put_u64(&b, created);
        buffer_put_u64(&b, 0);
        buffer_put_u64(&b, owner);
        buffer_put_u64(&b, sequence);
        buffer_put_u64(&b, 0);
        assert_int_equal(log_append(&p->a.log, &b, &p->error), 0);
        buffer_free(&b);
}

static void append_number(struct pair *p, uint32_t kind, uint64_t number)
{
        struct buffer b = { 0 };
        buffer_put_u32(&b, kind);
        buffer_put_u64(&b, 0);
        buffer_put_u64(&b, 0);
        buffer_put_u64(&b, number);
        assert_int_equal(log_append(&p->a.log, &b, &p->error), 0);
        buffer_free(&b);
}

/* The root of a session goes with it, children are left without their parent, a number has eleven digits. */
static void records_that_cannot_be_are_passed_over(void **state)
{
        struct pair *p = *state;
        uint64_t id = session(p, &p->a, 1);
        append_node(p, "", 0, id, 0);
        assert_int_equal(change(p, &p->a, id, make("mine", COORD_EPHEMERAL)), 0);
        append_node(p, "mine/child", 5, 0, 0);
        append_node(p, "ghost", 5, 77, 0);
        append_node(p, "a b", 5, 0, 0);
        append_node(p, "late", UINT64_MAX, 0, 0);
        append_node(p, "line", 5, 0, UINT64_MAX);
        append_node(p, "full", 5, 0, 10000000000);
        append_number(p, 7, 1);
        append_number(p, 7, UINT64_MAX);
        static const char *const none[] = { "mine/child", "ghost", "a b", "late", "line" };
        for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
                assert_false(has(p, &p->b, none[i]));
        assert_true(has(p, &p->b, "full"));
        assert_int_equal(change(p, &p->b, id, make("full/x-", COORD_SEQUENTIAL)), -EOVERFLOW);
        assert_int_equal(change(p, &p->b, id, make("line/x-", COORD_SEQUENTIAL)), 0);
        assert_true(has(p, &p->a, "line/x-0000000000"));
        assert_true(session(p, &p->b, 2) > id);
        assert_int_equal(replica_session_end(&p->b, id, &p->error), 0);
        assert_false(has(p, &p->a, "mine"));
        assert_non_null(tree_get(&p->a.tree, ""));
}

/* Whoever works on it ends, and does not try for ever. */
static void a_folder_that_was_removed_is_an_error(void **state)
{
        struct pair *p = *state;
        struct replica late;
        assert_int_equal(nftw(p->above, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        assert_int_equal(replica_open(&late, p->folder.fd, &p->error), -ESTALE);
}

#define IN_PAIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_PAIR(a_folder_that_was_removed_is_an_error),
                IN_PAIR(whoever_was_ended_meanwhile_changes_nothing),
                IN_PAIR(of_two_who_make_it_at_once_one_does),
                IN_PAIR(a_change_into_a_sealed_log_happens_once_in_the_next),
                IN_PAIR(who_slept_through_several_logs_finds_the_newest),
                IN_PAIR(a_multi_that_fails_leaves_no_trace),
                IN_PAIR(records_that_cannot_be_are_passed_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
