/* control.h: the control socket of a host, STATE/NAME.sock, for commands on the same machine.
 *
 * A connection carries one request, a JSON object on one line with the member "verb" and at most CONTROL_REQUEST_MAX
 * bytes, and one answer, a JSON object on one line: {"ok": true, …} or {"ok": false, "error": "…"}.  Then it is closed.
 * Only the host's own user and root are accepted, and no runner.  Size, time and number of requests are bounded, so
 * that no client can stop the host.
 *
 * Everything runs on the loop's thread; nothing blocks. */
#ifndef QUIVER_HOST_CONTROL_H
#define QUIVER_HOST_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

#define CONTROL_REQUEST_MAX     (64u * 1024u)
#define CONTROL_CONNECTIONS_MAX 16u
#define CONTROL_DEADLINE_MS     5000u /* for sending the request, and for reading the answer */

struct control;
struct control_call; /* a request that is not answered yet */

/* A verb.  `request` is valid until answer() returns.  The verb must answer `call` exactly once, at once or later, even
 * if the client has gone and even after control_close(). */
struct control_verb {
        const char *name;
        void (*answer)(void *owner, struct control_call *call, const json_t *request);
};

struct control_options {
        const char *folder;
        const char *name;   /* the host's name */
        const char *second; /* the socket's name if another running host uses the first */
        const struct control_verb *verbs;
        size_t verbs_count;
        void *owner; /* passed to the verbs */
};

/* 0, or -errno with the text set.  `options->verbs` must stay valid. */
int control_open(
        uv_loop_t *loop, const struct control_options *options, struct control **ret_control, struct error *error);

/* The name of the socket's file in the state folder.  Borrowed. */
const char *control_file(const struct control *control);

/* Removes the file and ends every connection.  The memory is freed when the loop has closed the handles.  Accepts
 * NULL. */
void control_close(struct control *control);

/* Answers with the object `reply`, of which it takes ownership; adds "ok". */
void control_reply(struct control_call *call, json_t *reply);
/* Answers with an error. */
__attribute__((format(printf, 2, 3))) void control_refuse(struct control_call *call, const char *format, ...);

#endif
