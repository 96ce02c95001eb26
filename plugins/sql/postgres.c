/* postgres.c: the database is a PostgreSQL server, through libpq. */
#include <inttypes.h>
#include <postgresql/libpq-fe.h>

#include "cache.h"
#include "database.h"

#define NAME_SIZE 24 /* of a prepared statement */

struct connection {
        PGconn *pg;
        struct cache cache; /* statement "quiver_SLOT" has this text */
};

/* --- errors ------------------------------------------------------------------------------------------------------ */

/* SQLSTATE prefixes (appendix A of PostgreSQL's manual); the first row that matches counts. */
static const struct {
        const char *state;
        int32_t outcome;
} meanings[] = {
        { "22", QV_REJECT },      /* data: not a number, too long, … */
        { "23", QV_REJECT },      /* a constraint */
        { "44", QV_REJECT },      /* a view's check option */
        { "54", QV_REJECT },      /* a limit, such as a value too large for an index */
        { "P0", QV_REJECT },      /* a trigger raised it */
        { "40", QV_RETRY },       /* deadlock, serialization failure */
        { "55", QV_RETRY },       /* lock_timeout; something is in use */
        { "57014", QV_RETRY },    /* statement_timeout */
        { "08", QV_UNAVAILABLE }, /* the connection */
        { "57", QV_UNAVAILABLE }, /* shutting down, starting up */
        { "53", QV_UNAVAILABLE }, /* no disk, memory or connection left */
        { "58", QV_UNAVAILABLE }, /* an error of the operating system */
        { "25", QV_UNAVAILABLE }, /* read only: a standby */
        { "28", QV_UNAVAILABLE }, /* wrong user or password */
        { "3D", QV_UNAVAILABLE }, /* no such database */
        { "42", QV_UNAVAILABLE }, /* no such table, column or right: the same for every task until it is corrected */
        { "0A", QV_UNAVAILABLE }, /* the table of a prepared statement was altered; a new connection solves it */
        { "26", QV_UNAVAILABLE }, /* a prepared statement is gone; a new connection solves it */
};

static int32_t outcome_of(const char *state)
{
        for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
                if (!strncmp(state, meanings[i].state, strlen(meanings[i].state)))
                        return meanings[i].outcome;
        return QV_RETRY;
}

/* libpq's messages end in a newline, and may have several lines. */
static int32_t fail_connection(struct database *db, const PGconn *pg)
{
        (void)database_fail(db, QV_UNAVAILABLE, "%s", PQerrorMessage(pg));
        db->why[strcspn(db->why, "\n")] = 0;
        return QV_UNAVAILABLE;
}

static int32_t fail(struct database *db, const PGresult *result)
{
        const struct connection *c = db->connection;
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
        if (!state || !message || PQstatus(c->pg) == CONNECTION_BAD)
                return fail_connection(db, c->pg);
        return database_fail(db, outcome_of(state), "%s%s%s%s", message, detail ? " (" : "", detail ? detail : "",
                detail ? ")" : "");
}

/* --- the connection ---------------------------------------------------------------------------------------------- */

static void postgres_close(struct database *db)
{
        struct connection *c = db->connection;
        if (!c)
                return;
        PQfinish(c->pg);
        cache_free(&c->cache);
        free(c);
        db->connection = NULL;
}

static int32_t postgres_execute(struct database *db, const char *sql)
{
        const struct connection *c = db->connection;
        PGresult *result = PQexec(c->pg, sql);
        ExecStatusType status = PQresultStatus(result);
        int32_t outcome = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? QV_DONE : fail(db, result);
        PQclear(result);
        return outcome;
}

/* Our defaults stand before the url, because later values win. */
static PGconn *connect_to(const struct settings *s)
{
        char seconds[24];
        char silence_ms[24];
        (void)snprintf(seconds, sizeof(seconds), "%" PRIu64, (s->connect_timeout_ms + 999) / 1000);
        (void)snprintf(silence_ms, sizeof(silence_ms), "%" PRIu64, s->statement_timeout_ms);
        const char *words[] = { "application_name", "connect_timeout", "tcp_user_timeout", "dbname", "client_encoding",
                s->password ? "password" : NULL, NULL };
        const char *values[] = { "quiver", seconds, silence_ms, s->where, "UTF8", s->password, NULL };
        return PQconnectdbParams(words, values, 1);
}

/* By default libpq writes the server's notices (such as a trigger's RAISE NOTICE) to standard error. */
static void ignore_notice(void *arg, const PGresult *result)
{
        (void)arg;
        (void)result;
}

