/* The SQLite store next to bare SQLite, on the same file system, in one run.  Prints a table.
 *
 *         bench_sqlite [TASKS]        100-byte payloads, 10 000 keys, 64 shards; in $TMPDIR or /tmp */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "load/bare_sqlite.h"
#include "load/load.h"
#include "store/admin.h"
#include "store/store.h"

#define SHARDS        64u
#define KEYS          10000u
#define PAYLOAD       100u
#define PRODUCERS_MAX 4u

static char folder[256];
static uv_loop_t loop;
static enum store_sync sync_level;
static uint8_t payload[PAYLOAD];

static void row(const char *what, unsigned count, double seconds)
{
        (void)printf("%-8s %-48s %9.0f /s\n", sync_level == STORE_SYNC_FULL ? "FULL" : "NORMAL", what,
                (double)count / seconds);
        (void)fflush(stdout);
}

static void bare_rows(unsigned count)
{
        char path[sizeof(folder) + 16];
        double insert_s;
        double take_s;
        (void)snprintf(path, sizeof(path), "%s/bare.db", folder);
        bare_sqlite(path, sync_level == STORE_SYNC_FULL, count, PAYLOAD, &insert_s, &take_s);
        row("bare SQLite: insert, batches of 100", count, insert_s);
        row("bare SQLite: read + delete, batches of 100", count, take_s);
        row("bare SQLite: both, the bare batch rate", count, insert_s + take_s);
}

/* --- the store --------------------------------------------------------------------------------------------------- */

static unsigned pending;

static void on_done(struct store_request *request)
{
        if (request->status)
                load_die("request", request->error.text);
        pending--;
}

static void wait_all(void)
{
        while (pending)
                (void)uv_run(&loop, UV_RUN_ONCE);
}

static void on_ring(void *self, uint32_t shard);
static void on_look(void *self);

static struct store *open_store(uint8_t who, bool is_host)
{
        static char url[sizeof(folder) + 16];
        static const struct store_bell bell = { .shard = on_ring, .look = on_look };
        struct store_open open = { .request = { .done = on_done },
                .options = { .app = "bench", .shards = SHARDS, .may_create = true, .sync = sync_level } };
        (void)snprintf(url, sizeof(url), "sqlite:%s/q.db", folder);
        open.options.url = url;
        open.options.is_host = is_host;
        open.options.bell = is_host ? &bell : NULL;
        memset(open.options.nonce, who, STORE_NONCE_SIZE);
        (void)uv_loop_init(&loop);
        pending = 1;
        store_open(&loop, &open);
        wait_all();
        return open.store;
}

static void on_closed(void *self)
{
        *(bool *)self = true;
}

static void close_store(struct store *store)
{
        bool is_closed = false;
        store_close(store, on_closed, &is_closed);
        while (!is_closed)
                (void)uv_run(&loop, UV_RUN_ONCE);
        (void)uv_loop_close(&loop);
}

static void submit(struct store *store, unsigned count, unsigned batch)
{
        static struct store_submission items[STORE_SUBMIT_TASKS];
        static char keys[STORE_SUBMIT_TASKS][16];
        unsigned seed = (unsigned)getpid();
        for (unsigned sent = 0; sent < count; sent += batch) {
                for (unsigned i = 0; i < batch; i++) {
                        int size = snprintf(keys[i], sizeof(keys[i]), "user-%u", (unsigned)rand_r(&seed) % KEYS);
                        items[i] = (struct store_submission){ .envelope = { .key = { keys[i], (size_t)size },
                                                                      .handler = { "echo", 4 },
                                                                      .payload = { (char *)payload, PAYLOAD },
                                                                      .lane = LANE_NORMAL } };
                }
                struct store_submit s = { .request = { .done = on_done }, .items = items, .items_count = batch };
                pending++;
                store_submit(store, &s);
                wait_all();
        }
}

/* An owner of all shards: each has one call under way that settles what the last one claimed and claims more. */
struct lane_of_work {
        struct store_advance advance; /* first: done() gets its address */
        struct store_outcome outcomes[STORE_CALL_TASKS];
        char keys[STORE_CALL_TASKS][16];
        char ids[STORE_CALL_TASKS][TASK_ID_MAX + 1];
        unsigned claimed;
        bool is_idle;
        bool has_rung; /* while a call was under way: it may have looked too early */
};

