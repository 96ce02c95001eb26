/* store.h: where tasks live.  The contract that every driver meets and that tests/contract checks.
 *
 * This file: opening, submitting, and the hot path of an owner (acquire, advance, renew, release).  names.h: keys that
 * wait for a name.  results.h: results and replies.  mail.h: mailboxes.  rooms.h: rooms.  reports.h: workers' reports.
 * admin.h: inspection and repair.  app.h: the app's record.  README.md: the same as tables and Redis keys.
 *
 * Requests.  An operation is a struct embedded in its owner.  The owner zeroes it, fills the upper half and `done`, and
 * calls store_X().  done() is called exactly once, on the loop, never inside store_X(); then request.status is 0 or
 * -errno with request.error.text, and on 0 the lower half is filled.  Memory that a reply points to lives until done()
 * returns; memory that a request points to must live until done() is called.  Inside done() the request may be started
 * again or freed.  store_close() ends all requests under way with -ECANCELED.
 *
 * Common errors: -EINVAL called wrongly; -ENOSPC, -EROFS, -EACCES, -EIO the store cannot write (nothing was changed;
 * try again later); -EBUSY others held the store for too long; -ETIMEDOUT, -ECONNRESET no answer: it may or may not
 * have happened; -ECANCELED.
 *
 * Cost.  Stated as "SQLite: … Redis: …": rows or commands touched, with n the number of items in the request.  No
 * operation on the hot path depends on the size of a backlog.  One call handles at most STORE_CALL_TASKS tasks and
 * about STORE_CALL_BYTES bytes.
 *
 * Time is the store's, unix milliseconds: Redis TIME; for SQLite a clock that is set from the wall clock once per boot
 * and then runs with CLOCK_BOOTTIME.  Durations in requests are relative; the store adds its time. */
#ifndef QUIVER_STORE_STORE_H
#define QUIVER_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file/tls_files.h"
#include "task/envelope.h"
#include "task/id.h"
#include "task/note.h"

#define STORE_CALL_TASKS      256u            /* outcomes, or claimed tasks, of one advance */
#define STORE_CALL_FOLLOW_UPS 1024u           /* follow-ups of all outcomes of one advance */
#define STORE_CALL_MERGED     256u            /* tasks that all outcomes of one advance merge into others */
#define STORE_CALL_BYTES      (1024u * 1024u) /* exceeded only by a single task or outcome that is larger by itself */
#define STORE_SUBMIT_TASKS    1000u           /* tasks of one submit */
#define STORE_PAYLOAD_MAX     (16u * 1024u * 1024u) /* upper bound of payload_max */
#define STORE_NEVER           UINT64_MAX            /* as a due time: nothing is due */
#define STORE_NONCE_SIZE      16u
#define STORE_HOST_MAX        64u                /* bytes of a host's name */
#define STORE_IDEMPOTENCY_MS  86400000u          /* how long a shard remembers an idempotency name: a day */
#define STORE_START_MAX_MS    UINT64_C(86400000) /* longest time that a start is valid unless it is renewed */
#define STORE_MERGE_TASKS     16u   /* tasks of a due key that are claimed together if its head may be merged */
#define STORE_MERGED_KEPT     1000u /* merged tasks per shard for which their target is remembered, the latest */
#define STORE_MERGED_MS       UINT64_C(86400000) /* how long a request for a merged task is redirected to its target */
#define STORE_WAITING_MS      30000u             /* a waiting key whose owner never refills it is due after this time */

struct store;
struct store_app;
struct id_layout;
struct store_prepared;
struct uv_loop_s;

/* The common beginning of all requests. */
struct store_request {
        void (*done)(struct store_request *request);
        int status;
        struct error error; /* empty unless status is negative */

        /* private to store and driver */
        struct store *store;
        struct store_request *next;
        void *reply; /* memory of the reply; freed after done() */
        unsigned op;
};

/* --- opening --- */

/* Replaces the machine's clocks, in tests only. */
struct store_clock {
        uint64_t (*boot_ms)(void *self);
        uint64_t (*wall_ms)(void *self);
        const char *(*boot_id)(void *self);
        void *self;
};

enum store_sync {
        STORE_SYNC_FULL,  /* a submit or outcome that returned survives a power failure */
        STORE_SYNC_NORMAL /* it survives the death of any process; a power failure may undo the last moments */
};

