/* endpoints.h: everything that can be asked for; route.c says under which path. */
#ifndef QUIVER_HTTP_ENDPOINTS_H
#define QUIVER_HTTP_ENDPOINTS_H

#include "http/exchange.h"

/* health.c: is the loop going round; is this a member that sees its store and does not stop. */
void http_get_live(struct http_exchange *x);
void http_get_ready(struct http_exchange *x);

/* intake.c: the body is the payload of one task. */
void http_post_task(struct http_exchange *x);
/* intake_lines.c: every line of the body is a task. */
void http_post_tasks(struct http_exchange *x);

/* read.c: what `quiver status --json` prints. */
void http_get_status(struct http_exchange *x);

/* tasks.c: one task, whatever its state; the last two are for a dead one. */
void http_get_task(struct http_exchange *x);
void http_cancel_task(struct http_exchange *x);
void http_requeue_task(struct http_exchange *x);
void http_drop_task(struct http_exchange *x);

/* keys.c: what a key waits for; hold, unhold, retry, skip. */
void http_get_key(struct http_exchange *x);
void http_act_on_key(struct http_exchange *x);

/* desired.c: of one handler or of all; of one member. */
void http_pause(struct http_exchange *x);
void http_resume(struct http_exchange *x);
void http_drain(struct http_exchange *x);
void http_activate(struct http_exchange *x);

#endif
