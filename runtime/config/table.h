/* table.h: the description of a setting.  The settings themselves are in table.c and table_handler.c.  Reading,
 * checking, showing, comparing and the reference all use these rows, so nothing about a setting is written twice. */
#ifndef QUIVER_CONFIG_TABLE_H
#define QUIVER_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The form in the file → the type of the struct's member. */
enum field_type {
        FIELD_COUNT,    /* an integer → uint32_t */
        FIELD_NUMBER,   /* a float or integer → double */
        FIELD_DURATION, /* "30s" → uint64_t, milliseconds */
        FIELD_SIZE,     /* "64KiB" → uint64_t, bytes */
        FIELD_CHOICE,   /* one of some words → int, its number */
        FIELD_FLAG,     /* true or false → bool */
        FIELD_TEXT,     /* → char *, NULL if not set */
        FIELD_PATH,     /* → char *, absolute, NULL if not set */
        FIELD_STRINGS,  /* [ "a", "b" ] → struct strings */
        FIELD_PATHS,    /* the same, absolute */
        FIELD_URL,      /* → struct url */
        FIELD_GROUP,    /* { … } → the struct at the offset */
        FIELD_SETTINGS, /* { anything } → struct setting_list */
        FIELD_HANDLERS, /* { NAME = { … }; … } → handlers and handlers_count of struct config */
        FIELD_NAMED,    /* the same for others → a pointer to structs that begin with struct named_config, and their
                         * number */
};

struct group;

struct field {
        const char *name;
        enum field_type type;
        enum config_effect effect;
        size_t offset;
        const char *fallback;  /* the default as text; NULL: there is none, see `otherwise` */
        const char *otherwise; /* for people: what applies if it is not set and has no default; NULL: it is required */
        double min;            /* counts, numbers, durations (ms), sizes (bytes) */
        double max;
        const char *const *choices; /* NULL-terminated */
        /* An additional check of a text, or of each text of a list: 0, or -EINVAL with the error set.  May be NULL. */
        int (*check)(const char *text, struct error *error);
        const struct group *group;
        const char *help;
        enum url_use url_use;
        size_t count_offset, item_size; /* FIELD_NAMED: the offset of their number, and the size of each */
};

struct group {
        const struct field *fields;
        size_t count;
};

extern const struct group config_table;  /* struct config */
extern const struct group handler_table; /* struct handler_config */

/* The structs of a FIELD_NAMED in the struct at `base`: their number, and the one at `index`. */
size_t named_count(const struct field *f, const void *base);
struct named_config *named_at(const struct field *f, const void *base, size_t index);
/* The struct of that name; NULL: none. */
struct named_config *named_find(const struct field *f, const void *base, const char *name);
/* Adds a zeroed struct. */
struct named_config *named_add(const struct field *f, void *base);

/* The field of that name; NULL if there is none. */
const struct field *group_field(const struct group *group, const char *name);
/* The field name closest to a misspelt one, or NULL. */
const char *group_nearest(const struct group *group, const char *name);

#endif
