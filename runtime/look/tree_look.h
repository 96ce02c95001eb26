/* tree_look.h: a sequence of requests to the coordination tree that gathers members, locks and elections for a person.
 *
 * Like look.h, for the tree instead of the store: tree_look_next() takes the answer to the last request and fills in
 * the next one, which the driver starts. */
#ifndef QUIVER_LOOK_TREE_LOOK_H
#define QUIVER_LOOK_TREE_LOOK_H

#include <jansson.h>

#include "base/strings.h"
#include "coord/coord.h"
#include "coord/queue.h"
#include "view/members.h"

struct tree_look {
        bool (*next)(struct tree_look *look);
        bool is_children; /* the request is a list of children, not a get */
        void *driver;     /* for the driver, which starts requests */
        char path[COORD_PATH_MAX];
        union {
                struct coord_request request;
                struct coord_get get;
                struct coord_children children;
        };
};

static inline bool tree_look_next(struct tree_look *look)
{
        return look->next(look);
}

/* Starts the request, whose request.done the driver has set. */
void tree_look_start(struct coord *coord, struct tree_look *look);
/* After an answer: whether the look cannot continue.  A node that is gone or cannot be parsed is not a failure. */
bool tree_look_has_failed(const struct tree_look *look);

/* --- members --- */

enum membership_step {
        MEMBERSHIP_BEGIN,
        MEMBERSHIP_NAMES,
        MEMBERSHIP_MEMBER,
        MEMBERSHIP_ELECTION,
        MEMBERSHIP_ASSIGN,
        MEMBERSHIP_MOVES,
        MEMBERSHIP_END
};

/* Zero it, then call membership_look_init(). */
struct membership_look {
        struct tree_look look;
        struct membership_view view; /* the result; the caller frees it */
        struct strings nodes;
        size_t node; /* index of the node being read */
        enum membership_step step;
};

void membership_look_init(struct membership_look *look);
/* Frees everything except the view. */
void membership_look_free(struct membership_look *look);

/* --- locks and elections --- */

#define LOCKS_MAX 200u /* looked at per kind */
#define QUEUE_MAX 20u  /* processes shown per lock or election */

/* The places of a queue counted so far. */
struct locks_rank {
        uint32_t before, smallest;
};

enum locks_step { LOCKS_BEGIN, LOCKS_NAMES, LOCKS_QUEUE, LOCKS_NODE };

/* Zero it, then call locks_look_init(). */
struct locks_look {
        struct tree_look look;
        json_t *found; /* a list; freed with the look */
        uint64_t total;
        unsigned kind; /* being looked at: locks or elections */
        struct strings names;
        size_t name;
        struct strings nodes; /* of the current queue, in the order of their numbers */
        size_t node;
        json_t *item;
        struct strings unused; /* paths of empty queues: their last process lost its session */
        struct locks_rank rank;
        enum locks_step step;
};

void locks_look_init(struct locks_look *look);
void locks_look_free(struct locks_look *look);

#endif
