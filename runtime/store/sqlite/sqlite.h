/* sqlite.h: the embedded store.  A thread of its own does everything that touches the file; the loop only hands
 * requests over and takes them back.
 *
 *         open.c, loop.c    opening, the loop's side
 *         bell.c            the doorbell
 *         file/             the thread (writer.c), fairness between writers, checkpoints, the schema, the row format
 *         shard/            a shard's rows and the hot path: submit, lease, claim, advance, the log, side queues
 *         records/          results, replies, rooms, mailboxes, wanting, limits, schedules
 *         admin/            inspection and repair: the app, tasks, the dead, keys, desired state, import, fsck */
#ifndef QUIVER_STORE_SQLITE_SQLITE_H
#define QUIVER_STORE_SQLITE_SQLITE_H

#include <pthread.h>
#include <uv.h>

#include "store/driver.h"
#include "store/sqlite/bell.h"
#include "store/sqlite/file/fair_lock.h"
#include "store/sqlite/file/query.h"
#include "store/sqlite/file/same_files.h"
#include "store/sqlite/shard/log.h"
#include "store/sqlite/shard/log_removals.h"
#include "store/sqlite/shard/shard_row.h"

struct checkpointer;

/* A FIFO of requests. */
struct request_list {
        struct store_request *first;
        struct store_request *last;
};
void list_add(struct request_list *list, struct store_request *request);
struct store_request *list_take(struct request_list *list); /* NULL: none */

struct sqlite_store {
        struct store store; /* first member */

        /* Set by open, then read by both threads. */
        uv_loop_t *loop;
        char *path;
        struct same_files same_files;
        uint8_t nonce[STORE_NONCE_SIZE];
        enum store_sync sync;
        bool is_host;
        struct store_clock clock;

        /* Used by the writer's thread only. */
        struct database db;
        struct shard_table shards;
        struct log_removals removals; /* of the current transaction */
        struct doorbells bells;       /* listeners to ring after COMMIT */
        struct fair_lock lock;
        struct checkpointer *checkpointer;
        uint64_t boot;
        uint64_t clock_offset_ms;
        uint64_t now_ms; /* store time, read when an operation begins */
        bool is_full_sync;
        int wal_frames;            /* in the write-ahead log after our last commit */
        int wal_tried;             /* the same at the end of the last checkpoint; 0: the log was started again since */
        struct request_list brief; /* taken from `todo`: cheap requests that somebody waits for */
        struct request_list rest;

        /* Shared by both threads, under the mutex. */
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        struct request_list todo;
        uint32_t brief_count; /* brief requests in `todo`; read without the mutex, as a hint */
        struct store_request *finished;
        struct store_request **finished_tail;
        bool is_stopping;

