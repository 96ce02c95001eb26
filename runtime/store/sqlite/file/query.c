#include "store/sqlite/file/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/file/lock_holder.h"
#include "store/sqlite/shard/log.h"
#include "store/sqlite/shard/log_removals.h"
#include "store/sqlite/shard/shard_row.h"

#define SHARD_COLUMN(field, column) #column ", "
#define SHARD_ASSIGN(field, column) #column " = ?, "

static const char *const sources[STATEMENTS] = {
#define STATEMENT(name, sql) [STATEMENT_##name] = (sql),
#include "store/sqlite/statements.h"
#undef STATEMENT
};

/* Maps SQLite's code to the errno by which callers decide what to do. */
static int errno_of(int code, int cause)
{
        switch (code & 0xff) {
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return -EACCES;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
                return -EPROTO;
        /* SQLite has rolled the statement back, so the caller may try again. */
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_IOERR:
                return cause == ENOSPC || cause == EDQUOT || cause == EFBIG ? -ENOSPC : -EIO;
        default:
                return -EIO;
        }
}

void database_fail(struct database *db, int code)
{
        /* SQLite does not always report the system's error; then it is still in errno. */
        int left = errno;
        if (db->failure)
                return;
        int told = sqlite3_system_errno(db->handle);
        int cause = told ? told : left;
        int r = errno_of(code, cause);
        const char *advice = r == -ENOSPC  ? "; free some space on its file system"
                             : r == -EROFS ? "; make the file and its folder writable"
                                           : "";
        const char *path = sqlite3_db_filename(db->handle, "main");
        if (r == -EBUSY && path) {
                struct lock_holder holder;
                char text[512];
                lock_holder_of_writing(path, &holder);
                db->failure = error_set(&db->error, r, "%s: %s", path, lock_holder_text(&holder, text, sizeof(text)));
                return;
        }
        /* errno belongs to this failure only if the failure came from the system. */
        bool has_cause =
                cause && (told || r == -ENOSPC || r == -EROFS || r == -EACCES || (code & 0xff) == SQLITE_IOERR);
        db->failure = error_set(&db->error, r, "%s: %s (SQLite code %d%s%s)%s", path ? path : "sqlite",
                sqlite3_errstr(code), code, has_cause ? ", " : "", has_cause ? strerror(cause) : "", advice);
}

void database_clear(struct database *db)
{
        db->failure = 0;
        db->error.text[0] = 0;
}

int database_open(struct database *db, const char *path, bool may_create, struct error *error)
{
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (may_create ? SQLITE_OPEN_CREATE : 0);
        *db = (struct database){ 0 };
        int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
        if (code == SQLITE_OK) {
                (void)sqlite3_extended_result_codes(db->handle, 1);
                code = log_segments_register(db->handle);
        }
        if (code == SQLITE_OK)
                code = log_removals_register(db->handle);
        if (code == SQLITE_OK)
                return 0;
        /* SQLite returns no handle if it has no memory for one. */
        int r = db->handle ? errno_of(code, sqlite3_system_errno(db->handle)) : -ENOMEM;
        (void)error_set(error, r, "%s: %s", path, sqlite3_errstr(code));
        database_close(db);
        return r;
}

void database_close(struct database *db)
{
        for (unsigned i = 0; i < STATEMENTS; i++)
                (void)sqlite3_finalize(db->statements[i]);
        (void)sqlite3_close(db->handle);
        *db = (struct database){ 0 };
}

void database_exec(struct database *db, const char *sql)
{
        if (db->failure)
                return;
        int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
        if (code != SQLITE_OK)
                database_fail(db, code);
}

struct query query(struct database *db, enum statement statement)
{
        struct query q = { .db = db };
        if (db->failure)
                return q;
        sqlite3_stmt **prepared = &db->statements[statement];
        if (!*prepared) {
                int code = sqlite3_prepare_v3(
                        db->handle, sources[statement], -1, SQLITE_PREPARE_PERSISTENT, prepared, NULL);
                if (code != SQLITE_OK) {
                        database_fail(db, code);
                        return q;
                }
        }
        q.statement = *prepared;
        return q;
}

void bind_number(struct query *q, uint64_t value)
{
        if (q->statement)
                (void)sqlite3_bind_int64(q->statement, ++q->bound, (sqlite3_int64)value);
}

void bind_span(struct query *q, struct span value)
{
        if (q->statement)
                (void)sqlite3_bind_blob(
                        q->statement, ++q->bound, value.size ? value.data : "", (int)value.size, SQLITE_STATIC);
}

void bind_text(struct query *q, struct span value)
{
        if (q->statement)
                (void)sqlite3_bind_text(
                        q->statement, ++q->bound, value.size ? value.data : "", (int)value.size, SQLITE_STATIC);
}

void bind_null(struct query *q)
{
        if (q->statement)
                (void)sqlite3_bind_null(q->statement, ++q->bound);
}

void bind_pointer(struct query *q, void *pointer, const char *name)
{
        if (q->statement)
                (void)sqlite3_bind_pointer(q->statement, ++q->bound, pointer, name, NULL);
}

bool query_row(struct query *q)
{
        if (!q->statement || q->db->failure)
                return false;
        int code = sqlite3_step(q->statement);
        if (code == SQLITE_ROW)
                return true;
        if (code != SQLITE_DONE)
                database_fail(q->db, code);
        return false;
}

uint64_t column_number(struct query *q, int column)
{
        return (uint64_t)sqlite3_column_int64(q->statement, column);
}

enum lane column_lane(struct query *q, int column)
{
        uint64_t lane = column_number(q, column);
        return lane < LANES ? (enum lane)lane : LANE_NORMAL;
}

struct span column_span(struct query *q, int column)
{
        const char *data = sqlite3_column_blob(q->statement, column);
        return (struct span){ data, data ? (size_t)sqlite3_column_bytes(q->statement, column) : 0 };
}

bool column_is_null(struct query *q, int column)
{
        return sqlite3_column_type(q->statement, column) == SQLITE_NULL;
}

void query_end(struct query *q)
{
        if (q->statement)
                (void)sqlite3_reset(q->statement);
        q->statement = NULL;
}

uint64_t query_run(struct query *q)
{
        while (query_row(q))
                ;
        uint64_t changed = q->statement && !q->db->failure ? (uint64_t)sqlite3_changes64(q->db->handle) : 0;
        query_end(q);
        return changed;
}
