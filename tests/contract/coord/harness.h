/* harness.h: the coordination suite's world: an authority of the driver under test, clients of it, and calls that wait
 * for their answer.
 *
 * Every call here starts one request and runs the loop until it is done.  What a reply points to is copied and lives
 * until the end of the test. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_HARNESS_H
#define QUIVER_TESTS_CONTRACT_COORD_HARNESS_H

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
#include "coord/coord.h"

/* What the suite needs of a driver besides the contract.  A place is one authority: a folder, a server. */
struct place_driver {
        const char *name;
        void *(*create)(void); /* started and empty; NULL: not on this machine, the suite is skipped */
        void (*destroy)(void *place);
        void (*options)(void *place, struct coord_options *options); /* sets url and secrets */
        /* From now on no client gets an answer, until heal(); nothing is lost.  NULL: cannot be done. */
        void (*cut)(void *place);
        void (*heal)(void *place);
        uint64_t session_ms; /* the shortest that the authority grants, or a little more */
        bool notices_death;  /* of a process, at once; otherwise after the session's timeout */
};
extern const struct place_driver local_place, zookeeper_place, ensemble_place, redis_place, etcd_place,
        etcd_cluster_place;
/* Chosen by the environment: QUIVER_COORD_DRIVER; local if it is not set. */
const struct place_driver *place_driver(void);
/* All groups below, on that driver; an exit status. */
int run_suite(void);

#define CLIENTS_MAX 16
#define TOLD_MAX    64

struct world;

/* One process, as far as the authority can tell. */
struct client {
        struct world *world;
        struct coord *coord; /* NULL: not open */
        struct coord_events events;
        struct coord_events also; /* a recipe that wants to hear the same */
        /* what it was told, in order */
        enum coord_state states[TOLD_MAX];
        uint64_t sessions[TOLD_MAX];
        unsigned states_count;
        const char *changed[TOLD_MAX];
        unsigned changed_count;
        unsigned looks;
        unsigned closed;
};

struct world {
        uv_loop_t loop;
        const struct place_driver *driver;
        void *place;
        struct arena_chunk *memory;
        struct client clients[CLIENTS_MAX];
        unsigned clients_count;
};

int world_setup(void **state);
int world_teardown(void **state);

/* Opens a client and waits until its session is alive. */
struct client *join(struct world *w);
/* Opens without waiting for a session; `has_events` false makes a visitor.  -errno; ret_client may be NULL. */
int client_connect(struct world *w, struct coord_options options, bool has_events, struct client **ret_client,
        struct error *error);
void client_close(struct client *c);
uint64_t session_of(const struct client *c);
/* From now on these hear everything too, beginning with the session that there is. */
void listen_too(struct client *c, const struct coord_events *events);

/* Runs the loop until the condition holds; fails the test after some seconds. */
#define WAIT_FOR(w, condition)                                                                                         \
        do {                                                                                                           \
                struct patience patience_ = patience((w));                                                             \
                while (!(condition))                                                                                   \
                        patience_turn(&patience_, #condition, __FILE__, __LINE__);                                     \
        } while (0)
struct patience {
        struct world *w;
        uint64_t end_ms;
};
struct patience patience(struct world *w);
void patience_turn(struct patience *p, const char *what, const char *file, int queue);

bool was_told(const struct client *c, enum coord_state state, uint64_t session);
bool has_heard(const struct client *c, const char *path);
void forget_heard(struct client *c);

/* --- calls: 0 or -errno ------------------------------------------------------------------------------------------ */

/* ret_made and ret_stat may be NULL. */
int create(struct client *c, const char *path, const char *data, unsigned flags, const char **ret_made,
        struct coord_stat *ret_stat);
int get(struct client *c, const char *path, bool watch, const char **ret_data, struct coord_stat *ret_stat);
int set(struct client *c, const char *path, const char *data, uint64_t version, struct coord_stat *ret_stat);
int del(struct client *c, const char *path, uint64_t version);
/* The names joined by spaces. */
const char *children(struct client *c, const char *path, bool watch);
int multi(struct client *c, struct coord_multi_op *ops, uint32_t count);
/* Ends the session of that token. */
int end_session(struct world *w, const char *token);
/* As if the client's host had died: its session is ended, and it does not know. */
void lose_session(struct client *c);

/* A request that the test starts and waits for by itself. */
struct pending {
        union {
                struct coord_request request;
                struct coord_create create;
                struct coord_get get;
                struct coord_set set;
        };
        unsigned done;
        int status;
};
void pending_done(struct coord_request *request);

/* Text that lives to the end of the test. */
const char *keep(struct world *w, const char *data, size_t size);
struct span T(const char *text);

extern const struct CMUnitTest node_tests[], session_tests[], watch_tests[], multi_tests[], wrong_tests[],
        recipe_tests[], slot_tests[], service_tests[], lock_tests[];
extern const size_t node_count, session_count, watch_count, multi_count, wrong_count, recipe_count, slot_count,
        service_count, lock_count;
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define GROUP(name)    const size_t name##_count = sizeof(name##_tests) / sizeof(name##_tests[0])

#endif
