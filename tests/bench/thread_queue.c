/* What seats that sleep can reach at most: threads that take numbers off one queue under a mutex, and sleep for each.
 * bench.py calls it.
 *
 *         thread_queue THREADS SLEEP_US TASKS
 *
 * Prints seconds until all are done, and the CPU seconds that this took.  A producer puts the numbers in, a hundred at
 * a time, and never more than a thousand wait: as a runner's ring is filled. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "load/load.h"

#define THREADS_MAX 1024
#define STEP        100
#define WAITING_MAX 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_tasks = PTHREAD_COND_INITIALIZER, has_room = PTHREAD_COND_INITIALIZER;
static unsigned waiting, left; /* under the lock: in the queue; not taken yet */
static long sleep_us;

/* False: there are no more. */
static bool take(void)
{
        (void)pthread_mutex_lock(&lock);
        while (!waiting && left)
                (void)pthread_cond_wait(&has_tasks, &lock);
        bool is_taken = waiting > 0;
        if (is_taken) {
                waiting--;
                left--;
        }
        if (is_taken && waiting == WAITING_MAX - STEP)
                (void)pthread_cond_signal(&has_room);
        if (!left)
                (void)pthread_cond_broadcast(&has_tasks);
        (void)pthread_mutex_unlock(&lock);
        return is_taken;
}

static void *work(void *self)
{
        struct timespec time = { sleep_us / 1000000, sleep_us % 1000000 * 1000 };
        (void)prctl(PR_SET_TIMERSLACK, 1ul); /* as the plugin that it is compared with does */
        while (take())
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        return self;
}

static void produce(unsigned tasks)
{
        while (tasks) {
                unsigned count = tasks < STEP ? tasks : STEP;
                (void)pthread_mutex_lock(&lock);
                while (waiting > WAITING_MAX - STEP)
                        (void)pthread_cond_wait(&has_room, &lock);
                waiting += count;
                (void)pthread_cond_broadcast(&has_tasks);
                (void)pthread_mutex_unlock(&lock);
                tasks -= count;
        }
}

int main(int argc, char **argv)
{
        static pthread_t threads[THREADS_MAX];
        struct rusage usage;
        unsigned count = argc == 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
        if (!count || count > THREADS_MAX)
                load_die("usage", "thread_queue THREADS SLEEP_US TASKS: see its source");
        sleep_us = strtol(argv[2], NULL, 10);
        left = (unsigned)strtoul(argv[3], NULL, 10);
        uint64_t start_ns = clock_boot_ns();
        unsigned tasks = left;
        for (unsigned i = 0; i < count; i++)
                if (pthread_create(&threads[i], NULL, work, NULL))
                        load_die("thread_queue", "cannot start a thread");
        produce(tasks);
        for (unsigned i = 0; i < count; i++)
                (void)pthread_join(threads[i], NULL);
        (void)getrusage(RUSAGE_SELF, &usage);
        (void)printf("%.6f %.6f\n", load_seconds_since(start_ns),
                (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
        return 0;
}
