/* actors.h: processes with one recipe of each, for the recipes' tests, and what all of them see together. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_ACTORS_H
#define QUIVER_TESTS_CONTRACT_COORD_ACTORS_H

#include "harness.h"

#include "coord/leader.h"
#include "coord/lock.h"
#include "coord/member.h"

#define ACTORS 10

/* A process with one of each. */
struct actor {
        struct world *w;
        struct client *client;
        char nonce[16];
        struct member member;
        struct leader leader;
        struct lock lock;
        char heard[1024]; /* "+a +b ~a -b": joined, changed, left */
        unsigned mates;   /* joined and not left */
        bool is_known;
        uint64_t created; /* of whoever joined or changed last */
        char data[64];    /* the same one's data */
        unsigned gained, lost;
        unsigned acquired, busy, lock_lost, released;
        unsigned failed;
        uint64_t token;
        bool resigns_at_once;
        bool releases_at_once;
};

/* What all of them see together. */
struct crowd {
        int leaders, leaders_max;
        int holders, holders_max;
        uint64_t last_token;
        bool is_token_growing;
        struct actor *order[64];
        unsigned order_count;
};
extern struct crowd crowd;

int crowd_setup(void **state);
/* Connected, following, and not yet in anything. */
struct actor *actor(struct world *w, const char *nonce);
/* As closing a process. */
void leave(struct actor *a);

#define IN_CROWD(test) cmocka_unit_test_setup_teardown(test, crowd_setup, world_teardown)

#endif
