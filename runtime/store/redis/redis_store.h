/* redis_store.h: the store on Redis.  Everything is on the loop; what is atomic is a script (lua/).
 *
 *         open.c, writable.c  opening, what is recorded, whether the server takes writes
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

/* How many keys every script of a shard is given: see call.c. */
#define SHARD_KEYS 7

/* A task that was claimed and stands in its lane's list still. */
struct redis_place {
        uint32_t size;
        uint32_t
                sum : 31; /* of its first bytes: by the last done one's the store tells that all stand in their place */
        uint32_t is_done : 1;
};

/* What the driver knows of a lane's list: see lane.c. */
struct redis_lane {
        struct redis_place *places; /* of the list's first elements, which are claimed */
        uint32_t count;
        uint32_t room;
        uint64_t bytes;   /* of these elements */
        uint32_t average; /* how many bytes elements had of late; 0: none was seen */
        uint64_t base;    /* the number before that of the first of them */
        char *last;       /* the first bytes of the element that was claimed last, by which the store tells whether */
        uint32_t last_size, last_room; /* others have changed the list; kept while the view is unknown */
        uint64_t last_number;
        uint32_t small; /* how many of the elements behind them are known to be so; from LANE_SMALL_ONLY on see below */
        uint32_t calls; /* for so many more calls it is looked at, though it was empty; unless it is `normal` */
};

/* Whether the store has what the driver knows of a shard's lists. */
enum redis_view {
        VIEW_UNKNOWN, /* not acquired here, or a call was not answered: the next call tells the store to look itself */
        VIEW_EMPTY,   /* nothing that is in flight stands in a list */
        VIEW_KNOWN,
};

/* What the driver remembers of a shard. */
struct redis_shard {
        char *keys; /* those that every script of the shard is given, each with its NUL; made when first needed */
        uint16_t key_sizes[SHARD_KEYS];
        uint64_t backlog; /* as far as we know; UINT64_MAX: we do not */
        bool is_watched;  /* we hold or want it: whoever listens is told of what we write there ourselves */
        uint8_t singles;  /* for so many more calls its advances are sent alone: one with others was no common case */
        bool has_no_keys; /* as of the last answer: all keys are free, so that what is done is all there is to say */
        enum redis_view view;
        struct redis_lane lanes[LANES];
};

struct redis_store {
        struct store store; /* first */
        uv_loop_t *loop;
        struct redis *redis;
        struct redis_open redis_open;
        struct redis_events events;
        struct scripts scripts;
        struct redis_shard *shards;
        char *app_key;     /* quiver:{APP}:app, which rings when the desired state changes */
        char *mail_key;    /* quiver:{APP:NONCE}:mail, our own */
        char *wanting_key; /* quiver:{APP}:wantingset, which rings when some host wants help */
        uint8_t nonce[STORE_NONCE_SIZE];
        char *url;

        struct advance_many *many; /* advances that wait for others of this turn; NULL: none */
        uv_idle_t unsent;          /* active while there are some */

        struct store_bell bell; /* no functions: nobody listens */
        uv_async_t soon;        /* ends what needs no server */
        uv_timer_t timer;       /* looks again for replies and, without a bell, everywhere */
        unsigned handles;       /* of these that are not closed yet */
        struct store_request *deferred;
        struct store_request **deferred_tail;
        struct store_request *waiting; /* store_reply requests that wait for a ring */
        uint64_t poll_ms;              /* how often to look where Redis does not ring; 0: it does */

        uint32_t wait_replicas; /* a submit waits for so many */
        struct error
                no_scripts; /* why this user may not run the script of submits, as of this connection; "": it may */
        char wait_name[32]; /* a submit knows what it wrote by this name and a number */
        uint64_t waits;
        bool is_cluster;
        bool is_host;
        bool has_no_info; /* INFO is not this user's */
        bool has_bell;    /* asked for, whether it rings or not */
        bool is_checking; /* whether the app is still recorded */
        struct store_request checking;

