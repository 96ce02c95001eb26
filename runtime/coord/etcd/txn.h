/* txn.h: operations on nodes as one transaction of etcd.
 *
 * A transaction compares, and then writes all or reads what it would have to know.  The first one is built on what is
 * most likely so (the parent is there, the new node is not): usually it succeeds.  Otherwise its answer says how things
 * are, and either that gives the error, or the next transaction is built on it.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_TXN_H
#define QUIVER_COORD_ETCD_TXN_H

#include <jansson.h>

#include "base/buffer.h"
#include "coord/driver.h"

struct etcd_txn;

/* Of a create, set, delete or multi, whose strings and data it borrows. */
struct etcd_txn *etcd_txn_new(const char *prefix, const struct coord_request *request);
void etcd_txn_free(struct etcd_txn *txn);

/* The transaction as JSON, fenced by that session; 0: a visitor's. */
void etcd_txn_build(struct etcd_txn *txn, uint64_t lease, struct buffer *body);

enum etcd_txn_verdict {
        ETCD_TXN_DONE,
        ETCD_TXN_AGAIN,   /* things are other than was thought: build it again */
        ETCD_TXN_FAILED,  /* etcd_txn_status() says why */
        ETCD_TXN_EXPIRED, /* there is no such session */
        ETCD_TXN_BROKEN,  /* that is no answer to it */
};
enum etcd_txn_verdict etcd_txn_read(struct etcd_txn *txn, const json_t *reply);
/* After FAILED: the error, and which operation it was. */
int etcd_txn_status(const struct etcd_txn *txn, unsigned *ret_which);
const char *etcd_txn_why(const struct etcd_txn *txn);
/* After DONE: what a create has made; of any operation the node. */
const char *etcd_txn_made(const struct etcd_txn *txn);
struct coord_stat etcd_txn_stat(const struct etcd_txn *txn, unsigned which);

#endif
