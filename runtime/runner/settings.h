/* settings.h: the settings that a plugin reads by name, and those that it never read. */
#ifndef QUIVER_RUNNER_SETTINGS_H
#define QUIVER_RUNNER_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "ring/message.h"

struct settings {
        const struct setting *list; /* borrowed from the start message */
        size_t count;
        _Atomic bool *was_read; /* one per setting; seats read at the same time */
};

/* Running out of memory ends the process. */
void settings_init(struct settings *s, const struct setting *list, size_t count);
void settings_free(struct settings *s);

/* The value, which is marked as read; NULL if there is no setting of that name. */
const char *settings_get(struct settings *s, const char *name);

/* Appends the names that were never read, comma-separated. */
void settings_put_unread(const struct settings *s, struct buffer *to);

#endif
