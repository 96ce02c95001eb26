/* membership_ask.h: reads the coordination tree once, as a visitor. */
#ifndef QUIVER_CLI_ADMIN_MEMBERSHIP_ASK_H
#define QUIVER_CLI_ADMIN_MEMBERSHIP_ASK_H

#include "config/config.h"
#include "view/members.h"

/* How the asking went. */
struct membership_asked {
        uint64_t session_ms;    /* what the authority grants a session; 0: none was needed */
        uint64_t round_trip_ns; /* the quickest request */
};

/* `command` is named if it takes long.  `ret_asked` may be NULL.  0, or -errno with the text set: it does not answer.
 * membership_view_free() either way. */
int membership_ask(const struct config *config, const char *command, struct membership_view *ret_view,
        struct membership_asked *ret_asked, struct error *error);

#endif
