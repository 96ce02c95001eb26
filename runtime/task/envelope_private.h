/* envelope_private.h: the lines of an envelope, shared by its files. */
#ifndef QUIVER_TASK_ENVELOPE_PRIVATE_H
#define QUIVER_TASK_ENVELOPE_PRIVATE_H

#include "task/envelope.h"

/* --- envelope.c -------------------------------------------------------------------------------------------------- */

bool text_has_control(struct span text);
/* 1 to `max` letters, digits, _ or -. */
bool text_is_word(struct span text, size_t max);
/* Splits a line at its first colon. */
int line_split(struct span line, struct span *ret_name, struct span *ret_value, struct error *error);
/* Whether the name is in envelope.c's list, or a header's. */
bool name_is_known(struct span name);

/* --- header.c ---------------------------------------------------------------------------------------------------- */

/* Whether the name is a header's, of either kind; whether it is a header64's. */
bool name_is_header(struct span name);
bool name_is_header64(struct span name);
/* Checks a header's line.  0 or -EINVAL. */
int header_line_check(struct span name, struct span value, struct error *error);

/* --- envelope_others.c ------------------------------------------------------------------------------------------- */

/* Takes the first line off *lines, without its newline; false if no complete line is left. */
bool line_next(struct span *lines, struct span *ret_line);
/* Checks an unknown name and its value; `before` has the unknown lines before it. */
int other_check(struct span name, struct span value, struct span before, struct error *error);
/* Appends PREFIX NAME:VALUE. */
void line_put(struct buffer *to, struct span prefix, struct span name, struct span value);
/* Appends the lines of one kind, leaving out those of the other kind between them. */
void envelope_put_others(struct buffer *to, const struct envelope *envelope);
void envelope_put_headers(struct buffer *to, const struct envelope *envelope);

#endif
