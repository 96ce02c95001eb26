/* envelope_private.h: what the files of the envelope share: its lines, one by one. */
#ifndef QUIVER_TASK_ENVELOPE_PRIVATE_H
#define QUIVER_TASK_ENVELOPE_PRIVATE_H

#include "task/envelope.h"

/* --- envelope.c -------------------------------------------------------------------------------------------------- */

bool text_has_control(struct span text);
/* 1 to `max` letters, digits, _ or -. */
bool text_is_word(struct span text, size_t max);
/* Splits a line at its first colon. */
int line_split(struct span line, struct span *ret_name, struct span *ret_value, struct error *error);
/* A name of envelope.c's list, or a header's. */
bool name_is_known(struct span name);

/* --- header.c ---------------------------------------------------------------------------------------------------- */

/* The name of a line that is a header, of either kind; of bytes. */
bool name_is_header(struct span name);
bool name_is_header64(struct span name);
/* Checks a header's line.  0 or -EINVAL. */
int header_line_check(struct span name, struct span value, struct error *error);

/* --- envelope_others.c ------------------------------------------------------------------------------------------- */

/* Takes the first line off *lines, without its end; false if there is none that ends. */
bool line_next(struct span *lines, struct span *ret_line);
/* Checks an unknown name and its value; `before` are the lines of those that stand before it. */
int other_check(struct span name, struct span value, struct span before, struct error *error);
/* Appends PREFIX NAME:VALUE. */
void line_put(struct buffer *to, struct span prefix, struct span name, struct span value);
/* Appends the lines of one kind, without those of the other that may stand between them. */
void envelope_put_others(struct buffer *to, const struct envelope *envelope);
void envelope_put_headers(struct buffer *to, const struct envelope *envelope);

#endif
