/* Several processes on one file at once: producers and owners, nobody starves, order holds, nothing is lost. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "children.h"

const struct contract_driver *driver = &sqlite_real;

#define SHARDS    4
#define PRODUCERS 3
#define PER_CHILD 3000u
#define KEYS      40u

/* Task numbers of producer p are p * PER_CHILD + 1 and up, and each of its keys is its own: order can be checked. */
static int producer(unsigned who)
{
        struct world w;
        struct ledger *ledger = ledger_open();
        world_start(&w, (uint8_t)(10 + who), 0);
        uint32_t number = who * PER_CHILD;
        /* One sends single tasks, the others batches: neither may starve the other. */
        uint32_t batch = who == 0 ? 1 : 50 * who;
        while (number < (who + 1) * PER_CHILD) {
                struct store_submission items[200];
                uint32_t count = 0;
                for (; count < batch && number < (who + 1) * PER_CHILD; count++) {
                        number++;
                        items[count] =
                                (struct store_submission){ .envelope = { .key = F(&w, "p%u.%u", who, number % KEYS),
                                                                   .handler = T("h"),
                                                                   .payload = F(&w, "%u", number),
                                                                   .lane = LANE_NORMAL } };
                }
                assert_int_equal(submit_items(&w, items, count), 0);
                for (uint32_t i = 0; i < count; i++) {
                        assert_int_equal(items[i].status, 0);
                        ledger->submitted[number - count + 1 + i] = 1;
                }
                arena_free(w.memory);
                w.memory = NULL;
        }
        world_end(&w);
        return 0;
}

/* Owns two shards; runs what it claims; each key's numbers must grow. */
static int owner(unsigned who)
{
        struct world w;
        struct ledger *ledger = ledger_open();
        static uint32_t last[PRODUCERS][KEYS];
        world_start(&w, (uint8_t)(20 + who), 0);
        struct owner o[2] = { own(&w, 2 * who, 1, (uint8_t)(20 + who)), own(&w, 2 * who + 1, 1, (uint8_t)(20 + who)) };
        uint64_t end_ns = clock_boot_ns() + 60 * NS_PER_S;
        while (__atomic_load_n(&ledger->ops, __ATOMIC_ACQUIRE) < PRODUCERS * PER_CHILD) {
                assert_true(clock_boot_ns() < end_ns);
                for (unsigned i = 0; i < 2; i++) {
                        struct store_advance a = claim(&w, &o[i], 100);
                        struct store_outcome outcomes[100];
                        for (uint32_t t = 0; t < a.tasks_count; t++) {
                                uint32_t number = (uint32_t)strtoul(a.tasks[t].envelope.payload.data, NULL, 10);
                                uint32_t *before = &last[(number - 1) / PER_CHILD][number % KEYS];
                                assert_true(number > *before);
                                *before = number;
                                assert_int_equal(ledger->done[number], 0);
                                ledger->done[number] = 1;
                                outcomes[t] = done(&a.tasks[t]);
                        }
                        if (a.tasks_count) {
                                assert_int_equal(advance(&w, &o[i], outcomes, a.tasks_count, 0).verdict, STORE_OK);
                                (void)__atomic_add_fetch(&ledger->ops, a.tasks_count, __ATOMIC_ACQ_REL);
                        }
                        arena_free(w.memory);
                        w.memory = NULL;
                }
        }
        world_end(&w);
        return 0;
}

static int maker(uint8_t who)
{
        struct world w;
        world_start(&w, who, SHARDS);
        (void)submit(&w, "k", "x");
        world_end(&w);
        return 0;
}

static void producers_and_owners_share_a_file(void **state)
{
        (void)state;
        char folder[64];
        struct world w;
        struct ledger *ledger = children_setup(folder);
        world_start(&w, 1, SHARDS);
        world_end(&w);
        pid_t pids[PRODUCERS + 2];
        for (unsigned i = 0; i < PRODUCERS; i++)
                pids[i] = child_start("producer", (char[]){ (char)('0' + i), 0 });
        for (unsigned i = 0; i < 2; i++)
                pids[PRODUCERS + i] = child_start("owner", (char[]){ (char)('0' + i), 0 });
        for (unsigned i = 0; i < PRODUCERS + 2; i++)
                assert_int_equal(child_wait(pids[i]), 0);
        for (uint32_t i = 1; i <= PRODUCERS * PER_CHILD; i++)
                assert_int_equal(ledger->done[i], 1);
        world_start(&w, 1, 0);
        expect_sound(&w);
        uint64_t total = 0;
        for (uint32_t i = 0; i < SHARDS; i++)
                total += counts(&w, i).done;
        assert_int_equal(total, PRODUCERS * PER_CHILD);
        world_end(&w);
        children_cleanup(folder, ledger);
}

static void many_may_make_the_store_at_once(void **state)
{
        (void)state;
        char folder[64];
        for (unsigned round = 0; round < 5; round++) {
                struct ledger *ledger = children_setup(folder);
                pid_t pids[4];
                for (unsigned i = 0; i < 4; i++)
                        pids[i] = child_start("maker", (char[]){ (char)('0' + i), 0 });
                for (unsigned i = 0; i < 4; i++)
                        assert_int_equal(child_wait(pids[i]), 0);
                struct world w;
                world_start(&w, 1, 0);
                expect_sound(&w);
                assert_int_equal(counts(&w, shard_of_key(T("k"), SHARDS)).submitted, 4);
                world_end(&w);
                children_cleanup(folder, ledger);
        }
}

int main(int argc, char **argv)
{
        if (argc > 1 && !strcmp(argv[1], "producer"))
                return producer((unsigned)atoi(argv[2]));
        if (argc > 1 && !strcmp(argv[1], "owner"))
                return owner((unsigned)atoi(argv[2]));
        if (argc > 1 && !strcmp(argv[1], "maker"))
                return maker((uint8_t)(30 + atoi(argv[2])));
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(many_may_make_the_store_at_once),
                cmocka_unit_test(producers_and_owners_share_a_file),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
