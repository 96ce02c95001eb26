/* redis_store.h: the store on Redis.  Everything runs on the loop; each atomic step is a script (lua/).
 *
 *         open.c, writable.c  opening, the app's record, whether the server takes writes
 *         bell.c              the doorbell
 *         call.c              an operation is one or more commands; answers
 *         scripts.c           msgpack.c
 *         shard/              the hot path: submit, lease, advance, claimed tasks, follow-ups for other shards
 *         records/            results, replies, rooms, mailboxes, wanting, limits, schedules
 *         admin/              the app, tasks, keys, desired state, import, fsck
 *         lua/                the scripts in the same three folders, and lib/: what they share
 *
 * README.md has the keys. */
#ifndef QUIVER_STORE_REDIS_STORE_H
#define QUIVER_STORE_REDIS_STORE_H

#include <uv.h>

#include "redis/redis.h"
#include "store/driver.h"
#include "store/redis/scripts.h"

/* Number of keys that every script of a shard is given (call.c). */
#define SHARD_KEYS 7

/* A claimed task that is still an element of its lane's list. */
struct redis_place {
        uint32_t size;
        uint32_t sum : 31; /* checksum of its first bytes; that of the last done one lets the store verify that no
                              element has moved */
        uint32_t is_done : 1;
};

/* The driver's view of a lane's list (lane.c). */
struct redis_lane {
        struct redis_place *places; /* the claimed tasks, which are the list's first elements */
        uint32_t count;
        uint32_t room;
        uint64_t bytes;   /* size of these elements */
        uint32_t average; /* moving average of element sizes; 0: none was seen */
        uint64_t base;    /* number of the first of these elements, minus one */
        char *last; /* first bytes of the element that was claimed last: proof that nobody else changed the list */
        uint32_t last_size, last_room; /* of `last`, which is kept while the view is unknown */
        uint64_t last_number;
        uint32_t small; /* unclaimed elements that are known to be small, or above: see LANE_SMALL_ONLY */
        uint32_t calls; /* how many more calls look at this lane although it is empty; `normal` is always looked at */
};

/* Whether the driver's view of a shard's lists agrees with the store. */
enum redis_view {
        VIEW_UNKNOWN, /* not acquired here, or a call is unanswered: the next call tells the store to look itself */
        VIEW_EMPTY,   /* no in-flight task is in a list */
        VIEW_KNOWN,
};

/* The driver's state for a shard. */
struct redis_shard {
        char *keys; /* names of the keys that every script gets, each with its NUL; made when first needed */
        uint16_t key_sizes[SHARD_KEYS];
        uint64_t backlog; /* estimated number of queued tasks; UINT64_MAX: unknown */
        bool is_watched;  /* we hold or want the shard, so our own writes to it ring, too */
        uint8_t singles;  /* how many more advances are sent alone, because advance_many.lua refused one */
        bool has_no_keys; /* as of the last answer: no key waits, so a DONE needs no refill */
        enum redis_view view;
        struct redis_lane lanes[LANES];
};

struct redis_store {
        struct store store; /* first member */
        uv_loop_t *loop;
        struct redis *redis;
        struct redis_open redis_open;
        struct redis_events events;
        struct scripts scripts;
        struct redis_shard *shards;
        char *app_key;     /* quiver:{APP}:app, which rings when the desired state changes */
        char *mail_key;    /* quiver:{APP:NONCE}:mail, our own mailbox */
        char *wanting_key; /* quiver:{APP}:wantingset, which rings when some host wants to borrow seats */
        uint8_t nonce[STORE_NONCE_SIZE];
        char *url;

        struct advance_many *many; /* advances of this turn that will be sent together; NULL: none */
        uv_idle_t unsent;          /* active while `many` is set */

        struct store_bell bell; /* without functions if nobody listens */
        uv_async_t soon;        /* finishes requests that need no server */
        uv_timer_t timer;       /* polls for replies and, without a bell, everything */
        unsigned handles;       /* libuv handles that are not closed yet */
        struct store_request *deferred;
        struct store_request **deferred_tail;
        struct store_request *waiting; /* store_reply requests that wait for a ring */
        uint64_t poll_ms;              /* polling interval if Redis does not ring; 0: it does */

