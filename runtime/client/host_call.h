/* host_call.h: one request to a host of this machine, over its Unix socket STATE/NAME.http, as a blocking call.
 *
 * The host identifies its caller by the user of the process: root and the host's own user need no token.  Any thread
 * may call; each call has a connection of its own. */
#ifndef QUIVER_CLIENT_HOST_CALL_H
#define QUIVER_CLIENT_HOST_CALL_H

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "client/http_answer.h"

/* The names of the hosts with a socket in the state folder, sorted; killed hosts may be among them. */
void host_call_names(const char *state, struct strings *ret_names);

/* POSTs `body` (NULL: none) to `path` of the host, and reads the answer.  0 with any HTTP status; free the answer with
 * http_answer_free().  -ECONNREFUSED: no such host runs here; -EACCES: it belongs to another user; -ETIMEDOUT,
 * -ECONNRESET: no answer, so it may or may not have been done; -EBADMSG: another program answers there. */
int host_call(const char *state, const char *name, const char *path, const json_t *body, uint64_t timeout_ms,
        struct http_answer *ret_answer, struct error *error);

#endif
