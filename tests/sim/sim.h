/* sim.h: a fleet in one thread, with a clock of its own: the real shard_io, call_schedule, dispatch, shard, window,
 * assign, assigner, member and leader, on a store, a tree and a network that are made of a few hundred lines and a
 * random number.
 *
 * Everything that happens is an event in one queue; a seed gives the same run again.  Messages are lost, delayed,
 * doubled and late; hosts are paused, cut off, killed (with and without a guard) and started anew.  After every event
 * the promises are checked (sim_check.c). */
#ifndef QUIVER_TESTS_SIM_H
#define QUIVER_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "coord/driver.h"
#include "coord/leader.h"
#include "coord/member.h"
#include "host/handler/dispatch.h"
#include "host/lend/borrower.h"
#include "host/limit/limit.h"
#include "host/membership/assigner.h"
#include "host/shard/shard_io.h"
#include "ring/leases.h"
#include "store/driver.h"
#include "store/names.h"
#include "store/schedules.h"

#define HOSTS       3
#define SHARDS      8
#define SHARD_TASKS 60 /* that will ever be submitted to a shard */
#define SHARD_KEYS  4  /* of a shard */
#define LEND_KEY    3  /* tasks of this key may run on other hosts' seats; they keep their order all the same */
#define POOLS       2  /* of a host: keys of even and of odd numbers are two handlers' */
#define POOL_SEATS  2
/* That keys wait for: each pool, the limit that it is under, and the same limit for each key. */
#define NAMES       (2 * POOLS + SHARD_KEYS)
#define SEATS       (POOLS * POOL_SEATS)
#define BATCH_POOL  1 /* has ordered batches */
#define RUN_MAX     4
#define CALLS_MAX   3 /* advances of a host at once, as long as the store is near */
#define CALLS_GROUP 2 /* of these that a host makes together */
#define TTL_MS      1000
#define DRAIN_MS    300
#define SESSION_MS  1000
#define GRACE_MS    100
#define WINDOW      16
#define CALL_MAX    STORE_CALL_TASKS

struct sim;
struct sim_host;
struct sim_seat;

/* --- the queue: sim.c --- */

struct event {
        uint64_t at_ms;
        uint64_t number; /* first come, first served */
        void (*run)(struct sim *sim, void *arg);
        void *arg;               /* freed after it ran, unless there is a `drop`: */
        void (*drop)(void *arg); /* run() takes it; else, should it never run, this frees it */
        /* Not NULL: it happens inside that host, if it still lives; while it is paused, later. */
        struct sim_host *host;
        uint64_t life;
};

/* `arg` is malloc'd, or NULL. */
void sim_at(struct sim *sim, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg);
void sim_at_owned(struct sim *sim, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg,
        void (*drop)(void *arg));
