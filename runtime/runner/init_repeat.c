#include "runner/init_repeat.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "runner/seat.h"

/* One-time allocations (locales, resolver, caches) are no leak.  They are made during the first WARM_UPS rehearsals,
 * which are not measured and end after WARM_UP_NS. */
#define WARM_UPS     8
#define WARM_UP_NS   (2 * NS_PER_S)
#define QUARTERS     4
#define SETTLE_TRIES 200 /* one millisecond each: time for threads that are about to end */

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

/* The resources that the process holds. */
struct holdings {
        uint64_t bytes, descriptors, threads;
};

static uint64_t allocated_bytes(void)
{
#ifdef __SANITIZE_ADDRESS__
        return __sanitizer_get_current_allocated_bytes();
#else
        struct mallinfo2 info = mallinfo2();
        return info.uordblks + info.hblkhd;
#endif
}

static uint64_t count_entries(const char *folder)
{
        uint64_t count = 0;
        DIR *dir = opendir(folder);
        if (!dir)
                return 0;
        for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                count += entry->d_name[0] != '.';
        (void)closedir(dir);
        return count;
}

/* Waits for the count to fall to `expected`: a thread that has ended stays in /proc/self/task for a moment. */
static uint64_t count_threads(uint64_t expected)
{
        uint64_t count = count_entries("/proc/self/task");
        for (int i = 0; i < SETTLE_TRIES && count > expected; i++) {
                (void)nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
                count = count_entries("/proc/self/task");
        }
        return count;
}

static struct holdings take_stock(uint64_t expected_threads)
{
        uint64_t threads = count_threads(expected_threads);
        return (struct holdings){
                .bytes = allocated_bytes(), .descriptors = count_entries("/proc/self/fd"), .threads = threads
        };
}

static int open_and_close(struct runner *runner, uint32_t number, struct error *error)
{
        struct seat seat;
        int r = seat_open(&seat, runner, 0, error);
        if (r == 0)
                seat_close(&seat);
        seat_free(&seat);
        return r < 0 && number > 1 ? error_prefix(error, r, "init worked before, but not the time number %u", number)
                                   : r;
}

/* A run of several rehearsals. */
struct part {
        struct runner *runner;
        uint32_t done; /* rehearsals of all parts so far */
        uint32_t count;
        uint64_t most_ns; /* no rehearsal begins after this time; 0: no limit */
        uint64_t taken_ns;
        int status;
        struct error *error;
};

static void *run_part(void *arg)
{
        struct part *p = arg;
        uint64_t begun_ns = clock_boot_ns();
        p->status = p->taken_ns = 0;
        for (uint32_t i = 0; i < p->count && !p->status && (!p->most_ns || p->taken_ns < p->most_ns); i++) {
                p->status = open_and_close(p->runner, ++p->done, p->error);
                p->taken_ns = clock_boot_ns() - begun_ns;
        }
        return NULL;
}

/* Runs on a thread of its own: malloc keeps memory that a thread has freed in that thread's cache and counts it as in
 * use until the thread ends. */
static int run(struct part *p)
{
        pthread_t thread;
        int r = pthread_create(&thread, NULL, run_part, p);
        if (r)
                return error_set(p->error, -r, "cannot start a thread: %s", strerror(r));
        (void)pthread_join(thread, NULL);
        return p->status;
}

/* Runs the warm-up and returns how many more rehearsals the time allows: a multiple of QUARTERS, and at least that. */
static int warm_up(struct part *p, uint32_t *ret_count)
{
        p->count = WARM_UPS;
        p->most_ns = WARM_UP_NS;
        int r = run(p);
        if (r < 0)
                return r;
        uint64_t affordable = REHEARSAL_MS * NS_PER_MS / (p->taken_ns / p->done + 1);
        uint64_t wanted = p->runner->start.rehearsals;
        uint64_t count = min_u64(wanted, affordable) / QUARTERS * QUARTERS;
        *ret_count = count < QUARTERS ? QUARTERS : (uint32_t)count;
        return 0;
}

/* The total growth if the value grew in almost every quarter, else 0: a single step or a fluctuation is no leak. */
static uint64_t steady_growth(const struct holdings stock[QUARTERS + 1], size_t field)
{
        uint64_t values[QUARTERS + 1];
        int grown = 0;
        for (int i = 0; i <= QUARTERS; i++)
                memcpy(&values[i], (const char *)&stock[i] + field, sizeof(values[i]));
        for (int i = 0; i < QUARTERS; i++)
                grown += values[i + 1] > values[i];
        return grown >= QUARTERS - 1 && values[QUARTERS] > values[0] ? values[QUARTERS] - values[0] : 0;
}

int init_repeat(struct runner *runner, struct rehearsal *ret, struct error *error)
{
        struct holdings stock[QUARTERS + 1];
        uint64_t threads = count_entries("/proc/self/task");
        struct part part = { .runner = runner, .error = error };
        uint32_t count = 0;
        int r = warm_up(&part, &count);
        if (r < 0)
                return r;
        part.count = count / QUARTERS;
        part.most_ns = 0;
        stock[0] = take_stock(threads);
        for (int quarter = 1; quarter <= QUARTERS; quarter++) {
                r = run(&part);
                if (r < 0)
                        return r;
                stock[quarter] = take_stock(stock[quarter - 1].threads);
        }
        *ret = (struct rehearsal){ .constructor_bytes = ret->constructor_bytes,
                .constructor_threads = ret->constructor_threads,
                .count = count,
                .bytes = steady_growth(stock, offsetof(struct holdings, bytes)),
                .descriptors = steady_growth(stock, offsetof(struct holdings, descriptors)),
                .threads = steady_growth(stock, offsetof(struct holdings, threads)) };
        return 0;
}
