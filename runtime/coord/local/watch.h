/* watch.h: which nodes are watched.
 *
 * A watch remembers what its reader saw, and fires when the tree differs.  So no change is missed, however late or
 * seldom the log is read. */
#ifndef QUIVER_COORD_LOCAL_WATCH_H
#define QUIVER_COORD_LOCAL_WATCH_H

#include "coord/local/tree.h"

enum watch_kind { WATCH_NODE, WATCH_CHILDREN };

/* What was seen: which node (0: none) and which state of it. */
struct watch_seen {
        uint64_t created;
        uint64_t number;
};

struct local_watch {
        struct local_watch *next;
        enum watch_kind kind;
        struct watch_seen seen;
        char path[];
};

/* Zero-initialised means no watches. */
struct watches {
        struct local_watch *first;
};

/* Arms a watch with the tree's current state; one that is armed already keeps what its first reader saw. */
void watch_arm(struct watches *watches, const struct local_tree *tree, enum watch_kind kind, const char *path);
/* Removes a watch that fires and returns it; NULL: none fires.  The caller frees it. */
struct local_watch *watch_fired(struct watches *watches, const struct local_tree *tree);
void watches_free(struct watches *watches);

#endif
