/* tree_ask.h: one request to the tree, and its answer, as a blocking call. */
#ifndef QUIVER_CLI_LOCK_TREE_ASK_H
#define QUIVER_CLI_LOCK_TREE_ASK_H

#include "base/strings.h"
#include "cli/lock/tree.h"

/* Zeroed, with what is asked in the member that the call is named after. */
struct tree_ask {
        union {
                struct coord_request request;
                struct coord_get get;
                struct coord_set set;
                struct coord_delete del;
                struct coord_children children;
                struct coord_multi multi;
        };
        bool is_done;
        struct buffer data;   /* of a get: a copy; buffer_free() it */
        struct strings names; /* of a list: copies; strings_free() them */
};

/* Each returns the request's status. */
int tree_ask_get(struct cli_tree *t, struct tree_ask *ask);
int tree_ask_set(struct cli_tree *t, struct tree_ask *ask);
int tree_ask_delete(struct cli_tree *t, struct tree_ask *ask);
int tree_ask_children(struct cli_tree *t, struct tree_ask *ask);
int tree_ask_multi(struct cli_tree *t, struct tree_ask *ask);

#endif
