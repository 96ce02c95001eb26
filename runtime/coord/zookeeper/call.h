/* call.h: one operation on its way to ZooKeeper and back.
 *
 * The loop fills it in and sends it; from then until its POST_ANSWER is collected it belongs to the client's threads,
 * except for `request`, which only the loop touches: whoever asked may have given up meanwhile.  A call can be sent
 * again, as another operation: a request often takes several (a parent is missing, a watch has to be armed). */
#ifndef QUIVER_COORD_ZOOKEEPER_CALL_H
#define QUIVER_COORD_ZOOKEEPER_CALL_H

#include "coord/driver.h"
#include "coord/zookeeper/zk_handle.h"

enum call_step {
        STEP_CREATE,
        STEP_PARENT, /* makes a node that stays, of the first `parent_size` bytes of the path */
        STEP_GET,
        STEP_EXISTS, /* arms a watch for the making of a node */
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
        char made[CALL_OPS_MAX]
                 [1]; /* the client insists on writing the names of created nodes somewhere; we know them */
        char *paths[CALL_OPS_MAX];
};

struct zk_call {
        struct post post;
        struct zk_handle *handle;
        struct coord_request *request; /* NULL: nobody waits for it */
        enum call_step step;
        bool is_out;  /* sent, and not collected */
        bool is_lost; /* the connection was lost, and with it the answer */
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
        uint32_t count; /* of names */
};

/* Takes the path. */
struct zk_call *zk_call_new(char *path);
void zk_call_free(struct zk_call *call);

/* Sends it through the handle; ZOK, or why it was not sent (nothing follows then). */
int zk_call_send(struct zk_call *call, struct zk_handle *handle);

#endif
