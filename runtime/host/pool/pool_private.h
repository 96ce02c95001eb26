/* pool_private.h: what pool.c (queue, events), pool_hand.c (handing over) and pool_watch.c (deadlines,
 * deaths) share.  Nobody else includes it. */
#ifndef QUIVER_HOST_POOL_POOL_PRIVATE_H
#define QUIVER_HOST_POOL_POOL_PRIVATE_H

#include "host/pool/pool.h"

/* A task that no seat has started after this long may run elsewhere, if there is an elsewhere. */
#define POOL_STUCK_MS 10

/* A ring that had no room (its cells are still full of what was taken back, its spills of large tasks) is tried again
 * after this long. */
#define POOL_FULL_MS 2

/* A runner that something was taken back from gets nothing for this long, or until its next answer. */
#define POOL_SHUT_MS 100

struct pool_action *pool_act(struct pool_actions *actions, enum pool_action_kind kind, struct pool_runner *runner);
struct pool_action *pool_settle(struct pool_actions *actions, struct pool_task *task, enum outcome outcome);
/* To the end of a list. */
void pool_append(struct pool_task **first, struct pool_task **last, struct pool_task *task);
/* Takes the task out of what waits. */
void pool_unqueue(struct pool *pool, struct pool_task *task);
/* Whoever offered it gets it back as it was. */
void pool_give_back(struct pool_actions *actions, struct pool_task *task, enum blame_why why);
/* Takes the task off its runner. */
void pool_unhand(struct pool_task *task, uint64_t now_ms);
/* It has not started: back to the head of what waits, or, if it is not to start here, back to where it came from. */
void pool_put_back(struct pool *pool, struct pool_task *task, struct pool_actions *actions);
/* There are more processes than there should be, and this is one of those. */
bool pool_is_surplus(const struct pool *pool, const struct pool_runner *runner);
uint64_t pool_backoff_ms(struct pool *pool, uint32_t failures);

/* Hands over what can be, and starts runners for the rest. */
void pool_dispatch(struct pool *pool, uint64_t now_ms, struct pool_actions *actions);
/* So many runners should be up or on their way. */
void pool_warm(struct pool *pool, uint32_t count, uint64_t now_ms, struct pool_actions *actions);
/* Gives back all that waits. */
void pool_give_up(struct pool *pool, struct pool_actions *actions);

/* Retires an idle runner that has had its share: recycled, too many, a suspect's, or the pool drains. */
void pool_retire_done(struct pool *pool, struct pool_runner *runner, uint64_t now_ms, struct pool_actions *actions);
void pool_kill(struct pool_runner *runner, enum blame_why why, uint64_t now_ms, struct pool_actions *actions);
void pool_on_seen(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);
void pool_on_gone(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);
void pool_on_tick(struct pool *pool, uint64_t now_ms, struct pool_actions *actions);

#endif
