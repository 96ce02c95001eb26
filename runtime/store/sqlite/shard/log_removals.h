/* log_removals.h: tasks that are done, to be removed from the log at the end of the transaction.
 *
 * Calls of neighbouring shards share a transaction, and their tasks are neighbours in the log (log.h).  Sorted by row,
 * the tasks of all calls are removed by one statement per group of rows that lie together.  With a thousand shards each
 * call has about one task per segment: one statement per task would cost three times as much. */
#ifndef QUIVER_STORE_SQLITE_SHARD_LOG_REMOVALS_H
#define QUIVER_STORE_SQLITE_SHARD_LOG_REMOVALS_H

#include "store/sqlite/shard/shard_row.h"

struct log_removal {
        uint64_t id; /* of the row */
        struct sqlite_shard_row *shard;
        struct store_advance *advance; /* the call that has the task's outcome */
        bool is_removed;
};

/* Those of one transaction. */
struct log_removals {
        struct log_removal *list;
        uint32_t count;
        uint32_t room;
};

void log_removals_free(struct log_removals *removals);
/* The task, which is in flight, is done.  Until log_removals_flush() its row is still there, and the shard's counters
 * do not include it. */
void log_removals_add(
        struct log_removals *removals, struct sqlite_shard_row *shard, uint64_t seq, struct store_advance *advance);
/* Removes the rows and counts them in their shards; a task that was not there is counted in its call's `gone`. */
void log_removals_flush(struct log_removals *removals, struct database *db, uint32_t shards);

/* Registers the function that LOG_REMOVE_LISTED uses.  Returns an SQLite code. */
int log_removals_register(sqlite3 *handle);

#endif
