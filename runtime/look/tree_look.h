/* tree_look.h: what is read of the coordination tree to show a person something: members, locks, elections.
 *
 * As look.h, of the tree instead of the store: tree_look_next() takes the answer to the last request and fills in the
 * next one; whoever drives it starts that. */
#ifndef QUIVER_LOOK_TREE_LOOK_H
#define QUIVER_LOOK_TREE_LOOK_H

#include <jansson.h>

#include "base/strings.h"
#include "coord/coord.h"
#include "coord/queue.h"
#include "view/members.h"

struct tree_look {
        bool (*next)(struct tree_look *look);
        bool is_children; /* which of the two was asked */
        void *driver;     /* whose it is to start requests */
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

/* Starts the request; whoever drives the look has set request.done. */
void tree_look_start(struct coord *coord, struct tree_look *look);
/* After the answer: the look cannot go on.  A node that is gone or cannot be read is shown as such. */
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

/* Zeroed, then membership_look_init(). */
struct membership_look {
        struct tree_look look;
        struct membership_view view; /* what is found; the caller frees it */
        struct strings nodes;
        size_t node; /* that is read */
        enum membership_step step;
};

void membership_look_init(struct membership_look *look);
/* But for the view. */
void membership_look_free(struct membership_look *look);

/* --- locks and elections --- */

#define LOCKS_MAX 200u /* that are looked at, of each kind */
#define QUEUE_MAX 20u  /* processes of one of them that are shown */

/* The places of a queue that were counted so far. */
struct locks_rank {
        uint32_t before, smallest;
};

enum locks_step { LOCKS_BEGIN, LOCKS_NAMES, LOCKS_QUEUE, LOCKS_NODE };

/* Zeroed, then locks_look_init(). */
struct locks_look {
        struct tree_look look;
        json_t *found; /* a list; free it with the look */
        uint64_t total;
        unsigned kind; /* that is looked at: locks, elections */
        struct strings names;
        size_t name;
        struct strings nodes; /* of that one, in the order of their numbers */
        size_t node;
        json_t *item;
        struct strings unused; /* paths of those in which nobody was: whoever was last has lost its session */
        struct locks_rank rank;
        enum locks_step step;
};

void locks_look_init(struct locks_look *look);
void locks_look_free(struct locks_look *look);

#endif
