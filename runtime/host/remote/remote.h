/* remote.h: our tasks that run elsewhere: at workers, for handlers with plugin = "remote", and on seats of other hosts,
 * for all other handlers (host/lend has the protocol between hosts).
 *
 *         a worker polls       → its poll joins the handler's list
 *         a task is ready      → it is bound to the first poll, and its start is recorded (shard_lend): "starting"
 *         the start is durable → the poll is answered with the task: handed out
 *         heartbeats           → move the start's deadline, at most every ttl/3
 *         an outcome           → is judged like a runner's answer and committed; then the worker is answered
 *         silence              → at the deadline: an interruption; from the fourth in a row on, a crash
 *
 * A free seat of another host is a poll, too, with that host's name as the worker's: it takes a task without a key that
 * has waited here for a seat, at once or not at all.  Its silence is always an interruption, and the task then starts
 * here.
 *
 * A poll whose worker leaves gets no task; a task bound to it goes to the next poll.  A host that stops, or whose shard
 * moves, leaves the workers' tasks as they are: the next owner finds the recorded starts and waits in its turn.
 * remote.c decides; remote_io.c, remote_seats.c and remote_reports.c move tasks between shards, polls and workers. */
#ifndef QUIVER_HOST_REMOTE_REMOTE_H
#define QUIVER_HOST_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "host/shard/lent.h"
#include "host/shard/shard.h"
#include "worker/work.h"

struct handler;
struct handlers;
struct shards;
struct settled;

/* This many silences of one task in a row are interruptions; each further one is a crash. */
#define REMOTE_SILENCES_FREE 3u

/* The workers of one handler. */
struct remote_handler {
        struct work_poll *polls; /* in order of arrival */
        uint32_t polls_count;    /* polls that no task is bound to */
        uint32_t lent;           /* tasks that are bound to a poll or handed out */
        uint64_t seen_ms;        /* when a worker last polled or reported */
        uint64_t paused_ms;      /* a worker answered UNAVAILABLE: nothing is handed out before this time */
        uint32_t pauses;         /* consecutive UNAVAILABLE answers */
};

/* All tasks that a host has lent.  Zero-initialised is empty. */
struct remotes {
        struct lent *all;     /* hash */
        struct lent *watched; /* looked at in every turn: they start, end, or a report waits for its answer */
        struct lent *resting; /* handed out, with nothing to do until a report or a deadline */
        uint64_t due_ms;      /* the earliest deadline of a resting task; UINT64_MAX: none */
};

/* --- remote.c: decisions --- */

/* How many tasks may be handed out now: limited by free polls and by `concurrency`. */
uint32_t remote_room(const struct remote_handler *remote, uint32_t concurrency, uint64_t now_ms);
/* Whether a worker polls or polled a moment ago, so that windows should claim the handler's tasks. */
bool remote_is_served(const struct remote_handler *remote, uint64_t now_ms);
/* Polls of this host's own workers without a task. */
uint32_t remote_own_polls(const struct remote_handler *remote);
/* The worker's name of the first such poll; "": there is none. */
const char *remote_first_worker(const struct remote_handler *remote);
/* A worker answered UNAVAILABLE, perhaps with a duration.  Any other outcome ends the series. */
void remote_pause(struct remote_handler *remote, const struct work_report *report, uint64_t now_ms);
/* How long a start or a heartbeat may last: the ttl, but not beyond the task's own timeout.  0: the timeout has
 * passed. */
uint64_t lent_give_ms(const struct lent *lent, uint64_t ttl_ms, uint64_t timeout_ms, uint64_t now_ms);
/* The time that the worker is told: less than the store has recorded, because clocks drift and answers take time. */
uint64_t lent_remaining_ms(const struct lent *lent, uint64_t now_ms);
/* When certainly nobody runs the task any more; UINT64_MAX: not known yet. */
uint64_t lent_due_ms(const struct lent *lent);
/* Whether to pass a heartbeat on to the store. */
bool lent_wants_more(const struct lent *lent, uint64_t ttl_ms, uint64_t now_ms);
/* The outcome that a silence counts as. */
enum outcome lent_silence(const struct lent *lent, bool is_timeout);

/* --- remote_io.c --- */

/* A worker polls; its poll is withdrawn. */
void remotes_take(struct handlers *all, struct work_poll *poll, uint64_t now_ms);
void remotes_leave(struct handlers *all, struct work_poll *poll);
/* A worker reports: work_services.say(). */
bool remotes_say(struct handlers *all, struct shards *shards, struct work_saying *saying, uint64_t now_ms);
/* A report that came through the shard's control list. */
void remotes_obey(struct handlers *all, struct shard *shard, const struct store_control *control, uint64_t now_ms);

/* Called in each turn of the loop: adopts tasks that previous owners lent, and answers what has become durable. */
void remotes_look(struct handlers *all, const struct shards *shards, uint64_t now_ms);
/* Binds ready tasks of the handler to its workers' polls. */
void remote_feed(struct handler *handler, uint64_t now_ms);
/* Binds waiting tasks of a handler with a plugin to polls of other hosts' seats. */
void remote_feed_seats(struct handler *handler, uint64_t now_ms);
/* How many of the handler's waiting tasks another host or its workers could run; at most `max`. */
uint32_t remote_count_wanting(const struct handler *handler, uint32_t max, uint64_t now_ms);
/* Hands another host's task, whose start is recorded, to a worker that polls here.  False: none does. */
bool remotes_pass_on(struct handler *handler, const struct work_task *task);
/* The borrower or worker did not start the task: it is ready again, at no cost. */
void remotes_decline(
        struct handlers *all, uint32_t shard, const struct work_fence *fence, struct span id, uint64_t now_ms);
/* Ends tasks whose deadline has passed. */
void remotes_tick(struct handlers *all, uint64_t now_ms);
uint64_t remotes_due_ms(const struct handlers *all, uint64_t now_ms);

/* Stops a lent task: its shard is lost, or a person cancelled it. */
void remotes_stop_task(struct handlers *all, struct claimed *c, uint64_t now_ms);
/* The host gives up the task's shard: takes the task back if it was not handed out yet. */
void remotes_recall(struct handlers *all, struct claimed *c, uint64_t now_ms);

/* Answers everybody who waits: no worker is served any more. */
void remotes_close(struct handlers *all, uint64_t now_ms);
void remotes_free(struct handlers *all);

#endif
