/* control_call.h: sends a request to a host on this machine, over its control socket (host/control.h). */
#ifndef QUIVER_CLI_CONTROL_CALL_H
#define QUIVER_CLI_CONTROL_CALL_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

/* Asks the host `name`, whose socket is in the state folder, and waits for the answer.  `request` is an object with the
 * member "verb"; it is taken.  0: *ret_reply is the answer, the caller's.  Or a text:
 *   -ENOENT     no host of that name runs here
 *   -EACCES     the socket is another user's
 *   -ETIMEDOUT  no answer within `timeout_ms`
 *   -EREMOTEIO  the host said no, and why */
int control_ask(const char *folder, const char *name, json_t *request, uint64_t timeout_ms, json_t **ret_reply,
        struct error *error);

/* The names of the control sockets in the folder, sorted; their hosts may not be running. */
void control_names(const char *folder, struct strings *ret_names);

/* Prints the error of `command` and returns the exit code for it. */
int control_fail(const char *command, int r, const struct error *error);

#endif
