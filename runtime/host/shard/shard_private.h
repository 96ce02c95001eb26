/* shard_private.h: what shard.c (calls and their answers), shard_tasks.c (what becomes of tasks), shard_merge.c (which
 * of them become one), shard_lease.c (whose it is, and until when) and shard_pace.c (when to call) need of each other.
 */
#ifndef QUIVER_HOST_SHARD_SHARD_PRIVATE_H
#define QUIVER_HOST_SHARD_SHARD_PRIVATE_H

#include "host/shard/shard.h"

/* True: it is ours now, and the in-flight table has to be read. */
bool shard_lease_answered(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms);
/* What was sent at `sent_ms` left the lease so long; 0: it was not renewed. */
void shard_lease_renewed(struct shard *s, uint64_t sent_ms, uint64_t left_ms);
/* Somebody with a higher epoch asks for it. */
void shard_lease_wanted(struct shard *s, enum store_wanted wanted, bool is_refused, uint64_t now_ms);
/* Another has it. */
void shard_lease_lost(struct shard *s);
/* It is not ours any more: nothing that we know of it counts. */
void shard_lease_let_go(struct shard *s, enum shard_state state);
/* A pool has a task no more that it was given at `started_ms`. */
void shard_lease_call_ended(struct shard *s, uint64_t started_ms, uint64_t now_ms);
/* shard_tasks.c: suspects whose start is recorded will not start now. */
void shard_take_marks_back(struct shard *s, uint64_t now_ms);
/* When patience with a running call ends; STORE_NEVER. */
uint64_t shard_lease_due_ms(const struct shard *s);

/* Tasks that a call has claimed join the window.  The caller frees the list, which has a place for each, NULL where the
 * window had it already; shard_trim_tasks() follows, once outcomes are dropped: what is too much is given back. */
struct claimed **shard_add_tasks(struct shard *s, const struct store_task *tasks, uint32_t count, uint64_t now_ms);
void shard_trim_tasks(
        struct shard *s, struct claimed **added, const struct store_task *tasks, uint32_t count, uint64_t now_ms);
/* The same for a page of the in-flight table. */
void shard_add_page(struct shard *s, const struct store_page *page, uint64_t now_ms);
/* So many of a key's tasks may be here, if that pool runs them. */
uint32_t shard_per_key(const struct shard *s, uint32_t pool);
/* shard_run.c: a task that a pool had has ended so. */
void shard_run_ended(struct claimed *c, const struct store_outcome *outcome);
/* A task that did not end after all is ready again. */
void shard_put_back(struct shard *s, struct claimed *c, uint64_t now_ms);

/* Forgets its schedules: they are read again when it is acquired. */
void shard_drop_schedules(struct shard *s);

/* A task has an outcome, which the next call tells; `pending` is taken. */
void shard_end_task(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms);

/* shard_merge.c: of the keys of tasks that have just come, neighbours that may be merged are.  `added` may have NULLs.
 */
void shard_merge_tasks(struct shard *s, struct claimed *const *added, uint32_t count, uint64_t now_ms);
/* The same of all keys: the table of what is in flight has been read. */
void shard_merge_all(struct shard *s, uint64_t now_ms);
/* A MERGE is durable; `is_sure`: all that it named was still there. */
void shard_merged(struct shard *s, struct claimed *c, bool is_sure, uint64_t now_ms);
/* A task that is about to start is first to wait for others to join it: it goes back to the store for that. */
bool shard_debounce(struct shard *s, struct claimed *c, uint64_t now_ms);
/* Whether it would. */
bool shard_is_to_debounce(const struct shard *s, const struct claimed *c, uint64_t now_ms);
/* shard_tasks.c: a task into which others were merged is ready again. */
void shard_put_back_merged(struct shard *s, struct claimed *c, uint64_t now_ms);
/* It runs already, at a worker: it counts against the limits that it is under. */
void shard_adopt_shares(struct shard *s, struct claimed *c);

/* How many tasks of each lane it may claim, and of how many bytes (0: as many as a call brings). */
struct shard_want {
        uint32_t tasks[LANES];
        uint32_t bytes;
};
struct shard_want shard_want(const struct shard *s);
/* How many keys to wake at once. */
uint32_t shard_wake_max(const struct shard *s);
/* When the next claim is due, and when what has ended is to be told; STORE_NEVER. */
uint64_t shard_claim_due_ms(const struct shard *s, bool can_wait);
uint64_t shard_tell_due_ms(const struct shard *s, bool can_wait);
/* Whether the call that is being filled is followed by another one within moments, so that the store need not ring; if
 * the last one said so, by when at the latest that has to be made, whether there is room for tasks or not. */
bool shard_calls_again(const struct shard *s);
uint64_t shard_look_due_ms(const struct shard *s);
/* A call has claimed so many, and there were more. */
void shard_pace_claimed(struct shard *s, uint32_t count, bool has_more);
/* A task that ran has ended. */
void shard_pace_ended(struct shard *s, const struct claimed *c, uint64_t now_ms);

#endif
