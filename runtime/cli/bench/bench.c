/* bench.c: `quiver bench lock`: how fast and how fairly a lock changes hands on the configured coordination. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "client/tree.h"
#include "view/json.h"

#define CONTENDERS_MAX 64u
#define FOR_MAX_MS     (24u * 3600 * 1000)
#define HOLD_MAX_MS    60000u
#define NAME_SIZE      64
#define PATIENCE_MS    30000u /* how long one waits beyond the end before it says that the lock was not had */

struct contender {
        struct bench_lock *bench;
        struct qv_client *client; /* its own, with a session of its own, as another process would have */
        pthread_t thread;
        uint64_t *waits_ns; /* one for each time that it had the lock */
        size_t had;
        int status;
        struct error error;
};

struct bench_lock {
        const char *config;
        uint64_t for_ms, hold_ms;
        uint32_t count;
        bool has_json;
        char name[NAME_SIZE];
        struct contender list[CONTENDERS_MAX];
        pthread_barrier_t start;
        uint64_t until_ns; /* set before any of them passes the barrier */
        _Atomic unsigned holders;
        _Atomic uint64_t overlaps, lost;
        _Atomic bool is_over; /* one of them has failed */
};

/* --- contending --------------------------------------------------------------------------------------------------- */

static int had(struct contender *c, struct qv_client_lock *lock, uint64_t asked_ns)
{
        struct bench_lock *bench = c->bench;
        uint64_t now_ns = clock_boot_ns();
        if (now_ns < bench->until_ns) {
                c->waits_ns = array_grow(c->waits_ns, c->had, sizeof(*c->waits_ns));
                c->waits_ns[c->had++] = now_ns - asked_ns;
        }
        if (atomic_fetch_add(&bench->holders, 1) > 0)
                bench->overlaps++;
        if (bench->hold_ms)
                (void)usleep((useconds_t)bench->hold_ms * 1000);
        (void)atomic_fetch_sub(&bench->holders, 1);
        int r = qv_client_unlock(lock);
        if (r == -ENOLCK)
                bench->lost++;
        return r == -ENOLCK ? 0 : r;
}

/* Asks again as soon as it has given the lock back. */
static void *contend(void *self)
{
        struct contender *c = self;
        struct bench_lock *bench = c->bench;
        struct qv_client_lock_options options = QV_CLIENT_LOCK_OPTIONS_INIT;
        struct qv_client_lock *lock;
        options.wait_ms = bench->for_ms + PATIENCE_MS;
        options.reason = "quiver bench lock";
        (void)pthread_barrier_wait(&bench->start);
        while (c->status == 0 && !bench->is_over) {
                uint64_t asked_ns = clock_boot_ns();
                if (asked_ns >= bench->until_ns)
                        break;
                c->status = qv_client_lock(c->client, bench->name, &options, &lock);
                if (c->status == 0)
                        c->status = had(c, lock, asked_ns);
        }
        if (c->status < 0) {
                (void)error_set(&c->error, 0, "lock %s: %s", bench->name, qv_client_error());
                bench->is_over = true;
        }
        return NULL;
}

/* Each opens its session before the time begins: taking a lock of its own, which nobody else wants, does that. */
static int open_contender(struct contender *c, const struct config *config, unsigned number)
{
        char name[NAME_SIZE + 16];
        struct qv_client_lock *lock;
        int r = client_open_config(config, &c->client, &c->error);
        if (r < 0)
                return r;
        (void)snprintf(name, sizeof(name), "%s.%u", c->bench->name, number);
        r = qv_client_trylock(c->client, name, &lock);
        if (r == 0)
                r = qv_client_unlock(lock);
        return r < 0 ? error_set(&c->error, r, "the first lock of contender %u: %s", number, qv_client_error()) : 0;
}

static int run_contenders(struct bench_lock *bench)
{
        int r = 0;
        (void)pthread_barrier_init(&bench->start, NULL, bench->count + 1);
        for (uint32_t i = 0; i < bench->count && r == 0; i++)
                r = -pthread_create(&bench->list[i].thread, NULL, contend, &bench->list[i]);
        /* Those that were started wait at the barrier for one that does not come: nothing but the end is left. */
        if (r < 0)
                return r;
        bench->until_ns = clock_boot_ns() + bench->for_ms * 1000000;
        (void)pthread_barrier_wait(&bench->start);
        for (uint32_t i = 0; i < bench->count; i++)
                (void)pthread_join(bench->list[i].thread, NULL);
        (void)pthread_barrier_destroy(&bench->start);
        return 0;
}

/* --- the figures -------------------------------------------------------------------------------------------------- */

struct figures {
        uint64_t total;
        double rate; /* a second */
        double p50_ms, p99_ms, longest_ms;
};

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

static struct figures figures_of(const struct bench_lock *bench)
{
        struct figures f = { 0 };
        size_t at = 0;
        for (uint32_t i = 0; i < bench->count; i++)
                f.total += bench->list[i].had;
        f.rate = (double)f.total * 1e3 / (double)bench->for_ms;
        if (!f.total)
                return f;
        uint64_t *waits = memory_zero(f.total, sizeof(*waits));
        for (uint32_t i = 0; i < bench->count; i++) {
                if (bench->list[i].had)
                        memcpy(waits + at, bench->list[i].waits_ns, bench->list[i].had * sizeof(*waits));
                at += bench->list[i].had;
        }
        qsort(waits, f.total, sizeof(*waits), by_size);
        uint64_t at_p50 = f.total / 2, at_p99 = f.total * 99 / 100;
        f.p50_ms = (double)waits[at_p50] / 1e6;
        f.p99_ms = (double)waits[at_p99] / 1e6;
        f.longest_ms = (double)waits[f.total - 1] / 1e6;
        free(waits);
        return f;
}

