/* driver.h: what a store driver implements.  Included by store.c and the drivers, by nobody else. */
#ifndef QUIVER_STORE_DRIVER_H
#define QUIVER_STORE_DRIVER_H

#include "base/arena.h"
#include "store/admin.h"
#include "store/app.h"
#include "store/idempotency.h"
#include "store/limits.h"
#include "store/mail.h"
#include "store/names.h"
#include "store/reports.h"
#include "store/results.h"
#include "store/rights.h"
#include "store/rooms.h"
#include "store/schedules.h"
#include "store/store.h"

/* What must be true when an operation is answered; a driver may do more. */
enum store_kind {
        STORE_READ,    /* nothing was written: a snapshot will do */
        STORE_RELAXED, /* a power failure may undo it: the lease it belongs to is over then anyway */
        STORE_DURABLE  /* as durable as the store was configured to be */
};

/* Every operation, named once: its number is OP_NUMBER, a driver's function for it DRIVER_FUNCTION(), and TEXT is what
 * an error of it begins with. */
#define STORE_OPERATIONS(X)                                                                                            \
        X(SUBMIT, submit, "submit", STORE_DURABLE)                                                                     \
        X(ACQUIRE, acquire, "acquire", STORE_RELAXED)                                                                  \
        X(IN_FLIGHT, in_flight, "in flight", STORE_RELAXED)                                                            \
        X(ADVANCE, advance, "advance", STORE_DURABLE)                                                                  \
        X(RENEW, renew, "renew", STORE_RELAXED)                                                                        \
        X(RELEASE, release, "release", STORE_RELAXED)                                                                  \
        X(WAKE, wake, "wake", STORE_RELAXED)                                                                           \
        X(NAMES, names, "names", STORE_READ)                                                                           \
        X(FORWARD, forward, "forward", STORE_READ)                                                                     \
        X(CONSUME, consume, "consume", STORE_RELAXED)                                                                  \
        X(COMMIT, commit, "commit", STORE_DURABLE)                                                                     \
        X(REPLY, reply, "reply", STORE_RELAXED)                                                                        \
        X(COUNT, count, "count", STORE_READ)                                                                           \
        X(LIST, list, "list", STORE_READ)                                                                              \
        X(FIND, find, "find", STORE_READ)                                                                              \
        X(CANCEL, cancel_task, "cancel", STORE_DURABLE)                                                                \
        X(RESCHEDULE, reschedule, "reschedule", STORE_DURABLE)                                                         \
        X(MOVE, move, "move", STORE_DURABLE)                                                                           \
        X(DEAD, dead, "dead", STORE_DURABLE)                                                                           \
        X(DEAD_GROUPS, dead_groups, "dead", STORE_READ)                                                                \
        X(KEYS, keys, "keys", STORE_READ)                                                                              \
        X(KEY_ACT, key_act, "key", STORE_DURABLE)                                                                      \
        X(REPORT, report, "report", STORE_DURABLE)                                                                     \
        X(DESIRED_GET, desired_get, "desired state", STORE_READ)                                                       \
        X(DESIRED_SET, desired_set, "desired state", STORE_DURABLE)                                                    \
        X(STATUS_PUT, status_put, "status", STORE_RELAXED)                                                             \
        X(STATUS_LIST, status_list, "status", STORE_READ)                                                              \
        X(POST, post, "post", STORE_RELAXED)                                                                           \
        X(MAIL_TAKE, mail_take, "mail", STORE_RELAXED)                                                                 \
        X(WANTING_SET, wanting_set, "wanting", STORE_RELAXED)                                                          \
        X(WANTING_LIST, wanting_list, "wanting", STORE_READ)                                                           \
        X(ROOM_SET, room_set, "room set", STORE_DURABLE)                                                               \
        X(ROOM_APPEND, room_append, "room append", STORE_DURABLE)                                                      \
        X(ROOM_READ, room_read, "room read", STORE_RELAXED)                                                            \
        X(ROOM_TRUNCATE, room_truncate, "room truncate", STORE_DURABLE)                                                \
        X(ROOM_DELETE, room_delete, "room delete", STORE_DURABLE)                                                      \
        X(ROOM_LIST, room_list, "room list", STORE_READ)                                                               \
        X(IMPORT, import, "load", STORE_DURABLE)                                                                       \
        X(REMEMBERED_LIST, remembered_list, "idempotency", STORE_READ)                                                 \
        X(FSCK, fsck, "fsck", STORE_READ)                                                                              \
        X(APP_GET, app_get, "app", STORE_READ)                                                                         \
        X(APP_SET, app_set, "app", STORE_DURABLE)                                                                      \
        X(LIMIT_TAKE, limit_take, "limit", STORE_RELAXED)                                                              \
        X(LIMIT_LOOK, limit_look, "limit", STORE_READ)                                                                 \
        X(SCHEDULE_SET, schedule_set, "schedule", STORE_DURABLE)                                                       \
        X(SCHEDULE_LIST, schedule_list, "schedule", STORE_READ)                                                        \
        X(FIRES, fires, "fire", STORE_DURABLE)

#define STORE_OPERATION_NUMBER(number, function, text, kind) OP_##number,
enum store_op { OP_OPEN, STORE_OPERATIONS(STORE_OPERATION_NUMBER) OPS };

