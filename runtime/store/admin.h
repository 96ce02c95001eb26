/* admin.h: looking at a store and intervening.  Paged and bounded: none of this disturbs the hot path.
 *
 * Pages.  A cursor is zero at first and then what the last page returned; is_end says that there is no more.  What
 * moves while one reads may be seen twice or not at all. */
#ifndef QUIVER_STORE_ADMIN_H
#define QUIVER_STORE_ADMIN_H

#include "store/idempotency.h"
#include "store/store.h"

struct store_cursor {
        uint64_t major;
        uint64_t minor;
};

enum store_state {
        STATE_QUEUED,
        STATE_DELAYED,
        STATE_IN_FLIGHT,
        STATE_PARKED, /* in a side queue: its key is parked, held, or has more than its share */
        STATE_DEAD,
        STATES
};
const char *store_state_name(enum store_state state);

/* --- counts ------------------------------------------------------------------------------------------------------ */

struct store_counts {
        uint32_t shard;
        uint64_t queued[LANES];
        uint64_t delayed;
        uint64_t in_flight;
        uint64_t parked[LANES];
        uint64_t dead;
        uint64_t results;
        uint64_t controls; /* controls that the owner has not taken yet */
        uint64_t keys;     /* keys that have a side queue or are held */
        uint64_t outbox;
        /* since the store was made; each task that was submitted is in exactly one state, done or dropped:
         * submitted = queued + delayed + in_flight + parked + dead + done + dropped + merged */
        uint64_t submitted; /* follow-ups too; a requeued one is not counted again */
        uint64_t done;
        uint64_t dropped;         /* dead tasks that a person dropped */
        uint64_t merged;          /* tasks that were merged into others */
        uint64_t results_dropped; /* results dropped because they were too many or too old */
        /* The age of the oldest of what is queued or in flight, by what its producer said; 0: none, or nobody said.
         * Of the first of each lane, so that it does not depend on how many there are. */
        uint64_t oldest_ms;
        uint64_t time_ms; /* by the store's clock, when it was counted; 0: the shard could not be read */
        /* the lease */
        uint64_t epoch;
        uint8_t holder[STORE_NONCE_SIZE];
        char host[STORE_HOST_MAX + 1]; /* the holder's name, as the lease's record says it; "": it does not */
        bool is_held;
        uint64_t left_ms;
        enum store_wanted wanted;
};

/* Adds up what is counted, and takes the greater age; the shard and its lease are left as they are. */
void store_counts_add(struct store_counts *to, const struct store_counts *c);
/* In all lanes. */
uint64_t store_counts_queued(const struct store_counts *c);
uint64_t store_counts_parked(const struct store_counts *c);
/* For a driver that counts all of them, and apart those of the lanes that are rare. */
void store_counts_set_parked(struct store_counts *c, uint64_t all, uint64_t high, uint64_t low);

/* SQLite: 1 row + 3 log heads per shard.  Redis: one script per shard, LLEN and HLEN, pipelined. */
struct store_count {
        struct store_request request;
        uint32_t first_shard;
        uint32_t shards;             /* how many shards from first_shard on */
        struct store_counts *counts; /* room for `shards` */

        uint32_t counted;
};
void store_count(struct store *store, struct store_count *count);

/* --- tasks ------------------------------------------------------------------------------------------------------- */

struct store_listed {
        enum store_state state;
        uint64_t number;          /* seq, or the number within the state; with `state` it names the task for cancel */
        struct envelope envelope; /* of a malformed one: only the payload, which is all of its bytes */
        struct span id;
        struct span key;
        struct task_note note;
        uint64_t due_in_ms; /* DELAYED */
        uint64_t at_ms;     /* DEAD: since when */
        struct span reason; /* DEAD */
        /* DEAD as "too long", and kept apart: how many bytes it has, of which `envelope` has only the first.  0: all of
         * it is here. */
        uint64_t long_bytes;
};

/* Tasks of one shard in one state, in order.
 * SQLite: page rows.  Redis: LRANGE, ZRANGE or HSCAN of a page. */
struct store_list {
        struct store_request request;
        uint32_t shard;
        enum store_state state;
        struct span
                handler; /* only this one's; empty: all.  A page looks at its own number of tasks and may show fewer */
        struct store_cursor cursor;
        uint32_t page_tasks; /* ≤ STORE_CALL_TASKS */

        struct store_listed *tasks;
        uint32_t tasks_count;
        bool is_end;
};
void store_list(struct store *store, struct store_list *list);

/* Looks for a task by its id, a slice at a time: delayed, queued, in flight, parked, dead, the way a task goes, so that
 * one that moves on meanwhile is met later; then in flight again, because a retry goes back there.  What one call sees
 * it sees at one moment: a shard with fewer tasks than a slice at once.  Start it again with the same request until
 * is_end or `task` is set.  SQLite: STORE_FIND_SLICE rows per call.  Redis: the same number of list entries. */