        /* Used by the loop only. */
        pthread_t thread;
        uv_async_t async;
        uv_timer_t reply_timer;
        struct bell bell;
        struct store_request *waiting; /* store_reply requests that wait for a ring */
        unsigned outstanding;
        unsigned open_handles;
        struct store_open *open; /* NULL once the open request is finished */
        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

/* writer.c */
void writer_post(struct sqlite_store *s, struct store_request *request); /* loop */
void *writer_main(void *store);
/* Blocks all signals on this thread: the loop handles them. */
void thread_block_signals(void);

/* open.c: on the writer's thread. */
int sqlite_store_open(struct sqlite_store *s, const struct store_options *options, struct error *error);
void sqlite_store_shut(struct sqlite_store *s);
/* Store time. */
uint64_t sqlite_now(struct sqlite_store *s);

/* app.c, on the writer's thread: values of the table `meta` by name; the caller frees a text, which is "" if it is
 * absent. */
uint64_t meta_number(struct database *db, const char *name);
char *meta_text(struct database *db, const char *name);
void meta_set_number(struct database *db, const char *name, uint64_t value);
void meta_set_text(struct database *db, const char *name, const char *value);
/* Adds what the app's record lacks, reads it, and checks whether the opener may use the app.  The caller handles
 * failures of the database. */
int app_record(struct sqlite_store *s, const struct store_options *options, bool is_new, struct error *error);
/* Whether app_record() would write. */
bool app_must_record(struct sqlite_store *s, const struct store_options *options);

/* schedules.c: when the shard's next schedule fires; STORE_NEVER: none does. */
uint64_t shard_next_schedule_ms(struct sqlite_store *s, uint32_t shard);

/* reply.c, on the loop: true if the request keeps waiting instead of being finished. */
bool reply_keep_waiting(struct sqlite_store *s, struct store_reply *reply);
void reply_rang(struct sqlite_store *s);
/* Whether the next look has to record who waits. */
bool reply_must_announce(const struct store_reply *reply);

/* The operations, inside a transaction on the writer's thread.  Failures stick to s->db. */
typedef void sqlite_operation(struct sqlite_store *s, struct store_request *request);
#define SQLITE_OPERATION(number, function, text, kind) sqlite_operation sqlite_##function;
STORE_OPERATIONS(SQLITE_OPERATION)

/* Refuses a request that has changed nothing; the other requests of the transaction go on. */
__attribute__((format(printf, 3, 4))) void operation_refuse(
        struct store_request *request, int status, const char *format, ...);

static inline struct sqlite_shard_row *shard_read(struct sqlite_store *s, uint32_t shard)
{
        return shard_get(&s->shards, &s->db, shard);
}
static inline struct sqlite_shard_row *shard_write(struct sqlite_store *s, uint32_t shard)
{
        return shard_change(&s->shards, &s->db, shard);
}

/* Decrements a counter, which may be wrong in a damaged file: never below 0. */
static inline void count_down(uint64_t *count)
{
        if (*count)
                --*count;
}

/* row_codec.c: converts between a task's bytes and a row's format.  Rows move between tables unchanged. */
struct span row_from(struct sqlite_store *s, uint32_t shard, struct span bytes, struct arena_chunk **arena);
/* As store_task_read(). */
int row_read(struct sqlite_store *s, uint32_t shard, uint64_t seq, struct span stored, struct arena_chunk **arena,
        struct store_task *ret_task, struct error *error);
/* The original bytes of a task that cannot be read. */
struct span row_bytes(struct span stored);

/* submit.c: appends a task to its shard's log, or to the delayed tasks.  Rings the shard's holder. */
void shard_append(
        struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct span task, struct span note);
/* Like shard_append(), for a task that changes its lane: adds that to its history. */
void lane_append(
        struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct span task, struct span note);
void shard_append_prepared(struct sqlite_store *s, const struct store_prepared *prepared);
void shard_delay(struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, uint64_t due_ms,
        struct span task, struct span note);
void ring_holder(struct sqlite_store *s, const struct sqlite_shard_row *shard);

/* idempotency.c: whether a submit was taken before.  1: it was not, and there is room to remember it; otherwise 0,
 * -ENOTUNIQ or -EBADMSG from submission_repeat(), or -ENOBUFS. */
int idempotency_look(struct sqlite_store *s, const struct store_prepared *prepared, struct store_submission *item);
/* SQL condition for an invalid record in shard ?1. */
#define IDEMPOTENCY_IS_WRONG                                                                                           \
        "(typeof(until) != 'integer' OR until < 0 OR length(digest) != 32 OR length(id) > 64 OR id NOT GLOB "          \
        "'*-[0-9]*')"
void idempotency_put(struct sqlite_store *s, const struct store_prepared *prepared);
/* False if another task is remembered under that name. */
bool idempotency_load(struct sqlite_store *s, uint32_t shard, const struct store_remembered *record);

/* mail.c: SQL condition for a mailbox with wrong counts. */
#define MAILBOX_IS_WRONG                                                                                               \
        "(messages != (SELECT count(*) FROM mail WHERE mail.nonce = mailbox.nonce) OR bytes != (SELECT "               \
        "ifnull(sum(length(mail.bytes)), 0) FROM mail WHERE mail.nonce = mailbox.nonce) OR last NOT BETWEEN "          \
        "(SELECT ifnull(max(number), 0) FROM mail WHERE mail.nonce = mailbox.nonce) AND 9007199254740990)"

/* rooms.c: SQL condition for a room whose row disagrees with its entries or is out of range. */
#define ROOM_IS_WRONG                                                                                                  \
        "(entries != (SELECT count(*) FROM room_entry WHERE room = room.id) OR bytes != (SELECT "                      \
        "ifnull(sum(length(room_entry.bytes)), 0) FROM room_entry WHERE room = room.id) OR last < (SELECT "            \
        "ifnull(max(number), 0) FROM room_entry WHERE room = room.id) OR last NOT BETWEEN 0 AND 9007199254740000 OR "  \
        "entries_max NOT BETWEEN 1 AND 10000000 OR bytes_max NOT BETWEEN 1 AND 68719476736 OR age NOT BETWEEN 1 AND "  \
        "4503599627370495)"

/* lease.c */
enum fence { FENCE_OK, FENCE_REPEAT, FENCE_FENCED };
enum fence fence_check(const struct sqlite_shard_row *shard, const struct store_lease *lease, uint64_t call);
bool lease_is_ours(const struct sqlite_shard_row *shard, const struct store_lease *lease);
/* Extends the lease unless a firm want's time is over; true if it was refused. */
bool lease_extend(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t ttl_ms);
enum store_wanted lease_wanted(struct sqlite_store *s, const struct sqlite_shard_row *shard);
uint64_t lease_left_ms(struct sqlite_store *s, const struct sqlite_shard_row *shard);
/* Time until something of the shard is due, ignoring keys that are due before `keys_from_ms`; STORE_NEVER if nothing
 * waits. */
uint64_t shard_next_due_ms(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t keys_from_ms);
bool shard_has_work(struct sqlite_store *s, const struct sqlite_shard_row *shard);

/* claim.c: the tasks that a call returns. */
struct claim {
        struct store_task *tasks;
        uint32_t count;
        uint32_t room;        /* most tasks that it may get */
        uint32_t want[LANES]; /* remaining number per lane */
        bool has_due[LANES];  /* heads of due keys in that lane found no room */
        uint32_t has_room;    /* capacity of `tasks` */
        uint64_t bytes;
        uint32_t set_aside;
        struct arena_chunk **arena;
};
void claim_init(struct claim *claim, struct arena_chunk **arena, uint32_t room);
/* Adds a task that is in flight.  0, or the error of row_read() if its bytes are malformed. */
int claim_add(struct sqlite_store *s, struct claim *claim, const struct sqlite_shard_row *shard, uint64_t seq,
        struct span task, struct span note, struct error *error);
/* A row that no host can run: malformed, or under a number that was never given. */
struct stray {
        uint64_t seq;
        struct span task;
        struct span note;
        int why; /* -EXDEV: another shard's */
        struct error error;
};
#define STRAYS_MAX 32u /* most that one call sets aside */
/* Makes it a dead task, with its bytes and the reason. */
void stray_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct stray *stray);
/* lease.c: buries rows of the log that no claim will ever meet, because their numbers were never given; up to
 * STRAYS_MAX per range. */