        uint32_t wait_replicas;  /* number of replicas that a submit waits for */
        struct error no_scripts; /* why this user may not run submit.lua on this connection; "": it may */
        char wait_name[32];      /* with a number, names the marks by which a submit recognises its writes */
        uint64_t waits;
        bool is_cluster;
        bool is_host;
        bool has_no_info; /* the user may not call INFO */
        bool has_bell;    /* the bell was requested, whether it rings or not */
        bool is_checking; /* a check of the app's record is under way */
        struct store_request checking;

        struct store_open *open; /* NULL once the open request is finished */
        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

/* --- call.c --- */

/* One request under way; allocated in the request's arena. */
struct redis_op {
        struct redis_store *s;
        struct store_request *request;
        void (*after)(struct redis_op *op); /* called when all commands are answered; NULL: finishes the request */
        uint32_t pending;
        void *self; /* the operation's own state */
};

/* One command of a redis_op. */
struct redis_call {
        struct redis_command command; /* first member */
        struct redis_op *op;
        /* Called on success; `reply` is borrowed until it returns.  NULL: the answer is ignored. */
        void (*answer)(struct redis_call *call, const redisReply *reply);
        /* Called on failure instead of failing the request.  NULL: the request fails. */
        void (*failed)(struct redis_call *call);
        uint32_t shard;
        uint32_t number; /* for the caller */
        const char **argv;
        size_t *sizes;
};

struct redis_op *op_begin(struct redis_store *s, struct store_request *request);
/* Sets the request's error; only the first one counts. */
__attribute__((format(printf, 3, 4))) void op_fail(struct redis_op *op, int status, const char *format, ...);
/* Fails the request: the answer makes no sense.  Another server, or a bug of ours. */
void op_bad_answer(struct redis_op *op);
/* Fails the request: the named value in the answer is out of range. */
void op_bad_value(struct redis_op *op, const char *name);

/* Call it when a command of the operation that is not a redis_call was answered. */
void op_answered(struct redis_op *op);

/* A command, with room for `args` arguments after its name. */
struct redis_call *call_new(struct redis_op *op, const char *name, unsigned args);
/* Collects arguments for a command that is assembled elsewhere; never sent itself. */
struct redis_call *call_arguments(struct redis_op *op, unsigned args);
/* Calls a script of a shard, with the shard's keys in place and room for `args` arguments. */
struct redis_call *call_script(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args);
/* Like call_script(), but with only the keys of the common case, and without those that are passed only to ring. */
struct redis_call *call_script_unrung(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args);
/* Calls a script of the app; the caller first adds its `keys` key names with call_put(). */
struct redis_call *call_script_keys(struct redis_op *op, enum script_number script, unsigned keys, unsigned args);
/* Appends an argument, which is borrowed until the answer. */
void call_put(struct redis_call *call, struct span argument);
void call_put_number(struct redis_call *call, uint64_t number);
/* Appends an argument that is formatted into the request's arena. */
__attribute__((format(printf, 2, 3))) void call_printf(struct redis_call *call, const char *format, ...);
/* Appends "held EPOCH NONCE", which scripts compare with the shard's lease. */
void call_put_lease(struct redis_call *call, const struct store_lease *lease);
/* Sends the command; keys that it reads will ring. */
void call_send_tracked(struct redis_call *call);
void call_send(struct redis_call *call);
/* Sends the command; keys that it reads need not ring. */
void call_send_untracked(struct redis_call *call);
/* Sends a command without a key to the server that has `key`. */
void call_send_to(struct redis_call *call, struct span key);

/* Names of keys, allocated in the request's arena. */
struct span key_of_shard(struct redis_op *op, uint32_t shard, const char *name);
struct span key_of_app(struct redis_op *op, const char *name);
struct span key_of_lane(struct redis_store *s, uint32_t shard, enum lane lane);
/* Names of `…shard` and of the keys that ring besides it and `normal`; those usually do not exist. */
struct span key_of_lease(struct redis_store *s, uint32_t shard);
#define RARE_KEYS 4
struct span key_of_rare(struct redis_store *s, uint32_t shard, unsigned which);

/* Reading answers.  A number that is absent or above `max` reads as 0 and fails the request with `name`.  Unexpected
 * texts and lists read as empty. */
struct span reply_span(const redisReply *reply);
uint64_t answer_number(struct redis_op *op, const redisReply *reply, uint64_t max, const char *name);
bool answer_bool(struct redis_op *op, const redisReply *reply, const char *name);
/* A due time; -1 is STORE_NEVER. */
uint64_t answer_due(struct redis_op *op, const redisReply *reply);
/* NULL if it is not an array with more than `index` elements. */
const redisReply *reply_at(const redisReply *reply, size_t index);
size_t reply_count(const redisReply *reply);
bool reply_is_fenced(const redisReply *reply);
/* The version of the desired state; 0 if it cannot be read: versions are only compared, and the next change writes a
 * new one. */
uint64_t version_read(const redisReply *reply);
void nonce_text(const uint8_t nonce[STORE_NONCE_SIZE], char ret_text[2 * STORE_NONCE_SIZE + 1]);
/* Parses lower-case hexadecimal digits of exactly that many bytes; false if it is something else. */
bool nonce_read(struct span text, uint8_t ret_nonce[STORE_NONCE_SIZE]);

/* --- app.c --- */

/* Reads the app's record, or creates it; the request's status says whether opening may go on. */
void record_open(struct redis_op *op);
/* A host writes the app's record again if the server has lost it. */
void record_check(struct redis_store *s);

/* --- writable.c --- */

/* Describes a server's refusal to write, and what to do about it. */
void refusal_describe(const struct redis_store *s, const struct redis_command *command, char *text, size_t size);
/* Asks, besides the operation's own commands, whether the server takes writes; the answer is in store.refuses. */
void writable_ask(struct redis_op *op);

/* --- bell.c --- */

/* Finishes a request that needs no command, later from the loop. */
void op_defer(struct redis_store *s, struct store_request *request);
void bell_init(struct redis_store *s, const struct store_options *options);
/* Requests the bell if not done yet.  A user who only submits needs none, and may lack the right. */
void bell_want(struct redis_store *s);
/* Rings for a write of our own, which Redis does not report to us. */
void bell_own_write(struct redis_store *s, uint32_t shard);
void bell_own_desired(struct redis_store *s);
void bell_own_mail(struct redis_store *s, const uint8_t nonce[STORE_NONCE_SIZE]);
void bell_own_wanting(struct redis_store *s);
void bell_own_room(struct redis_store *s, uint32_t shard);
/* Sets the timer to the next due time. */
void bell_set_timer(struct redis_store *s);

/* --- outcomes.c --- */

/* Packs outcomes that are more than plain DONE for advance.lua; allocated in the arena. */
struct span outcomes_pack(const struct store *store, const struct store_advance *advance, struct arena_chunk **arena);

/* --- lane.c --- */

/* Most claimed elements, and bytes of them, that may stay in a list behind one that takes long.  Beyond that the next
 * claim moves them to the in-flight hash. */
#define LANE_PLACES_MAX 2048u
#define LANE_BYTES_MAX  (1024u * 1024u)

/* Most elements of unknown size that may be read at once, if the longest possible ones fit into LANE_FRESH_BYTES. */
#define LANE_FRESH_MAX   64u
#define LANE_FRESH_BYTES (64u * 1024u * 1024u)
/* Number of list nodes that MEMORY USAGE samples to estimate element sizes: LANE_SAMPLES, which cover 256 KiB, and one
 * more per LANE_SAMPLE_BYTES of claimed elements. */
#define LANE_SAMPLES      66u
#define LANE_SAMPLE_BYTES 4096u
/* If the elements of a list are large, redis_lane.small is this plus the number of elements that may be read at
 * once. */
#define LANE_SMALL_ONLY 4096u
/* A lane that had tasks is read for this many more calls. */
#define LANE_CALLS 64u

/* First bytes of an element that are compared to recognise it; everything that identifies a task is in them. */
#define LANE_LOOK_BYTES 512u

/* Forgets the claimed elements: none is in the list any more, or the list's state is unknown. */
void lane_forget(struct redis_lane *lane);
/* Appends a claimed element. */
void lane_add(struct redis_lane *lane, struct span bytes);
/* Remembers number and first bytes of the element that was claimed last; empty bytes: forgets it. */
void lane_remember(struct redis_lane *lane, uint64_t number, struct span bytes);
/* First bytes of the element that was claimed last; empty if unknown. */
struct span lane_last(const struct redis_lane *lane);
/* Element size above which a list is taken to have large elements: twice the average, and Redis's overhead. */
uint64_t lane_large(const struct redis_lane *lane);
/* Whether the element with that number is in the list. */
bool lane_has(const struct redis_lane *lane, uint64_t number);
/* Updates the average size with an element that was read. */
void lane_see(struct redis_lane *lane, struct span bytes);
enum lane_mark { LANE_DONE, LANE_GONE /* it was done already */, LANE_ELSEWHERE /* it is not in the list */ };
enum lane_mark lane_mark_done(struct redis_lane *lane, uint64_t number);
/* Forgets the done elements at the head; returns their number. */
uint32_t lane_trim(struct redis_lane *lane);
/* Appends the done marks as the store keeps them behind the count: nothing, or ":DONE:SUM". */
void lane_text(const struct redis_lane *lane, struct buffer *text);
void view_forget(struct redis_shard *shard, enum redis_view view);
/* The shard was acquired: no in-flight task is in a list. */
void view_begin(struct redis_store *s, uint32_t shard);

/* --- advance_many.c --- */

/* Sends the advances that were collected in this turn. */
void many_flush(struct redis_store *s);
/* Finishes them with -ECANCELED: the store is closed. */
void many_cancel(struct redis_store *s);

/* --- claimed.c --- */

/* Most tasks on a page of the in-flight table. */
#define CLAIMED_MAX STORE_CALL_TASKS

/* Collects the tasks that a script returned.  A second script sets aside those that no host can run, before the request
 * is finished. */
struct redis_claim {
        struct store_task *tasks;
        uint32_t count;
        uint32_t room;
        uint64_t bytes;
        uint64_t now_ms;
        uint32_t shard;
        struct buffer aside; /* msgpack of the tasks to set aside, without the count */
        uint32_t aside_count;
        uint32_t dead_count;
};
void claimed_init(struct redis_claim *c, struct redis_op *op, uint32_t shard, uint32_t room, uint64_t now_ms);
void claimed_add(
        struct redis_claim *c, struct redis_op *op, uint64_t seq, struct span bytes, struct span note, bool is_waiting);
/* Copies the tasks from index `from` on out of the answer's memory, which is about to be freed. */
void claimed_keep(struct redis_claim *c, struct redis_op *op, uint32_t from);
/* Sends the tasks to set aside, if any, and copies the others out of the answer's memory.  True if it was sent;
 * `answer` then gets aside.lua's reply. */
bool claimed_set_aside(struct redis_claim *c, struct redis_op *op, const struct store_lease *lease,
        void (*answer)(struct redis_call *call, const redisReply *reply));

/* --- reply.c --- */

/* A reply may have been stored: looks for it again. */
void replies_look(struct redis_store *s);

/* --- rights.c --- */

bool redis_rights(const struct store_options *options, enum store_role role, struct rights *to);

/* --- operations --- */

typedef void redis_operation(struct redis_store *s, struct store_request *request);
#define REDIS_OPERATION(number, function, text, kind) redis_operation redis_##function;
STORE_OPERATIONS(REDIS_OPERATION)

#endif