void sim_at_host(struct sim_host *host, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg);
/* 0 … below - 1. */
uint32_t sim_draw(struct sim *sim, uint32_t below);
/* Once in `odds`, while there is trouble. */
bool sim_happens(struct sim *sim, uint32_t odds);
/* How long a message takes. */
uint64_t sim_travel_ms(struct sim *sim);
_Noreturn void sim_fail(const struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- the store: sim_store.c --- */

enum task_state { TASK_COMING, TASK_QUEUED, TASK_FLIGHT, TASK_PARKED, TASK_DONE, TASK_MERGED };

struct sim_task {
        enum task_state state;
        uint32_t key;
        bool is_suspect;
        uint64_t started_epoch;   /* its mark; 0: none */
        uint64_t worker_until_ms; /* its mark is that of a worker, which may run it until then; 0: it is not */
        struct work_fence seat;   /* worker_until_ms: it is that of a borrowed seat; 0: it is not */
        uint8_t seat_nonce[STORE_NONCE_SIZE];
        uint32_t done_count;
        bool may_merge, is_debounced;
        uint64_t debounce_ms, arrived_ms;
        uint32_t payload; /* the number of the task whose payload it has */
        uint32_t into;    /* MERGED */
        uint32_t replies; /* MERGED: outcomes that who waits for it got */
};

/* What a key waits for in the store. */
enum sim_key_state { SIM_KEY_FREE, SIM_KEY_WAITING, SIM_KEY_NAMED };

struct sim_key {
        enum sim_key_state state;
        uint64_t due_ms;   /* WAITING */
        uint32_t name;     /* NAMED */
        uint64_t since_ms; /* NAMED */
};

struct sim_store_shard {
        struct sim_task tasks[SHARD_TASKS];
        struct sim_key keys[SHARD_KEYS];
        uint32_t arrived; /* tasks that were submitted: in state QUEUED or later */
        uint32_t taken;   /* of those, have been claimed */
        uint64_t epoch, until_ms, call;
        bool is_unrung; /* the owner calls again, and is not rung for what comes before that */
        uint8_t holder[STORE_NONCE_SIZE];
        bool is_held;
        uint64_t want_epoch, want_until_ms, want_firm_ms;
        uint32_t last[CALL_MAX]; /* what the last call claimed */
        uint32_t last_count;
        char schedule[16];    /* the name of its schedule */
        uint64_t schedule_ms; /* when that fires next */
        uint64_t times_fired;
        uint64_t unowned_ms; /* since when nobody's lease lasts; 0: somebody's does */
        struct sim_report {
                struct work_fence fence;
                bool is_outcome;
        } reports[STORE_CALL_CONTROLS]; /* the control list */
        uint32_t reports_count;
        struct sim_report last_reports[STORE_CALL_CONTROLS]; /* what the last call returned of it */
        uint32_t last_reports_count;
};

/* One call on its way; a copy of everything. */
struct sim_call {
        struct sim_host *host;
        uint64_t life;
        struct store_request *request; /* the host's own, which an answer goes to */
        unsigned op;
        size_t size;     /* of the request's struct */
        uint32_t shard;  /* SHARDS: all, a renewal */
        uint64_t number; /* of this sending: an answer counts once, and only for the sending that waits */
        union {
                struct store_acquire acquire;
                struct store_in_flight page;
                struct store_advance advance;
                struct store_release release;
                struct store_renew renew;
                struct store_wake wake;
                struct store_names names;
                struct store_schedule_list schedules;
                struct store_fires fires;
        };
        /* What texts of the request say, which stand in the host's memory: the number of a name. */
        uint32_t waits_for[CALL_MAX]; /* the key of an outcome; NAMES: for none */
        uint32_t name;                /* to be woken; or the last one that is known; NAMES: none */
        struct span names_found[1];
        struct store_schedule schedule;            /* that was found */
        struct store_fire fired[STORE_CALL_FIRES]; /* copies of the host's, and the answers */
        struct store_renewal renewals[SHARDS];
        struct store_outcome outcomes[CALL_MAX];
        uint32_t merged[STORE_CALL_MERGED]; /* numbers of tasks that outcomes merge into others */
        uint32_t merged_from[CALL_MAX];     /* where those of an outcome begin */
        struct store_task tasks[CALL_MAX];
        struct {
                struct work_fence fence;
                uint8_t nonce[STORE_NONCE_SIZE];
        } seats[CALL_MAX]; /* that START outcomes name */
        struct store_control controls[STORE_CALL_CONTROLS];
        char starts[STORE_CALL_CONTROLS][NOTE_HOLDER_MAX + 1];
        char holders[CALL_MAX][NOTE_HOLDER_MAX + 1];
        char keys[CALL_MAX][8];
        char ids[CALL_MAX][16];
        char payloads[CALL_MAX][8];
};

/* Does what a store does, and leaves the answer in the call. */
void sim_store_execute(struct sim *sim, struct sim_call *call);
/* Its text. */
struct span sim_store_name(uint32_t name);
/* The number of a name; NAMES if it is the text of none. */
uint32_t sim_store_name_of(struct span text);
/* A guard of a dead host gives its lease back. */
void sim_store_bury(struct sim *sim, uint32_t shard, uint64_t epoch, const uint8_t nonce[STORE_NONCE_SIZE]);
void sim_store_submit(struct sim *sim);

/* --- keys that wait in the store: sim_keys.c --- */

/* A task in flight goes back to its key's queue; the key waits for `name` (NAMES: for a time). */
void sim_key_divert(struct sim *sim, struct sim_store_shard *s, uint32_t number, uint32_t name,
        const struct store_outcome *outcome);
/* Up to `max` heads of a key's queue are in flight, and part of what the call claimed. */
void sim_key_refill(const struct sim *sim, struct sim_store_shard *s, uint32_t key, uint32_t max);
/* The heads of keys that are due, up to `max`. */
void sim_keys_take_due(const struct sim *sim, struct sim_store_shard *s, uint32_t max);
/* When the next one is due, from now; STORE_NEVER. */
uint64_t sim_keys_due_ms(const struct sim *sim, const struct sim_store_shard *s);
/* A task in flight is not to be started: its key waits for a name, or one that comes before it waits. */
bool sim_key_is_waiting(const struct sim_store_shard *s, uint32_t number);
bool sim_keys_wait_for(const struct sim_store_shard *s, uint32_t name);
/* Returns how many were woken. */
uint32_t sim_keys_wake(const struct sim *sim, struct sim_store_shard *s, uint32_t name, uint32_t max);

/* --- tasks that become one: sim_merge.c --- */

void sim_merge_start(struct sim *sim);
/* Done, or part of another. */
bool sim_task_is_over(const struct sim_task *t);
void sim_merge_apply(struct sim *sim, struct sim_store_shard *s, struct sim_call *call, uint32_t outcome);
void sim_merge_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat);
void sim_merge_done(struct sim *sim, uint32_t shard, uint32_t number);
void sim_merge_check_end(struct sim *sim);