struct store_options {
        const char *url;                               /* sqlite:PATH, or any of the kinds of redis/redis.h */
        const char *app;                               /* [a-z0-9_-]{1,64} */
        const char *user, *password;                   /* Redis; NULL: none */
        const char *sentinel_user, *sentinel_password; /* for the Sentinels themselves */
        struct tls_files tls;                          /* rediss:// */
        uint32_t wait_replicas; /* Redis: a submit is answered when this many replicas have it, too */
        /* The number of shards and the coordination URL are recorded when the store is created, and the record is
         * authoritative: an opener that names others is refused with -EINVAL and both values in the text.  0 and NULL:
         * use the record.  A URL with a server in common names the same coordination (base/url.h), and replaces the
         * recorded one. */
        uint32_t shards;
        const char *coordination;
        /* The layout of ids, recorded when the store is created; another layout is refused in the same way.  NULL: use
         * the record, or the standard snowflake layout in a new store. */
        const struct id_layout *ids;
        uint32_t max_members; /* hosts: recorded when the store is created; afterwards the record decides */
        bool may_create;      /* create the store if it does not exist; otherwise -ENOENT */
        bool is_host;         /* this opener does the housekeeping (checkpoints); at least one should */
        enum store_sync sync; /* SQLite */
        uint64_t payload_max; /* bytes; 0: 1 MiB */
        uint64_t backlog_max; /* tasks waiting in one shard (queued, delayed, side queues); 0: no limit */
        uint64_t
                results_max; /* results kept in one shard; beyond that the oldest are dropped and counted.  0: 10 000 */
        uint64_t results_age_ms;         /* results older than this are dropped, too; 0: 1 day */
        uint64_t idempotency_max;        /* names that one shard remembers; 0: 1 000 000 */
        uint8_t nonce[STORE_NONCE_SIZE]; /* our nonce, for the doorbell.  All zero: only rooms ring */
        const struct store_clock *clock; /* NULL: the machine's */
        const struct store_bell *bell;   /* NULL: do not listen */
};

/* The doorbell's callbacks, on the loop.  They are hints: a lost or spurious one harms nobody.  Listening does not keep
 * the loop alive; requests under way do. */
struct store_bell {
        void (*shard)(void *self, uint32_t shard); /* a shard that we hold: new tasks, a due time, a control, a want */
        void (*desired)(void *self);               /* the desired state has changed */
        void (*mail)(void *self);                  /* a message is in our mailbox: store_mail_take() */
        void (*wanting)(void *self);               /* some host wants to borrow seats: store_wanting_list() */
        void (*room)(void *self, uint32_t shard);  /* a room of that shard, which we follow, has a new entry */
        void (*look)(void *self);                  /* rings may have been lost: look at every shard and record */
        void *self;
};

struct store_open {
        struct store_request request;
        struct store_options options; /* its pointers must stay valid until done() */

        struct store *store; /* valid from done() on */
};

/* Properties of an open store, for start-up lines and status.  Borrowed from the store. */
struct store_info {
        const char *driver; /* "sqlite", "redis" */
        const char *app;
        const char *coordination; /* "" if none is recorded yet */
        const char *durability;   /* what a crash may lose, as a text for people */
        const char *refuses;   /* why it takes no submits and what to do, as of the last open, count or renewal; "": it
                                  takes them */
        const char *endangers; /* what may lose tasks and what to do, as of a host's last renewal; "": nothing */
        uint32_t shards;
        const struct store_app *record; /* app.h; as last read */
        bool ring_costs;    /* ringing is expensive, so an owner sets calls_again when its next advance follows soon */
        uint32_t calls_max; /* most advances under way at once: more would only queue at the store; 0: no limit */
        uint32_t calls_group; /* advances sent together are answered together, so with time to spare an owner sends at
                               * most this many, and at high rates fewer are under way; 0: each is answered by itself */
};

/* Opens or creates a store.  -ENOENT (does not exist), -EINVAL (disagrees with the record), -EPROTO (not a Quiver
 * store, another schema, or a host lacks a feature that is switched on), -ENOTSUP (a network file system; unknown
 * scheme).
 * SQLite: a few statements, plus the schema if it is created.  Redis: connect, one HMGET; a host: SCRIPT LOAD. */
void store_open(struct uv_loop_s *loop, struct store_open *open);

/* Cancels all requests under way and frees the store, then calls `closed` on the loop.  Leases are not released: an
 * owner that wants its shards taken over at once releases them first. */