static struct lane_of_work *works;
static struct store *owned;
static unsigned done_count;
static unsigned done_goal;
static unsigned want;
static bool is_fed; /* more will come */

static void advance_again(struct lane_of_work *work)
{
        work->advance.outcomes = work->outcomes;
        work->advance.outcomes_count = work->claimed;
        for (unsigned lane = 0; lane < LANES; lane++)
                work->advance.want[lane] = want;
        work->advance.call++;
        work->is_idle = work->has_rung = false;
        pending++;
        store_advance(owned, &work->advance);
}

static void on_advance(struct store_request *request)
{
        struct lane_of_work *work = (struct lane_of_work *)request;
        on_done(request);
        if (work->advance.verdict != STORE_OK)
                load_die("advance", "fenced");
        done_count += work->claimed;
        work->claimed = work->advance.tasks_count;
        for (unsigned i = 0; i < work->claimed; i++) {
                const struct store_task *t = &work->advance.tasks[i];
                memcpy(work->keys[i], t->key.data, t->key.size);
                memcpy(work->ids[i], t->envelope.id.data, t->envelope.id.size);
                work->outcomes[i] = (struct store_outcome){ .kind = STORE_DONE,
                        .task = { .seq = t->seq,
                                .id = { work->ids[i], t->envelope.id.size },
                                .key = { work->keys[i], t->key.size },
                                .handler = { "echo", 4 } } };
        }
        work->is_idle = true;
        if (done_count < done_goal && (work->claimed || store_has_more(&work->advance) || work->has_rung))
                advance_again(work);
}

static void on_ring(void *self, uint32_t shard)
{
        (void)self;
        if (!works || done_count >= done_goal)
                return;
        if (works[shard].is_idle)
                advance_again(&works[shard]);
        else
                works[shard].has_rung = true;
}

static void on_look(void *self)
{
        for (uint32_t i = 0; i < SHARDS; i++)
                on_ring(self, i);
}

static void own_all(struct store *store, uint64_t epoch)
{
        done_goal = done_count = 0; /* a ring must not start anything yet */
        works = calloc(SHARDS, sizeof(*works));
        if (!works)
                load_die("memory", "none");
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct store_acquire a = { .request = { .done = on_done },
                        .lease = { .shard = i, .epoch = epoch, .ttl_ms = 600000 } };
                memset(a.lease.nonce, 9, STORE_NONCE_SIZE);
                pending++;
                store_acquire(store, &a);
                wait_all();
                works[i].advance.request.done = on_advance;
                works[i].advance.lease = a.lease;
                works[i].advance.call = a.call;
                works[i].is_idle = true;
        }
}

static void on_tick(uv_timer_t *timer)
{
        (void)timer;
}

static void drain(struct store *store, unsigned count, unsigned batch)
{
        owned = store;
        want = batch;
        done_count = 0;
        done_goal = count;
        for (uint32_t i = 0; i < SHARDS; i++) {
                works[i].claimed = 0;
                advance_again(&works[i]);
        }
        /* A store does not keep a loop alive for its doorbell. */
        uv_timer_t tick;
        (void)uv_timer_init(&loop, &tick);
        (void)uv_timer_start(&tick, on_tick, 1000, 1000);
        while (pending || (is_fed && done_count < done_goal))
                (void)uv_run(&loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&tick, NULL);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
}

/* --- the runs ---------------------------------------------------------------------------------------------------- */

static void produce(unsigned count, unsigned batch)
{
        struct store *store = open_store(0, false);
        submit(store, count, batch);
        close_store(store);
}

static void start_producers(unsigned producers, unsigned count, unsigned batch, pid_t *pids)
{
        for (unsigned i = 0; i < producers; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        produce(count / producers, batch);
                        _exit(0);
                }
        }
}

static void wait_producers(unsigned producers, const pid_t *pids)
{
        for (unsigned i = 0; i < producers; i++) {
                int status;
                if (waitpid(pids[i], &status, 0) != pids[i] || status)
                        load_die("producer", "failed");
        }
}

