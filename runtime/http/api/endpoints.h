/* endpoints.h: all endpoints; route.c has their paths. */
#ifndef QUIVER_HTTP_API_ENDPOINTS_H
#define QUIVER_HTTP_API_ENDPOINTS_H

#include "http/exchange.h"

/* health.c: whether the loop runs; whether this host is a member, sees its store and is not stopping. */
void http_get_live(struct http_exchange *x);
void http_get_ready(struct http_exchange *x);

/* metrics.c: for Prometheus. */
void http_get_metrics(struct http_exchange *x);

/* history.c: the last hour of every host. */
void http_get_history(struct http_exchange *x);

/* intake.c: the body is the payload of one task. */
void http_post_task(struct http_exchange *x);
/* intake_lines.c: every line of the body is a task. */
void http_post_tasks(struct http_exchange *x);

/* read.c: the status like `quiver status --json`, all of it or a part; a task and a key like `quiver task` and `quiver
 * key`. */
void http_get_status(struct http_exchange *x);
void http_get_shards(struct http_exchange *x);
void http_get_handlers(struct http_exchange *x);
void http_get_limits(struct http_exchange *x);
void http_get_task(struct http_exchange *x);
void http_get_key(struct http_exchange *x);
/* The API's description, etc/openapi.json. */
void http_get_openapi(struct http_exchange *x);

/* lists.c: lists, a page at a time. */
void http_get_tasks(struct http_exchange *x);
void http_get_dead(struct http_exchange *x);
void http_get_keys(struct http_exchange *x);
void http_get_schedules(struct http_exchange *x);
void http_get_app(struct http_exchange *x);
/* app.c: changes the app's record. */
void http_post_app(struct http_exchange *x);
void http_upgrade_app(struct http_exchange *x);

/* results.c: the results of handlers. */
void http_take_results(struct http_exchange *x);
void http_commit_results(struct http_exchange *x);

/* schedules.c: one schedule. */
void http_get_schedule(struct http_exchange *x);
void http_put_schedule(struct http_exchange *x);
void http_delete_schedule(struct http_exchange *x);
void http_pause_schedule(struct http_exchange *x);
void http_resume_schedule(struct http_exchange *x);
void http_run_schedule(struct http_exchange *x);
void http_backfill_schedule(struct http_exchange *x);

/* limits.c: one limit: shows it, sets it for a while, sets it back. */
void http_get_limit(struct http_exchange *x);
void http_put_limit(struct http_exchange *x);
void http_delete_limit(struct http_exchange *x);

/* tree.c: reads the coordination tree. */
void http_get_members(struct http_exchange *x);
void http_get_locks(struct http_exchange *x);

/* events.c: the status whenever it changes, as server-sent events. */
void http_get_events(struct http_exchange *x);

/* tasks.c: one task in any state; the last two are for a dead one. */
/* false: the request was answered */
bool http_check_task_id(struct http_exchange *x, struct span id, uint32_t *ret_shard);
void http_get_payload(struct http_exchange *x);
void http_cancel_task(struct http_exchange *x);
void http_move_task(struct http_exchange *x);
void http_reschedule_task(struct http_exchange *x);
void http_requeue_task(struct http_exchange *x);
void http_drop_task(struct http_exchange *x);

/* keys.c: hold, unhold, retry, skip. */
void http_act_on_key(struct http_exchange *x);

/* work.c: for workers. */
void http_take_work(struct http_exchange *x);
void http_work_heartbeat(struct http_exchange *x);
void http_work_outcome(struct http_exchange *x);

/* desired.c: pause one handler or all; drain one member; reload this host. */
void http_pause(struct http_exchange *x);
void http_resume(struct http_exchange *x);
void http_drain(struct http_exchange *x);
void http_activate(struct http_exchange *x);
void http_reload(struct http_exchange *x);

/* bulk.c: many tasks at once, by filter. */
void http_requeue_dead(struct http_exchange *x);
void http_drop_dead(struct http_exchange *x);
void http_cancel_tasks(struct http_exchange *x);

/* page.c: the page for browsers; which host and app it shows, and what its user may do. */
void http_get_page(struct http_exchange *x);
void http_get_me(struct http_exchange *x);

#endif
