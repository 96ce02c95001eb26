/* endpoints.h: everything that can be asked for; route.c says under which path. */
#ifndef QUIVER_HTTP_API_ENDPOINTS_H
#define QUIVER_HTTP_API_ENDPOINTS_H

#include "http/exchange.h"

/* health.c: is the loop going round; is this a member that sees its store and does not stop. */
void http_get_live(struct http_exchange *x);
void http_get_ready(struct http_exchange *x);

/* metrics.c: what Prometheus reads. */
void http_get_metrics(struct http_exchange *x);

/* history.c: the last hour of every host. */
void http_get_history(struct http_exchange *x);

/* intake.c: the body is the payload of one task. */
void http_post_task(struct http_exchange *x);
/* intake_lines.c: every line of the body is a task. */
void http_post_tasks(struct http_exchange *x);

/* read.c: what `quiver status --json` prints, all of it or a part; `quiver task` and `quiver key` with --json. */
void http_get_status(struct http_exchange *x);
void http_get_shards(struct http_exchange *x);
void http_get_handlers(struct http_exchange *x);
void http_get_limits(struct http_exchange *x);
void http_get_task(struct http_exchange *x);
void http_get_key(struct http_exchange *x);
/* The description of all this, etc/openapi.json. */
void http_get_openapi(struct http_exchange *x);

/* lists.c: a page at a time. */
void http_get_tasks(struct http_exchange *x);
void http_get_dead(struct http_exchange *x);
void http_get_keys(struct http_exchange *x);
void http_get_schedules(struct http_exchange *x);
void http_get_app(struct http_exchange *x);
/* app.c: changes what all hosts agree on. */
void http_post_app(struct http_exchange *x);
void http_upgrade_app(struct http_exchange *x);

/* results.c: what handlers returned. */
void http_take_results(struct http_exchange *x);
void http_commit_results(struct http_exchange *x);

/* schedules.c: one of them. */
void http_get_schedule(struct http_exchange *x);
void http_put_schedule(struct http_exchange *x);
void http_delete_schedule(struct http_exchange *x);
void http_pause_schedule(struct http_exchange *x);
void http_resume_schedule(struct http_exchange *x);
void http_run_schedule(struct http_exchange *x);
void http_backfill_schedule(struct http_exchange *x);

/* limits.c: one limit: shown, set for a while, set back. */
void http_get_limit(struct http_exchange *x);
void http_put_limit(struct http_exchange *x);
void http_delete_limit(struct http_exchange *x);

/* tree.c: from the coordination tree. */
void http_get_members(struct http_exchange *x);
void http_get_locks(struct http_exchange *x);

/* events.c: the status as it changes, as server-sent events. */
void http_get_events(struct http_exchange *x);

/* tasks.c: one task, whatever its state; the last two are for a dead one. */
bool http_check_task_id(struct http_exchange *x, struct span id, uint32_t *ret_shard); /* false: it is answered */
void http_get_payload(struct http_exchange *x);
void http_cancel_task(struct http_exchange *x);
void http_move_task(struct http_exchange *x);
void http_reschedule_task(struct http_exchange *x);
void http_requeue_task(struct http_exchange *x);
void http_drop_task(struct http_exchange *x);

/* keys.c: hold, unhold, retry, skip. */
void http_act_on_key(struct http_exchange *x);

/* work.c: workers outside. */
void http_take_work(struct http_exchange *x);
void http_work_heartbeat(struct http_exchange *x);
void http_work_outcome(struct http_exchange *x);

/* desired.c: of one handler or of all; of one member; of this host. */
void http_pause(struct http_exchange *x);
void http_resume(struct http_exchange *x);
void http_drain(struct http_exchange *x);
void http_activate(struct http_exchange *x);
void http_reload(struct http_exchange *x);

/* bulk.c: many at once, by filter. */
void http_requeue_dead(struct http_exchange *x);
void http_drop_dead(struct http_exchange *x);
void http_cancel_tasks(struct http_exchange *x);

/* page.c: the page in the browser; which host and app it looks at, and what the one who looks may do. */
void http_get_page(struct http_exchange *x);
void http_get_me(struct http_exchange *x);

#endif
