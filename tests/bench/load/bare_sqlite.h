/* bare_sqlite.h: what SQLite alone can do on this file system. */
#ifndef BENCH_BARE_SQLITE_H
#define BENCH_BARE_SQLITE_H

#include <stdbool.h>

struct load;

/* One table, filled and then emptied in batches of 100 rows (at most 1 MiB), each a row of a task with such a payload:
 * what there is to gain. */
void bare_sqlite(const char *path, bool is_full, unsigned count, unsigned payload_bytes, double *ret_insert_s,
        double *ret_take_s);

/* Inserts rows one by one, each a transaction, at the pace of the load, and prints how many ms each took. */
void bare_sqlite_commits(const char *path, bool is_full, const struct load *load);

#endif
