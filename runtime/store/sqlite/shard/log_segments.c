/* The table-valued function log_segments(from, until): the ranges of ids where a shard's rows may be, one per segment.
 *
 * Joined with the log, it finds a shard's tasks in many segments with one statement.  Starting and ending a statement
 * costs SQLite twice as much as finding a row, so with about one task of a shard per segment, as with a thousand
 * shards, this halves the cost of a claim. */
#include <stdlib.h>

#include "base/memory.h"
#include "store/sqlite/shard/log.h"

enum { COLUMN_FIRST, COLUMN_LAST, COLUMN_FROM, COLUMN_UNTIL };

/* Iterates from `at` to `until`, ids of the same lane and shard. */
struct segments_cursor {
        sqlite3_vtab_cursor cursor; /* first member */
        uint64_t at;
        uint64_t until;
};

static int segments_connect(sqlite3 *handle, void *data, int count, const char *const *arguments,
        sqlite3_vtab **ret_table, char **ret_error)
{
        (void)data;
        (void)count;
        (void)arguments;
        (void)ret_error;
        int code = sqlite3_declare_vtab(
                handle, "CREATE TABLE x(first INTEGER, last INTEGER, \"from\" HIDDEN, until HIDDEN)");
        if (code == SQLITE_OK)
                *ret_table = memory_zero(1, sizeof(**ret_table));
        return code;
}

static int segments_disconnect(sqlite3_vtab *table)
{
        free(table);
        return SQLITE_OK;
}

/* Both arguments are required. */
static int segments_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
        (void)table;
        unsigned given = 0;
        for (int i = 0; i < info->nConstraint; i++) {
                int column = info->aConstraint[i].iColumn;
                if (column < COLUMN_FROM || !info->aConstraint[i].usable ||
                        info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
                        continue;
                info->aConstraintUsage[i].argvIndex = column - COLUMN_FROM + 1;
                info->aConstraintUsage[i].omit = 1;
                given |= 1u << (column - COLUMN_FROM);
        }
        info->estimatedCost = 1;
        info->estimatedRows = 16;
        return given == 3 ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int segments_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
        (void)table;
        struct segments_cursor *c = memory_zero(1, sizeof(*c));
        *ret_cursor = &c->cursor;
        return SQLITE_OK;
}

static int segments_close(sqlite3_vtab_cursor *cursor)
{
        free(cursor);
        return SQLITE_OK;
}

static int segments_filter(
        sqlite3_vtab_cursor *cursor, int index, const char *text, int count, sqlite3_value **arguments)
{
        struct segments_cursor *c = (struct segments_cursor *)cursor;
        (void)index;
        (void)text;
        if (count != 2)
                return SQLITE_ERROR;
        c->at = (uint64_t)sqlite3_value_int64(arguments[0]);
        c->until = (uint64_t)sqlite3_value_int64(arguments[1]);
        return SQLITE_OK;
}

static int segments_next(sqlite3_vtab_cursor *cursor)
{
        struct segments_cursor *c = (struct segments_cursor *)cursor;
        c->at = (c->at & ~LOG_PLACE_MASK) + (UINT64_C(1) << SEGMENT_SHIFT);
        return SQLITE_OK;
}

static int segments_eof(sqlite3_vtab_cursor *cursor)
{
        const struct segments_cursor *c = (const struct segments_cursor *)cursor;
        return c->at > c->until;
}

static int segments_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
        const struct segments_cursor *c = (const struct segments_cursor *)cursor;
        uint64_t last = c->at | LOG_PLACE_MASK;
        sqlite3_result_int64(context, (sqlite3_int64)(column == COLUMN_FIRST ? c->at
                                                      : last < c->until      ? last
                                                                             : c->until));
        return SQLITE_OK;
}

static int segments_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_id)
{
        *ret_id = (sqlite3_int64)((const struct segments_cursor *)cursor)->at;
        return SQLITE_OK;
}

int log_segments_register(sqlite3 *handle)
{
        static const sqlite3_module module = {
                .xConnect = segments_connect,
                .xBestIndex = segments_best_index,
                .xDisconnect = segments_disconnect,
                .xOpen = segments_open,
                .xClose = segments_close,
                .xFilter = segments_filter,
                .xNext = segments_next,
                .xEof = segments_eof,
                .xColumn = segments_column,
                .xRowid = segments_rowid,
        };
        return sqlite3_create_module(handle, "log_segments", &module, NULL);
}
