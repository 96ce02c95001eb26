/* admin.h: what the commands need beyond client.h: reading a store and acting on it.
 *
 * Each function makes one or more store requests, paged where the store pages.  The callbacks `each` and `found` run on
 * the client's thread while the caller waits; their arguments are valid until they return, and they must not call back.
 * 0, or -errno with the text set. */
#ifndef QUIVER_CLIENT_ADMIN_H
#define QUIVER_CLIENT_ADMIN_H

#include "client/call.h"
#include "config/config.h"

/* Opens the store of `config`.  -ENOENT: there is none yet; the text says how to make one. */
int client_open_config(const struct config *config, struct qv_client **ret_client, struct error *error);
/* The same, but makes the store if there is none. */
int client_open_or_make(const struct config *config, struct qv_client **ret_client, struct error *error);

/* The task as an envelope, without id and times.  Borrows from the task and from `headers`, which gets the header lines
 * and must not move while the envelope is used.  -EINVAL: a field cannot be expressed; values are not checked. */
int client_task_envelope(
        const struct qv_client_task *task, struct buffer *headers, struct envelope *ret_envelope, struct error *error);

/* Checks what the store would refuse, except for its limits.  0 or -EINVAL; the text names the field. */
int client_check_task(const struct qv_client_task *task, struct error *error);

/* Sets the error of a refused submission; returns its status. */
int client_refusal(const struct qv_client_task *task, const struct store_submission *item, struct error *error);

int client_count(struct qv_client *client, uint32_t first_shard, uint32_t shards, struct store_counts *ret_counts,
        struct error *error);

/* Searches a task in all states.  -ENOENT: it is done, dropped, or never existed.  -EREMCHG: it was merged into
 * another. */
int client_find(struct qv_client *client, struct span id, void (*found)(void *self, const struct store_listed *task),
        void *self, struct error *error);

/* Finds and cancels a task.  -ENOENT; -EALREADY: it is dead. */
int client_cancel(struct qv_client *client, struct span id, bool *ret_is_pending, struct error *error);
/* Moves a waiting task to another lane (store_move()); `is_forced`: even if it has a key.  Reschedules a delayed task
 * to `at_ms`, or if that is 0, to `delay_ms` from now; -EBUSY: it is not delayed. */
int client_move(struct qv_client *client, struct span id, enum lane lane, bool is_forced, bool *ret_is_pending,
        struct error *error);
int client_reschedule(struct qv_client *client, struct span id, uint64_t delay_ms, uint64_t at_ms, struct error *error);

/* Lists the tasks of one shard in one state, at most `max`; only of `handler` if it is not empty.  Returns how many. */
int client_list(struct qv_client *client, uint32_t shard, enum store_state state, struct span handler, uint32_t max,
        void (*each)(void *self, const struct store_listed *task), void *self, struct error *error);

/* Lists the tasks of all handlers until `each` returns false or `max` were looked at.  0 or -errno. */
int client_scan(struct qv_client *client, uint32_t shard, enum store_state state, uint64_t max,
        bool (*each)(void *self, const struct store_listed *task), void *self, struct error *error);

/* Requeues or drops the dead task with that id; with an empty id none: then it only fills in ret_dead->last. */
int client_dead_id(struct qv_client *client, uint32_t shard, enum store_dead_verb verb, struct span id,
        struct store_dead *ret_dead, struct error *error);
/* The same for numbers that client_list() has shown, of any count.  Adds to dead->acted, dead->unreadable and
 * dead->refused, even for what was done before a failure. */
int client_dead_numbers(struct qv_client *client, uint32_t shard, enum store_dead_verb verb, const uint64_t *numbers,
        size_t count, struct store_dead *dead, struct error *error);

/* Lists the keys of one shard that are not free, at most `max`; only `key` if it is not empty.  Returns how many. */
int client_keys(struct qv_client *client, uint32_t shard, struct span key, uint32_t max,
        void (*each)(void *self, const struct store_key_info *key), void *self, struct error *error);

int client_key_act(struct qv_client *client, enum store_control_verb verb, struct span key, struct span reason,
        bool *ret_is_pending, struct error *error);

/* Reads the whole desired state. */
int client_desired(struct qv_client *client, void (*each)(void *self, const struct store_desired *item), void *self,
        uint64_t *ret_version, struct error *error);

/* Reads the hosts' documents of that kind, and their totals since the app began; `total` may be NULL. */
int client_documents(struct qv_client *client, enum store_document kind,
        void (*each)(void *self, const struct store_status *status),
        void (*total)(void *self, const struct store_total *total), void *self, struct error *error);

/* A shard's dead tasks by handler, reason and first line of the error. */
int client_dead_groups(struct qv_client *client, uint32_t shard,
        void (*each)(void *self, const struct store_dead_group *group), void *self, struct error *error);

/* Reads the app's record.  The caller frees *ret_coordination, "" if none is recorded. */
int client_app(struct qv_client *client, struct store_app *ret_app, char **ret_coordination, struct error *error);
/* Applies the changes in `set`. */
int client_app_set(struct qv_client *client, struct store_app_set *set, struct error *error);

/* Imports a chunk into one shard.  The caller fills in everything except the request; the store's answer is set. */
int client_import(struct qv_client *client, struct store_import *import, struct error *error);
/* Reads the idempotency records of a shard, and how many of them are unreadable.  `see` is called on the client's
 * thread. */
int client_remembered(struct qv_client *client, uint32_t shard,
        void (*see)(void *self, const struct store_remembered *record), void *self, uint32_t *ret_unreadable,
        struct error *error);

/* Checks or repairs one shard: the caller sets fsck->shard and fsck->is_repair, the counts are filled in.  Adds a line
 * for each of the first problems to `report`. */
int client_fsck(struct qv_client *client, struct store_fsck *fsck, struct buffer *report, struct error *error);

#endif
