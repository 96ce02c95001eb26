/* control.h: what a host answers when a command on its own machine asks it: STATE/NAME.sock.
 *
 * A connection is one question: a JSON object on one line with the member "verb", at most CONTROL_REQUEST_MAX bytes;
 * then one answer, a JSON object on one line: {"ok": true, …}, or {"ok": false, "error": "…"}; then the end.  Only the
 * host's own user and root are heard.  Bounded in bytes, time and number, whatever comes in: nothing that is said here
 * can stop the host.
 *
 * All on the loop's thread; nothing blocks. */
#ifndef QUIVER_HOST_CONTROL_H
#define QUIVER_HOST_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

#define CONTROL_REQUEST_MAX     (64u * 1024u)
#define CONTROL_CONNECTIONS_MAX 16u
#define CONTROL_DEADLINE_MS     5000u /* to say a question, and to take the answer */

struct control;
struct control_call; /* one question that is not answered yet */

/* A verb.  `request` lives until it returns.  `call` is to be answered exactly once, then or later, also if the one who
 * asked has gone, and also after control_close(). */
struct control_verb {
        const char *name;
        void (*answer)(void *owner, struct control_call *call, const json_t *request);
};

struct control_options {
        const char *folder;
        const char *name;   /* of the host */
        const char *second; /* the socket's name if a living host has the first */
        const struct control_verb *verbs;
        size_t verbs_count;
        void *owner; /* the verbs' */
};

/* 0 or -errno with the text.  `options->verbs` is borrowed for good. */
int control_open(
        uv_loop_t *loop, const struct control_options *options, struct control **ret_control, struct error *error);

/* The file's name in the folder.  Borrowed. */
const char *control_file(const struct control *control);

/* Removes the file, ends every connection.  Accepts NULL.  The memory goes when the loop has closed the handles. */
void control_close(struct control *control);

/* Answers with `reply`, an object, which is taken; "ok" is added. */
void control_reply(struct control_call *call, json_t *reply);
/* Answers with an error. */
__attribute__((format(printf, 2, 3))) void control_refuse(struct control_call *call, const char *format, ...);

#endif
