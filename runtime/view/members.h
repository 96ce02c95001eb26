/* members.h: the hosts of an app from the coordination tree: members, leader, assignment, latest moves.
 *
 * The caller passes each node's bytes unchanged; what cannot be parsed is shown with the reason. */
#ifndef QUIVER_VIEW_MEMBERS_H
#define QUIVER_VIEW_MEMBERS_H

#include <jansson.h>

#include "host/membership/assign_doc.h"
#include "host/membership/member_doc.h"
#include "store/admin.h"

/* One member; `problem` says why `doc` is empty. */
struct view_member {
        char node[256];
        struct member_doc *doc;
        char problem[ERROR_TEXT_MAX];
};

/* Zero-initialised is empty. */
struct membership_view {
        struct view_member *members; /* in the order in which they were added */
        size_t members_count;
        char leader[64]; /* its nonce in hexadecimal digits; "" if nobody leads */
        struct assignment assignment;
        char problem[ERROR_TEXT_MAX]; /* why the assignment cannot be parsed; "": no problem */
        struct moves moves;
        json_t *documents; /* nonce → the host's status document from the store; NULL: not asked for */
};

/* The node's name below members/, and its content. */
void membership_view_add_member(struct membership_view *view, const char *node, struct span document);
/* Finds the leader: the first in the queue.  `nodes` are the names below election/, NONCE-NUMBER each; others are
 * ignored. */
void membership_view_set_leader(struct membership_view *view, const char *const *nodes, size_t count);
void membership_view_set_assignment(struct membership_view *view, struct span document);
void membership_view_set_moves(struct membership_view *view, struct span document);
/* Adds a host's status document from the store (host/report/status.h), which has details that the tree does not. */
void membership_view_add_document(struct membership_view *view, const struct store_status *document);
void membership_view_free(struct membership_view *view);

json_t *membership_as_json(const struct membership_view *view);
/* Display options. */
struct membership_screen {
        uint32_t moves_max; /* number of latest moves shown */
        uint64_t now_ms;    /* unix time */
        bool has_color;
};
void membership_as_text(struct buffer *to, const struct membership_view *view, const struct membership_screen *screen);

#endif
