/* pack.h: a task on its way to a runner, and the answer on its way back, as bytes.
 *
 * Both sides of the ring use these structs; only pack.c knows their layout in memory. */
#ifndef QUIVER_RING_PACK_H
#define QUIVER_RING_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/layout.h"

/* How a task ended.  The handler returns one of the first six; the runner or the host sets the others. */
enum outcome {
        OUTCOME_DONE = QV_DONE,
        OUTCOME_RETRY = QV_RETRY,
        OUTCOME_REJECT = QV_REJECT,
        OUTCOME_UNAVAILABLE = QV_UNAVAILABLE,
        OUTCOME_LATER = QV_LATER,
        OUTCOME_LIMITED = QV_LIMITED,
        OUTCOME_CRASHED = 16,     /* the handler died; costs one crash */
        OUTCOME_TIMED_OUT = 17,   /* the handler did not stop at its timeout; costs one crash */
        OUTCOME_INTERRUPTED = 18, /* Quiver ended it (shutdown, a neighbour's crash, a lost lease); costs nothing */
};

/* "DONE", "TIMED_OUT", …; "UNKNOWN" for anything else. */
const char *outcome_name(int outcome);

/* A task as the host submits it to a runner.  Pointers are borrowed: from the caller when packing, from the packed
 * bytes after unpacking.  Texts are never NULL. */
struct ring_task {
        const char *id;
        const char *key;
        const char *handler;
        uint32_t attempt;
        uint32_t lease; /* index into the lease page (leases.h) */
        uint64_t fence_epoch;
        uint64_t fence_start;
        uint64_t timeout_ms; /* counted from the start; 0: none */
        uint64_t submitted_ms;
        uint32_t attempts_max;
        uint32_t crashes;
        int32_t lane;        /* as in struct qv_task */
        const void *headers; /* packed by ring_put_header() */
        size_t headers_size; /* 0: none */
        const void *checkpoint;
        size_t checkpoint_size;
        const void *payload; /* after unpacking, a NUL follows it */
        size_t payload_size;
};

/* An answer, and everything that is committed with it. */
struct ring_reply {
        uint64_t ticket;
        int32_t outcome; /* enum outcome */
        uint64_t started_ns;
        uint64_t ended_ns; /* CLOCK_BOOTTIME; both are 0 if the task never ran */
        bool has_result;
        bool has_retry_after;
        bool has_checkpoint;
        uint64_t retry_after_ms;
        const char *error; /* "" if none was given */
        const void *result;
        size_t result_size;
        const void *submits; /* follow-ups, read with ring_next_submit() */
        size_t submits_size;
        uint32_t submits_count;
        const void *checkpoint;
        size_t checkpoint_size;
};

/* A follow-up inside an answer. */
struct ring_submit {
        const char *handler;
        const char *key; /* "": none */
        int32_t lane;
        uint64_t delay_ms;
        bool is_merge;
        uint64_t debounce_ms;
        const void *headers; /* as in ring_task */
        size_t headers_size;
        const void *payload;
        size_t payload_size;
};

/* The size of the packed form. */
size_t ring_task_size(const struct ring_task *task);
size_t ring_reply_size(const struct ring_reply *reply);

/* Writes exactly ring_…_size() bytes to `to`. */
void ring_pack_task(uint8_t *to, const struct ring_task *task);
void ring_pack_reply(uint8_t *to, const struct ring_reply *reply);

/* Unpacks; every length is checked against `size`.  0 or -EBADMSG. */
int ring_unpack_task(const uint8_t *from, size_t size, struct ring_task *ret);
int ring_unpack_reply(const uint8_t *from, size_t size, struct ring_reply *ret);

struct buffer;
struct reader;

/* A header as it goes through the ring, both ways. */
struct ring_task_header {
        const char *name;
        const char *value; /* value_size bytes, and a NUL that is not counted */
        size_t value_size;
        bool is_bytes; /* submitted as bytes, which need not be text */
};
void ring_put_header(struct buffer *to, const struct ring_task_header *header);
/* 0, or -EBADMSG. */
int ring_next_header(struct reader *from, struct ring_task_header *ret);

/* ring_put_submit() appends a follow-up to a buffer that becomes reply.submits; ring_next_submit() reads the next one
 * (0, or -EBADMSG). */
void ring_put_submit(struct buffer *to, const struct ring_submit *submit);
int ring_next_submit(struct reader *from, struct ring_submit *ret);

#endif