#define STORE_FIND_SLICE 4096u
struct store_find {
        struct store_request request;
        struct span id;
        struct store_cursor cursor;

        const struct store_listed *task; /* NULL: not in this slice */
        bool is_end;
        /* is_end, and no task: it was merged into this one, as far as the shard remembers (STORE_MERGED_KEPT). */
        struct span merged_into;
        uint64_t merged_ms; /* when, store time */
};
void store_find(struct store *store, struct store_find *find);

/* Cancels a task that list or find showed.  Delayed and parked: dead at once.  Queued: dead at the latest when it would
 * have been claimed.  In flight: through its owner.  -EALREADY: it is dead.  -ENOENT: not there any more; find it
 * again. SQLite: 2 rows.  Redis: one script. */
struct store_cancel {
        struct store_request request;
        struct span id;
        struct span key; /* as shown */
        enum store_state state;
        uint64_t number;

        bool is_pending; /* the owner has been told */
};
void store_cancel(struct store *store, struct store_cancel *cancel);

/* Another time for a delayed task that list or find showed.  From then on that time alone counts, also if its envelope
 * names a later one.  The task's history says so.  -ENOENT: it is not delayed any more; find it again.
 * SQLite: 1 row.  Redis: one script. */
struct store_reschedule {
        struct store_request request;
        struct span id;
        uint64_t number;   /* as shown */
        uint64_t delay_ms; /* from now */
        uint64_t at_ms;    /* that time instead, unix milliseconds; 0: none */
};
void store_reschedule(struct store *store, struct store_reschedule *reschedule);

/* Another lane for a waiting task that list or find showed: a mark is left at its old place, and it goes to the tail of
 * that lane, with its note; its history says so.  Within a key lanes are apart, so a task with a key gives up its place
 * among those of its own lane.  Delayed: it joins that lane when it is due.  In flight: through its owner, unless it
 * has started (feature `move`); nobody is told if it has.  -EALREADY: it is in that lane.  -EPERM: it is the first of a
 * key that waits for its retry, or a schedule's, whose overlap is decided by its place.  -ENOENT: it is not there any
 * more, or dead; find it again. SQLite: 2 rows.  Redis: one script. */
struct store_move {
        struct store_request request;
        struct span id;
        struct span key; /* as shown */
        enum store_state state;
        uint64_t number;
        enum lane from; /* as shown */
        enum lane lane;

        bool is_pending; /* the owner has been told */
};
void store_move(struct store *store, struct store_move *move);
/* The request for a task that list or find showed; `done` is for the caller to set.  -EPERM: it has a key, and has to
 * be forced to give up its place among the key's tasks. */
int store_move_fill(const struct store_listed *task, enum lane lane, bool is_forced, struct store_move *ret_move,
        struct error *error);

enum store_dead_verb {
        DEAD_REQUEUE, /* to the tail of its lane, with fresh budgets and its history */
        DEAD_DROP
};

/* Acts on dead tasks of a shard: those with the ids given, then those with the numbers that list showed.  A number is
 * given once: a task that was requeued and is dead again has another one.  Without ids and numbers it only looks.
 * SQLite: 2 rows each.  Redis: one script. */
struct store_dead {
        struct store_request request;
        uint32_t shard;
        enum store_dead_verb verb;
        const struct span *ids;
        uint32_t ids_count; /* ≤ STORE_CALL_TASKS */
        const uint64_t *numbers;
        uint32_t numbers_count; /* ≤ STORE_CALL_TASKS */

        uint32_t looked; /* how many of the numbers were looked at, at least one: ask again with the rest */
        uint32_t acted;
        uint32_t unreadable; /* of those looked at: records that Quiver did not write; they stay as they are */
        uint32_t refused;    /* REQUEUE, of those looked at: they are dead as "too long", and stay so */
        uint64_t last;       /* the highest number given so far, before this request */
};
void store_dead(struct store *store, struct store_dead *dead);

/* Dead tasks counted by handler, reason and the first line of the error, so that many are seen without being read.  A
 * shard keeps STORE_DEAD_GROUPS groups; what finds no place counts in a last one without any names.  The sum is the
 * number of dead tasks.
 * SQLite: as many rows.  Redis: HGETALL. */
#define STORE_DEAD_GROUPS 64u
#define STORE_DEAD_LINE   100u /* bytes of the error */
/* What of an error names its group: up to its first control character. */
struct span store_dead_line(struct span error);
struct store_dead_group {
        struct span handler;
        struct span reason;
        struct span error;
        uint64_t tasks;
};

struct store_dead_groups {
        struct store_request request;
        uint32_t shard;

