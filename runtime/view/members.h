/* members.h: the hosts of an app as the coordination tree has them: members, leader, assignment, latest moves.
 *
 * Whoever reads the tree hands each node's bytes in as they are; what cannot be read is shown with the reason. */
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
        char problem[ERROR_TEXT_MAX]; /* with the assignment; "" if there is none */
        struct moves moves;
        json_t *documents; /* nonce → what that host says of itself in the store; NULL: not asked */
};

/* The node's name below members/, and what it holds. */
void membership_view_add_member(struct membership_view *view, const char *node, struct span document);
/* The first in line leads.  `nodes` are the names below election/, NONCE-NUMBER each; others are ignored. */
void membership_view_set_leader(struct membership_view *view, const char *const *nodes, size_t count);
void membership_view_set_assignment(struct membership_view *view, struct span document);
void membership_view_set_moves(struct membership_view *view, struct span document);
/* A host's status document out of the store (host/report/status.h): where and what it is, which the tree does not say.
 */
void membership_view_add_document(struct membership_view *view, const struct store_status *document);
void membership_view_free(struct membership_view *view);

json_t *membership_as_json(const struct membership_view *view);
/* How it is shown. */
struct membership_screen {
        uint32_t moves_max; /* the latest */
        uint64_t now_ms;    /* unix time */
        bool has_color;
};
void membership_as_text(struct buffer *to, const struct membership_view *view, const struct membership_screen *screen);

#endif
