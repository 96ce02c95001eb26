/* tree.h: the tree in memory: nodes, sessions, and the effect of a change.
 *
 * Plain data, no I/O, no clock.  Every process has a copy and applies the same changes in the same order (replica.h),
 * so the result must depend on the tree and the change alone. */
#ifndef QUIVER_COORD_LOCAL_TREE_H
#define QUIVER_COORD_LOCAL_TREE_H

#include <zlib.h>

/* Defined by a library function, which the static analyzer does not need to follow. */
#define HASH_FUNCTION(key, size, hash) ((hash) = (unsigned)crc32(0, (const void *)(key), (unsigned)(size)))
#include <uthash.h>

#include "coord/coord.h"

#define TREE_NONCE_SIZE 16u

struct tree_node {
        char *path; /* "" is the root */
        struct tree_node *parent;
        struct tree_node *children; /* unordered */
        struct tree_node *prev, *next;
        char *data;
        size_t size;
        struct coord_stat stat;
        uint64_t next_sequence;
        uint64_t children_changes; /* how often a child was made or deleted */
        UT_hash_handle hh;
};

struct tree_session {
        uint64_t id;
        uint8_t nonce[TREE_NONCE_SIZE]; /* part of its files' names */
        uint64_t session_ms;
        uint64_t pid, started; /* the process of the session, and its start time in the kernel's ticks */
        UT_hash_handle hh;
};

struct local_tree {
        struct tree_node *nodes;
        struct tree_session *sessions;
        uint64_t next_id; /* for nodes and sessions alike */
};

void tree_init(struct local_tree *tree, uint64_t first_id);
void tree_free(struct local_tree *tree);

/* Borrowed; NULL: no such node. */
struct tree_node *tree_get(const struct local_tree *tree, const char *path);
/* Ranges for values from a log. */
#define TREE_ID_MAX         (UINT64_MAX / 2)
#define TREE_SEQUENCE_MAX   UINT64_C(9999999999) /* ten digits */
#define TREE_SESSION_MAX_MS (UINT64_C(24) * 60 * 60 * 1000)

/* Adds a node as recorded, for a tree that is read back: its parent must exist and may have children, its session must
 * exist.  -EPROTO: it is invalid. */
int tree_restore(struct local_tree *tree, const char *path, struct span data, const struct coord_stat *stat,
        uint64_t next_sequence, uint64_t children_changes);

/* Copies the session, and gives it the next id unless it has one.  Returns the id; 0: it is invalid, and nothing was
 * added. */
uint64_t tree_session_add(struct local_tree *tree, const struct tree_session *session);
/* NULL: it has ended or never existed. */
struct tree_session *tree_session_get(const struct local_tree *tree, uint64_t id);
struct tree_session *tree_session_find(const struct local_tree *tree, const uint8_t nonce[TREE_NONCE_SIZE]);
/* Removes the session and its ephemeral nodes. */
void tree_session_end(struct local_tree *tree, uint64_t id);

struct tree_change {
        uint64_t session; /* 0: none */
        bool makes_parents;
        struct coord_multi_op *ops; /* status and stat are filled in; a single operation may be COORD_SEQUENTIAL */
        uint32_t ops_count;
        char made[COORD_PATH_MAX]; /* the path of the last node made */
};

/* Applies all operations, or none with the status of the one that failed; -EOWNERDEAD if the session has ended. */
int tree_apply(struct local_tree *tree, struct tree_change *change);

#endif