void strays_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, struct arena_chunk **arena);
/* repair.c: refuses the request while a host works on the shard.  Nobody can own a shard with a bad row. */
bool shard_may_repair(struct sqlite_store *s, struct store_request *request, uint32_t shard);
void shard_repair(struct sqlite_store *s, struct store_request *request, uint32_t shard);
/* Like stray_bury(), for a row in the log that counts as in flight. */
void flight_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct stray *stray);
void claim_due(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim);
void claim_lanes(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim, uint32_t want_bytes);
void claim_remember(struct sqlite_shard_row *shard, const struct claim *claim);

/* advance.c: a task in flight, as stored in the log. */
struct flight {
        struct span task;
        struct span note;
};
bool flight_get(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t seq, struct arena_chunk **arena,
        struct flight *ret_flight);
bool flight_remove(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t seq);

/* merge.c: executes a MERGE.  False, with nothing changed, if one of the tasks is not in flight. */
bool settle_merge(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct arena_chunk **arena);
/* The task that this one was merged into; false if unknown. */
bool merged_find(struct sqlite_store *s, uint32_t shard, struct span id, struct arena_chunk **arena,
        struct span *ret_into, uint64_t *ret_at_ms);

/* names.c: whether keys of the shard wait for names. */
bool shard_has_names(struct sqlite_store *s, const struct sqlite_shard_row *shard);