void store_close(struct store *store, void (*closed)(void *self), void *self);

/* Sends the requests that were started in this turn of the loop.  Without this call they are sent in the next turn. */
void store_flush(struct store *store);

void store_info(const struct store *store, struct store_info *ret_info);

/* --- submitting --- */

struct store_submission {
        /* Empty id and submitted_ms are filled in.  A given id must end in the key's shard. */
        struct envelope envelope;
        uint64_t delay_ms; /* start no sooner than this from now (store time); besides envelope.not_before_ms */
        /* Makes the item safe to repeat: a name of the client's, 1 to 255 bytes without control characters; empty:
         * none. The task's shard remembers for idempotency_ms (0: STORE_IDEMPOTENCY_MS) under (name, key) that it took
         * the task, in the step that stores it.  A repeat within that time stores nothing and returns the first one's
         * id, also after the task is done or dead.  Another task under the same (name, key) is refused; under the same
         * name and another key it is another task.  A task without a key goes to the shard of the name: shard_of_key().
         */
        struct span idempotency;
        uint64_t idempotency_ms;

        /* 0: stored, or a repeat of what was.  -ENOTUNIQ: `idempotency`, and under that name another handler, payload
         * or option was taken: its id is in `id` (idempotency.h says what is compared).  -EEXIST: `unique`, and one is
         * there already: its id is in `id`.  -EINVAL, -EMSGSIZE: the field is named in request.error if it is the
         * first.  -EDQUOT: the shard's backlog is full; so are then all later ones of this shard in this request.
         * -ENOBUFS: a new `idempotency` name, and the shard remembers as many as it may (idempotency_max): ask for a
         * shorter time, or try again later.  -EBADMSG: what is remembered under the `idempotency` name cannot be read;
         * fsck --repair removes it. */
        int status;
        bool is_repeat; /* `idempotency`: it was taken before, and `id` is the first one's */
        char id[TASK_ID_MAX + 1];
        uint32_t shard;
};

/* Appends tasks to their shards' logs, in the order given.  Any process may.  Each item has a status of its own; the
 * request's status is 0 if the store answered.  Without an answer it is unknown, per item, whether it was stored;
 * repeating it is safe only with `idempotency`, or with `unique`.
 * SQLite: one transaction, n rows + one per shard; with `idempotency` 3 rows more, and up to 4 of old records removed.
 * Redis: one RPUSH per shard and lane, pipelined; with delay, unique or idempotency one script per shard. */
struct store_submit {
        struct store_request request;
        struct store_submission *items; /* statuses are written here */
        uint32_t items_count;           /* ≤ STORE_SUBMIT_TASKS */

        uint32_t refused; /* how many have a negative status */

        struct store_prepared *prepared; /* private: one per item */
};
void store_submit(struct store *store, struct store_submit *submit);

/* --- owning a shard ------------------------------------------------------------------------------------------------
 *
 * The fence is (epoch, nonce, call).  GRANTED says the number of the last call; the owner's next advance, wake, fire or
 * release is that plus one, and so on, one at a time.  The store executes only last + 1.  A repeat of `last` changes
 * nothing and returns what that call claimed.  Anything else is FENCED.  Every GRANTED jumps ahead, so that a call
 * still on its way from before can match neither.  Fencing never looks at time. */

struct store_lease {
        uint32_t shard;
        uint64_t epoch;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t ttl_ms;
};

enum store_verdict { STORE_OK, STORE_FENCED };
enum store_wanted { STORE_NOT_WANTED, STORE_WANTED_PATIENT, STORE_WANTED_FIRM };

/* One task as an owner gets it. */
struct store_task {
        /* Identifies the task in its shard.  The lane is in the top bits (STORE_SEQ_LANE), below it a number that grows
         * within the lane in order of arrival: sorted by seq, higher lanes come first and each key keeps its order. */
        uint64_t seq;
        struct envelope envelope; /* id is always set; lane is the one it was claimed from */
        struct span key;          /* the envelope's key, or the id if it has none */
        struct task_note note;
        uint64_t busy_ms; /* how much longer note.holder may run it, while nobody else starts its key; 0: not at all */
        /* Set only by acquire and in-flight pages: the key is parked, held or waits for a name, or an earlier task of
         * it is in its side queue.  Do not start the task: return it with STORE_DIVERT, unless it is running here
         * already. */
        bool is_key_waiting;
};

