/* driver.h: what a store driver implements.  Included by store.c and the drivers, by nobody else. */
#ifndef QUIVER_STORE_DRIVER_H
#define QUIVER_STORE_DRIVER_H

#include "store/admin.h"
#include "store/arena.h"
#include "store/results.h"
#include "store/store.h"

enum store_op {
        OP_OPEN,
        OP_SUBMIT,
        OP_ACQUIRE,
        OP_IN_FLIGHT,
        OP_ADVANCE,
        OP_RENEW,
        OP_RELEASE,
        OP_FORWARD,
        OP_CONSUME,
        OP_COMMIT,
        OP_REPLY,
        OP_COUNT,
        OP_LIST,
        OP_FIND,
        OP_CANCEL,
        OP_DEAD,
        OP_KEYS,
        OP_KEY_ACT,
        OP_DESIRED_GET,
        OP_DESIRED_SET,
        OP_STATUS_PUT,
        OP_STATUS_LIST,
        OP_IMPORT,
        OP_FSCK,
        OPS
};

struct store_driver {
        const char *scheme; /* of the URL, up to its colon or plus */
        /* Makes a store from open->options and finishes the request. */
        void (*open)(struct uv_loop_s *loop, struct store_open *open);
        /* Executes a request that store.c has checked.  If its status is negative already, it only has to be finished.
         */
        void (*start)(struct store *store, struct store_request *request);
        void (*close)(struct store *store, void (*closed)(void *self), void *self);
        /* Appends an envelope as this store keeps it, up to and without the payload.  NULL: as text. */
        void (*put_head)(struct buffer *to, const struct envelope *envelope, uint32_t shard);
};

extern const struct store_driver sqlite_driver, redis_driver;

/* Drivers embed this first and fill it in before open is finished. */
struct store {
        const struct store_driver *driver;
        char *app;
        char *coordination;
        char *durability;
        char refuses[512]; /* as in store_info */
        uint32_t shards;
        uint32_t calls_max; /* as in store_info */
        uint64_t payload_max;
        uint64_t backlog_max;
        uint64_t results_max;
        uint64_t results_age_ms;
};

/* An envelope ready to be appended; its bytes, as the driver puts them, stand in the request's arena. */
struct store_prepared {
        struct span bytes;
        struct span id;
        struct span key; /* empty: none */
        struct span handler;
        uint32_t shard;
        enum lane lane;
        uint64_t not_before_ms;
        uint64_t delay_ms;
        uint64_t unique_ms;
};

/* The arena of the request's reply. */
struct arena_chunk **request_arena(struct store_request *request);

/* Calls done() and frees the reply.  On the loop only.  The request must not be touched afterwards. */
void request_finish(struct store_request *request, int status);
/* All of a list, since the store is closed. */
void requests_cancel(struct store_request *list);

/* Fills the driver-independent part of a store from options, with defaults for what is zero. */
void store_set_limits(struct store *store, const struct store_options *options);

/* The second half of store_task_read(), for a task whose envelope is filled in: what is wrong with it for that shard.
 */
int store_task_place(const struct store *store, uint32_t shard, struct arena_chunk **arena, struct store_task *task,
        struct error *error);

/* A task as it stands in a log: its bytes, and the seq it has or will have.  Fills id (made from the seq if the
 * envelope has none) and key.  0, or -EBADMSG / -EPROTO / -EMSGSIZE (too long) /
 * -EXDEV (another shard's) with the reason. */
int store_task_read(const struct store *store, uint32_t shard, uint64_t seq, struct span bytes,
        struct arena_chunk **arena, struct store_task *ret_task, struct error *error);

/* What is recorded as the reason of a task for which that returned an error. */
struct span store_set_aside_reason(int error);

/* Says that the shard does not have the chunk before; the request then ends with -EAGAIN. */
void import_refuse(struct store_import *import);

/* The name a request's error text begins with: "submit", "advance", … */
const char *store_op_name(unsigned op);

#endif
