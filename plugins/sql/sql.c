/* sql: tasks that insert, update and delete rows, each key's in their order.  README.md has the settings, the DDL and
 * the reasoning.
 *
 *         config = { url = "sqlite:/srv/app.db"; tables = ( { name = "customer"; columns = ["name", "email"]; } ); };
 *
 * Read sql_handle() and sql_handle_many() at the bottom first. */
#include <inttypes.h>

#include "database.h"
#include "payload.h"
#include "statement.h"
#include "text.h"

/* One instance per seat. */
struct sql {
        const struct qv_host *host;
        struct settings settings;
        struct database db;
        bool is_down;    /* the last connect failed */
        bool is_in_need; /* the log has a line that tasks cannot be done */
};

/* A task of a batch. */
struct item {
        const struct qv_task *task;
        struct change change;
        int32_t *outcome;
};

int32_t database_fail(struct database *db, int32_t outcome, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)vsnprintf(db->why, sizeof(db->why), format, args);
        va_end(args);
        db->why[text_cut(db->why, sizeof(db->why) - 2)] = 0;
        return outcome;
}

static int32_t execute(struct sql *sql, const char *text)
{
        return sql->db.driver->execute(&sql->db, text);
}

static void disconnect(struct sql *sql)
{
        sql->db.driver->close(&sql->db);
}

static int32_t connect_if_needed(struct sql *sql)
{
        int32_t outcome = sql->db.connection ? QV_DONE : sql->db.driver->open(&sql->db);
        sql->is_down = outcome != QV_DONE;
        return outcome;
}

/* --- one change -------------------------------------------------------------------------------------------------- */

static int32_t id_fail(struct database *db, int32_t outcome, const struct change *c, const char *what)
{
        char buffer[SHOWN_SIZE];
        if (c->id.kind == VALUE_TEXT)
                return database_fail(db, outcome, "%s: %s \"%s\" %s", op_name(c->op), c->table->name.plain,
                        text_shown(c->id.text, buffer), what);
        return database_fail(
                db, outcome, "%s: %s %" PRId64 " %s", op_name(c->op), c->table->name.plain, c->id.integer, what);
}

/* Finds out why the statement changed no row. */
static int32_t explain(struct database *db, const struct change *c, const struct writer *w, const struct seen *seen)
{
        if (!seen->is_there)
                return id_fail(db, c->op == OP_INSERT ? QV_RETRY : QV_REJECT, c, "is not there");
        if (seen->fence_epoch > w->fence_epoch ||
                (seen->fence_epoch == w->fence_epoch && seen->fence_start > w->fence_start))
                /* If the later start belongs to our key, the store refuses this outcome anyway.  If it does not, a
                 * person has to see it, so it must not be QV_DONE. */
                return database_fail(db, QV_RETRY,
                        "stale: this is start (%" PRId64 ", %" PRId64
                        "), and the row was written by the later (%" PRId64 ", %" PRId64
                        "); do all tasks of this row have the same key?",
                        w->fence_epoch, w->fence_start, seen->fence_epoch, seen->fence_start);
        if (c->op == OP_INSERT && !seen->is_deleted)
                return id_fail(db, QV_REJECT, c, "is there already");
        if (c->op == OP_UPDATE && seen->is_deleted)
                return id_fail(db, QV_REJECT, c, "is deleted");
        return database_fail(db, QV_RETRY, "the row was changed by somebody else at the same moment");
}

static int32_t look_why(struct database *db, const struct change *c, const struct writer *w)
{
        struct seen seen;
        char *text = statement_look(c->table);
        if (!text)
                return database_fail(db, QV_UNAVAILABLE, "out of memory");
        int32_t outcome = db->driver->look(db, text, &c->id, &seen);
        free(text);
        return outcome == QV_DONE ? explain(db, c, w, &seen) : outcome;
}

static int32_t apply(struct sql *sql, const struct qv_task *task, const struct change *c)
{
        struct database *db = &sql->db;
        const struct writer writer = {
                .fence_epoch = (int64_t)task->fence_epoch,
                .fence_start = (int64_t)task->fence_start,
                .task_id = task->id,
        };
        struct value values[VALUES_MAX];
        uint64_t rows = 0;
        char *text = statement_change(c);
        if (!text)
                return database_fail(db, QV_UNAVAILABLE, "out of memory");
        size_t count = statement_values(c, &writer, values);
        int32_t outcome = db->driver->change(db, text, values, count, &rows);
        free(text);
        return outcome == QV_DONE && rows == 0 ? look_why(db, c, &writer) : outcome;
}

