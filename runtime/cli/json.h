/* json.h: what the commands need beside jansson itself. */
#ifndef QUIVER_CLI_JSON_H
#define QUIVER_CLI_JSON_H

#include <jansson.h>

/* A string.  A file name or a plugin's words need not be UTF-8, and a text that was cut may end within a character:
 * then it says so instead. */
json_t *json_text(const char *text);

#endif