struct store_driver {
        const char *scheme; /* of the URL, up to its colon or plus */
        /* Makes a store from open->options and finishes the request. */
        void (*open)(struct uv_loop_s *loop, struct store_open *open);
        /* Executes a request that store.c has checked.  If its status is negative already, it only has to be finished.
         */
        void (*start)(struct store *store, struct store_request *request);
        void (*close)(struct store *store, void (*closed)(void *self), void *self);
        /* As store_flush().  NULL: requests are started at once. */
        void (*flush)(struct store *store);
        /* Appends an envelope as this store keeps it, up to and without the payload.  NULL: as text. */
        void (*put_head)(struct buffer *to, const struct envelope *envelope, uint32_t shard);
        /* Adds what a user of its server needs; false: it has no such users.  NULL: it has no server. */
        bool (*rights)(const struct store_options *options, enum store_role role, struct rights *to);
};

extern const struct store_driver sqlite_driver, redis_driver;

/* Whether a lease's record may name such a host: 1 to STORE_HOST_MAX printable bytes, no space. */
bool store_host_is_good(struct span host);

/* Drivers embed this first and fill it in before open is finished. */
struct store {
        const struct store_driver *driver;
        char *app;
        struct store_app record; /* as last read */
        char *coordination;
        char *durability;
        char refuses[512]; /* as in store_info */
        char endangers[160];
        uint32_t shards;
        bool ring_costs;    /* as in store_info */
        uint32_t calls_max; /* the same */
        uint64_t payload_max;
        uint64_t backlog_max;
        uint64_t results_max;
        uint64_t results_age_ms;
        uint64_t idempotency_max;
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
        struct span idempotency; /* the record's name, as idempotency_scope() makes it; empty: none */
        uint64_t idempotency_ms;
        uint8_t digest[SHA256_SIZE];
};

/* What a record of an idempotency name says of a submit: a repeat (0, with the first one's id), another task
 * (-ENOTUNIQ, with its id), or that it cannot be read (-EBADMSG). */
int submission_repeat(
        struct store_submission *item, const struct store_prepared *prepared, struct span id, struct span digest);
/* Sets the item's status and id, and says in request.error why if it is the first that was refused.  `first` is the id
 * that is there already, for -EEXIST. */
void submission_settle(struct store_submit *submit, uint32_t index, int status, struct span first);

/* The arena of the request's reply. */
struct arena_chunk **request_arena(struct store_request *request);

/* Calls done() and frees the reply.  On the loop only.  The request must not be touched afterwards. */
void request_finish(struct store_request *request, int status);
/* Finishes all requests of a list with -ECANCELED, since the store is closed. */
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

/* Fills in what a task's note says, at that store time.  One that cannot be read is passed over. */
void store_task_note(struct store_task *task, struct span note, uint64_t now_ms);

/* What is recorded as the reason of a task for which that returned an error. */
struct span store_set_aside_reason(int error);

/* Says that a mailbox which has so much is full; the request then ends with -EDQUOT. */
void post_refuse(struct store_post *post, uint64_t messages, uint64_t bytes);

/* Whether the report is about the start that a note records. */
bool report_is_current(const struct store_report *report, const struct task_note *note);
/* Says why it is not taken: -ESTALE or -EDQUOT. */
void report_refuse(struct store_report *report, int status);

/* -ENOENT: there is no such room.  -E2BIG: the shard has as many as it may. */
void room_refuse_missing(struct store_request *request, struct span name);
void room_refuse_more(struct store_request *request, uint32_t shard);
/* -ESTALE: the room goes on from another number than `begin`. */
void room_refuse_begin(struct store_room_append *append);
/* Whether a reader that asks for `from` (0: for whatever is there) misses something. */
bool room_is_gap(uint64_t from, uint64_t first, uint64_t last);

/* Says that the shard does not have the chunk before; the request then ends with -EAGAIN. */
void import_refuse(struct store_import *import);

/* --- schedules.c --- */

/* What a request makes of a record, which is then to be stored if it has CHANGED; `is_there`: it is what is stored. */
enum store_schedule_change schedule_change(
        const struct store_schedule_set *set, bool is_there, struct store_schedule *schedule);
/* What is to be done about a time.  `is_alive`: the task of the last one is not over. */
enum store_fired fire_decide(const struct store_schedule *stored, const struct store_fire *fire, bool is_alive);
/* What was done about it by the last call. */
enum store_fired fire_repeat(const struct store_schedule *stored, const struct store_fire *fire);

/* --- the app's record: app.c --- */

/* As it is stored.  What is not there is empty, and has its default but for `shards`. */
struct app_texts {
        struct span shards, max_members, id_layout, features, created;
};
/* Of one that is made: what the options say, and every feature that this build knows. */
void app_init(struct store_app *app, uint32_t schema, const struct store_options *options);
/* 0, or -EPROTO: it is not what Quiver writes; the text begins with `where`. */
int app_read(const char *where, const struct app_texts *texts, uint32_t schema, struct store_app *ret_app,
        struct error *error);
void app_put_features(struct buffer *to, const struct store_app *app);
/* 0, also if it is on already; -EINVAL: no name; -E2BIG. */
int app_add_feature(struct store_app *app, struct span name);
/* Whether whoever opens it may: it knows what is switched on, and names no other shards, ids and coordination. */
int app_agree(const char *where, const struct store_app *app, const char *coordination,
        const struct store_options *options, struct error *error);

/* The name a request's error text begins with: "submit", "advance", … */
const char *store_op_name(unsigned op);

#endif