static double share_of(const struct contender *c, const struct figures *f)
{
        return f->total ? 100.0 * (double)c->had / (double)f->total : 0;
}

static void print_json(const struct bench_lock *bench, const struct figures *f, const char *driver)
{
        json_t *contenders = json_array();
        for (uint32_t i = 0; i < bench->count; i++)
                (void)json_array_append_new(
                        contenders, json_pack("{s:I, s:f}", "acquisitions", (json_int_t)bench->list[i].had,
                                            "share_percent", share_of(&bench->list[i], f)));
        json_t *o = json_pack("{s:s, s:o, s:f, s:f, s:f, s:f}", "coordination", driver, "contenders", contenders,
                "per_second", f->rate, "wait_p50_ms", f->p50_ms, "wait_p99_ms", f->p99_ms, "wait_max_ms",
                f->longest_ms);
        view_json_number(o, "for_ms", bench->for_ms);
        view_json_number(o, "hold_ms", bench->hold_ms);
        view_json_number(o, "acquisitions", f->total);
        view_json_number(o, "lost", bench->lost);
        view_json_number(o, "overlaps", bench->overlaps);
        cli_json_print_wide(o);
}

static void print_text(const struct bench_lock *bench, const struct figures *f, const char *driver)
{
        (void)printf("%s: %" PRIu64 " acquisitions, %.0f a second; waits p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n",
                driver, f->total, f->rate, f->p50_ms, f->p99_ms, f->longest_ms);
        for (uint32_t i = 0; i < bench->count; i++)
                (void)printf(
                        "contender %-3u %8zu  %5.1f %%\n", i + 1, bench->list[i].had, share_of(&bench->list[i], f));
        if (bench->lost)
                (void)printf("lost while it was held: %" PRIu64 " times\n", bench->lost);
        if (bench->overlaps)
                (void)printf("held by two at once: %" PRIu64 " times\n", bench->overlaps);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static void close_contenders(struct bench_lock *bench)
{
        for (uint32_t i = 0; i < bench->count; i++) {
                qv_client_close(bench->list[i].client);
                free(bench->list[i].waits_ns);
        }
}

static int bench_lock(struct bench_lock *bench, const char *command)
{
        struct cli_store loaded;
        int r = 0;
        int code = cli_load(&loaded, command, bench->config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        log_set_level(LEVEL_WARN); /* what drivers tell of every step is for a host's log */
        (void)snprintf(bench->name, sizeof(bench->name), "bench-%d-%" PRIu64, (int)getpid(), clock_wall_ms());
        const struct contender *failed = NULL;
        for (uint32_t i = 0; i < bench->count && !failed; i++) {
                bench->list[i].bench = bench;
                bench->list[i].status = open_contender(&bench->list[i], &loaded.config, i + 1);
                failed = bench->list[i].status < 0 ? &bench->list[i] : NULL;
        }
        if (!failed)
                r = run_contenders(bench);
        for (uint32_t i = 0; i < bench->count && !failed; i++)
                failed = bench->list[i].status < 0 ? &bench->list[i] : NULL;
        if (r < 0) {
                code = cli_fail(command, r, "no thread can be made for each contender; give fewer --contenders");
        } else if (failed) {
                code = cli_fail(command, failed->status, failed->error.text);
                code = failed->status == -ENOENT ? EXIT_UNREACHABLE : code; /* there is no store yet */
        } else {
                struct figures f = figures_of(bench);
                struct coord_info info;
                coord_info(client_tree(bench->list[0].client)->coord, &info);
                (bench->has_json ? print_json : print_text)(bench, &f, info.driver);
        }
        if (r == 0)
                close_contenders(bench);
        config_free(&loaded.config);
        return code;
}

int cmd_bench(int argc, char **argv)
{
        static struct bench_lock bench = { .count = 4, .for_ms = 10000 };
        const struct option table[] = {
                OPT_CONFIG(&bench.config),
                OPT_NUMBER("--contenders N", &bench.count, 1, CONTENDERS_MAX, "how many want it (default: 4)"),
                OPT_DURATION("--for TIME", &bench.for_ms, 100, "how long (default: 10s)"),
                OPT_DURATION("--hold TIME", &bench.hold_ms, 0, "how long each holds it (default: not at all)"),
                OPT_JSON(&bench.has_json),
        };
        struct options o = {
                .usage = "bench lock [--contenders N] [--for TIME] [--hold TIME] [--json]",
                .about = "Measures a lock of its own on the coordination that the settings name: so many contenders,\n"
                         "each with a session of its own, take it, give it back and ask again at once.\n"
                         "Prints how often it was had in a second, how long each waited, and each contender's\n"
                         "share. A lock goes round in order of arrival: shares are equal if it is held long enough\n"
                         "for the last holder to ask again (--hold 5ms).\n"
                         "It says so if the lock was lost or held by two at once. It loads the coordination.",
                .examples = "  quiver bench lock --contenders 4 --for 30s\n"
                            "  quiver bench lock --hold 5ms --json\n",
                OPTIONS_TABLE(table),
                .words_max = 1,
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (o.words_count != 1 || strcmp(o.words[0], "lock") != 0)
                return options_wrong(&o, "what is to be measured? quiver bench lock");
        if (bench.for_ms > FOR_MAX_MS)
                return options_wrong(&o, "--for is from 100ms to 24h");
        if (bench.hold_ms > HOLD_MAX_MS)
                return options_wrong(&o, "--hold is at most 1m");
        return bench_lock(&bench, o.command);
}