#define STORE_SEQ_LANE_SHIFT  48
#define STORE_SEQ_LANE(seq)   ((enum lane)((seq) >> STORE_SEQ_LANE_SHIFT))
#define STORE_SEQ_NUMBER(seq) ((seq) & ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) - 1))
#define STORE_SEQ_MAX         ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) * LANES - 1)

/* A page of the in-flight table, by seq. */
struct store_page {
        struct store_task *tasks;
        uint32_t tasks_count;
        bool has_more; /* get the next page from store_in_flight() with after_seq = the last seq */
};

enum store_grant { STORE_GRANTED, STORE_BUSY, STORE_STALE };

/* Asks for a shard.
 *   epoch above the stored one, and the shard is free, expired, or ours: GRANTED (ours: an upgrade in place);
 *   the same epoch and nonce: GRANTED again; the calls still on their way are dead;
 *   epoch above the stored one, but another's lease lasts: BUSY; the store records that we want the shard, and tells
 *     its holder.  A want not repeated within ttl_ms is forgotten;
 *   else STALE.
 * `until` further away than the holder's ttl is cut to it (the clock was stepped), as is a lease from another boot.
 * SQLite: 1 row + the page.  Redis: one script, then HKEYS of the in-flight hash (bounded by an owner's window, sorted
 * by the driver) and HMGET of the page. */
struct store_acquire {
        struct store_request request;
        struct store_lease lease;
        bool is_firm;        /* the holder is no longer a member, so the want is firm */
        uint64_t drain_ms;   /* how long a firm want lets the holder renew */
        uint32_t page_tasks; /* ≤ STORE_CALL_TASKS */
        /* Our host name, recorded in the lease for people: 1 to STORE_HOST_MAX printable bytes.  Empty: keeps the name
         * that is recorded for that nonce. */
        struct span host;

        enum store_grant grant;
        uint64_t busy_ms;                 /* BUSY: the holder's lease ends then unless it is renewed */
        uint8_t holder[STORE_NONCE_SIZE]; /* BUSY: who holds it */
        uint64_t stored_epoch;
        uint64_t call;    /* GRANTED: the last call's number */
        uint64_t left_ms; /* GRANTED: remaining time of the lease */
        bool is_recovery; /* GRANTED: the previous holder was another host and did not release the lease */
        struct store_page page;
        bool has_work;             /* queued or due tasks, or controls */
        bool has_names;            /* keys wait for names: store_names() says which */
        uint64_t next_due_ms;      /* from now; STORE_NEVER: nothing waits for a time */
        uint64_t next_schedule_ms; /* unix time by the hosts' clocks (schedules.h); STORE_NEVER: none fires */
};
void store_acquire(struct store *store, struct store_acquire *acquire);

/* The next page after acquire.  Changes nothing, so it has no call number.
 * SQLite: page + 1 rows.  Redis: one script, read-only. */
struct store_in_flight {
        struct store_request request;
        struct store_lease lease;
        uint64_t after_seq;
        uint32_t page_tasks;

        enum store_verdict verdict;
        struct store_page page;
};
void store_in_flight(struct store *store, struct store_in_flight *in_flight);

/* --- advance --- */

/* Identifies a task in an outcome; all fields as they were claimed. */
struct store_ref {
        uint64_t seq;
        struct span id;
        struct span key;
        struct span handler;
        uint64_t reply_ms;
};

struct store_follow_up {
        struct envelope envelope; /* without `unique` */
        uint64_t delay_ms;
};

enum store_outcome_kind {
        STORE_DONE,   /* the task is removed; result and follow-ups appear in the same step */
        STORE_RETRY,  /* parks the key for delay_ms; the task stays its head */
        STORE_HOLD,   /* the key waits for a person; the task stays its head */
        STORE_DEAD,   /* kept among the dead, with `reason` */
        STORE_DIVERT, /* not started by this owner: goes to its key's side queue, at its place.  If it is the first
                         there, its key waits for `name`, or for delay_ms; a parked or held key stays so */
        STORE_START, /* about to run at `holder`: recorded durably; stays in flight.  The next outcome other than DIVERT
                        or CHECKPOINT clears the record */
        STORE_INTERRUPTED, /* counted, the recorded start cleared; stays in flight */
        STORE_CHECKPOINT,  /* the checkpoint is replaced; stays in flight */
        /* The tasks in `merged` end as merged into this one, which stays in flight, at its place, and gets the payload
         * of the last of them (envelope_merge()).  All of them are in flight, of its key, handler and lane, in order
         * behind it, with no other task of the key in between.  A client that waits for one of their outcomes gets this
         * one's.  All or nothing: if one of them is no longer in flight, the outcome has no effect. */
        STORE_MERGE,
        STORE_MOVE, /* not started: goes to the tail of `lane` with its note; its history records the move */
};

