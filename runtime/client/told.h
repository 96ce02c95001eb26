/* told.h: a queue of events from the client's thread to the program. */
#ifndef QUIVER_CLIENT_TOLD_H
#define QUIVER_CLIENT_TOLD_H

#include <pthread.h>
#include <quiver/client.h>

#include "base/span.h"

struct told_event;

struct told {
        pthread_mutex_t lock;
        pthread_cond_t came;
        struct told_event *events;
        int fd; /* an eventfd: readable while there are events */
};

/* 0, or -errno if no descriptor is left. */
int told_init(struct told *told);
void told_free(struct told *told);

/* For the client's thread. */
void told_add(struct told *told, enum qv_client_notice_kind kind, uint64_t token, const char *name, struct span data);
/* For the program's thread.  -EAGAIN: nothing came within that time. */
int told_next(struct told *told, uint64_t timeout_ms, struct qv_client_notice **ret_notice);

#endif