        struct store_dead_group *groups;
        uint32_t groups_count;
};
void store_dead_groups(struct store *store, struct store_dead_groups *groups);

/* --- keys -------------------------------------------------------------------------------------------------------- */

enum store_key_state {
        KEY_FREE,    /* its tasks are claimed in order of arrival */
        KEY_WAITING, /* more tasks than its share of the window; the rest waits in its side queue */
        KEY_PARKED,  /* its head task waits for its retry */
        KEY_HELD,    /* it waits for a person */
        KEY_NAMED,   /* it waits for a name (names.h) */
        KEY_STATES
};
const char *store_key_state_name(enum store_key_state state);

struct store_key_info {
        uint32_t shard;
        struct span key;
        enum store_key_state state;
        uint64_t tasks;       /* in its side queue */
        uint64_t since_ms;    /* store time of the last change of state */
        uint64_t due_in_ms;   /* PARKED, WAITING; 0: now */
        struct span name;     /* NAMED: what it waits for */
        struct span reason;   /* the error of the retry, or who holds it and why */
        struct span head;     /* id of the first task in the side queue; empty if none */
        uint64_t head_age_ms; /* since its producer submitted it; 0: there is none, or nobody said */
};

/* Keys of a shard that are not free.  SQLite: page rows + heads.  Redis: HSCAN. */
struct store_keys {
        struct store_request request;
        uint32_t shard;
        struct store_cursor cursor;
        uint32_t page_keys;
        struct span key; /* only this one; not paged */

        struct store_key_info *keys;
        uint32_t keys_count;
        bool is_end;
};
void store_keys(struct store *store, struct store_keys *keys);

/* CONTROL_HOLD, UNHOLD, RETRY (now; ends a hold too), SKIP (the head becomes dead, the next is due).  Done at once if
 * nobody owns the shard, else by the owner's next advance.  -ENOENT: UNHOLD, RETRY or SKIP of a key that is not held,
 * nor parked, nor waits for a name.
 * SQLite: 2 rows.  Redis: one script. */
struct store_key_act {
        struct store_request request;
        enum store_control_verb verb;
        struct span key;
        struct span reason; /* HOLD */

        bool is_pending; /* the owner has been told */
};
void store_key_act(struct store *store, struct store_key_act *act);

/* --- desired state and status documents -------------------------------------------------------------------------- */

#define STORE_DESIRED_MAX       256u  /* names */
#define STORE_DESIRED_VALUE_MAX 1024u /* bytes */
#define STORE_STATUS_MAX        8192u /* bytes of one document */
#define STORE_RUNNING_MAX       65536u
#define STORE_HISTORY_MAX       16384u
#define STORE_COUNTERS_MAX      4096u /* names that the app counts; what is beyond is not counted */
#define STORE_COUNTER_NAME_MAX  128u
#define STORE_COUNTERS_PUT      2048u /* of one document */

struct store_desired {
        struct span name; /* "pause", "pause.HANDLER", "drain.HOST", "reload.NONCE" */
        struct span value;
};

/* All of it; it is small.  SQLite: all rows.  Redis: HGETALL. */
struct store_desired_get {
        struct store_request request;

        uint64_t version; /* grows with every change */
        struct store_desired *items;
        uint32_t items_count;
};
void store_desired_get(struct store *store, struct store_desired_get *get);

/* Sets one name, or removes it (has_value = false), and rings every host.  SQLite: 2 rows.  Redis: one script. */
struct store_desired_set {
        struct store_request request;
        struct store_desired item;
        bool has_value;

        uint64_t version;
};
void store_desired_set(struct store *store, struct store_desired_set *set);

/* What a host writes about itself. */
enum store_document {
        DOCUMENT_STATUS,  /* ≤ STORE_STATUS_MAX */
        DOCUMENT_RUNNING, /* what has been running for a while; ≤ STORE_RUNNING_MAX */
        DOCUMENT_DONE,    /* what was done last; as many bytes */
        DOCUMENT_HISTORY, /* its last hour; ≤ STORE_HISTORY_MAX */
        DOCUMENTS
};

/* A number that only grows while a host runs, and that the app adds up over all hosts there ever were.  Absolute, so
 * that a repeated put counts nothing twice. */
struct store_counter {
        struct span name; /* 1 to STORE_COUNTER_NAME_MAX bytes */
        uint64_t before; /* as it was in the last put that was answered; what the store goes by if it has forgotten this
                            host's */
        uint64_t value;
};

/* A host's document about itself; replaces its last one of that kind.  One not renewed within keep_ms is forgotten.
 * SQLite: 1 row, and 2 for each counter that has changed.  Redis: one script. */
