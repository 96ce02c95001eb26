/* call.h: one operation on its way to ZooKeeper and back.
 *
 * The loop fills it in and sends it; from then until its POST_ANSWER is collected it belongs to the client's threads,
 * except for `request`, which only the loop touches, because the request may be given up meanwhile.  A call can be sent
 * again as another operation: a request often takes several (a parent is missing, a watch must be armed). */
#ifndef QUIVER_COORD_ZOOKEEPER_CALL_H
#define QUIVER_COORD_ZOOKEEPER_CALL_H

#include "coord/driver.h"
#include "coord/zookeeper/zk_handle.h"

enum call_step {
        STEP_CREATE,
        STEP_PARENT, /* make a permanent node of the first `parent_size` bytes of the path */
        STEP_GET,
        STEP_EXISTS, /* arm a watch for the creation of a node */
        STEP_SET,
        STEP_DELETE,
        STEP_CHILDREN,
        STEP_MULTI,
};

/* One more than a request may have: multi.c may add an operation. */
#define CALL_OPS_MAX (COORD_MULTI_MAX + 1)

struct call_multi {
        uint32_t count;
        zoo_op_t ops[CALL_OPS_MAX];
        zoo_op_result_t results[CALL_OPS_MAX];
        struct Stat stats[CALL_OPS_MAX];
        char made[CALL_OPS_MAX][1]; /* where the client writes the names of created nodes, which we know */
        char *paths[CALL_OPS_MAX];
};

struct zk_call {
        struct post post;
        struct zk_handle *handle;
        struct coord_request *request; /* NULL: nobody waits for it */
        enum call_step step;
        bool is_out;  /* sent, and not collected */
        bool is_lost; /* the connection was lost, and the answer with it */
        char *path;   /* absolute */
        size_t parent_size;
        struct span data;
        unsigned flags;
        int32_t version;
        bool watch;
        const struct ACL_vector *acl;
        struct call_multi *multi;

        /* the answer */
        int rc; /* ZOK, ZNONODE, … */
        struct Stat stat;
        char *bytes; /* data, or the path made, or the names, each with its NUL */
        size_t size;
        uint32_t count; /* number of names */
};

/* Takes ownership of the path. */
struct zk_call *zk_call_new(char *path);
void zk_call_free(struct zk_call *call);

/* Sends the call through the handle; ZOK, or why it was not sent (then no answer follows). */
int zk_call_send(struct zk_call *call, struct zk_handle *handle);

#endif