/* The outcome of one task.  A task without an outcome stays in flight unchanged.  If a task is no longer in flight
 * (cancelled while nobody owned the shard), it is counted in `gone` and its outcome is dropped. */
struct store_outcome {
        enum store_outcome_kind kind;
        struct store_ref task;
        enum task_cost cost; /* RETRY, HOLD, DEAD, INTERRUPTED; COST_LATER comes with RETRY only.  DIVERT: nothing, or
                                COST_INTERRUPTION: an earlier owner may have started it, which nothing says yet */
        struct span reason;  /* DIVERT: why its key waits, if not for its share; RETRY: the same, before the error;
                                DEAD, HOLD: one word ("rejected", "exhausted", "crashed", "cancelled") */
        struct span error;   /* for the history */
        uint64_t delay_ms;   /* RETRY; DIVERT: the key's head comes back then at the latest */
        struct span name;    /* DIVERT: what its key waits for instead of a time (names.h); empty: a time */
        struct span holder;  /* START: who runs it: a nonce in hexadecimal digits, or a worker's name */
        uint64_t until_ms;   /* START: how long nobody else starts its key; 0: no limit recorded.  At most
                                STORE_START_MAX_MS */
        uint32_t refill;     /* DONE, DEAD, MERGE: take up to this many tasks from the key's side queue */
        bool is_suspect;     /* INTERRUPTED: remember that it must run alone */
        bool is_debounce;   /* DIVERT: its key waits for delay_ms so that others join it; remember that it has waited */
        bool has_result;    /* DONE */
        struct span result; /* DONE: to the reply if reply_ms is set, else to the shard's results */
        struct span checkpoint;                   /* CHECKPOINT: ≤ NOTE_CHECKPOINT_MAX */
        const struct store_follow_up *follow_ups; /* DONE */
        uint32_t follow_ups_count;
        const struct store_ref *merged; /* MERGE, in order; all outcomes of a call: ≤ STORE_CALL_MERGED */
        uint32_t merged_count;
        enum lane lane; /* MOVE: the target lane, which differs from the current one */
};

/* Beginning of the reason of a key that waits because its first task's handler said LATER. */
#define STORE_SAID_LATER "the handler said later"

enum store_control_verb {
        CONTROL_CANCEL,
        CONTROL_HOLD,
        CONTROL_UNHOLD,
        CONTROL_RETRY,
        CONTROL_SKIP,
        CONTROL_SCHEDULES,
        CONTROL_HEARTBEAT,
        CONTROL_OUTCOME,
        CONTROL_MOVE,
        CONTROLS
};

/* A person's request or a worker's report.  The store has done its part already; the owner's part is:
 *   CANCEL: stop the task if it is held here, and answer DEAD unless it was DONE first;
 *   HOLD: start no more of the key's tasks, and divert those that are here;
 *   SCHEDULES: list the shard's schedules again;
 *   MOVE: answer MOVE if the task has not started, otherwise nothing;
 *   HEARTBEAT, OUTCOME: apply the worker's report (reports.h) if its start is still the current one. */
struct store_control {
        enum store_control_verb verb;
        struct span key;   /* HEARTBEAT, OUTCOME: empty */
        struct span id;    /* CANCEL, MOVE, HEARTBEAT, OUTCOME */
        uint64_t seq;      /* CANCEL, MOVE, HEARTBEAT, OUTCOME */
        struct span start; /* HEARTBEAT, OUTCOME: the start as the worker named it */
        struct span data;  /* HEARTBEAT, OUTCOME: the report; MOVE: the name of the lane */
};
/* Controls per advance; HEARTBEAT and OUTCOME also at most STORE_CALL_BYTES together, but always one. */
#define STORE_CALL_CONTROLS 64u

