/* headers.h: the headers of a task as JSON, the same for all who show or send them. */
#ifndef QUIVER_VIEW_HEADERS_H
#define QUIVER_VIEW_HEADERS_H

#include <jansson.h>

#include "base/span.h"

/* Adds the lines of an envelope as a submit takes them: texts in `headers`, bytes as they stand in the envelope in
 * `headers_base64`; what there is none of is left out. */
void headers_as_json(json_t *object, struct span lines);

#endif
