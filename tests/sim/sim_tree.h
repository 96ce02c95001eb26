/* sim_tree.h: what the tree (sim_tree.c) and a host's end of it (sim_coord.c) share. */
#ifndef QUIVER_TESTS_SIM_TREE_H
#define QUIVER_TESTS_SIM_TREE_H

#include "sim.h"

#define NODES_MAX    64
#define SESSIONS_MAX 256
#define WATCHES_MAX  64

struct node {
        char path[COORD_PATH_MAX];
        char *data;
        size_t size;
        struct coord_stat stat;
};

struct watch {
        char path[COORD_PATH_MAX];
        bool is_children;
};

struct session {
        uint64_t number;
        uint64_t heard_ms;
        bool is_alive;
        struct sim_host *host;
        uint64_t life;
        struct watch watches[WATCHES_MAX];
        uint32_t watches_count;
};

struct sim_tree {
        struct node *nodes[NODES_MAX];
        uint32_t nodes_count;
        uint64_t next_created;
        uint64_t next_sequence;
        struct session sessions[SESSIONS_MAX];
        uint32_t sessions_count;
};

/* The host's end. */
struct sim_coord {
        struct coord base;
        struct sim_host *host;
        uint64_t answered_ms; /* 0: never in this session */
        bool has_missed;      /* events while it was cut off */
};

/* A request on its way: a copy of everything, for the host may be gone when it arrives. */
struct parcel {
        struct sim_coord *coord;
        struct sim_host *host;
        uint64_t life;
        struct coord_request *request;
        uint64_t session;
        uint64_t number;
        unsigned op;
        bool is_answer_lost;
        char path[COORD_PATH_MAX];
        char *data;
        size_t size;
        unsigned flags;
        uint64_t version;
        bool watch;
        struct coord_multi_op ops[COORD_MULTI_MAX];
        char *op_data[COORD_MULTI_MAX];
        uint32_t ops_count;
        int status;
        struct coord_stat stat;
        char made[COORD_PATH_MAX];
        char **names;
        uint32_t names_count;
};

/* That host and the authority do not hear each other. */
bool sim_tree_is_cut(const struct sim_host *h);
/* NULL: forgotten. */
struct session *sim_tree_session(const struct sim_tree *tree, uint64_t number);
/* Does what the parcel asks for, and leaves the answer in it. */
void sim_tree_execute(struct sim *sim, struct parcel *p);

#endif
