/* txn_private.h: shared by txn.c (decides on operations) and txn_json.c (writes and reads JSON). */
#ifndef QUIVER_COORD_ETCD_TXN_PRIVATE_H
#define QUIVER_COORD_ETCD_TXN_PRIVATE_H

#include "base/strings.h"
#include "coord/etcd/names.h"
#include "coord/etcd/txn.h"

/* Another process was faster this often: the request fails. */
#define TXN_ATTEMPTS_MAX 64u
#define TXN_NODES_MAX    (2 * COORD_MULTI_MAX + ETCD_DEPTH_MAX + 1)
#define TXN_READS_MAX    (2 * TXN_NODES_MAX + 3)
/* Children to read: enough to see one that is not deleted. */
#define TXN_CHILDREN_READ (COORD_MULTI_MAX + 1)
#define SEQUENCE_MAX      UINT64_C(9999999999) /* ten digits */

enum txn_seen { TXN_UNREAD, TXN_ABSENT, TXN_THERE };

struct txn_op {
        enum coord_multi_kind kind;
        const char *path;
        struct span data;
        uint64_t version;
        unsigned flags;
        bool makes_parents;
        struct coord_stat stat;
        bool has_stat; /* its node exists at the end */
};

struct txn_node {
        char path[COORD_PATH_MAX];
        /* as read */
        enum txn_seen seen;
        uint64_t version; /* counted from 0, as in coord.h */
        uint64_t lease;
        bool has_children_read;
        struct strings children; /* some of the children */
        /* what must be true for the operations to succeed */
        bool must_be_absent, must_be_there, must_be_permanent, must_be_empty, must_have_version;
        uint64_t must_version;
        struct strings spared; /* must_be_empty: children that are deleted as well */
        /* the result of the operations so far */
        bool is_made, is_deleted;
        uint64_t sets;
        uint64_t owner;
        struct span data;
};

enum txn_read_kind { TXN_READ_SESSION, TXN_READ_NODE, TXN_READ_CHILDREN, TXN_READ_SEQUENCE, TXN_READ_NAMES };
struct txn_read {
        enum txn_read_kind kind;
        struct txn_node *node;
};

struct etcd_txn {
        const char *prefix;
        uint64_t lease;
        struct txn_op ops[COORD_MULTI_MAX];
        unsigned ops_count;
        struct txn_node *nodes[TXN_NODES_MAX];
        unsigned nodes_count;
        /* for a sequential create */
        bool is_sequential;
        char parent[COORD_PATH_MAX];
        char made[COORD_PATH_MAX];
        struct txn_node *numbered; /* the node with the number */
        enum txn_seen sequence_seen;
        bool has_sequence; /* the sequence exists and is valid */
        uint64_t sequence_read, sequence_changed;
        uint64_t sequence; /* the value that it gets */
        bool wants_names;
        bool has_names; /* all names of children were read, and above_names is the next number above theirs */
        uint64_t above_names;
        /* the transaction under way */
        bool only_reads;
        struct txn_read reads[TXN_READS_MAX];
        unsigned reads_count, writes_count;
        unsigned attempts;
        /* the result */
        int status;
        unsigned which;
        const char *why;
};

/* Executes the operations on what is known; unknown state is assumed to be as required.  0, or the error of the first
 * operation that fails, named by `which` and `why`. */
int txn_simulate(struct etcd_txn *txn);
/* Whether everything that the error depends on was read. */
bool txn_is_certain(const struct etcd_txn *txn);
/* Whether something must be read before anything can be written. */
bool txn_must_read(const struct etcd_txn *txn);
struct txn_node *txn_look(struct etcd_txn *txn, const char *path);

#endif
