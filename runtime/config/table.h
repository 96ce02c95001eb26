/* table.h: what a setting is.  The settings themselves are in table.c; reading, checking, showing, comparing and the
 * reference all go by these rows, so that nothing about a setting is written twice. */
#ifndef QUIVER_CONFIG_TABLE_H
#define QUIVER_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* What stands in the file → what stands in the struct. */
enum field_type {
        FIELD_COUNT,    /* an integer → uint32_t */
        FIELD_NUMBER,   /* a float or integer → double */
        FIELD_DURATION, /* "30s" → uint64_t, milliseconds */
        FIELD_SIZE,     /* "64KiB" → uint64_t, bytes */
        FIELD_CHOICE,   /* one of some words → int, its number */
        FIELD_TEXT,     /* → char *, NULL if not set */
        FIELD_PATH,     /* → char *, absolute, NULL if not set */
        FIELD_STRINGS,  /* [ "a", "b" ] → struct strings */
        FIELD_PATHS,    /* the same, absolute */
        FIELD_URL,      /* → struct url */
        FIELD_GROUP,    /* { … } → the struct at the offset */
        FIELD_SETTINGS, /* { anything } → struct setting_list */
        FIELD_HANDLERS, /* { NAME = { … }; … } → handlers and handlers_count of struct config */
};

struct group;

struct field {
        const char *name;
        enum field_type type;
        enum config_effect effect;
        size_t offset;
        const char *fallback;  /* the default, as text; NULL: see below */
        const char *otherwise; /* without a default: what holds then, for people; NULL: it has to be set */
        double min;            /* counts, numbers, durations (ms), sizes (bytes) */
        double max;
        const char *const *choices; /* NULL-terminated */
        /* Looks at a text (each, in a list) further: 0 or -EINVAL with the text set.  May be NULL. */
        int (*check)(const char *text, struct error *error);
        const struct group *group;
        const char *help;
        enum url_use url_use;
};

struct group {
        const struct field *fields;
        size_t count;
};

extern const struct group config_table;  /* struct config */
extern const struct group handler_table; /* struct handler_config */

/* NULL if there is none. */
const struct field *group_field(const struct group *group, const char *name);
/* The name that was most likely meant, or NULL. */
const char *group_nearest(const struct group *group, const char *name);

#endif