struct store_status_put {
        struct store_request request;
        uint8_t nonce[STORE_NONCE_SIZE];
        enum store_document kind;
        struct span document; /* empty: remove it */
        uint64_t keep_ms;
        const struct store_counter *counters; /* STATUS */
        uint32_t counters_count;              /* ≤ STORE_COUNTERS_PUT */
};
void store_status_put(struct store *store, struct store_status_put *put);

struct store_status {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t age_ms;
        struct span document;
};

struct store_total {
        struct span name;
        uint64_t value; /* since the app began */
};

struct store_status_list {
        struct store_request request;
        enum store_document kind;
        bool is_one; /* only the one of `nonce` */
        uint8_t nonce[STORE_NONCE_SIZE];

        struct store_status *items;
        uint32_t items_count;       /* ≤ 1024 */
        struct store_total *totals; /* STATUS: what hosts have counted */
        uint32_t totals_count;      /* ≤ STORE_COUNTERS_MAX */
};
void store_status_list(struct store *store, struct store_status_list *list);

/* --- moving house ------------------------------------------------------------------------------------------------- */

/* A task as another store had it. */
struct store_moved {
        enum store_state state; /* QUEUED, DELAYED or DEAD; whatever was in flight or parked is QUEUED */
        enum lane lane;
        struct span bytes;  /* the envelope; of a malformed one, all there is */
        struct span note;   /* as bytes; empty: none */
        uint64_t due_in_ms; /* DELAYED */
        struct span id;     /* DEAD */
        struct span handler;
        struct span reason;
        uint64_t at_ms;
};

/* How many sources a shard remembers.  One more makes it forget the one that put something in longest ago. */
#define STORE_SOURCES_MAX 64u
#define STORE_SOURCE_SIZE 64u /* bytes of a source's name */

/* Puts tasks into a shard, in the order given: queued ones at the tail of their lanes, with their notes.  All of a
 * request or nothing.  Neither envelopes nor the backlog's limit are checked: what no host can run is found when it is
 * claimed.  Nobody needs a lease for it, as for submit: owners go on meanwhile.
 *
 * Each chunk of a named source is taken once, as what comes from another shard's outbox: the shard keeps the highest
 * number, and a repeat changes nothing.  A source sends a shard's chunks in order, each after the one before it was
 * answered.  One that can begin again (a dump) says which chunk came before: -EAGAIN if the shard does not have it (a
 * failover lost it, or the source was forgotten).  One that cannot (a relay) says 0: a gap is no reason to wait.
 * SQLite: n rows.  Redis: one script. */
struct store_import {
        struct store_request request;
        uint32_t shard;
        struct span source;
        uint64_t number; /* of the chunk; 0: nothing is put in, only `taken` is asked for */
        uint64_t after;  /* the chunk before this one that had something for the shard; 0: none */
        const struct store_moved *items;
        uint32_t items_count; /* ≤ STORE_CALL_TASKS */
        /* Names of submits that may be repeated, whatever the shard may remember at most.  One that it remembers itself
         * stays as it is. */
        const struct store_remembered *names;
        uint32_t names_count; /* ≤ STORE_CALL_TASKS */

        uint64_t taken;      /* the highest number of the source, before this request */
        bool is_repeat;      /* nothing was changed: the shard has this chunk */
        uint32_t names_left; /* names under which the shard remembers another task */
};
void store_import(struct store *store, struct store_import *import);

/* What a shard remembers of submits that may be repeated, but for what is over by now.  SQLite: page rows.  Redis: one
 * script, O(page). */
struct store_remembered_list {
        struct store_request request;
        uint32_t shard;
        struct span after;   /* the scope of the last record of the page before; empty: from the first */
        uint32_t page_names; /* cut to STORE_CALL_TASKS; 0: that */

        struct store_remembered *names;
        uint32_t names_count;
        uint32_t unreadable; /* records of the page that are not among them: fsck names them */
        struct span next;    /* the page after this one comes after it */
        bool is_end;
};
void store_remembered_list(struct store *store, struct store_remembered_list *list);

/* --- proof ------------------------------------------------------------------------------------------------------- */

/* Counts a shard's tasks one by one and compares: every task in exactly one state, all counters right, every side queue
 * with its key, no record without its task.  Reads all of the shard, in a snapshot.
 *
 * With is_repair it mends what it can without losing a task: an index that lacks an entry or has one too many, a count.
 * A task under a number that nobody gave becomes dead, with its bytes.  -EAGAIN if somebody owns the shard. */
struct store_fsck {
        struct store_request request;
        uint32_t shard;
        bool is_repair;

        uint64_t tasks;     /* seen */
        uint32_t problems;  /* 0: the shard is sound */
        uint32_t mended;    /* problems that were repaired */
        struct span report; /* one line each, the first 64; of a repair all */
};
void store_fsck(struct store *store, struct store_fsck *fsck);

#endif