        struct store_open *open; /* until it is finished */
        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

/* --- call.c ------------------------------------------------------------------------------------------------------ */

/* One request under way; stands in the request's arena. */
struct redis_op {
        struct redis_store *s;
        struct store_request *request;
        void (*after)(struct redis_op *op); /* when all commands are answered; NULL: the request is finished */
        uint32_t pending;
        void *self; /* the operation's own */
};

/* One command of it. */
struct redis_call {
        struct redis_command command; /* first */
        struct redis_op *op;
        /* Only if the server said yes; borrowed until it returns.  NULL: there is nothing to read. */
        void (*answer)(struct redis_call *call, const redisReply *reply);
        /* Instead of failing the request.  NULL: the request fails with the first command that does. */
        void (*failed)(struct redis_call *call);
        uint32_t shard;
        uint32_t number; /* the caller's own */
        const char **argv;
        size_t *sizes;
};

struct redis_op *op_begin(struct redis_store *s, struct store_request *request);
/* The request's error; the first one counts. */
__attribute__((format(printf, 3, 4))) void op_fail(struct redis_op *op, int status, const char *format, ...);
/* An answer that makes no sense: somebody else's server, or our own bug. */
void op_bad_answer(struct redis_op *op);
/* The same, of the value in it that is called so. */
void op_bad_value(struct redis_op *op, const char *name);

/* A command of the operation was answered that is not a redis_call. */
void op_answered(struct redis_op *op);

/* A command with room for `args` arguments besides its name. */
struct redis_call *call_new(struct redis_op *op, const char *name, unsigned args);
/* Arguments of a command that is put together elsewhere; it is not sent itself. */
struct redis_call *call_arguments(struct redis_op *op, unsigned args);
/* A script of a shard, with its keys in place and room for `args` arguments. */
struct redis_call *call_script(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args);
/* Only with the keys that the common case touches, and without those that are there to ring. */
struct redis_call *call_script_unrung(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args);
/* A script of the app: `keys` key names, which call_put() then adds first. */
struct redis_call *call_script_keys(struct redis_op *op, enum script_number script, unsigned keys, unsigned args);
/* What is put is borrowed until the answer. */
void call_put(struct redis_call *call, struct span argument);
void call_put_number(struct redis_call *call, uint64_t number);
/* A copy, in the request's arena. */
__attribute__((format(printf, 2, 3))) void call_printf(struct redis_call *call, const char *format, ...);
/* "held EPOCH NONCE": what a script compares with what the shard says. */
void call_put_lease(struct redis_call *call, const struct store_lease *lease);
/* Its reads arm the bell. */
void call_send_tracked(struct redis_call *call);
void call_send(struct redis_call *call);
/* What it reads need not ring. */
void call_send_untracked(struct redis_call *call);
/* One without a key: to the server that has this one. */
void call_send_to(struct redis_call *call, struct span key);

/* Names of keys, in the request's arena. */
struct span key_of_shard(struct redis_op *op, uint32_t shard, const char *name);
struct span key_of_app(struct redis_op *op, const char *name);
struct span key_of_lane(struct redis_store *s, uint32_t shard, enum lane lane);
/* `…shard`, and the keys that ring besides it and the lists: they are usually not there. */
struct span key_of_lease(struct redis_store *s, uint32_t shard);
#define RARE_KEYS 4
struct span key_of_rare(struct redis_store *s, uint32_t shard, unsigned which);

/* Answers.  A number has a range: one that is not there or beyond `max` reads as 0, and the request fails with its
 * name. Of texts and lists anything unexpected reads as nothing. */
struct span reply_span(const redisReply *reply);
uint64_t answer_number(struct redis_op *op, const redisReply *reply, uint64_t max, const char *name);
bool answer_bool(struct redis_op *op, const redisReply *reply, const char *name);
/* A time to come; -1 is STORE_NEVER. */
uint64_t answer_due(struct redis_op *op, const redisReply *reply);
/* NULL if it is not an array with so many elements. */
const redisReply *reply_at(const redisReply *reply, size_t index);
size_t reply_count(const redisReply *reply);
bool reply_is_fenced(const redisReply *reply);
/* The version of the desired state.  0 if it cannot be read: it is only compared, and the next change writes another.
 */
uint64_t version_read(const redisReply *reply);
void nonce_text(const uint8_t nonce[STORE_NONCE_SIZE], char ret_text[2 * STORE_NONCE_SIZE + 1]);
/* As many bytes as asked for, in lower case; false if it is something else. */
bool nonce_read(struct span text, uint8_t ret_nonce[STORE_NONCE_SIZE]);

/* --- app.c ------------------------------------------------------------------------------------------------------- */

/* Reads what is recorded about the app, or records it; the request's status says whether we may go on. */
void record_open(struct redis_op *op);
/* A host records the app anew if the server has lost it. */
void record_check(struct redis_store *s);

/* --- writable.c -------------------------------------------------------------------------------------------------- */

/* What a server said that takes no writes, in words that say what to do. */
void refusal_describe(const struct redis_store *s, const struct redis_command *command, char *text, size_t size);
/* Asks whether it does, besides what the operation is for; store.refuses has the answer. */
void writable_ask(struct redis_op *op);

/* --- bell.c ------------------------------------------------------------------------------------------------------ */

/* Ends a request that needs no command: not now, but soon. */
void op_defer(struct redis_store *s, struct store_request *request);
void bell_init(struct redis_store *s, const struct store_options *options);
/* Asks for the bell, unless that was done: whoever only submits needs none, and may lack the right to it. */
void bell_want(struct redis_store *s);
/* We wrote to a shard ourselves, which Redis does not tell us. */
void bell_own_write(struct redis_store *s, uint32_t shard);
void bell_own_desired(struct redis_store *s);
void bell_own_mail(struct redis_store *s, const uint8_t nonce[STORE_NONCE_SIZE]);
void bell_own_wanting(struct redis_store *s);
void bell_own_room(struct redis_store *s, uint32_t shard);
/* Sets the timer to whatever is next. */
void bell_set_timer(struct redis_store *s);

/* --- outcomes.c -------------------------------------------------------------------------------------------------- */

/* What advance.lua is given of outcomes that are not simply done; in the arena. */
struct span outcomes_pack(const struct store *store, const struct store_advance *advance, struct arena_chunk **arena);

/* --- lane.c ------------------------------------------------------------------------------------------------------ */

/* So many claimed elements, and so many bytes of them, may stand in a list behind one that takes long.  Beyond that the
 * next call that claims has them moved to the in-flight hash. */
#define LANE_PLACES_MAX 2048u
#define LANE_BYTES_MAX  (1024u * 1024u)

/* So many elements of a list may be read of which the store has said nothing yet, if they fit into so many bytes. */
#define LANE_FRESH_MAX   64u
#define LANE_FRESH_BYTES (64u * 1024u * 1024u)
/* How many nodes of a list tell how large its elements are: these, which have 256 KiB, and one for each so many bytes
 * that are claimed. */
#define LANE_SAMPLES      66u
#define LANE_SAMPLE_BYTES 4096u
/* Where the elements of a list are large no more than so many above this may be read at once. */
#define LANE_SMALL_ONLY 4096u
/* For so many calls a lane is read that had something. */
#define LANE_CALLS 64u

/* Of so many of an element's first bytes it is told whether it is the same; all that identifies a task stands there. */
#define LANE_LOOK_BYTES 512u

/* Nothing of it stands in the list any more, or it is not known what does. */
void lane_forget(struct redis_lane *lane);
/* The next element was claimed. */
void lane_add(struct redis_lane *lane, struct span bytes);
/* The last element that was claimed, of that number; empty bytes: forget it. */
void lane_remember(struct redis_lane *lane, uint64_t number, struct span bytes);
/* Its first bytes; empty if none is known. */
struct span lane_last(const struct redis_lane *lane);
/* Beyond so many bytes, twice those of elements so far and what Redis adds, there is a large one among the next. */
uint64_t lane_large(const struct redis_lane *lane);
/* Whether the element of that number stands in the list. */
bool lane_has(const struct redis_lane *lane, uint64_t number);
/* An element was read. */
void lane_see(struct redis_lane *lane, struct span bytes);
enum lane_mark { LANE_DONE, LANE_GONE /* it was done before */, LANE_ELSEWHERE /* it does not stand in the list */ };
enum lane_mark lane_mark_done(struct redis_lane *lane, uint64_t number);
/* Forgets those at the head that are done.  Returns how many. */
uint32_t lane_trim(struct redis_lane *lane);
/* Which of them are done, as the store keeps it behind their count: nothing, or ":DONE:SUM". */
void lane_text(const struct redis_lane *lane, struct buffer *text);
void view_forget(struct redis_shard *shard, enum redis_view view);
/* The shard was acquired: nothing stands in a list that is in flight. */
void view_begin(struct redis_store *s, uint32_t shard);

/* --- advance_many.c ---------------------------------------------------------------------------------------------- */

/* Sends the advances that wait for others of this turn. */
void many_flush(struct redis_store *s);
/* Ends them with -ECANCELED: the store is closed. */
void many_cancel(struct redis_store *s);

/* --- claimed.c --------------------------------------------------------------------------------------------------- */

/* How many tasks a page of the in-flight table may have. */
#define CLAIMED_MAX STORE_CALL_TASKS

/* What a script returned as claimed or in flight, one by one; whatever no host can run is set aside in the store, by a
 * second script, before the request is finished. */
struct redis_claim {
        struct store_task *tasks;
        uint32_t count;
        uint32_t room;
        uint64_t bytes;
        uint64_t now_ms;
        uint32_t shard;
        struct buffer aside; /* msgpack of what has to go, without the count */
        uint32_t aside_count;
        uint32_t dead_count;
};
void claimed_init(struct redis_claim *c, struct redis_op *op, uint32_t shard, uint32_t room, uint64_t now_ms);
void claimed_add(
        struct redis_claim *c, struct redis_op *op, uint64_t seq, struct span bytes, struct span note, bool is_waiting);
/* What was added from the `from`-th on is kept though the answer that it came with goes. */
void claimed_keep(struct redis_claim *c, struct redis_op *op, uint32_t from);
/* Sends what has to go, if anything, and keeps the rest: their bytes die with the answer.  True if it was sent;
 * `answer` then gets what aside.lua says. */
bool claimed_set_aside(struct redis_claim *c, struct redis_op *op, const struct store_lease *lease,
        void (*answer)(struct redis_call *call, const redisReply *reply));

/* --- reply.c ----------------------------------------------------------------------------------------------------- */

/* Someone may have answered: look again. */
void replies_look(struct redis_store *s);

/* --- rights.c ---------------------------------------------------------------------------------------------------- */

bool redis_rights(const struct store_options *options, enum store_role role, struct rights *to);

/* --- operations -------------------------------------------------------------------------------------------------- */

typedef void redis_operation(struct redis_store *s, struct store_request *request);
#define REDIS_OPERATION(number, function, text, kind) redis_operation redis_##function;
STORE_OPERATIONS(REDIS_OPERATION)

#endif