static int32_t postgres_open(struct database *db)
{
        struct connection *c = calloc(1, sizeof(*c));
        char limit[64];
        if (!c)
                return database_fail(db, QV_UNAVAILABLE, "out of memory");
        db->connection = c;
        c->pg = connect_to(db->settings);
        if (PQstatus(c->pg) != CONNECTION_OK) {
                (void)fail_connection(db, c->pg);
                postgres_close(db);
                return QV_UNAVAILABLE;
        }
        (void)PQsetNoticeReceiver(c->pg, ignore_notice, NULL);
        (void)snprintf(limit, sizeof(limit), "SET statement_timeout = %" PRIu64, db->settings->statement_timeout_ms);
        if (postgres_execute(db, limit) == QV_DONE)
                return QV_DONE;
        postgres_close(db);
        return QV_UNAVAILABLE;
}

/* --- statements -------------------------------------------------------------------------------------------------- */

static int32_t prepare(struct database *db, const char *sql, char name[NAME_SIZE])
{
        struct connection *c = db->connection;
        unsigned slot;
        bool is_there = cache_find(&c->cache, sql, &slot);
        (void)snprintf(name, NAME_SIZE, "quiver_%u", slot);
        if (is_there)
                return QV_DONE;
        if (cache_is_taken(&c->cache, slot)) {
                char drop[NAME_SIZE + 16];
                (void)snprintf(drop, sizeof(drop), "DEALLOCATE %s", name);
                int32_t outcome = postgres_execute(db, drop);
                if (outcome != QV_DONE)
                        return outcome;
                cache_drop(&c->cache, slot);
        }
        PGresult *result = PQprepare(c->pg, name, sql, 0, NULL);
        int32_t outcome = PQresultStatus(result) == PGRES_COMMAND_OK ? QV_DONE : fail(db, result);
        PQclear(result);
        if (outcome == QV_DONE && cache_put(&c->cache, sql, slot) < 0)
                return database_fail(db, QV_UNAVAILABLE, "out of memory");
        return outcome;
}

/* A value as text, which the server converts to the column's type. */
static const char *as_text(const struct value *v, char number[32])
{
        switch (v->kind) {
        case VALUE_NULL:
                return NULL;
        case VALUE_BOOLEAN:
                return v->integer ? "true" : "false";
        case VALUE_INTEGER:
                (void)snprintf(number, 32, "%" PRId64, v->integer);
                return number;
        case VALUE_REAL:
                (void)snprintf(number, 32, "%.17g", v->real);
                return number;
        default:
                return v->text;
        }
}

/* The result, which the caller clears; NULL after a failure, with *ret_outcome set. */
static PGresult *run(
        struct database *db, const char *sql, const struct value *values, size_t count, int32_t *ret_outcome)
{
        const struct connection *c = db->connection;
        const char *texts[VALUES_MAX];
        char numbers[VALUES_MAX][32];
        char name[NAME_SIZE];
        *ret_outcome = prepare(db, sql, name);
        if (*ret_outcome != QV_DONE)
                return NULL;
        for (size_t i = 0; i < count; i++)
                texts[i] = as_text(&values[i], numbers[i]);
        PGresult *result = PQexecPrepared(c->pg, name, (int)count, texts, NULL, NULL, 0);
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
                return result;
        *ret_outcome = fail(db, result);
        PQclear(result);
        return NULL;
}

static int32_t postgres_change(
        struct database *db, const char *sql, const struct value *values, size_t count, uint64_t *ret_rows)
{
        int32_t outcome = QV_UNAVAILABLE;
        PGresult *result = run(db, sql, values, count, &outcome);
        if (!result)
                return outcome;
        *ret_rows = strtoull(PQcmdTuples(result), NULL, 10);
        PQclear(result);
        return QV_DONE;
}

static int64_t integer_at(const PGresult *result, int column)
{
        return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

static int32_t postgres_look(struct database *db, const char *sql, const struct value *id, struct seen *ret_seen)
{
        int32_t outcome = QV_UNAVAILABLE;
        PGresult *result = run(db, sql, id, 1, &outcome);
        if (!result)
                return outcome;
        *ret_seen = (struct seen){ .is_there = PQntuples(result) > 0 };
        if (ret_seen->is_there) {
                ret_seen->fence_epoch = integer_at(result, 0);
                ret_seen->fence_start = integer_at(result, 1);
                ret_seen->is_deleted = integer_at(result, 2) != 0;
        }
        PQclear(result);
        return QV_DONE;
}

const struct driver postgres_driver = {
        .begin = "BEGIN",
        .open = postgres_open,
        .close = postgres_close,
        .execute = postgres_execute,
        .change = postgres_change,
        .look = postgres_look,
};
