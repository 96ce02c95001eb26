#include "host/clock_watch.h"

#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define FAR_AWAY_S (INT64_C(100) * 366 * 86400)

/* Arms a timer that never fires: TFD_TIMER_CANCEL_ON_SET makes the descriptor readable when the wall clock is set. */
static int arm(int fd)
{
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        struct itimerspec at = { .it_value.tv_sec = now.tv_sec + FAR_AWAY_S };
        return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL);
}

/* The wakeup itself is the effect: the loop looks for due times again. */
static void on_set(uv_poll_t *poll, int status, int events)
{
        const struct clock_watch *watch = poll->data;
        uint64_t count;
        (void)status;
        (void)events;
        (void)!read(watch->fd, &count, sizeof(count));
        (void)arm(watch->fd);
}

void clock_watch_open(struct clock_watch *watch, uv_loop_t *loop)
{
        watch->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (watch->fd < 0)
                return;
        if (arm(watch->fd) < 0 || uv_poll_init(loop, &watch->poll, watch->fd) < 0) {
                (void)close(watch->fd);
                return;
        }
        watch->is_open = true;
        watch->poll.data = watch;
        (void)uv_poll_start(&watch->poll, UV_READABLE, on_set);
}

static void on_closed(uv_handle_t *handle)
{
        const struct clock_watch *watch = handle->data;
        (void)close(watch->fd);
}

void clock_watch_close(struct clock_watch *watch)
{
        if (!watch->is_open)
                return;
        watch->is_open = false;
        uv_close((uv_handle_t *)&watch->poll, on_closed);
}
