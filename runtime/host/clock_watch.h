/* clock_watch.h: wakes the loop when somebody sets the wall clock: what is due by it may be due now. */
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

/* Without it schedules notice a step of the clock at the next turn of the loop: a failure is no error. */
void clock_watch_open(struct clock_watch *watch, uv_loop_t *loop);
void clock_watch_close(struct clock_watch *watch);

#endif
