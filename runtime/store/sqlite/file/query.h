/* query.h: prepared statements over one connection, with sticky failures.
 *
 * After the first statement that fails, all others do nothing and read as empty until database_clear().  So an
 * operation is written straight through and checked once, before COMMIT. */
#ifndef QUIVER_STORE_SQLITE_FILE_QUERY_H
#define QUIVER_STORE_SQLITE_FILE_QUERY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "task/envelope.h"

enum statement {
#define STATEMENT(name, sql) STATEMENT_##name,
#include "store/sqlite/statements.h"
#undef STATEMENT
        STATEMENTS
};

/* One connection; used by one thread. */
struct database {
        sqlite3 *handle;
        sqlite3_stmt *statements[STATEMENTS]; /* prepared when first used */
        int failure;                          /* 0, or the -errno of the first failure */
        struct error error;
};

int database_open(struct database *db, const char *path, bool may_create, struct error *error);
void database_close(struct database *db);
/* Forgets a failure. */
void database_clear(struct database *db);
/* Records the failure of the last call on the handle. */
void database_fail(struct database *db, int code);
/* Executes statements without parameters or rows. */
void database_exec(struct database *db, const char *sql);

/* A statement being bound and stepped.  Lives on the stack between query() and query_end(). */
struct query {
        struct database *db;
        sqlite3_stmt *statement;
        int bound;
};

struct query query(struct database *db, enum statement statement);
void bind_number(struct query *q, uint64_t value);
void bind_span(
        struct query *q, struct span value); /* not copied: must live until query_end().  Empty: a zero-length blob */
void bind_text(struct query *q, struct span value); /* the same, as text */
void bind_null(struct query *q);
/* For a function of ours: sqlite3_value_pointer() with the same name. */
void bind_pointer(struct query *q, void *pointer, const char *name);
/* The next row; false at the end or on failure. */
bool query_row(struct query *q);
uint64_t column_number(struct query *q, int column);
/* Reads a lane; LANE_NORMAL if the value is invalid. */
enum lane column_lane(struct query *q, int column);
struct span column_span(struct query *q, int column); /* borrowed until the next query_row() or query_end() */
bool column_is_null(struct query *q, int column);
void query_end(struct query *q);
/* Runs a statement without rows; returns the number of rows that it changed. */
uint64_t query_run(struct query *q);

#endif
