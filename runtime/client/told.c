#include "client/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"

struct told_event {
        struct qv_client_notice event; /* must be first: the program has a pointer to it */
        struct told_event *prev, *next;
        char *name, *data;
};

int told_init(struct told *told)
{
        pthread_condattr_t attributes;
        *told = (struct told){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
        if (told->fd < 0)
                return -errno;
        (void)pthread_mutex_init(&told->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&told->came, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        return 0;
}

void qv_client_notice_free(struct qv_client_notice *notice)
{
        struct told_event *own = (struct told_event *)notice;
        if (!own)
                return;
        free(own->name);
        free(own->data);
        free(own);
}

void told_free(struct told *told)
{
        while (told->events) {
                struct told_event *first = told->events;
                DL_DELETE(told->events, first);
                qv_client_notice_free(&first->event);
        }
        (void)pthread_cond_destroy(&told->came);
        (void)pthread_mutex_destroy(&told->lock);
        (void)close(told->fd);
}

void told_add(struct told *told, enum qv_client_notice_kind kind, uint64_t token, const char *name, struct span data)
{
        struct told_event *own = memory_zero(1, sizeof(*own));
        uint64_t one = 1;
        own->name = text_copy(name);
        own->data = text_copy_part(data.size ? data.data : "", data.size);
        own->event = (struct qv_client_notice){ .size = sizeof(own->event),
                .kind = kind,
                .token = token,
                .name = own->name,
                .data = own->data,
                .data_size = data.size };
        (void)pthread_mutex_lock(&told->lock);
        DL_APPEND(told->events, own);
        ssize_t n = write(told->fd, &one, sizeof(one));
        (void)n;
        (void)pthread_cond_signal(&told->came);
        (void)pthread_mutex_unlock(&told->lock);
}

static struct timespec after(uint64_t timeout_ms)
{
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + timeout_ms % 1000 * NS_PER_MS;
        until.tv_sec += (time_t)min_u64(timeout_ms / 1000, 365 * 86400) + (time_t)(ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
        return until;
}

int told_next(struct told *told, uint64_t timeout_ms, struct qv_client_notice **ret_notice)
{
        struct timespec until = after(timeout_ms);
        int r = 0;
        (void)pthread_mutex_lock(&told->lock);
        while (!told->events && timeout_ms && r != ETIMEDOUT)
                r = pthread_cond_timedwait(&told->came, &told->lock, &until);
        struct told_event *first = told->events;
        if (first)
                DL_DELETE(told->events, first);
        uint64_t count;
        if (!told->events && read(told->fd, &count, sizeof(count)) < 0)
                count = 0;
        (void)pthread_mutex_unlock(&told->lock);
        if (!first)
                return -EAGAIN;
        *ret_notice = &first->event;
        return 0;
}
