/* setting_list.h: a plugin's own settings, by the names under which the plugin reads them.
 *
 * The group `config = { … }` of a handler, flattened: nested groups by dots ("db.url"), list elements by number
 * ("tables.0"), every value as text. */
#ifndef QUIVER_BASE_SETTING_LIST_H
#define QUIVER_BASE_SETTING_LIST_H

#include <stddef.h>

#include "base/error.h"

/* The limit on all names and values together, NULs included: they reach the runner in one message. */
#define SETTINGS_BYTES_MAX ((size_t)64 * 1024)

struct setting {
        const char *name; /* "db.url" */
        const char *value;
};

/* In the order of the file; names are unique.  Zero-initialised is empty. */
struct setting_list {
        struct setting *items;
        size_t count;
        size_t bytes;
};

/* Adds a copy of name and value.  0, or -E2BIG beyond SETTINGS_BYTES_MAX. */
int setting_list_add(struct setting_list *s, const char *name, const char *value);
/* The value, borrowed; NULL if there is no setting of that name. */
const char *setting_list_get(const struct setting_list *s, const char *name);
void setting_list_free(struct setting_list *s);

#endif
