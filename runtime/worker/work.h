/* work.h: how a worker is served: it asks for a task, and says how it goes.  Between whoever talks to workers (http/)
 * and the host that has tasks (host/remote/).
 *
 * Both structs are embedded in the caller's and stay until done() was called: exactly once, on the loop, never inside
 * the starting call.  What it is given is borrowed until it returns. */
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
        uint32_t attempts_max; /* 0: not known */
        uint32_t crashes;
        uint64_t submitted_ms; /* store time; 0: not known */
        struct work_fence fence;
        uint64_t remaining_ms; /* the worker stops by itself when they are over, unless a heartbeat gives it more */
        uint64_t ttl_ms;       /* what a heartbeat gives; it is worth one every third of this */

        /* For another host, which hands it to a seat or a worker of its own. */
        uint32_t shard;
        uint64_t timeout_ms; /* 0: none */
        enum lane lane;
};

/* The caller's; every text as text if it is UTF-8, else in base64 under NAME_base64. */
json_t *work_task_json(const struct work_task *task);

enum work_verdict {
        WORK_TASK,       /* poll: here is one */
        WORK_NONE,       /* poll: there was none in time */
        WORK_NO_HANDLER, /* poll: this host has no such handler, or it has a plugin of its own */
        WORK_STOPPING,   /* poll: the host stops; ask another one */
        WORK_TAKEN,      /* report: done, and durable */
        WORK_STALE,      /* report: that is not the current start of the task */
        WORK_ELSEWHERE,  /* report: the task is another host's; give it to the shard's control list */
        WORK_UNKNOWN,    /* report: the host lost the shard meanwhile, and does not know; say it again */
        WORK_REFUSED,    /* report: it is not what its handler allows; the text says why */
};

/* A worker's long poll for a task. */
struct work_poll {
        const char *handler;
        const char *worker; /* its name, good by worker_name_check() */
        uint64_t wait_ms;   /* 0: take what is there now */
        bool is_foreign;    /* another host asks, for a seat of its own (is_seat) or for a worker that polls there */
        bool is_seat;
        uint8_t nonce[STORE_NONCE_SIZE]; /* is_foreign: which host */
        void (*done)(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task);

        /* private to host/remote */
        struct work_poll *prev, *next;
        uint64_t until_ms;
        struct lent *lent; /* its start is being recorded */
};

/* What a worker says about a task. */
struct work_saying {
        uint32_t shard;
        struct span id;
        const struct work_report *report; /* until say() returns */
        void (*done)(struct work_saying *saying);

        enum work_verdict verdict;
        char text[256];        /* WORK_REFUSED: why */
        uint64_t remaining_ms; /* of a heartbeat: the worker may go on for so long */
        bool is_stop;          /* of a heartbeat: a person cancelled the task, or its timeout is over */

        /* private to host/remote */
        struct work_saying *next;
};

/* Who serves workers. */
struct work_services {
        void (*take)(void *self, struct work_poll *poll);
        /* The worker is gone: done() is not called any more, and no task goes to it. */
        void (*leave)(void *self, struct work_poll *poll);
        /* False: the verdict is there at once, and done() is not called. */
        bool (*say)(void *self, struct work_saying *saying);
        /* The ttl of that handler here; 0: no such handler. */
        uint64_t (*ttl_ms)(void *self, const char *handler);
        void *self;
};

#endif
