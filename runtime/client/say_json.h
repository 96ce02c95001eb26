/* say_json.h: what a worker says about its task, client.h's structs made into JSON.  No I/O. */
#ifndef QUIVER_CLIENT_SAY_JSON_H
#define QUIVER_CLIENT_SAY_JSON_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/error.h"

/* Both are the caller's. */
json_t *heartbeat_json(const char *fence, const struct qv_client_heartbeat *heartbeat);
/* NULL, with the text of -EINVAL: the struct says what no worker can say. */
json_t *finish_json(const char *fence, const struct qv_client_finish *finish, struct error *error);

#endif