/* Commits outcomes, renews the lease and claims more, in one step.  In this order: the fence; controls; outcomes; tasks
 * and keys that are due (keys by due time, then by name); the lanes, high before normal before low.  The head of a key
 * that is due counts as one of its lane's; if that lane has no room the key waits, and keys behind it are looked at, a
 * bounded number of them.  If the head may be merged, as many of the key's next tasks come with it as there is room for
 * in that lane, STORE_MERGE_TASKS at most: so that the owner can merge them before it starts the head.  If there was
 * room for the head alone, its key stays due.
 *
 * Claiming diverts tasks of keys that have a side queue, and sets aside what no host can run: malformed, wrong shard
 * (the right one is named), too long → dead with its bytes; not_before → delayed.
 *
 * FENCED: nothing has changed and nothing was claimed.
 *
 * SQLite: per outcome 1 row (2 or 3 if its key waits), per claimed task 1 read, + the shard's row; claiming writes no
 * row per task.  Redis: one script that moves a count and trims what is done, and an LRANGE that brings the tasks; per
 * outcome or task whose key waits, 2 or 3 commands more. */
struct store_advance {
        struct store_request request;
        struct store_lease lease;
        uint64_t call;
        const struct store_outcome *outcomes;
        uint32_t outcomes_count; /* ≤ STORE_CALL_TASKS */
        uint32_t want[LANES];    /* most tasks to claim per lane; their sum is cut to STORE_CALL_TASKS */
        uint32_t want_bytes;     /* bytes to claim, approximately, but always one task; 0: STORE_CALL_BYTES */
        /* The owner makes another call within moments in any case, so changes before that need not ring. */
        bool calls_again;

        enum store_verdict verdict;
        struct store_task *tasks;
        uint32_t tasks_count;
        struct store_control *controls;
        uint32_t controls_count;
        uint32_t gone;      /* outcomes of tasks that are no longer in flight */
        uint32_t set_aside; /* tasks that claiming made dead */
        /* More tasks of that lane can be claimed: call again when there is room.  Also set for a lane without room in
         * this call that has queued tasks, or heads of due keys. */
        bool has_more[LANES];
        bool has_due_waiting; /* keys are due, but their lane had no room */
        bool has_outbox;      /* follow-ups for other shards wait: call store_forward() */
        bool is_costly;       /* the call cost the store as much as a dozen others, and the next one may, too */
        uint64_t next_due_ms; /* from now; STORE_NEVER: nothing waits for a time, apart from has_more */
        enum store_wanted wanted;
        bool is_refused;  /* a firm want's drain time is over: not renewed, nothing claimed */
        uint64_t left_ms; /* remaining time of the lease; 0: expired, though nobody has taken it */

        struct store_prepared *prepared; /* private: one per follow-up of all outcomes, in order */
};
void store_advance(struct store *store, struct store_advance *advance);
static inline bool store_has_more(const struct store_advance *advance)
{
        return advance->has_more[LANE_HIGH] || advance->has_more[LANE_NORMAL] || advance->has_more[LANE_LOW];
}

/* Renews many shards.  Renewals are not numbered: a late one does no harm.
 * SQLite: 1 row each, one transaction.  Redis: one script each, pipelined. */
struct store_renewal {
        struct store_lease lease;

        enum store_verdict verdict;
        bool has_work;
        bool is_refused;
        enum store_wanted wanted;
        uint64_t next_due_ms;
        uint64_t left_ms;
};
struct store_renew {
        struct store_request request;
        struct store_renewal *items;
        uint32_t items_count;

        uint64_t desired_version; /* version of the desired state: read it again if this differs from the known one */
};
void store_renew(struct store *store, struct store_renew *renew);

/* Releases a shard; its in-flight tasks stay for the next owner.  A numbered call.  A caller that does not know the
 * last call's number (a guard) acquires with the same nonce and epoch first.
 * SQLite: 1 row.  Redis: one script. */
struct store_release {
        struct store_request request;
        struct store_lease lease;
        uint64_t call;
        /* The lease ends now, but the shard counts as not released: the next owner gets is_recovery.  Said by a guard,
         * and by an owner that was granted a dead host's shard when it had to leave already. */
        bool is_death;

        enum store_verdict verdict;
};
void store_release(struct store *store, struct store_release *release);

/* Sends the entries of a shard's outbox to their target shards, in order, each exactly once however often this is
 * repeated.
 * SQLite: nothing to do, advance puts follow-ups into their shards itself.  Redis: read, one script per target, one to
 * forget. */
struct store_forward {
        struct store_request request;
        struct store_lease lease;

        enum store_verdict verdict;
        bool has_more;
};
void store_forward(struct store *store, struct store_forward *forward);

#endif
