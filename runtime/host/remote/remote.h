/* remote.h: tasks of ours that somebody else runs: workers outside those of handlers with plugin = "remote", seats of
 * other hosts those of any other handler (host/lend has the protocol between hosts).
 *
 *         a worker polls      → its handler's line of polls
 *         a task is ready     → goes to the first poll: its start is recorded (shard_lend), "starting"
 *         the start is durable→ the poll is answered with the task: handed out
 *         heartbeats          → the start's time is made later, at most every ttl/3
 *         an outcome          → judged as a runner's answer is, and told to the store; then the worker is answered
 *         silence             → at the end of the time: an interruption; from the fourth in a row on, a crash
 *
 * A free seat of another host is a poll, too, of which that host's name is the worker's: it takes a task without a key
 * that has waited here for a seat, at once or not at all.  Its silence is always an interruption, and the task's next
 * start is here.
 *
 * A poll whose worker leaves gets no task; one that was being started for it goes to the next.  A host that stops, or
 * whose shard moves, leaves what workers have as it is: the next owner finds the recorded starts and waits in its turn.
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

/* So many silences of one task in a row are interruptions; the next one, and each after it, is a crash. */
#define REMOTE_SILENCES_FREE 3u

/* What a handler knows of its workers. */
struct remote_handler {
        struct work_poll *polls; /* in the order in which they came */
        uint32_t polls_count;    /* of these, without a task that is being started for them */
        uint32_t lent;           /* tasks that workers have, or are about to get */
        uint64_t seen_ms;        /* when a worker was last here: a poll or a report */
        uint64_t paused_ms;      /* a worker said UNAVAILABLE: nothing is handed out before this */
        uint32_t pauses;         /* of these, one after the other */
};

/* What a host has lent; zero-initialised is empty. */
struct remotes {
        struct lent *all; /* hash */
        struct lent
                *watched; /* to be looked at in every turn of the loop: they start, end, or somebody waits for them */
        struct lent *resting; /* workers have them */
        uint64_t due_ms;      /* when the time of one of them may be over; UINT64_MAX */
};

/* --- remote.c: decisions --- */

/* How many tasks may go out now: a free poll and, of `concurrency`, a place for each. */
uint32_t remote_room(const struct remote_handler *remote, uint32_t concurrency, uint64_t now_ms);
/* A worker is here, or was a moment ago: its tasks are worth a place in the windows. */
bool remote_is_served(const struct remote_handler *remote, uint64_t now_ms);
/* Polls of workers at this host that have no task. */
uint32_t remote_own_polls(const struct remote_handler *remote);
/* The name of the first of them; "": there is none. */
const char *remote_first_worker(const struct remote_handler *remote);
/* A worker said UNAVAILABLE, and perhaps how long; any other outcome ends the series. */
void remote_pause(struct remote_handler *remote, const struct work_report *report, uint64_t now_ms);
/* How long a start, or a heartbeat, is to give the worker: the ttl, but not beyond the task's own timeout.  0: its time
 * is over. */
uint64_t lent_give_ms(const struct lent *lent, uint64_t ttl_ms, uint64_t timeout_ms, uint64_t now_ms);
/* What the worker may count on: less than the store has recorded, for clocks drift and answers travel. */
uint64_t lent_remaining_ms(const struct lent *lent, uint64_t now_ms);
/* When nobody can be running it any more; UINT64_MAX while that is not known. */
uint64_t lent_due_ms(const struct lent *lent);
/* A heartbeat is worth telling the store. */
bool lent_wants_more(const struct lent *lent, uint64_t ttl_ms, uint64_t now_ms);
/* How a silence counts. */
enum outcome lent_silence(const struct lent *lent, bool is_timeout);

/* --- remote_io.c --- */

/* A worker polls, leaves, says something. */
void remotes_take(struct handlers *all, struct work_poll *poll, uint64_t now_ms);
void remotes_leave(struct handlers *all, struct work_poll *poll);
/* As work_services.say(). */
bool remotes_say(struct handlers *all, struct shards *shards, struct work_saying *saying, uint64_t now_ms);
/* The same from the shard's control list. */
void remotes_obey(struct handlers *all, struct shard *shard, const struct store_control *control, uint64_t now_ms);

/* In a turn of the loop: what owners before us lent is taken up, and what has become durable is answered. */
void remotes_look(struct handlers *all, const struct shards *shards, uint64_t now_ms);
/* Tasks to the polls of that handler. */
void remote_feed(struct handler *handler, uint64_t now_ms);
/* Tasks to the seats of other hosts that poll for that handler, which has runners of its own. */
void remote_feed_seats(struct handler *handler, uint64_t now_ms);
/* How many of the handler's tasks wait here that another host, or a worker there, could run; at most `max`. */
uint32_t remote_count_wanting(const struct handler *handler, uint32_t max, uint64_t now_ms);
/* A task of another host, whose start is recorded, for a worker that polls here.  False: none does. */
bool remotes_pass_on(struct handler *handler, const struct work_task *task);
/* Whoever got it did not start it: it is ready again, at no cost. */
void remotes_decline(
        struct handlers *all, uint32_t shard, const struct work_fence *fence, struct span id, uint64_t now_ms);
/* Times that are over. */
void remotes_tick(struct handlers *all, uint64_t now_ms);
uint64_t remotes_due_ms(const struct handlers *all, uint64_t now_ms);

/* A lent task is to stop: its shard is lost, or a person cancelled it. */
void remotes_stop_task(struct handlers *all, struct claimed *c, uint64_t now_ms);
/* Its shard is left: one that has not been handed out is taken back. */
void remotes_recall(struct handlers *all, struct claimed *c, uint64_t now_ms);

/* Nobody is served any more: whoever waits is answered. */
void remotes_close(struct handlers *all, uint64_t now_ms);
void remotes_free(struct handlers *all);

#endif
