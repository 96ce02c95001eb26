/* field.h: parses, formats and frees the value of one setting.  table.h defines the types. */
#ifndef QUIVER_CONFIG_FIELD_H
#define QUIVER_CONFIG_FIELD_H

#include "base/buffer.h"
#include "config/table.h"

/* Sets the field's member of the struct at `base` from a text, as a file or a default gives it; for lists, adds one
 * element.  Relative paths start at `folder`.  Not for groups.  0, or -EINVAL / -ERANGE with the text set and the
 * member unchanged. */
int field_parse(const struct field *f, const char *text, const char *folder, void *base, struct error *error);

/* Appends the value as it would stand in the file, in full: parsing the result gives the same value.  If the value is
 * not set, appends nothing and returns false.  Not for groups. */
bool field_format(const struct field *f, const void *base, struct buffer *b);

/* Appends a number of this field's unit: "10s", "64MiB", "0.5". */
void field_format_number(const struct field *f, double value, struct buffer *b);

/* Appends a text in double quotes, escaped as libconfig reads it. */
void field_format_text(const char *text, struct buffer *b);

/* Frees what the members own, nested groups included, and zeroes them. */
void group_free(const struct group *group, void *base);

#endif
