/* membership_ask.h: reads the coordination tree once, as a visitor. */
#ifndef QUIVER_CLI_ADMIN_MEMBERSHIP_ASK_H
#define QUIVER_CLI_ADMIN_MEMBERSHIP_ASK_H

#include "config/config.h"
#include "view/members.h"

/* 0, or -errno with the text set: it does not answer.  membership_view_free() either way. */
int membership_ask(const struct config *config, struct membership_view *ret_view, struct error *error);

#endif