/* --- limits of the whole app: sim_limits.c --- */

/* A limit: what people say, and its home. */
struct sim_limit {
        bool is_by_key; /* a bucket for each key, of whatever shard; else one, that of key 0 */
        struct limit_amount amount;
        struct store_limit home;
        struct buffer records[SHARD_KEYS];
        /* For the checks: what is in force at the home, and what was until a moment ago. */
        struct limit_amount used, before;
        uint64_t used_ms; /* since then */
        /* A rate: what it allows still, when that was so, and what it allowed at most then. */
        uint64_t level[SHARD_KEYS], level_ms[SHARD_KEYS], full[SHARD_KEYS];
        uint64_t started_ms[SHARD_KEYS]; /* when a task last started under it */
};

/* Most runs have limits. */
void sim_limits_begin(struct sim *sim);
/* An event: a host hears nothing from the limits' homes for a while, and goes on otherwise; comes again by itself. */
void sim_limits_cut(struct sim *sim, void *arg);
/* An event: a person sets another amount; comes again by itself. */
void sim_limits_change(struct sim *sim, void *arg);
void sim_limits_free(struct sim *sim);
/* The host's pools are under limits. */
void sim_limits_start(struct sim_host *h);
/* Asks the homes for what is lacking. */
void sim_limits_call(struct sim_host *h);
/* A handler says that it is too much. */
void sim_limits_close(struct sim_host *h, const struct sim_seat *seat);
/* When a task last started under the limit of that name. */
uint64_t sim_limits_started_ms(const struct sim *sim, uint32_t name);
/* A task was dispatched; its handler is about to start. */
void sim_limits_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat);
void sim_limits_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *started);

/* --- a schedule on each shard: sim_schedule.c --- */

#define SIM_CAUGHT_UP_MS 120000u

void sim_schedule_start(struct sim *sim);
void sim_schedule_list(const struct sim_store_shard *s, struct sim_call *call);
/* Each time once, none passed over. */
void sim_schedule_fire(struct sim *sim, struct sim_store_shard *s, struct sim_call *call, bool is_ours);
void sim_schedule_check(struct sim *sim);

/* --- a person pauses handlers: sim_pause.c --- */

/* An event: some pool is paused or goes on; comes again by itself. */
void sim_pause_change(struct sim *sim, void *arg);
/* All go on. */
void sim_pause_end(struct sim *sim);
/* The host reads what is wanted; if that fails, it is told again with the next renewal. */
void sim_pause_read(struct sim_host *h);
/* The same when it starts, which it does not without an answer. */
void sim_pause_start(struct sim_host *h);

/* --- the tree: sim_tree.c --- */

struct sim_tree;
struct sim_tree *sim_tree_new(struct sim *sim);
void sim_tree_free(struct sim_tree *tree);
/* An event: every session's heartbeat; comes again by itself. */
void sim_tree_beat(struct sim *sim, void *arg);
/* A connection of a host, which dies with it. */
struct coord *sim_tree_connect(struct sim_host *host, const struct coord_events *events);
void sim_tree_disconnect(struct coord *coord);
/* The authority loses that session, or a guard ends it. */
void sim_tree_end_session(struct sim *sim, uint64_t session);
/* What stands at `path`; false: nothing.  For the checks. */
bool sim_tree_read(const struct sim *sim, const char *path, struct span *ret_data);

