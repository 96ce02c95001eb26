/* clock_watch.h: wakes the loop when somebody sets the wall clock, because schedules may be due at once. */
#ifndef QUIVER_HOST_CLOCK_WATCH_H
#define QUIVER_HOST_CLOCK_WATCH_H

#include <stdbool.h>
#include <uv.h>

/* Zero-initialised is closed. */
struct clock_watch {
        uv_poll_t poll;
        int fd;
        bool is_open;
};

/* A failure is not reported: without the watch, schedules notice a clock step at the loop's next turn. */
void clock_watch_open(struct clock_watch *watch, uv_loop_t *loop);
void clock_watch_close(struct clock_watch *watch);

#endif
