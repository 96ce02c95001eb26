/* headers.h: the headers of a task as JSON. */
#ifndef QUIVER_VIEW_HEADERS_H
#define QUIVER_VIEW_HEADERS_H

#include <jansson.h>

#include "base/span.h"

/* Adds the header lines of an envelope in the form that a submission takes: texts in `headers`, bytes in base64 in
 * `headers_base64`; an empty one is omitted. */
void headers_as_json(json_t *object, struct span lines);

#endif
