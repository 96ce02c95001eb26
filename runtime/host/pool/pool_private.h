/* pool_private.h: what pool.c (queue, events), pool_hand.c (handing over) and pool_watch.c (deadlines,
 * deaths) share.  Nobody else includes it. */
#ifndef QUIVER_HOST_POOL_POOL_PRIVATE_H
#define QUIVER_HOST_POOL_POOL_PRIVATE_H

#include "host/pool/pool.h"

/* A task that no seat has started after this long is moved to another runner that could start it. */
#define POOL_STUCK_MS 10

/* If no other runner could start it, and every seat of its runner has been on one task for this long, the task returns
 * to the waiting tasks, where higher lanes pass it and other hosts' seats find it. */
#define POOL_BEHIND_MS 50

/* A ring without room is tried again after this long.  Its cells may still hold tasks that were taken back, its spills
 * large tasks. */
#define POOL_FULL_MS 2

/* A runner from which a task was taken back gets no task for this long, or until its next answer. */
#define POOL_SHUT_MS 100

struct pool_action *pool_act(struct pool_actions *actions, enum pool_action_kind kind, struct pool_runner *runner);
struct pool_action *pool_settle(struct pool_actions *actions, struct pool_task *task, enum outcome outcome);
/* Appends a task to a list. */
void pool_append(struct pool_task **first, struct pool_task **last, struct pool_task *task);
/* Removes a task from the waiting tasks or suspects. */
void pool_unqueue(struct pool *pool, struct pool_task *task);
/* Settles a task that never started as interrupted. */
void pool_give_back(struct pool_actions *actions, struct pool_task *task, enum blame_why why);
/* Gives back the followers of a run that starts at `behind` in the waiting tasks. */
void pool_give_back_followers(struct pool *pool, struct pool_task *behind, struct pool_actions *actions);
/* Removes a task from its runner. */
void pool_unhand(struct pool_task *task, uint64_t now_ms);
/* Puts a task that has not started back at the head of the waiting tasks, or gives it back if the pool must not start
 * it. */
void pool_put_back(struct pool *pool, struct pool_task *task, struct pool_actions *actions);
/* Whether the runner is beyond the number of processes that the policy allows. */
bool pool_is_surplus(const struct pool *pool, const struct pool_runner *runner);
uint64_t pool_backoff_ms(struct pool *pool, uint32_t failures);

/* Submits waiting tasks to runners with room, and starts runners for the others. */
void pool_dispatch(struct pool *pool, uint64_t now_ms, struct pool_actions *actions);
/* Starts runners until `count` are up or starting. */
void pool_warm(struct pool *pool, uint32_t count, uint64_t now_ms, struct pool_actions *actions);
/* Gives back all waiting tasks. */
void pool_give_up(struct pool *pool, struct pool_actions *actions);

/* Retires an idle runner that reached max_tasks, is surplus or has run a suspect, or if the pool drains. */
void pool_retire_done(struct pool *pool, struct pool_runner *runner, uint64_t now_ms, struct pool_actions *actions);
void pool_kill(struct pool_runner *runner, enum blame_why why, uint64_t now_ms, struct pool_actions *actions);
void pool_on_seen(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);
void pool_on_gone(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);
void pool_on_tick(struct pool *pool, uint64_t now_ms, struct pool_actions *actions);

#endif
