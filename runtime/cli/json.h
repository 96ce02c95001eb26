/* json.h: what commands print with --json, and read from JSON lines. */
#ifndef QUIVER_CLI_JSON_H
#define QUIVER_CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "task/note.h"

/* One object a line, on standard output.  Takes the object. */
void cli_json_print(json_t *object);
/* The same over several lines, for a command that prints only one. */
void cli_json_print_wide(json_t *object);

/* A string.  A file name or a plugin's words need not be UTF-8, and a text that was cut may end within a character:
 * then it says so instead. */
json_t *cli_json_text(const char *text);

/* Bytes as text where they are UTF-8, else in base64 under NAME_base64. */
void cli_json_bytes(json_t *object, const char *name, const void *data, size_t size);
void cli_json_span(json_t *object, const char *name, struct span bytes);
void cli_json_number(json_t *object, const char *name, uint64_t value);

/* `history`: one object per event, oldest first. */
void cli_json_history(json_t *object, struct span events);

/* Appends what the base64 text stands for.  0 or -EINVAL. */
int cli_base64_decode(const char *text, size_t size, struct buffer *to);

#endif
