/* txn.h: operations on nodes as one etcd transaction.
 *
 * A transaction compares, and then either writes everything or reads what it needs to know.  The first one assumes the
 * likely state (the parent exists, the new node does not) and usually succeeds.  Otherwise its answer shows the real
 * state, which either gives the error or is the base of the next transaction.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_TXN_H
#define QUIVER_COORD_ETCD_TXN_H

#include <jansson.h>

#include "base/buffer.h"
#include "coord/driver.h"

struct etcd_txn;

/* For a create, set, delete or multi, whose strings and data it borrows. */
struct etcd_txn *etcd_txn_new(const char *prefix, const struct coord_request *request);
void etcd_txn_free(struct etcd_txn *txn);

/* The transaction as JSON, fenced by the session's lease; 0: a visitor's. */
void etcd_txn_build(struct etcd_txn *txn, uint64_t lease, struct buffer *body);

enum etcd_txn_verdict {
        ETCD_TXN_DONE,
        ETCD_TXN_AGAIN,   /* the assumptions were wrong: build it again */
        ETCD_TXN_FAILED,  /* etcd_txn_status() says why */
        ETCD_TXN_EXPIRED, /* the session does not exist */
        ETCD_TXN_BROKEN,  /* the answer does not fit */
};
enum etcd_txn_verdict etcd_txn_read(struct etcd_txn *txn, const json_t *reply);
/* After FAILED: the error, and which operation it was. */
int etcd_txn_status(const struct etcd_txn *txn, unsigned *ret_which);
const char *etcd_txn_why(const struct etcd_txn *txn);
/* After DONE: the path that a create has made; the stat of the node of any operation. */
const char *etcd_txn_made(const struct etcd_txn *txn);
struct coord_stat etcd_txn_stat(const struct etcd_txn *txn, unsigned which);

#endif
