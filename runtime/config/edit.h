/* edit.h: changes the text of a configuration file and leaves everything else in it as it stands, comments included. */
#ifndef QUIVER_CONFIG_EDIT_H
#define QUIVER_CONFIG_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Writes `text`, which ends in a NUL, with a handler more to `ret_text`: `line` ("mail = { … };") becomes the last
 * member of the group `handlers`, or of a new one at the end of the file.  `ret_line` is the number of its line.  The
 * caller checks the result: where the file has a syntax error, it is put somewhere. */
void edit_add_handler(const char *text, const char *line, struct buffer *ret_text, uint32_t *ret_line);

#endif