/* --- one task alone ---------------------------------------------------------------------------------------------- */

/* The statement is a transaction of its own.  A dead connection is replaced once, because the server may have been
 * restarted; the statement may safely be repeated. */
static int32_t run_alone(struct sql *sql, const struct qv_task *task, const struct change *c)
{
        int32_t outcome = QV_UNAVAILABLE;
        for (int i = 0; i < 2 && outcome == QV_UNAVAILABLE; i++) {
                if (connect_if_needed(sql) != QV_DONE)
                        return QV_UNAVAILABLE;
                outcome = apply(sql, task, c);
                if (outcome == QV_UNAVAILABLE)
                        disconnect(sql);
        }
        return outcome;
}

/* Logs one line when the outage begins and one when it ends, not one per task. */
static void tell_need(struct sql *sql, bool is_in_need)
{
        if (is_in_need && !sql->is_in_need)
                qv_logf(sql->host, QV_LOG_WARN, "tasks have to wait for the database: %s", sql->db.why);
        else if (!is_in_need && sql->is_in_need)
                qv_logf(sql->host, QV_LOG_INFO, "the database is back");
        sql->is_in_need = is_in_need;
}

static int32_t settle(struct sql *sql, const struct qv_task *task, int32_t outcome)
{
        if (outcome != QV_DONE)
                qv_errorf(task, "%s", sql->db.why);
        tell_need(sql, outcome == QV_UNAVAILABLE);
        return outcome;
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

static void settle_all(struct sql *sql, struct item *items, uint32_t count, int32_t outcome)
{
        for (uint32_t i = 0; i < count; i++)
                *items[i].outcome = settle(sql, items[i].task, outcome);
}

/* Whether to leave the rest of a batch for a later call: the waits for locks add up. */
static bool has_to_stop(struct sql *sql, struct item *items, uint32_t count)
{
        if (!count || !qv_stop(items[0].task))
                return false;
        (void)database_fail(&sql->db, QV_RETRY, "told to stop before it was its turn in a batch");
        settle_all(sql, items, count, QV_RETRY);
        return true;
}

/* Whether the task of its key before it is not done: then it is not started (batch.same_key). */
static bool is_over(const struct item *items, uint32_t i)
{
        return i && *items[i - 1].outcome != QV_DONE && qv_same_key(items[i - 1].task, items[i].task);
}

/* Runs the tasks one after the other, each in a transaction of its own, so that an error affects only its task.  If the
 * database is down, it tries once and not for each task. */
static void run_each(struct sql *sql, struct item *items, uint32_t count)
{
        for (uint32_t i = 0; i < count && !has_to_stop(sql, items + i, count - i); i++) {
                if (is_over(items, i)) {
                        *items[i].outcome = QV_RETRY;
                        continue;
                }
                int32_t outcome = run_alone(sql, items[i].task, &items[i].change);
                *items[i].outcome = settle(sql, items[i].task, outcome);
                if (sql->is_down) {
                        settle_all(sql, items + i + 1, count - i - 1, QV_UNAVAILABLE);
                        return;
                }
        }
}

/* Runs one task of a transaction.  With a savepoint, a rejected task is undone and the transaction continues.  QV_DONE,
 * or the outcome that ends the transaction: after a serialization failure it cannot commit, and after a deadlock it
 * should hold no locks while it waits. */
static int32_t run_in_transaction(struct sql *sql, struct item *item, bool has_savepoint)
{
        if (has_savepoint && execute(sql, "SAVEPOINT task") != QV_DONE)
                return QV_RETRY;
        int32_t outcome = apply(sql, item->task, &item->change);
        *item->outcome = settle(sql, item->task, outcome);
        if (!has_savepoint || (outcome != QV_DONE && outcome != QV_REJECT))
                return outcome;
        return execute(sql, outcome == QV_DONE ? "RELEASE task" : "ROLLBACK TO task; RELEASE task");
}

/* Runs all tasks in one transaction.  QV_DONE: every task has its outcome.  QV_REJECT: a task or the commit was
 * refused; another outcome: the transaction failed.  In both cases nothing was changed. */
static int32_t run_together(struct sql *sql, struct item *items, uint32_t count, bool has_savepoints)
{
        int32_t outcome = connect_if_needed(sql);
        if (outcome == QV_DONE)
                outcome = execute(sql, sql->db.driver->begin);
        if (sql->is_down || outcome == QV_RETRY) {
                settle_all(sql, items, count, outcome);
                return QV_DONE;
        }
        for (uint32_t i = 0; outcome == QV_DONE && i < count && !has_to_stop(sql, items + i, count - i); i++)
                if (is_over(items, i))
                        *items[i].outcome = QV_RETRY;
                else
                        outcome = run_in_transaction(sql, &items[i], has_savepoints);
        if (outcome == QV_DONE)
                outcome = execute(sql, "COMMIT");
        if (outcome != QV_DONE && (outcome == QV_UNAVAILABLE || execute(sql, "ROLLBACK") != QV_DONE))
                disconnect(sql);
        return outcome;
}

/* Runs a batch in one transaction.  Most batches have no error, and a savepoint costs as much as a change, so the first
 * try has no savepoints, and the second has them if a task was refused.  If the transaction fails as a whole (its
 * connection broke, a constraint was checked at the commit, a task has to be retried), each task runs by itself. */
static void run_batch(struct sql *sql, struct item *items, uint32_t count)
{
        int32_t outcome = count > 1 ? run_together(sql, items, count, false) : QV_RETRY;
        if (outcome == QV_REJECT)
                outcome = run_together(sql, items, count, true);
        if (outcome != QV_DONE)
                run_each(sql, items, count);
}

/* --- the plugin -------------------------------------------------------------------------------------------------- */

static void probe_tables(struct sql *sql)
{
        for (size_t i = 0; i < sql->settings.tables_count; i++) {
                char *text = statement_probe(&sql->settings.tables[i]);
                if (text && execute(sql, text) != QV_DONE)
                        qv_logf(sql->host, QV_LOG_WARN, "table %s: %s; its tasks wait until that is mended",
                                sql->settings.tables[i].name.plain, sql->db.why);
                free(text);
        }
}

/* A database that is down does not make init fail: tasks wait until it is back. */
static int32_t sql_init(const struct qv_host *host, void **ret_self)
{
        struct sql *sql = calloc(1, sizeof(*sql));
        if (!sql)
                return qv_init_errorf(host, "out of memory");
        if (settings_read(&sql->settings, host) < 0) {
                free(sql);
                return -1;
        }
        sql->host = host;
        sql->db.driver = sql->settings.driver;
        sql->db.settings = &sql->settings;
        if (connect_if_needed(sql) == QV_DONE)
                probe_tables(sql);
        else
                tell_need(sql, true);
        *ret_self = sql;
        return 0;
}

static void sql_close(void *self)
{
        struct sql *sql = self;
        disconnect(sql);
        settings_free(&sql->settings);
        free(sql);
}

static int32_t sql_handle(void *self, const struct qv_task *task)
{
        struct sql *sql = self;
        struct change change;
        if (change_read(&change, &sql->settings, task) < 0)
                return QV_REJECT;
        int32_t outcome = settle(sql, task, run_alone(sql, task, &change));
        change_free(&change);
        return outcome;
}

static void sql_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        struct sql *sql = self;
        uint32_t valid = 0;
        bool is_out = false; /* the one before was left out */
        struct item *items = malloc(count * sizeof(*items));
        if (!items)
                return;
        for (uint32_t i = 0; i < count; i++) {
                struct item *item = &items[valid];
                item->task = tasks[i];
                item->outcome = &outcomes[i];
                if (is_out && qv_same_key(tasks[i - 1], tasks[i]))
                        continue;
                is_out = change_read(&item->change, &sql->settings, tasks[i]) < 0;
                if (is_out)
                        outcomes[i] = QV_REJECT;
                else
                        valid++;
        }
        run_batch(sql, items, valid);
        for (uint32_t i = 0; i < valid; i++)
                change_free(&items[i].change);
        free(items);
}

QV_PLUGIN("sql", "1.0", QV_THREADS, sql_init, sql_handle, sql_close, sql_handle_many)
