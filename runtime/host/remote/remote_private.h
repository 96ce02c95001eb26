/* remote_private.h: what remote_io.c (tasks to workers and back), remote_reports.c (what comes through a shard's
 * control list) and remote_seats.c (tasks to seats of other hosts) need of each other. */
#ifndef QUIVER_HOST_REMOTE_REMOTE_PRIVATE_H
#define QUIVER_HOST_REMOTE_REMOTE_PRIVATE_H

#include "host/remote/remote.h"

/* The settings by which the handler's tasks are judged; NULL: the handler is not served here any more. */
const struct handler_config *remote_settings(const struct handler *handler);

/* The lent tasks of a host, by shard and seq. */
void remote_add(struct handlers *all, struct lent *lent);
struct lent *remote_find(const struct handlers *all, uint32_t shard, uint64_t seq);
/* Has the task looked at in every turn of the loop, until it rests again. */
void remote_watch(struct remotes *r, struct lent *lent);
/* Whether the fence and id are those of the current start. */
bool remote_is_current(const struct lent *lent, const struct work_fence *fence, struct span id);

/* Binds a task that was just dispatched to a poll, and has its start recorded. */
void remote_lend(
        struct handler *handler, struct work_poll *poll, struct shard *shard, struct claimed *c, uint64_t now_ms);
/* The first poll without a task; NULL: there is none. */
struct work_poll *remote_free_poll(const struct remote_handler *remote);
/* Ends the polls whose time is over. */
void remote_expire_polls(struct handler *handler, uint64_t now_ms);
/* Nobody got the task, or the one who got it did not start it. */
void remote_take_back(struct lent *lent, uint64_t now_ms);

/* Whether the handler's settings allow the report; the text says why not. */
bool remote_is_allowed(const struct handler *handler, const struct work_report *report, char text[256]);
void remote_apply_heartbeat(struct handlers *all, struct lent *lent, const struct work_report *report, uint64_t now_ms);
void remote_apply_outcome(struct handlers *all, struct lent *lent, const struct work_report *report, uint64_t now_ms);
/* Passes a judged outcome to the shard. */
void remote_settle(struct handlers *all, struct lent *lent, struct settled *settled);

/* remote_seats.c: handles an outcome of a borrowed seat from the control list.  False: it is not valid, the error says
 * why. */
bool remote_obey_seat(struct handlers *all, struct shard *shard, const struct store_control *control, uint64_t now_ms,
        struct error *error);

#endif
