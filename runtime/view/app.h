/* app.h: what is recorded about an app, and who could not do with more of it. */
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

/* Says for each of `features` which members do not know it, a line each; how many lines.  A member whose document
 * cannot be read counts as one that does not. */
size_t app_put_lacking(
        struct buffer *to, const struct membership_view *members, const char *const *features, size_t features_count);

/* Which of the features are to be switched on: those of the names, or all, that are not on yet.  `ret_names` has room
 * for STORE_FEATURES_MAX.  0, or -EINVAL: this build does not know one of them. */
int app_choose_features(const struct store_app *record, const char *const *names, size_t names_count, bool is_all,
        const char **ret_names, size_t *ret_count, struct error *error);
/* What an upgrade did, or would do. */
json_t *app_upgrade_as_json(const char *const *names, size_t count, bool is_dry);

#endif
