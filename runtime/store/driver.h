/* driver.h: what a store driver implements.  Only store.c and the drivers include it. */
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

/* What a driver guarantees when an operation is answered; it may do more. */
enum store_kind {
        STORE_READ,    /* nothing was written: a snapshot will do */
        STORE_RELAXED, /* a power failure may undo it: the lease that it belongs to has then ended anyway */
        STORE_DURABLE  /* as durable as the store was configured to be */
};

/* The list of all operations: number OP_NUMBER, the driver's function, the beginning of its error texts, the
 * guarantee. */
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
        const char *scheme; /* the URL's scheme, up to a colon or plus */
        /* Makes a store from open->options and finishes the request. */
        void (*open)(struct uv_loop_s *loop, struct store_open *open);
        /* Executes a request that store.c has checked.  If its status is negative already, the driver only finishes
         * it. */
        void (*start)(struct store *store, struct store_request *request);
        void (*close)(struct store *store, void (*closed)(void *self), void *self);
        /* See store_flush().  NULL: requests are sent at once. */
        void (*flush)(struct store *store);
        /* Appends an envelope in this store's format, without the payload.  NULL: as text. */
        void (*put_head)(struct buffer *to, const struct envelope *envelope, uint32_t shard);
        /* Adds the rights that a user of the server needs; false: that role has no user.  NULL: there is no server. */
        bool (*rights)(const struct store_options *options, enum store_role role, struct rights *to);
};

extern const struct store_driver sqlite_driver, redis_driver;

/* Whether a host name may be recorded in a lease: 1 to STORE_HOST_MAX printable bytes, no space. */
bool store_host_is_good(struct span host);

/* Drivers embed this as the first member and fill it in before the open request is finished. */
struct store {
        const struct store_driver *driver;
        char *app;
        struct store_app record; /* as last read */
        char *coordination;
        char *durability;
        char refuses[512]; /* see struct store_info */
        char endangers[160];
        uint32_t shards;
        bool ring_costs;      /* see struct store_info */
        uint32_t calls_max;   /* see struct store_info */
        uint32_t calls_group; /* see struct store_info */
        uint64_t payload_max;
        uint64_t backlog_max;
        uint64_t results_max;
        uint64_t results_age_ms;
        uint64_t idempotency_max;
};

/* An envelope ready to be appended; its bytes, in the driver's format, are in the request's arena. */
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
        struct span idempotency; /* the record's name, from idempotency_scope(); empty: none */
        uint64_t idempotency_ms;
        uint8_t digest[SHA256_SIZE];
};

/* Compares a submit with the record under its idempotency name: 0: a repeat, with the first one's id; -ENOTUNIQ:
 * another task, with its id; -EBADMSG: the record cannot be read. */
int submission_repeat(
        struct store_submission *item, const struct store_prepared *prepared, struct span id, struct span digest);
/* Sets the item's status and id; the first refused item also sets request.error.  `first` is the existing task's id,
 * for -EEXIST. */
void submission_settle(struct store_submit *submit, uint32_t index, int status, struct span first);

/* The arena of the request's reply. */
struct arena_chunk **request_arena(struct store_request *request);

/* Calls done() and frees the reply.  On the loop only.  The request must not be touched afterwards. */
void request_finish(struct store_request *request, int status);
/* Finishes all requests of a list with -ECANCELED, since the store is closed. */
void requests_cancel(struct store_request *list);

/* Fills the driver-independent part of a store from options, with defaults for what is zero. */
void store_set_limits(struct store *store, const struct store_options *options);

/* Second half of store_task_read(), for a task whose envelope is filled in: checks whether it belongs to that shard. */
int store_task_place(const struct store *store, uint32_t shard, struct arena_chunk **arena, struct store_task *task,
        struct error *error);

/* Reads a task from its bytes in a log and its seq.  Fills in id (made from the seq if the envelope has none) and key.
 * 0, or -EBADMSG, -EPROTO, -EMSGSIZE (too long), -EXDEV (another shard's) with the reason in `error`. */
int store_task_read(const struct store *store, uint32_t shard, uint64_t seq, struct span bytes,
        struct arena_chunk **arena, struct store_task *ret_task, struct error *error);

/* Fills in the task's note, as of that store time.  An unreadable note is ignored. */
void store_task_note(struct store_task *task, struct span note, uint64_t now_ms);

/* The reason to record for a task for which store_task_read() returned that error. */
struct span store_set_aside_reason(int error);

/* Sets the error text of a full mailbox; the request then ends with -EDQUOT. */
void post_refuse(struct store_post *post, uint64_t messages, uint64_t bytes);

/* Whether the report is about the start that a note records. */
bool report_is_current(const struct store_report *report, const struct task_note *note);
/* Sets the error text of a refused report: -ESTALE or -EDQUOT. */
void report_refuse(struct store_report *report, int status);

/* Set error texts.  -ENOENT: no such room.  -E2BIG: the shard has as many rooms as it may. */
void room_refuse_missing(struct store_request *request, struct span name);
void room_refuse_more(struct store_request *request, uint32_t shard);
/* Sets the error text.  -ESTALE: the room's next number is not `begin`. */
void room_refuse_begin(struct store_room_append *append);
/* Whether entries are missing for a reader that asks for `from` (0: from the first one available). */
bool room_is_gap(uint64_t from, uint64_t first, uint64_t last);

/* Sets the error text of a chunk whose predecessor the shard does not have; the request then ends with -EAGAIN. */
void import_refuse(struct store_import *import);

/* --- schedules.c --- */

/* Applies a request to a schedule; the caller stores it if the result is CHANGED.  `is_there`: `schedule` is the stored
 * one. */
enum store_schedule_change schedule_change(
        const struct store_schedule_set *set, bool is_there, struct store_schedule *schedule);
/* Decides what to do about a due time.  `is_alive`: the schedule's last task has not ended. */
enum store_fired fire_decide(const struct store_schedule *stored, const struct store_fire *fire, bool is_alive);
/* What the last call did about that due time, for a repeated call. */
enum store_fired fire_repeat(const struct store_schedule *stored, const struct store_fire *fire);

/* --- the app's record: app.c --- */

/* The app's record as stored.  Absent fields are empty and get their defaults, except `shards`. */
struct app_texts {
        struct span shards, max_members, id_layout, features, created;
};
/* Fills in a new app's record: from the options, with every feature of this build switched on. */
void app_init(struct store_app *app, uint32_t schema, const struct store_options *options);
/* 0, or -EPROTO if the record is not Quiver's; the text begins with `where`. */
int app_read(const char *where, const struct app_texts *texts, uint32_t schema, struct store_app *ret_app,
        struct error *error);
void app_put_features(struct buffer *to, const struct store_app *app);
/* 0, also if it is on already; -EINVAL: not a valid name; -E2BIG: too many. */
int app_add_feature(struct store_app *app, struct span name);
/* Checks whether the opener may use the app: it knows all features that are on, and does not name other shards, ids or
 * coordination. */
int app_agree(const char *where, const struct store_app *app, const char *coordination,
        const struct store_options *options, struct error *error);

/* What a request's error text begins with: "submit", "advance", … */
const char *store_op_name(unsigned op);

#endif
