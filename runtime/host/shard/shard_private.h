/* shard_private.h: what the shard's files share: shard.c (calls and replies), shard_tasks.c (the life of claimed
 * tasks), shard_recovery.c (what the last owner had in flight), shard_excess.c (which of them go back), shard_merge.c
 * (merging them), shard_run.c (several of a key in one call), shard_lease.c (the lease) and shard_pace.c (when to
 * call). */
#ifndef QUIVER_HOST_SHARD_SHARD_PRIVATE_H
#define QUIVER_HOST_SHARD_SHARD_PRIVATE_H

#include "host/shard/shard.h"

/* In the history of a task that could be merged and was in flight when the shard's lease was lost. */
#define SHARD_MAY_HAVE_RUN "it may have been running when its host lost the shard"

/* Handles the reply to an acquire.  True: granted, and the in-flight table has to be read. */
bool shard_lease_answered(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms);
/* A call sent at `sent_ms` left the lease with left_ms; 0: it did not renew the lease. */
void shard_lease_renewed(struct shard *s, uint64_t sent_ms, uint64_t left_ms);
/* Another host with a higher epoch wants the shard, or the store no longer renews our lease. */
void shard_lease_wanted(struct shard *s, enum store_wanted wanted, bool is_refused, uint64_t now_ms);
/* The store says that another host has the lease. */
void shard_lease_lost(struct shard *s);
/* We no longer own the shard: forgets everything but running tasks. */
void shard_lease_let_go(struct shard *s, enum shard_state state);
/* A task that a pool got at `started_ms` has left the pool: a move may wait for that. */
void shard_lease_call_ended(struct shard *s, uint64_t started_ms, uint64_t now_ms);
/* shard_tasks.c: undoes the recorded starts of suspects that have not started. */
void shard_take_marks_back(struct shard *s, uint64_t now_ms);
/* When a planned move stops waiting for running calls; STORE_NEVER. */
uint64_t shard_lease_due_ms(const struct shard *s);

/* Adds claimed tasks to the window.  Returns an array in the same order, NULL where the window had the task already;
 * the caller frees it.  After the outcomes are dropped, shard_trim_tasks() returns the excess to the store. */
struct claimed **shard_add_tasks(struct shard *s, const struct store_task *tasks, uint32_t count, uint64_t now_ms);
void shard_trim_tasks(
        struct shard *s, struct claimed **added, const struct store_task *tasks, uint32_t count, uint64_t now_ms);
/* shard_recovery.c: adds a page of the in-flight table, and trims it. */
void shard_add_page(struct shard *s, const struct store_page *page, uint64_t now_ms);
/* Returns a task to its key's side queue in the store; the key's own outcomes fetch it again. */
void shard_divert(struct shard *s, struct claimed *c, uint64_t now_ms);
/* Returns all of the key's waiting tasks. */
void shard_divert_rest(struct shard *s, struct window_key *key, uint64_t now_ms);
/* shard_excess.c: returns what keys have beyond their share, unless they work it off soon; called after each reply that
 * brings tasks.  shard_excess_tick() does the same when s->excess_ms has come. */
void shard_return_excess(struct shard *s, uint64_t now_ms);
void shard_excess_tick(struct shard *s, uint64_t now_ms);
/* How many tasks of one key the window may hold if that pool runs them; 0: no limit. */
uint32_t shard_per_key(const struct shard *s, uint32_t pool);
/* shard_run.c: notes on the key how one of its tasks ended. */
void shard_run_ended(struct claimed *c, const struct store_outcome *outcome);
/* Makes a task that was interrupted, or that only had its start recorded, ready again. */
void shard_put_back(struct shard *s, struct claimed *c, uint64_t now_ms);

/* Forgets the schedules: they are read again when the shard is acquired. */
void shard_drop_schedules(struct shard *s);

/* Queues a task's outcome for the next call; takes ownership of `pending`. */
void shard_end_task(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms);

/* shard_merge.c: merges neighbours in the keys of tasks that were just added.  `added` may contain NULLs. */
void shard_merge_tasks(struct shard *s, struct claimed *const *added, uint32_t count, uint64_t now_ms);
/* Merges neighbours in all keys, once the in-flight table is read. */
void shard_merge_all(struct shard *s, uint64_t now_ms);
/* A MERGE is durable.  `is_sure`: the store still had every task that it named. */
void shard_merged(struct shard *s, struct claimed *c, bool is_sure, uint64_t now_ms);
/* Returns a task that is about to start to the store if it has to wait there for others to join it (debounce).  True:
 * it did. */
bool shard_debounce(struct shard *s, struct claimed *c, uint64_t now_ms);
/* Whether shard_debounce() would do so. */
bool shard_is_to_debounce(const struct shard *s, const struct claimed *c, uint64_t now_ms);
/* shard_tasks.c: a task that others were merged into is ready again. */
void shard_put_back_merged(struct shard *s, struct claimed *c, uint64_t now_ms);
/* Counts an adopted task, which runs at a worker, against its limits. */
void shard_adopt_shares(struct shard *s, struct claimed *c);

/* How many tasks of each lane it may claim, and of how many bytes (0: as many as a call brings). */
struct shard_want {
        uint32_t tasks[LANES];
        uint32_t bytes;
};
struct shard_want shard_want(const struct shard *s);
/* Whether several keys with several tasks each are at work while the store is busy.  Then it is better to work off what
 * is claimed than to look for tasks of other keys behind it: each task that goes to a side queue costs the store as
 * much as several done. */
bool shard_goes_on(const struct shard *s);
/* How many keys to wake at once. */
uint32_t shard_wake_max(const struct shard *s);
/* When the next claim, and when the outcomes that wait, are due; STORE_NEVER. */
uint64_t shard_claim_due_ms(const struct shard *s, bool can_wait);
uint64_t shard_tell_due_ms(const struct shard *s, bool can_wait);
/* shard_calls_again(): another call follows the one being filled in within moments, so the store need not ring.
 * shard_look_due_ms(): if the last call said so, by when that other call must be made, even without room for tasks. */
bool shard_calls_again(const struct shard *s);
uint64_t shard_look_due_ms(const struct shard *s);
/* Adjusts pace_ms after a claim of `count` tasks. */
void shard_pace_claimed(struct shard *s, uint32_t count, bool has_more);
/* Notes how long a task ran. */
void shard_pace_ended(struct shard *s, const struct claimed *c, uint64_t now_ms);

#endif
