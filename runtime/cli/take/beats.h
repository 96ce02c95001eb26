/* beats.h: a thread that sends a task's heartbeats, so that a host that does not answer holds up nothing else. */
#ifndef QUIVER_CLI_TAKE_BEATS_H
#define QUIVER_CLI_TAKE_BEATS_H

#include <pthread.h>
#include <quiver/client.h>
#include <stdbool.h>

/* What the heartbeats have brought. */
struct beats_news {
        uint64_t deadline_ms; /* clock_boot_ms() up to which the task is this worker's */
        bool is_stop;         /* the task was cancelled, or its timeout is over */
        bool is_over;         /* the start is over */
};

struct beats {
        const char *state;
        const struct qv_client_work *work;
        int fd; /* readable when there is news; -1: none could be made */
        pthread_t thread;
        bool has_thread;

        pthread_mutex_t lock; /* what follows */
        pthread_cond_t wake;
        struct beats_news news;
        bool is_ending;
};

/* Without a thread the task is kept for as long as it was handed out. */
void beats_start(struct beats *b, const char *state, const struct qv_client_work *work, uint64_t deadline_ms);
/* Empties the descriptor. */
struct beats_news beats_read(struct beats *b);
void beats_stop(struct beats *b);

#endif
