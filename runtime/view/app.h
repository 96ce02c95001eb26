/* app.h: what is recorded about an app, and which members do not know a feature. */
#ifndef QUIVER_VIEW_APP_H
#define QUIVER_VIEW_APP_H

#include <jansson.h>

#include "store/app.h"
#include "view/members.h"

struct app_view {
        const char *app;
        const char *driver;
        const char *coordination;
        const struct store_app *record;
};

json_t *app_as_json(const struct app_view *view);
void app_as_text(struct buffer *to, const struct app_view *view);

/* Adds a line for each of `features` with the members that do not know it; returns the number of lines.  A member whose
 * document cannot be read counts as one that does not know it. */
size_t app_put_lacking(
        struct buffer *to, const struct membership_view *members, const char *const *features, size_t features_count);

/* The features to switch on: the given ones, or all, that are not on yet.  `ret_names` has room for STORE_FEATURES_MAX.
 * 0, or -EINVAL: this build does not know one of them. */
int app_choose_features(const struct store_app *record, const char *const *names, size_t names_count, bool is_all,
        const char **ret_names, size_t *ret_count, struct error *error);
/* The result of an upgrade, or of a dry run. */
json_t *app_upgrade_as_json(const char *const *names, size_t count, bool is_dry);

#endif
