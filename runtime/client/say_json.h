/* say_json.h: a worker's reports: client.h's structs as JSON.  No I/O. */
#ifndef QUIVER_CLIENT_SAY_JSON_H
#define QUIVER_CLIENT_SAY_JSON_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/error.h"

/* The caller owns both results. */
json_t *heartbeat_json(const char *fence, const struct qv_client_heartbeat *heartbeat);
/* NULL with -EINVAL in the error: a field is set that a worker cannot report. */
json_t *finish_json(const char *fence, const struct qv_client_finish *finish, struct error *error);

#endif
