/* harness.h: the contract suite's world: a loop, a store of the driver under test, and calls that wait for their
 * answer.
 *
 * Every call here starts one request and runs the loop until it is done.  What a reply points to is copied and lives
 * until the end of the test. */
#ifndef QUIVER_TESTS_CONTRACT_HARNESS_H
#define QUIVER_TESTS_CONTRACT_HARNESS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

#include "base/arena.h"
#include "store/admin.h"
#include "store/names.h"
#include "store/results.h"
#include "store/rights.h"
#include "store/store.h"

struct redis_server;

/* What the suite needs of a driver besides the contract.  A place is where one store lives: a folder, a server. */
struct contract_driver {
        const char *name;
        void *(*create)(void); /* fresh and empty */
        void (*destroy)(void *place);
        void (*options)(void *place, struct store_options *options); /* sets url and clock */
        void (*step_clock)(void *place, int64_t ms);                 /* the store's time */
        void (*reboot)(void *place);                                 /* NULL: has no boots */
        /* Appends bytes to a lane's log as a foreign producer would. */
        void (*push)(void *place, uint32_t shard, enum lane lane, struct span bytes);
        /* Writes one value of the app's record as nobody should. */
        void (*record)(void *place, const char *name, const char *value);
        bool has_many_apps; /* in one place, each for itself */
};
extern const struct contract_driver *driver;
extern const struct contract_driver sqlite_contract, redis_contract;
/* Redis over TCP, over TLS, behind Sentinels, as a Cluster. */
extern const struct contract_driver redis_site_contracts[];
extern const size_t redis_sites;
/* The one over TLS, and its server. */
const struct contract_driver *redis_tls_contract(void);
const struct redis_server *redis_tls_server(void);

struct world {
        uv_loop_t loop;
        void *place;
        struct store *store;
        struct arena_chunk *memory;
        bool is_client; /* the next open is as the client library does it: it listens for rooms alone */
        bool lose_next; /* the next call's answer never arrives: it returns -ETIMEDOUT */
        void (*on_turn)(struct world *w, unsigned turn); /* while a call waits: the loop has gone round so often */
        bool calls_again;                                /* owners say so in their advances, and need not be rung */
        unsigned rang;                                   /* times the doorbell said something */
        uint32_t rang_shard;
        unsigned rang_desired;
        unsigned looked;
        unsigned rang_mail;
        unsigned rang_wanting;
        unsigned rang_room;
};

/* A command, its words separated by blanks (in a word ~ is a blank and | a newline), on a place of Redis; what the
 * server said, as text. */
struct span redis_place_do(struct world *w, const char *command);
void redis_place_forget_scripts(void);
/* A user of the app "test" with a role's rights; its password is "secret". */
void redis_place_add_user(const char *name, enum store_role role);
/* Whether the server would refuse it the command, its words separated by blanks. */
bool redis_place_denies(const char *user, const char *command);
/* The server's maxmemory-policy. */
void redis_place_set_policy(const char *policy);
/* Stores that are opened from now on reach the server through a proxy that passes so many bytes at once, so that others
 * come between the commands of one write; 0: directly. */
void redis_place_split(unsigned bytes);
/* How many scripts drivers have run on the server. */
unsigned long redis_place_scripts_run(void);
/* How many entries the server's ACL log has got since the last call. */
unsigned redis_place_denials(void);

/* cmocka fixtures.  The store of world_setup has one shard; tests that need more open their own. */
int world_setup(void **state);
int world_setup_4(void **state);
int world_teardown(void **state);

/* Opens the place, with defaults for what `options` leaves out; 0 or -errno. */
int world_open(struct world *w, struct store_options options, struct error *error);
void world_close(struct world *w);
/* As a crash: nothing is released. */
void world_reopen(struct world *w);
void world_step(struct world *w, int64_t ms);
/* Runs the loop until *flag is at least `value`, for at most some seconds. */
void world_wait(struct world *w, const unsigned *flag, unsigned value);