/* side_queue.c: keys that are not free, and their side queues. */
struct key {
        uint64_t id; /* 0: the key is free */
        enum store_key_state state;
        uint64_t due_ms;
        uint64_t since_ms;
        uint64_t tasks;
};
/* Reads a key's state; KEY_PARKED if the value is invalid. */
enum store_key_state column_key_state(struct query *q, int column);
bool key_get(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct span name, struct key *ret_key);
/* Makes the key not free, or changes its state. */
void key_set_state(struct sqlite_store *s, struct sqlite_shard_row *shard, struct span name, struct key *key,
        enum store_key_state state, uint64_t due_ms, struct span reason);
/* Like key_set_state(): the key waits for `name`. */
void key_set_name(struct sqlite_store *s, struct sqlite_shard_row *shard, struct span key_name, struct key *key,
        struct span name, struct span reason);
/* Seq of the first task in the key's side queue; UINT64_MAX if it is empty. */
uint64_t side_first(struct sqlite_store *s, const struct key *key);
/* Writes state, due and tasks; a key without tasks that is not held becomes free. */
void key_save(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key);
void side_put(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint64_t seq, struct span task,
        struct span note);
void side_remove(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint64_t seq);
/* Moves up to `max` tasks from the side queue's head back in flight, and adds them to the claim. */
void side_take(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint32_t max, struct claim *claim);

/* dead.c: a task becomes dead, and a reply says so if someone waits.  `note` is what it was before. */
/* A dead task as it is kept; `text` is the error, of which the first line is the group. */
struct sqlite_dead_row {
        struct span id, handler, reason, text, bytes, note;
        enum lane lane;
        uint64_t at_ms;
};
void dead_add(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct sqlite_dead_row *row);
/* Changes the count of a group by +1 or -1 (dead_groups.c). */
void dead_group_count(
        struct sqlite_store *s, uint32_t shard, struct span handler, struct span reason, struct span error, int64_t by);
void dead_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_ref *task, struct span reason,
        struct span text, enum task_cost cost, struct span bytes, struct span note);
/* Like dead_put(), for arbitrary bytes. */
void dead_put_bytes(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t seq, struct span reason,
        struct span text, struct span bytes, struct span note);

/* results.c, reply.c */
void result_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_ref *task, struct span data,
        struct span note);
void reply_put(struct sqlite_store *s, const struct store_ref *task, enum store_reply_state state, bool has_data,
        struct span data, struct span reason, struct span note);

/* control.c */
void control_add(struct sqlite_store *s, struct sqlite_shard_row *shard, enum store_control_verb verb, struct span key,
        struct span reason, struct span id, uint64_t seq);
/* Does the store's part of a control: on the key's record and side queue. */
void control_apply(struct sqlite_store *s, struct sqlite_shard_row *shard, enum store_control_verb verb,
        struct span key, struct span reason);
/* Makes the controls that were returned to the previous owner pending again, for a new owner. */
void control_return(struct sqlite_store *s, struct sqlite_shard_row *shard);
/* Removes controls that earlier calls returned, then applies and returns new ones. */
void control_take(struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_advance *advance);
/* Returns the last call's controls again. */
void control_repeat(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct store_advance *advance);

#endif
