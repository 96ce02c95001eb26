/* Which of a host's shards are sought and left, as the assignment says. */
#include <string.h>

#include "check.h"
#include "host/shard/shard_io.h"

#define SHARDS 4

struct rig {
        struct shard_limits limits;
        struct dispatch dispatch;
        struct assignment assignment;
        struct shards shards;
        uint8_t nonce[STORE_NONCE_SIZE];
};

static const struct shards_events no_events;

/* Shards 0 and 1 are ours, 2 is another's, 3 is nobody's. */
static int start(void **state)
{
        static struct rig rig;
        rig = (struct rig){ .limits = { .ttl_ms = 1000, .window_tasks = 8, .window_bytes = 1024, .seats = 1 } };
        memset(rig.nonce, 7, sizeof(rig.nonce));
        assignment_init(&rig.assignment, SHARDS, 2, 0);
        memset(rig.assignment.owners[0].nonce, 3, STORE_NONCE_SIZE);
        memcpy(rig.assignment.owners[1].nonce, rig.nonce, STORE_NONCE_SIZE);
        rig.assignment.slots[0] = (struct assign_slot){ .owner = 1, .epoch = 50 };
        rig.assignment.slots[1] = (struct assign_slot){ .owner = 1, .epoch = 51, .is_firm = true };
        rig.assignment.slots[2] = (struct assign_slot){ .owner = 0, .epoch = 52 };
        dispatch_init(&rig.dispatch, SHARDS);
        rig.shards = (struct shards){ .dispatch = &rig.dispatch,
                .assignment = &rig.assignment,
                .nonce = rig.nonce,
                .limits = &rig.limits,
                .events = &no_events };
        shards_init(&rig.shards, SHARDS, 0, 16);
        *state = &rig;
        return 0;
}

static int stop(void **state)
{
        struct rig *rig = *state;
        shards_free(&rig->shards);
        dispatch_free(&rig->dispatch);
        assignment_free(&rig->assignment);
        return 0;
}

static const struct shard *shard_of(const struct rig *rig, uint32_t number)
{
        return &rig->shards.list[number].shard;
}

static void assert_sought(const struct rig *rig, bool first, bool second)
{
        assert_int_equal(shard_of(rig, 0)->state == SHARD_SEEKING, first);
        assert_int_equal(shard_of(rig, 1)->state == SHARD_SEEKING, second);
        assert_int_equal(shard_of(rig, 2)->state, SHARD_AWAY);
        assert_int_equal(shard_of(rig, 3)->state, SHARD_AWAY);
        assert_int_equal(shards_count_held(&rig->shards), (uint32_t)first + second);
}

static void only_what_is_ours_is_sought(void **state)
{
        struct rig *rig = *state;
        shards_assign(&rig->shards, false, 1000);
        assert_sought(rig, true, true);
        assert_int_equal(shard_of(rig, 0)->epoch, 50);
        assert_false(shard_of(rig, 0)->is_firm);
        assert_int_equal(shard_of(rig, 1)->epoch, 51);
        assert_true(shard_of(rig, 1)->is_firm);
}

static void what_was_given_to_another_is_left(void **state)
{
        struct rig *rig = *state;
        shards_assign(&rig->shards, false, 1000);
        rig->assignment.slots[1] = (struct assign_slot){ .owner = 0, .epoch = 60 };
        shards_assign(&rig->shards, false, 1001);
        assert_sought(rig, true, false);
}

static void what_should_be_ours_and_is_not_is_sought_again(void **state)
{
        struct rig *rig = *state;
        shards_reconcile(&rig->shards);
        assert_sought(rig, true, true);
}

/* The store knows a higher epoch: only a new one from the leader helps. */
static void a_stale_epoch_is_not_tried_again(void **state)
{
        struct rig *rig = *state;
        rig->shards.list[0].shard.stale_epoch = 50;
        rig->shards.list[1].shard.stale_epoch = 50;
        shards_reconcile(&rig->shards);
        assert_sought(rig, false, true);
}

static void a_host_that_stands_by_takes_nothing_back(void **state)
{
        struct rig *rig = *state;
        shards_assign(&rig->shards, false, 1000);
        shards_assign(&rig->shards, true, 1001);
        assert_sought(rig, false, false);
        shards_reconcile(&rig->shards);
        assert_sought(rig, false, false);
        shards_assign(&rig->shards, false, 1002);
        assert_sought(rig, true, true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(only_what_is_ours_is_sought, start, stop),
                cmocka_unit_test_setup_teardown(what_was_given_to_another_is_left, start, stop),
                cmocka_unit_test_setup_teardown(what_should_be_ours_and_is_not_is_sought_again, start, stop),
                cmocka_unit_test_setup_teardown(a_stale_epoch_is_not_tried_again, start, stop),
                cmocka_unit_test_setup_teardown(a_host_that_stands_by_takes_nothing_back, start, stop),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
