/* sqlite.c: the database is an SQLite file, which must exist: its application creates it. */
#include <sqlite3.h>
#include <time.h>

#include "cache.h"
#include "database.h"

#define BUSY_STEP_NS 300000 /* SQLite's own handler sleeps up to 100 ms, much longer than a writer needs */

struct connection {
        sqlite3 *sqlite;
        struct cache cache;
        sqlite3_stmt *statements[CACHE_SLOTS]; /* by slot of the cache */
        uint64_t timeout_ms;
        uint64_t busy_until_ms;
};

/* The outcome that a result code means for the task. */
static int32_t outcome_of(int code)
{
        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_DONE:
        case SQLITE_ROW:
                return QV_DONE;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_INTERRUPT:
                return QV_RETRY;
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_TOOBIG:
        case SQLITE_ERROR: /* at run time: a trigger or an index failed on the values */
                return QV_REJECT;
        default: /* no file, no room, no right, not a database */
                return QV_UNAVAILABLE;
        }
}

static int32_t fail(struct database *db, int32_t outcome)
{
        const struct connection *c = db->connection;
        return database_fail(db, outcome, "%s", sqlite3_errmsg(c->sqlite));
}

static uint64_t now_ms(void)
{
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Another connection writes: waits in small steps, up to the timeout. */
static int wait_busy(void *arg, int tries)
{
        struct connection *c = arg;
        struct timespec step = { .tv_nsec = BUSY_STEP_NS };
        if (tries == 0)
                c->busy_until_ms = now_ms() + c->timeout_ms;
        else if (now_ms() >= c->busy_until_ms)
                return 0;
        (void)nanosleep(&step, NULL);
        return 1;
}

/* --- the connection ---------------------------------------------------------------------------------------------- */

static void sqlite_close(struct database *db)
{
        struct connection *c = db->connection;
        if (!c)
                return;
        for (int i = 0; i < CACHE_SLOTS; i++)
                (void)sqlite3_finalize(c->statements[i]);
        cache_free(&c->cache);
        (void)sqlite3_close(c->sqlite);
        free(c);
        db->connection = NULL;
}

static int32_t sqlite_execute(struct database *db, const char *sql)
{
        const struct connection *c = db->connection;
        int code = sqlite3_exec(c->sqlite, sql, NULL, NULL, NULL);
        if (code == SQLITE_OK)
                return QV_DONE;
        /* These statements hold no values, so an error is not a task's fault, except a constraint that was deferred to
         * the commit. */
        return fail(db, code == SQLITE_ERROR ? QV_UNAVAILABLE : outcome_of(code));
}

static int32_t sqlite_open(struct database *db)
{
        struct connection *c = calloc(1, sizeof(*c));
        if (!c)
                return database_fail(db, QV_UNAVAILABLE, "out of memory");
        db->connection = c;
        c->timeout_ms = db->settings->statement_timeout_ms;
        int code = sqlite3_open_v2(db->settings->where, &c->sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (code == SQLITE_OK) {
                (void)sqlite3_busy_handler(c->sqlite, wait_busy, c);
                if (sqlite_execute(db, "PRAGMA foreign_keys = ON") == QV_DONE)
                        return QV_DONE;
        } else {
                (void)database_fail(db, QV_UNAVAILABLE, "%s: %s", db->settings->where, sqlite3_errmsg(c->sqlite));
        }
        sqlite_close(db);
        return QV_UNAVAILABLE;
}

/* --- statements -------------------------------------------------------------------------------------------------- */

/* The statement, borrowed from the cache; NULL after a failure, with *ret_outcome set. */
static sqlite3_stmt *prepare(struct database *db, const char *sql, int32_t *ret_outcome)
{
        struct connection *c = db->connection;
        unsigned slot;
        if (cache_find(&c->cache, sql, &slot))
                return c->statements[slot];
        (void)sqlite3_finalize(c->statements[slot]);
        c->statements[slot] = NULL;
        cache_drop(&c->cache, slot);
        int code = sqlite3_prepare_v3(c->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &c->statements[slot], NULL);
        if (code != SQLITE_OK) {
                /* No such table or column: the same for every task until it is corrected. */
                *ret_outcome = fail(db, outcome_of(code) == QV_RETRY ? QV_RETRY : QV_UNAVAILABLE);
                return NULL;
        }
        if (cache_put(&c->cache, sql, slot) < 0) {
                *ret_outcome = database_fail(db, QV_UNAVAILABLE, "out of memory");
                return NULL;
        }
        return c->statements[slot];
}

static int bind(sqlite3_stmt *statement, int place, const struct value *v)
{
        switch (v->kind) {
        case VALUE_NULL:
                return sqlite3_bind_null(statement, place);
        case VALUE_BOOLEAN:
        case VALUE_INTEGER:
                return sqlite3_bind_int64(statement, place, v->integer);
        case VALUE_REAL:
                return sqlite3_bind_double(statement, place, v->real);
        default:
                return sqlite3_bind_text64(statement, place, v->text, v->text_size, SQLITE_STATIC, SQLITE_UTF8);
        }
}

static void done_with(sqlite3_stmt *statement)
{
        (void)sqlite3_reset(statement);
        (void)sqlite3_clear_bindings(statement);
}

static int32_t sqlite_change(
        struct database *db, const char *sql, const struct value *values, size_t count, uint64_t *ret_rows)
{
        const struct connection *c = db->connection;
        int code = SQLITE_OK;
        int32_t outcome = QV_UNAVAILABLE;
        sqlite3_stmt *statement = prepare(db, sql, &outcome);
        if (!statement)
                return outcome;
        for (size_t i = 0; i < count && code == SQLITE_OK; i++)
                code = bind(statement, (int)i + 1, &values[i]);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        outcome = outcome_of(code);
        if (outcome == QV_DONE)
                *ret_rows = (uint64_t)sqlite3_changes(c->sqlite);
        else
                (void)fail(db, outcome);
        done_with(statement);
        return outcome;
}

static int32_t sqlite_look(struct database *db, const char *sql, const struct value *id, struct seen *ret_seen)
{
        int32_t outcome = QV_UNAVAILABLE;
        sqlite3_stmt *statement = prepare(db, sql, &outcome);
        if (!statement)
                return outcome;
        int code = bind(statement, 1, id);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        outcome = outcome_of(code);
        if (outcome != QV_DONE)
                (void)fail(db, outcome);
        else if (code == SQLITE_ROW)
                *ret_seen = (struct seen){
                        .is_there = true,
                        .fence_epoch = sqlite3_column_int64(statement, 0),
                        .fence_start = sqlite3_column_int64(statement, 1),
                        .is_deleted = sqlite3_column_int(statement, 2) != 0,
                };
        else
                *ret_seen = (struct seen){ .is_there = false };
        done_with(statement);
        return outcome;
}

/* IMMEDIATE, because a transaction that begins by reading may not be able to write later. */
const struct driver sqlite_driver = {
        .begin = "BEGIN IMMEDIATE",
        .open = sqlite_open,
        .close = sqlite_close,
        .execute = sqlite_execute,
        .change = sqlite_change,
        .look = sqlite_look,
};
