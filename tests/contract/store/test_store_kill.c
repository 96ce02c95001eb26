/* kill -9 at any moment: the file is sound, what was acknowledged is there, what was done is done.
 *
 *         QUIVER_KILLS=N kills so often; QUIVER_SEED=N chooses the moments. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"

const struct contract_driver *driver = &sqlite_real;

#define SHARDS 4

/* --- the child: submits, claims and settles until it is killed --------------------------------------------------- */

static uint32_t number_of(struct span payload)
{
        return (uint32_t)strtoul(payload.data, NULL, 10);
}

static void submit_some(struct world *w, struct ledger *ledger)
{
        struct store_submission items[20];
        uint32_t numbers[20];
        uint32_t count = 1 + ledger->ops % 20;
        for (uint32_t i = 0; i < count; i++) {
                numbers[i] = ++ledger->next;
                items[i] = (struct store_submission){ .envelope = { .key = F(w, "key%u", numbers[i] % 17),
                                                              .handler = T("h"),
                                                              .payload = F(w, "%u", numbers[i]),
                                                              .lane = (enum lane)(numbers[i] % 3) },
                        .delay_ms = numbers[i] % 11 ? 0 : 5 };
        }
        assert_int_equal(submit_items(w, items, count), 0);
        for (uint32_t i = 0; i < count; i++)
                ledger->submitted[numbers[i]] = 1;
}

static struct store_outcome outcome_for(struct ledger *ledger, const struct store_task *task)
{
        uint32_t number = number_of(task->envelope.payload);
        switch ((number + task->note.attempts) % 9) {
        case 0:
                return retry(task, 2);
        case 1:
                return divert(task);
        case 2:
                if (number % 5 == 0)
                        return dead(task, "rejected");
                /* fall through */
        default:
                ledger->maybe_done[number] = 1;
                return done(task);
        }
}

static void settle_some(
        struct world *w, struct ledger *ledger, struct owner *o, const struct store_task *tasks, uint32_t count)
{
        struct store_outcome outcomes[32] = { 0 };
        for (uint32_t i = 0; i < count; i++) {
                outcomes[i] = outcome_for(ledger, &tasks[i]);
                outcomes[i].has_result = i % 4 == 0 && outcomes[i].kind == STORE_DONE;
                outcomes[i].result = T("result");
        }
        struct store_advance a = advance(w, o, outcomes, count, 0);
        assert_int_equal(a.request.status, 0);
        assert_int_equal(a.verdict, STORE_OK);
        for (uint32_t i = 0; i < count; i++)
                if (outcomes[i].kind == STORE_DONE)
                        ledger->done[number_of(tasks[i].envelope.payload)] = 1;
}

static int child(void)
{
        struct world w;
        struct ledger *ledger = ledger_open();
        world_start(&w, 1, SHARDS);
        struct owner owners[SHARDS];
        for (uint32_t i = 0; i < SHARDS; i++) {
                owners[i] = owner_of(i, ++ledger->epoch, 1);
                assert_int_equal(acquire(&w, &owners[i]), 0);
                assert_int_equal(owners[i].granted.grant, STORE_GRANTED);
                uint32_t count = owners[i].granted.page.tasks_count;
                for (uint32_t at = 0; at < count; at += 32)
                        settle_some(&w, ledger, &owners[i], owners[i].granted.page.tasks + at,
                                count - at < 32 ? count - at : 32);
        }
        while (ledger->next + 20 < LEDGER_TASKS) {
                submit_some(&w, ledger);
                struct owner *o = &owners[ledger->ops++ % SHARDS];
                struct store_advance a = claim(&w, o, 24);
                settle_some(&w, ledger, o, a.tasks, a.tasks_count);
                arena_free(w.memory);
                w.memory = NULL;
        }
        return 0;
}

/* --- the parent: kills and checks -------------------------------------------------------------------------------- */

static uint8_t present[LEDGER_TASKS];

static void read_all(struct world *w)
{
        memset(present, 0, sizeof(present));
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                for (unsigned state = 0; state < STATES; state++) {
                        struct store_list l = { .shard = shard, .state = (enum store_state)state };
                        do {
                                list_next(w, &l);
                                for (uint32_t i = 0; i < l.tasks_count; i++) {
                                        uint32_t number = number_of(l.tasks[i].envelope.payload);
                                        assert_int_equal(present[number], 0); /* nothing is there twice */
                                        present[number] = 1;
                                }
                        } while (!l.is_end);
                }
}

static void check(const struct ledger *ledger)
{
        struct world w;
        world_start(&w, 2, 0);
        expect_sound(&w);
        read_all(&w);
        for (uint32_t i = 1; i <= ledger->next; i++) {
                if (ledger->submitted[i] && !ledger->maybe_done[i] && !present[i])
                        fail_msg("task %u was acknowledged and is gone", i);
                if (ledger->done[i] && present[i])
                        fail_msg("task %u was done and is there again", i);
        }
        world_end(&w);
}

static void nap_us(long us)
{
        struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
        (void)nanosleep(&t, NULL);
}

/* Every fifth dies while it opens the store, the others in the middle of their work. */
static void let_it_run(const struct ledger *ledger, unsigned round, unsigned *seed)
{
        uint32_t before = __atomic_load_n(&ledger->next, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; round % 5 && i < 20000; i++) {
                if (__atomic_load_n(&ledger->next, __ATOMIC_ACQUIRE) != before)
                        break;
                nap_us(500);
        }
        nap_us((long)(rand_r(seed) % 15000));
}

static void a_killed_writer_leaves_a_sound_file(void **state)
{
        (void)state;
        char folder[64];
        const char *kills_text = getenv("QUIVER_KILLS");
        const char *seed_text = getenv("QUIVER_SEED");
        unsigned kills = kills_text ? (unsigned)atoi(kills_text) : getenv("QUIVER_TEST_ALL") ? 1000 : 200;
        unsigned seed = seed_text ? (unsigned)atoi(seed_text) : (unsigned)time(NULL);
        print_message("seed %u: replay with QUIVER_SEED=%u\n", seed, seed);
        struct ledger *ledger = children_setup(folder);
        struct world w;
        world_start(&w, 2, SHARDS);
        world_end(&w);
        for (unsigned i = 0; i < kills; i++) {
                pid_t pid = child_start("writer", "");
                let_it_run(ledger, i, &seed);
                (void)kill(pid, SIGKILL);
                int status = child_wait(pid);
                if (!WIFSIGNALED(status))
                        fail_msg("kill %u: the child ended by itself with status %d", i, status);
                check(ledger);
        }
        print_message("%u kills, %u tasks\n", kills, ledger->next);
        assert_true(ledger->next > kills);
        children_cleanup(folder, ledger);
}

int main(int argc, char **argv)
{
        if (argc > 1 && !strcmp(argv[1], "writer"))
                return child();
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_killed_writer_leaves_a_sound_file) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