/* --- a host: sim_host.c --- */

/* A task that was handed to a seat. */
struct sim_seat {
        struct claimed *task;
        struct claimed *followers[RUN_MAX - 1]; /* in the same call, behind it */
        uint32_t followers_count;
        struct sim_borrowed *borrowed; /* it has another host's task instead (sim_lend.c); NULL */
        bool is_started, is_over, is_suspect;
        uint32_t shard, number, key;
        uint64_t epoch;
        uint64_t stamp; /* tells this use of the seat from others */
        uint64_t started_ms;
};

/* The process of a pool. */
struct sim_runner {
        uint64_t stamp; /* tells this start of it from others; 0: it was not started */
        bool is_ready;
};

struct sim_host {
        struct sim *sim;
        uint32_t index;
        bool is_alive;
        uint64_t life;
        uint64_t paused_until_ms;
        uint64_t tree_cut_until_ms, store_cut_until_ms;
        uint64_t limits_cut_until_ms; /* from the limits' homes alone: its leases are renewed, its shares are not */
        uint8_t nonce[STORE_NONCE_SIZE];
        struct shard_limits limits;
        struct limits fleet;                              /* shares of the app's limits */
        struct store_limit_item asked[POOLS][SHARD_KEYS]; /* of each limit, on its way */
        uint32_t asked_count[POOLS];
        uint64_t asked_number[POOLS]; /* the sending that an answer is expected to; 0: none */
        struct dispatch dispatch;
        struct shards shards;
        struct store store;
        uint64_t waiting_call[SHARDS + 1]; /* the sending that an answer is expected to; 0: none.  The last: renewal */
        /* The page that runners see: it stands still while the host does. */
        struct leases leases;
        struct lease_slot page[SHARDS];
        struct sim_seat seats[SEATS];          /* POOL_SEATS of each pool */
        struct sim_runner runners[POOLS];      /* that the seats of each pool are in */
        struct lent *lents;                    /* tasks of ours that other hosts have */
        struct borrower_starts starts[SHARDS]; /* of other hosts' tasks that have come */
        uint32_t asking[HOSTS];                /* seats that other hosts offer, and which of their lives do */
        uint64_t asking_life[HOSTS];
        bool is_leaving, is_going;
        uint64_t desired_version; /* that it has read */
        uint64_t born_ms;

        struct coord *coord;
        struct coord_events events;
        struct member member;
        struct leader leader;
        struct assigner assigner;
        struct assignment assignment;
        struct coord_get get;
        bool is_getting, must_get;
        struct coord_get assigner_get;
        struct coord_multi multi;
        struct coord_multi_op ops[2];
        struct buffer doc, assign, moves;
        struct load_summary load; /* what it says of it */
        bool is_chair_busy;
        uint64_t assigner_again_ms;
        uint64_t version;
        bool has_assign;
        uint64_t turn_ms; /* when the next turn is due */
};

void sim_host_start(struct sim_host *h);
/* SIGKILL: nothing that it has is told to anyone.  `has_guard`: its guard gives back what it can. */
void sim_host_kill(struct sim_host *h, bool has_guard);
void sim_host_pause(struct sim_host *h, uint64_t ms);
void sim_host_leave(struct sim_host *h);
/* It could start one of the shard's tasks now. */
bool sim_host_may_start(const struct sim_host *h, uint32_t shard);

/* Goes as far as it can: tasks to seats, calls to the store. */
void sim_host_turn(struct sim_host *h);
/* The runner that these seats were in was killed: what ran is suspect, what had not started is taken back. */
void sim_host_end_seats(struct sim_host *h, uint32_t pool);

/* --- the process of a pool: sim_runner.c --- */

/* Its seats count as room. */
bool sim_runner_takes_tasks(const struct sim_host *h, uint32_t pool);
/* Starts it if it was not. */
void sim_runner_start(struct sim_host *h, uint32_t pool);
void sim_runner_kill(struct sim_host *h, uint32_t pool);

/* --- tasks on other hosts' seats: sim_lend.c --- */

