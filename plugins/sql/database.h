/* database.h: the interface of a database; sqlite.c and postgres.c implement it.
 *
 * Every call that can fail returns QV_DONE, or the outcome that the failure means for the task (QV_RETRY, QV_REJECT,
 * QV_UNAVAILABLE) with the database's message in `why`.  A connection belongs to one seat, so there are no locks. */
#ifndef QUIVER_SQL_DATABASE_H
#define QUIVER_SQL_DATABASE_H

#include <quiver/plugin.h>
#include <stdbool.h>

#include "settings.h"

enum value_kind { VALUE_NULL, VALUE_BOOLEAN, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT };

/* A value to bind. */
struct value {
        enum value_kind kind;
        int64_t integer; /* also for VALUE_BOOLEAN */
        double real;
        const char *text; /* NUL-terminated, without another NUL inside; borrowed, or the same as `owned` */
        size_t text_size;
        char *owned; /* freed with the value; NULL: none */
};

/* The most that a statement binds: the columns of a table, its id and the three of the fence. */
#define VALUES_MAX (COLUMNS_MAX + 4)

/* The state of a row that a statement did not change. */
struct seen {
        bool is_there;
        bool is_deleted;
        int64_t fence_epoch, fence_start;
};

struct driver;

struct database {
        const struct driver *driver;
        const struct settings *settings;
        void *connection; /* private to the driver; NULL: not connected */
        char why[QV_ERROR_MAX];
};

struct driver {
        const char *begin; /* starts a transaction that is going to write */

        /* Connects; must not be connected.  db->connection stays NULL on failure. */
        int32_t (*open)(struct database *db);
        /* Disconnects, and so rolls back what was not committed.  Does nothing without a connection. */
        void (*close)(struct database *db);

        /* Runs statements without values; rows are dropped. */
        int32_t (*execute)(struct database *db, const char *sql);
        /* Runs one statement with $1 to $count bound.  *ret_rows: how many rows it changed. */
        int32_t (*change)(
                struct database *db, const char *sql, const struct value *values, size_t count, uint64_t *ret_rows);
        /* Runs a statement_look() with the id bound. */
        int32_t (*look)(struct database *db, const char *sql, const struct value *id, struct seen *ret_seen);
};

extern const struct driver sqlite_driver;
extern const struct driver postgres_driver;

/* Sets db->why and returns `outcome`. */
__attribute__((format(printf, 3, 4))) int32_t database_fail(
        struct database *db, int32_t outcome, const char *format, ...);

#endif
