/* edit.h: changes the text of a configuration file and keeps everything else in it, comments included. */
#ifndef QUIVER_CONFIG_EDIT_H
#define QUIVER_CONFIG_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Writes the NUL-terminated `text` with one more handler to `ret_text`: `line` ("mail = { … };") becomes the last
 * member of the group `handlers`, or of a new group at the end of the file.  `ret_line` is its line number.  The caller
 * must check the result: in a file with a syntax error the position is arbitrary. */
void edit_add_handler(const char *text, const char *line, struct buffer *ret_text, uint32_t *ret_line);

#endif
