/* What a host exports of its shards: each shard is counted by one host, and not after its own deadline. */
#include "check.h"

#include <stdlib.h>

#include "host/report/backlog.h"

#define SHARDS 4u
#define NOW_MS UINT64_C(100000)

struct fixture {
        struct membership membership;
        struct shards shards;
        struct shard_io list[SHARDS];
        struct backlog backlog;
        struct backlog_shard counted[SHARDS];
};

/* Shards 0 and 1 are ours, 2 is another's, 3 is nobody's.  Each has ten times its number and one more in its queue. */
static int set_up(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        assert_non_null(f);
        f->shards.list = f->list;
        f->shards.count = SHARDS;
        f->backlog = (struct backlog){ .membership = &f->membership,
                .shards = &f->shards,
                .list = f->counted,
                .count = SHARDS,
                .answered_ms = NOW_MS };
        for (uint32_t i = 0; i < SHARDS; i++) {
                f->counted[i] = (struct backlog_shard){ .counted_ms = NOW_MS, .lease_number = 7 };
                f->counted[i].counts.queued[LANE_NORMAL] = 10 * i + 1;
                f->counted[i].counts.in_flight = 5;
                f->list[i].shard.lease_number = 7;
                f->list[i].shard.state = i < 2 ? SHARD_OWNED : SHARD_AWAY;
                f->list[i].shard.until_ms = i < 2 ? NOW_MS + 1000 : 0;
        }
        f->counted[3].is_unowned = true;
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        free(*state);
        return 0;
}

static uint64_t queued(const struct fixture *f, uint64_t now_ms)
{
        struct backlog_sum sum = backlog_sum(&f->backlog, now_ms);
        return store_counts_queued(&sum.counts);
}

static void a_host_exports_what_it_owns(void **state)
{
        struct fixture *f = *state;
        struct backlog_sum sum = backlog_sum(&f->backlog, NOW_MS);
        assert_true(sum.is_recent);
        assert_int_equal(sum.owned, 2);
        assert_int_equal(sum.unowned, 0);
        assert_int_equal(sum.unowned_in_flight, 0);
        assert_int_equal(queued(f, NOW_MS), 1 + 11);
        f->list[1].shard.state = SHARD_LEAVING; /* until it is released */
        assert_int_equal(queued(f, NOW_MS), 1 + 11);
        f->list[1].shard.state = SHARD_AWAY;
        assert_int_equal(queued(f, NOW_MS), 1);
}

static void after_its_own_deadline_a_shard_is_not_exported(void **state)
{
        struct fixture *f = *state;
        f->list[0].shard.until_ms = NOW_MS + 500;
        assert_int_equal(queued(f, NOW_MS + 499), 1 + 11);
        assert_int_equal(queued(f, NOW_MS + 500), 11);
        assert_int_equal(backlog_sum(&f->backlog, NOW_MS + 500).owned, 1);
        assert_int_equal(backlog_sum(&f->backlog, NOW_MS + 1000).owned, 0);
        assert_int_equal(queued(f, NOW_MS + 1000), 0);
}

static void what_was_counted_under_another_lease_is_not_exported(void **state)
{
        struct fixture *f = *state;
        f->list[0].shard.lease_number++;
        assert_int_equal(queued(f, NOW_MS), 11);
        assert_int_equal(backlog_sum(&f->backlog, NOW_MS).owned, 2);
}

static void the_leader_exports_what_nobody_owns(void **state)
{
        struct fixture *f = *state;
        f->membership.leader.queue.is_front = true;
        struct backlog_sum sum = backlog_sum(&f->backlog, NOW_MS);
        assert_int_equal(sum.unowned, 1);
        assert_int_equal(sum.unowned_in_flight, 5);
        assert_int_equal(queued(f, NOW_MS), 1 + 11 + 31);
        /* It has got it meanwhile: until it is counted again nothing is known of it. */
        f->list[3].shard.state = SHARD_READING;
        f->list[3].shard.until_ms = NOW_MS + 1000;
        f->list[3].shard.lease_number++;
        sum = backlog_sum(&f->backlog, NOW_MS);
        assert_int_equal(sum.unowned, 0);
        assert_int_equal(sum.owned, 3);
        assert_int_equal(queued(f, NOW_MS), 1 + 11);
        /* Its own lease has run out: another may export the shard, and nobody has said that it is nobody's. */
        f->list[3].shard.until_ms = NOW_MS;
        assert_int_equal(queued(f, NOW_MS), 1 + 11);
}

static void old_counts_are_not_exported(void **state)
{
        struct fixture *f = *state;
        f->membership.leader.queue.is_front = true;
        f->list[0].shard.until_ms = f->list[1].shard.until_ms = UINT64_MAX;
        f->counted[1].counted_ms = 0;
        assert_int_equal(queued(f, NOW_MS), 1 + 31);
        f->counted[0].counted_ms = NOW_MS + 1;
        assert_true(backlog_sum(&f->backlog, NOW_MS + BACKLOG_OLD_MS - 1).is_recent);
        assert_false(backlog_sum(&f->backlog, NOW_MS + BACKLOG_OLD_MS).is_recent);
        assert_int_equal(queued(f, NOW_MS + BACKLOG_OLD_MS), 1);
        assert_int_equal(queued(f, NOW_MS + BACKLOG_OLD_MS + 1), 0);
        f->backlog.answered_ms = 0;
        assert_false(backlog_sum(&f->backlog, 1).is_recent);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_host_exports_what_it_owns, set_up, tear_down),
                cmocka_unit_test_setup_teardown(after_its_own_deadline_a_shard_is_not_exported, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        what_was_counted_under_another_lease_is_not_exported, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_leader_exports_what_nobody_owns, set_up, tear_down),
                cmocka_unit_test_setup_teardown(old_counts_are_not_exported, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