/* Text as a span, and formatted text that lives to the end of the test. */
struct span T(const char *text);
struct span F(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A key of that shard, of four. */
struct span key_of(struct world *w, uint32_t shard, unsigned number);

/* --- producing --------------------------------------------------------------------------------------------------- */

int submit_items(struct world *w, struct store_submission *items, uint32_t count);
/* With all that is said of it. */
struct store_submit submit_call(struct world *w, struct store_submission *items, uint32_t count);
/* One task for handler "h"; its id lives to the end of the test. */
struct span submit(struct world *w, const char *key, const char *payload);
struct span submit_lane(struct world *w, const char *key, const char *payload, enum lane lane);
struct span submit_delayed(struct world *w, const char *key, const char *payload, uint64_t delay_ms);
struct span submit_reply(struct world *w, const char *key, const char *payload);

/* --- owning ------------------------------------------------------------------------------------------------------ */

struct owner {
        struct store_lease lease;
        uint64_t call; /* the last one's number */
        struct store_acquire granted;
};

#define TTL_MS 1000

struct owner owner_of(uint32_t shard, uint64_t epoch, uint8_t who);
int acquire(struct world *w, struct owner *o);
int call_acquire(struct world *w, struct store_acquire *acquire);
int acquire_full(struct world *w, struct owner *o, bool is_firm, uint64_t drain_ms);
/* Acquires and expects GRANTED. */
struct owner own(struct world *w, uint32_t shard, uint64_t epoch, uint8_t who);

/* One numbered call; the owner's number moves on unless it was lost. */
struct store_advance advance(
        struct world *w, struct owner *o, const struct store_outcome *outcomes, uint32_t count, uint32_t want);
/* The same with a number of one's own. */
struct store_advance advance_lanes(struct world *w, const struct owner *o, uint64_t call,
        const struct store_outcome *outcomes, uint32_t count, const uint32_t want[LANES]);
/* The same, wanting so many of each lane. */
struct store_advance advance_call(struct world *w, const struct owner *o, uint64_t call,
        const struct store_outcome *outcomes, uint32_t count, uint32_t want);
/* The same of an owner that calls again soon, and need not be rung; it must succeed. */
struct store_advance advance_unrung(
        struct world *w, struct owner *o, const struct store_outcome *outcomes, uint32_t count, uint32_t want);
struct store_advance claim(struct world *w, struct owner *o, uint32_t want);
/* So many of each lane. */
struct store_advance claim_each(struct world *w, struct owner *o, uint32_t high, uint32_t normal, uint32_t low);
struct store_advance settle(struct world *w, struct owner *o, struct store_outcome outcome);
/* With a number of one's own. */
struct store_wake wake_call(struct world *w, const struct owner *o, uint64_t call, struct span name, uint32_t max);
enum store_verdict release(struct world *w, struct owner *o);
struct store_renewal renew(struct world *w, const struct owner *o);
/* Until nothing is left in the shard's outbox. */
void forward_all(struct world *w, const struct owner *o);
uint64_t renew_version(struct world *w, const struct owner *o);
struct store_page in_flight_page(struct world *w, const struct owner *o, uint64_t after_seq, uint32_t size);

struct store_ref ref(const struct store_task *task);
struct store_outcome done(const struct store_task *task);
struct store_outcome retry(const struct store_task *task, uint64_t delay_ms);
struct store_outcome hold(const struct store_task *task);
struct store_outcome dead(const struct store_task *task, const char *reason);
struct store_outcome divert(const struct store_task *task);

/* --- results ----------------------------------------------------------------------------------------------------- */

struct store_consume consume(struct world *w, uint8_t who, uint32_t max, uint64_t lease_ms);
bool commit_one(struct world *w, uint8_t who, uint64_t number);
struct store_reply reply(struct world *w, struct span id, uint64_t wait_ms);

/* --- looking ----------------------------------------------------------------------------------------------------- */

struct store_counts counts(struct world *w, uint32_t shard);
struct store_list list(struct world *w, uint32_t shard, enum store_state state);
/* The next page of a list. */
void list_next(struct world *w, struct store_list *l);
/* One slice of a search. */
int call_find(struct world *w, struct store_find *f);
/* NULL: nowhere. */
const struct store_listed *find(struct world *w, struct span id);
/* It is nowhere; what is remembered of where it went. */
struct store_find find_merged(struct world *w, struct span id);
int cancel(struct world *w, struct span id, bool *ret_pending);
struct store_key_info key(struct world *w, const char *name);
int key_act(struct world *w, enum store_control_verb verb, const char *name);
/* By the store's clock. */
uint64_t store_now_ms(struct world *w);
/* On the one with the id; empty: on none. */
struct store_dead dead_act(struct world *w, enum store_dead_verb verb, struct span id);
struct store_dead dead_act_on(struct world *w, enum store_dead_verb verb, const uint64_t *numbers, uint32_t count);
/* How many a list shows in pages of that size; each exactly once, or the test fails. */
uint32_t list_pages(struct world *w, uint32_t shard, enum store_state state, uint32_t size);
uint32_t keys_pages(struct world *w, uint32_t shard, uint32_t size);
int call_desired_set(struct world *w, struct store_desired_set *set);
/* NULL removes. */
uint64_t desired_set(struct world *w, const char *name, const char *value);
struct store_desired_get desired_get(struct world *w);
int status_put(struct world *w, uint8_t who, const char *document, uint64_t keep_ms);
int call_status_put(struct world *w, struct store_status_put *put);
struct store_status_list status_list(struct world *w);
struct store_status_list status_list_of(struct world *w, enum store_document kind);
int reschedule(struct world *w, struct span id, uint64_t number, uint64_t delay_ms, uint64_t at_ms);
/* As it was asked for. */
struct store_status_list status_list_one(struct world *w, struct store_status_list asked);
struct store_dead_groups dead_groups(struct world *w, uint32_t shard);
/* The first chunk of a source, for shard 0. */
int import(struct world *w, const struct store_moved *items, uint32_t count);
int import_chunk(struct world *w, struct store_import *chunk);
/* 0 or -errno. */
int repair(struct world *w, uint32_t shard);
/* Fails the test, with the report, unless every shard is sound. */
void expect_sound(struct world *w);

/* Payloads of the tasks, joined by spaces: "a b c". */
const char *payloads(struct world *w, const struct store_task *tasks, uint32_t count);
#define expect_tasks(w, reply, text)                                                                                   \
        ({                                                                                                             \
                struct store_advance reply_ = (reply);                                                                 \
                assert_string_equal(payloads((w), reply_.tasks, reply_.tasks_count), (text));                          \
        })

/* The groups of the suite; each adds its tests to what runs. */
extern const struct CMUnitTest order_tests[], fence_tests[], side_tests[], outcome_tests[], result_tests[],
        admin_tests[], import_tests[], grow_tests[], app_tests[], open_tests[], bell_tests[];
extern const size_t order_count, fence_count, side_count, outcome_count, result_count, admin_count, import_count,
        grow_count, app_count, open_count, bell_count;
extern const struct CMUnitTest limit_tests[], schedule_tests[], file_schedule_tests[], results_act_tests[];
extern const size_t limit_count, schedule_count, file_schedule_count, results_act_count;
extern const struct CMUnitTest idempotency_tests[], mail_tests[], names_tests[], report_tests[], room_tests[];
extern const size_t idempotency_count, mail_count, names_count, report_count, room_count;
extern const struct CMUnitTest window_tests[], look_tests[], merge_tests[], intervene_tests[], move_tests[];
extern const size_t window_count, look_count, merge_count, intervene_count, move_count;
#define IN_WORLD(test)   cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define IN_WORLD_4(test) cmocka_unit_test_setup_teardown(test, world_setup_4, world_teardown)
#define GROUP(name)      const size_t name##_count = sizeof(name##_tests) / sizeof(name##_tests[0])

#endif
