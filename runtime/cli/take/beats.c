#include "cli/take/beats.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/thread_signals.h"
#include "client/take.h"

#define TRY_MIN_MS UINT64_C(50)

/* With the lock; true: it is time, false: it ends. */
static bool wait_ms(struct beats *b, uint64_t ms)
{
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + ms % 1000 * NS_PER_MS;
        until.tv_sec += (time_t)(ms / 1000 + ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
        while (!b->is_ending)
                if (pthread_cond_timedwait(&b->wake, &b->lock, &until) == ETIMEDOUT)
                        return true;
        return false;
}

static void *run(void *self)
{
        struct beats *b = self;
        uint64_t every_ms = max_u64(b->work->ttl_ms / 3, TRY_MIN_MS);
        uint64_t pause_ms = every_ms;
        (void)pthread_mutex_lock(&b->lock);
        while (!b->news.is_over && wait_ms(b, pause_ms)) {
                const struct qv_client_heartbeat plain = QV_CLIENT_HEARTBEAT_INIT;
                struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
                (void)pthread_mutex_unlock(&b->lock);
                /* Counted from before the question: the answer may have been on its way for long. */
                uint64_t sent_ms = clock_boot_ms();
                int r = keep_work(b->state, b->work, &plain, min_u64(every_ms, KEEP_TIMEOUT_MS), &kept, NULL);
                (void)pthread_mutex_lock(&b->lock);
                if (r == 0)
                        b->news.deadline_ms = sent_ms + kept.remaining_ms;
                b->news.is_stop = b->news.is_stop || (r == 0 && kept.stop);
                b->news.is_over = r == -ESTALE;
                /* One that was not heard is repeated soon: there is time for several before the task's is over. */
                pause_ms = r == 0 ? every_ms : max_u64(every_ms / 4, TRY_MIN_MS);
                (void)eventfd_write(b->fd, 1);
        }
        (void)pthread_mutex_unlock(&b->lock);
        return NULL;
}

void beats_start(struct beats *b, const char *state, const struct qv_client_work *work, uint64_t deadline_ms)
{
        pthread_condattr_t attributes;
        sigset_t all, before;
        *b = (struct beats){ .state = state, .work = work, .news.deadline_ms = deadline_ms };
        b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        (void)pthread_mutex_init(&b->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&b->wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        thread_signals_of_others(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        b->has_thread = pthread_create(&b->thread, NULL, run, b) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct beats_news beats_read(struct beats *b)
{
        eventfd_t count;
        (void)eventfd_read(b->fd, &count);
        (void)pthread_mutex_lock(&b->lock);
        struct beats_news news = b->news;
        (void)pthread_mutex_unlock(&b->lock);
        return news;
}

void beats_stop(struct beats *b)
{
        (void)pthread_mutex_lock(&b->lock);
        b->is_ending = true;
        (void)pthread_cond_signal(&b->wake);
        (void)pthread_mutex_unlock(&b->lock);
        if (b->has_thread)
                (void)pthread_join(b->thread, NULL);
        (void)pthread_cond_destroy(&b->wake);
        (void)pthread_mutex_destroy(&b->lock);
        if (b->fd >= 0)
                (void)close(b->fd);
}
