/* membership_view.h: the coordination tree as a command sees it: members, leader, assignment, moves. */
#ifndef QUIVER_CLI_MEMBERSHIP_VIEW_H
#define QUIVER_CLI_MEMBERSHIP_VIEW_H

#include "config/config.h"
#include "host/membership/assign_doc.h"
#include "host/membership/member_doc.h"

/* One member; `problem` says why `doc` is empty. */
struct view_member {
        char node[256];
        struct member_doc *doc;
        char problem[ERROR_TEXT_MAX];
        bool is_leader;
        uint32_t shards; /* assigned to it */
};

/* Zero-initialised is empty. */
struct membership_view {
        struct view_member *members; /* by name and nonce */
        size_t members_count;
        struct assignment assignment;
        char problem[ERROR_TEXT_MAX]; /* with the assignment */
        struct moves moves;
};

/* Asks the tree once, as a visitor.  0, or -errno with the text set: it does not answer. */
int membership_view_read(const struct config *config, struct membership_view *ret_view, struct error *error);
void membership_view_free(struct membership_view *view);

#endif