/* Before seats here are fed: other hosts' are. */
void sim_lend_feed(struct sim_host *h);
/* A turn of the host: free seats are offered, what was lent and what was borrowed goes on. */
void sim_lend_turn(struct sim_host *h);
/* What somebody said about a task of that shard. */
void sim_lend_reported(struct sim_host *h, struct shard *shard, const struct store_control *control);
/* A task that is lent is to stop, or wanted back. */
void sim_lend_stop(struct sim_host *h, struct claimed *c);
void sim_lend_recall(struct sim_host *h, struct claimed *c);
/* The runner of that seat was killed: its owner hears nothing more of the task that was borrowed. */
void sim_lend_killed(struct sim_host *h, struct sim_seat *seat);
/* The host is gone. */
void sim_lend_free(struct sim_host *h);
/* The store: a START of a borrowed seat is recorded; what is recorded goes; as a task's note says it. */
void sim_lend_record(struct sim *sim, struct sim_task *t, const struct sim_call *call, uint32_t outcome);
void sim_lend_note(const struct sim_task *t, struct sim_call *call, uint32_t at);
/* The control list with the answer of an advance. */
void sim_lend_controls(struct sim_store_shard *s, struct sim_call *call, bool is_next);
/* The deadline of the borrowed task that runs on that seat has passed. */
bool sim_lend_is_late(const struct sim *sim, const struct sim_seat *seat);

/* --- a host's way to the store: sim_calls.c --- */

extern const struct store_driver sim_store_driver;
/* So often it was told that another has one of its shards. */
uint64_t sim_host_fenced(const struct sim_host *h);

/* --- a host as one of several: sim_fleet.c --- */

void sim_fleet_open(struct sim_host *h);
void sim_fleet_free(struct sim_host *h);
/* What its node says, if that has changed. */
void sim_fleet_report(struct sim_host *h);
/* It says something else about its load. */
void sim_fleet_load(struct sim_host *h);
/* What the assigner wants next. */
void sim_fleet_chair(struct sim_host *h);
/* Tries again what failed. */
void sim_fleet_tick(struct sim_host *h);

/* --- the promises: sim_check.c --- */

/* Some host runs a task of that key. */
bool sim_is_running(const struct sim *sim, uint32_t shard, uint32_t key);
/* A task was handed to a seat. */
void sim_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat);
/* A handler is about to start. */
void sim_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat);
/* An outcome was applied. */
void sim_check_done(struct sim *sim, uint32_t shard, uint32_t number, uint64_t epoch);
/* --- sim_batch.c --- */

/* Those that run in the same call. */
void sim_batch_take(struct sim_host *h, uint32_t pool, struct shard *s, struct sim_seat *seat);
bool sim_batch_has_task(const struct sim_seat *seat, const struct claimed *c);
bool sim_batch_has(const struct sim_seat *seat, uint32_t number);
void sim_batch_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat);
void sim_batch_end(struct sim_host *h, const struct sim_seat *seat, struct shard *s, const struct store_outcome *first);

/* After every event. */
void sim_check_always(struct sim *sim);
/* Once all is calm. */
void sim_check_end(struct sim *sim);

struct sim_counts {
        uint64_t events, calls, starts, done, kills, pauses, cuts, handovers, fenced, documents, overlaps, suspects;
        uint64_t kept; /* requests of hosts that were dead or stopped, by which their sessions lived on */
        uint64_t lent, borrowed_done, seats_silent, declined, adopted, late;
        uint64_t handler_pauses, woken, workers, fired, merged, debounced, exchanged, followed;
        uint64_t limited, shares, full, left_over, closed, changed, lost, runners_killed;
};

struct sim {
        uint64_t seed, random, now_ms, next_number, unix_ms;
        bool is_calm;
        uint64_t calm_ms;
        uint64_t kept_ms;    /* when the tree last heard a session whose host was dead or stopped */
        struct event *queue; /* a heap */
        size_t queue_count, queue_room;
        struct sim_host hosts[HOSTS];
        struct sim_store_shard shards[SHARDS];
        struct sim_tree *tree;
        bool is_paused[POOLS];
        uint64_t pause_ms[POOLS]; /* when that changed last */
        uint64_t desired_version;
        uint64_t epochs[SHARDS]; /* the highest seen */
        bool has_limits;
        struct sim_limit limits[POOLS];
        uint64_t generation;
        struct sim_counts counts;
};

/* One run; `steps` events with trouble, then calm until all is done.  Adds to *counts. */
void sim_run(uint64_t seed, uint64_t steps, struct sim_counts *counts);

#endif