static void submit_row(const char *what, unsigned producers, unsigned count, unsigned batch)
{
        pid_t pids[PRODUCERS_MAX];
        uint64_t start_ns = clock_boot_ns();
        start_producers(producers, count, batch, pids);
        wait_producers(producers, pids);
        row(what, count, load_seconds_since(start_ns));
}

static void drain_row(const char *what, unsigned count, unsigned batch, uint64_t epoch)
{
        struct store *store = open_store(9, true);
        own_all(store, epoch);
        uint64_t start_ns = clock_boot_ns();
        drain(store, count, batch);
        row(what, done_count, load_seconds_since(start_ns));
        close_store(store);
        free(works);
        works = NULL;
}

/* Empties the store for what follows. */
static void drain_all(uint64_t epoch)
{
        struct store *store = open_store(9, true);
        own_all(store, epoch);
        drain(store, UINT32_MAX, 256);
        close_store(store);
        free(works);
        works = NULL;
}

static void both_row(const char *what, unsigned producers, unsigned count, unsigned batch, uint64_t epoch)
{
        pid_t pids[PRODUCERS_MAX];
        start_producers(producers, count, batch, pids); /* before this process has threads */
        struct store *store = open_store(9, true);
        own_all(store, epoch);
        uint64_t start_ns = clock_boot_ns();
        is_fed = true;
        drain(store, count, 64);
        is_fed = false;
        row(what, done_count, load_seconds_since(start_ns));
        close_store(store);
        free(works);
        works = NULL;
        wait_producers(producers, pids);
}

static void size_row(unsigned queued)
{
        char path[sizeof(folder) + 16];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        if (stat(path, &st) == 0)
                (void)printf("%-8s %-48s %9.0f bytes each (%u of them payload)\n", "", "on disk, queued tasks",
                        (double)st.st_size / queued, PAYLOAD);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return strcmp(path, folder) != 0 ? remove(path) : 0;
}

static void run_level(unsigned count)
{
        unsigned singles = sync_level == STORE_SYNC_FULL ? count / 50 : count / 10;
        bare_rows(count);
        produce(1, 1); /* makes the store */
        submit_row("submit, one by one, 1 process", 1, singles, 1);
        submit_row("submit, one by one, 4 processes", 4, singles, 1);
        submit_row("submit, batches of 100, 1 process", 1, count, 100);
        submit_row("submit, batches of 1000, 1 process", 1, count, 1000);
        submit_row("submit, batches of 1000, 4 processes", 4, count, 1000);
        size_row(2 * singles + 3 * count);
        drain_row("claim + commit, 16 a call", count / 2, 16, 1);
        drain_row("claim + commit, 64 a call", count, 64, 2);
        drain_row("claim + commit, 256 a call", count, 256, 3);
        drain_all(3);
        both_row("submit (1000) and claim + commit at once", 1, count, 1000, 4);
        both_row("submit (100) and claim + commit at once", 1, count, 100, 5);
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void run_levels(unsigned count)
{
        sync_level = STORE_SYNC_NORMAL;
        run_level(count);
        sync_level = STORE_SYNC_FULL;
        run_level(count < 16000 ? 4000 : count / 16000 * 4000);
}

/* A child does it, so that the folder goes whatever ends it. */
int main(int argc, char **argv)
{
        unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) / 4000 * 4000 : 200000;
        const char *parent = getenv("TMPDIR");
        int status = 1;
        (void)snprintf(folder, sizeof(folder), "%s/quiver-bench-XXXXXX", parent ? parent : "/tmp");
        if (count < 4000)
                load_die("usage", "bench_sqlite [TASKS], at least 4000");
        if (!mkdtemp(folder))
                load_die(folder, strerror(errno));
        pid_t child = fork();
        if (child == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                run_levels(count);
                return 0;
        }
        (void)signal(SIGINT, SIG_IGN); /* the child has it from the terminal */
        (void)waitpid(child, &status, 0);
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        (void)rmdir(folder);
        return status != 0;
}
