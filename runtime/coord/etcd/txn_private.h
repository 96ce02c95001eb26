/* txn_private.h: what deciding on operations (txn.c) and writing and reading JSON (txn_json.c) share. */
#ifndef QUIVER_COORD_ETCD_TXN_PRIVATE_H
#define QUIVER_COORD_ETCD_TXN_PRIVATE_H

#include "base/strings.h"
#include "coord/etcd/names.h"
#include "coord/etcd/txn.h"

/* Somebody else was faster this often: it is not to be. */
#define TXN_ATTEMPTS_MAX 64u
#define TXN_NODES_MAX    (2 * COORD_MULTI_MAX + ETCD_DEPTH_MAX + 1)
#define TXN_READS_MAX    (2 * TXN_NODES_MAX + 3)
/* Of children: enough to see one that stays. */
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
        bool has_stat; /* its node is there at the end */
};

struct txn_node {
        char path[COORD_PATH_MAX];
        /* as read */
        enum txn_seen seen;
        uint64_t version; /* as coord.h counts: from 0 */
        uint64_t lease;
        bool has_children_read;
        struct strings children; /* some of them */
        /* what must be so for the operations to succeed */
        bool must_be_absent, must_be_there, must_be_permanent, must_be_empty, must_have_version;
        uint64_t must_version;
        struct strings spared; /* must_be_empty: children that are deleted as well */
        /* what it has become */
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
        /* of a sequential create */
        bool is_sequential;
        char parent[COORD_PATH_MAX];
        char made[COORD_PATH_MAX];
        struct txn_node *numbered; /* it */
        enum txn_seen sequence_seen;
        bool has_sequence; /* it is there and can be */
        uint64_t sequence_read, sequence_changed;
        uint64_t sequence; /* what it gets */
        bool wants_names;
        bool has_names; /* all names of children were read, and the next number above theirs is: */
        uint64_t above_names;
        /* what is under way */
        bool only_reads;
        struct txn_read reads[TXN_READS_MAX];
        unsigned reads_count, writes_count;
        unsigned attempts;
        /* what came of it */
        int status;
        unsigned which;
        const char *why;
};

/* Executes the operations on what is known; what is not known is taken to be as it has to be.  0, or the error of the
 * first that fails, which `which` and `why` name. */
int txn_simulate(struct etcd_txn *txn);
/* Whether everything that the error depends on was read. */
bool txn_is_certain(const struct etcd_txn *txn);
/* Whether it has to be read before anything can be written. */
bool txn_must_read(const struct etcd_txn *txn);
struct txn_node *txn_look(struct etcd_txn *txn, const char *path);

#endif
