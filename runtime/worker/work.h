/* work.h: how workers are served: they ask for a task, and report on it.  The interface between http/, which talks to
 * workers, and host/remote/, which has the tasks.
 *
 * Both structs are embedded in the caller's and must stay valid until done() was called: exactly once, on the loop,
 * never inside the starting call.  Its arguments are borrowed until it returns. */
#ifndef QUIVER_WORKER_WORK_H
#define QUIVER_WORKER_WORK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "worker/fence.h"
#include "worker/report.h"

struct lent;

/* A task as a worker gets it. */
struct work_task {
        struct span id, key, handler, payload, checkpoint;
        struct span headers;   /* lines, read with header_next() */
        uint32_t attempt;      /* 1: the first */
        uint32_t attempts_max; /* 0: unknown */
        uint32_t crashes;
        uint64_t submitted_ms; /* store time; 0: unknown */
        struct work_fence fence;
        uint64_t remaining_ms; /* the worker must stop after this time unless a heartbeat extends it */
        uint64_t ttl_ms;       /* the time that a heartbeat gives; send one every third of it */

        /* For another host, which passes the task to its own seat or worker. */
        uint32_t shard;
        uint64_t timeout_ms; /* 0: none */
        enum lane lane;
};

/* Texts are plain if they are UTF-8, else in base64 under NAME_base64.  The caller owns the result. */
json_t *work_task_json(const struct work_task *task);

enum work_verdict {
        WORK_TASK,       /* poll: a task */
        WORK_NONE,       /* poll: none came in time */
        WORK_NO_HANDLER, /* poll: this host has no such handler, or the handler has a plugin */
        WORK_STOPPING,   /* poll: the host stops; ask another one */
        WORK_TAKEN,      /* report: taken, and durable */
        WORK_STALE,      /* report: not the current start of the task */
        WORK_ELSEWHERE,  /* report: another host owns the task; send it to the shard's control list */
        WORK_UNKNOWN,    /* report: the host lost the shard meanwhile and does not know; report again */
        WORK_REFUSED,    /* report: the handler's settings do not allow it; the text says why */
};

/* A worker's long poll for a task. */
struct work_poll {
        const char *handler;
        const char *worker; /* accepted by worker_name_check() */
        uint64_t wait_ms;   /* 0: do not wait */
        bool is_foreign;    /* another host asks, for its own seat (is_seat) or for a worker that polls there */
        bool is_seat;
        uint8_t nonce[STORE_NONCE_SIZE]; /* is_foreign: of that host */
        void (*done)(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task);

        /* private to host/remote */
        struct work_poll *prev, *next;
        uint64_t until_ms;
        struct lent *lent; /* the task whose start is being recorded for this poll */
};

/* A worker's report on a task. */
struct work_saying {
        uint32_t shard;
        struct span id;
        const struct work_report *report; /* borrowed until say() returns */
        void (*done)(struct work_saying *saying);

        enum work_verdict verdict;
        char text[256];        /* WORK_REFUSED: why */
        uint64_t remaining_ms; /* heartbeat: how long the worker may go on */
        bool is_stop;          /* heartbeat: stop, because a person cancelled the task or its timeout has passed */

        /* private to host/remote */
        struct work_saying *next;
};

/* What a host provides for workers. */
struct work_services {
        void (*take)(void *self, struct work_poll *poll);
        /* The worker is gone: done() will not be called, and no task goes to it. */
        void (*leave)(void *self, struct work_poll *poll);
        /* False: the verdict is set, and done() will not be called. */
        bool (*say)(void *self, struct work_saying *saying);
        /* The ttl of that handler on this host; 0: no such handler. */
        uint64_t (*ttl_ms)(void *self, const char *handler);
        void *self;
};

#endif
