/* work_json.h: a worker's task and the answer to a heartbeat: a host's JSON as client.h's structs.
 *
 * The JSON is input: every member is checked.  No I/O. */
#ifndef QUIVER_CLIENT_WORK_JSON_H
#define QUIVER_CLIENT_WORK_JSON_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/error.h"
#include "base/span.h"

/* Takes ownership of the object and borrows from it; free with qv_client_work_free().  -EBADMSG: not what a host
 * sends. */
int work_of_json(
        json_t *object, const char *handler, const char *host, struct qv_client_work **ret, struct error *error);

/* The answer to a heartbeat.  0 or -EBADMSG. */
int kept_of_json(struct span json, struct qv_client_kept *ret, struct error *error);

#endif
