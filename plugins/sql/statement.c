#include "statement.h"

#include <stdio.h>

#define FENCE_COLUMNS COLUMN_EPOCH ", " COLUMN_START ", " COLUMN_TASK

/* Parameters are numbered in the order of statement_values(), and first appear in the text in that order: SQLite counts
 * them by appearance, PostgreSQL by number. */

/* The row's pair must be lower than or equal to ours: a start may write twice, but never after a later start. */
static void put_fence(FILE *out, size_t first)
{
        (void)fprintf(out, "(" COLUMN_EPOCH ", " COLUMN_START ") <= ($%zu, $%zu)", first, first + 1);
}

static void put_insert(FILE *out, const struct change *c)
{
        const struct table *t = c->table;
        (void)fprintf(out, "INSERT INTO %s AS kept (", t->name.quoted);
        for (size_t i = 0; i < c->count; i++)
                (void)fprintf(out, "%s, ", c->columns[i]->quoted);
        (void)fprintf(out, FENCE_COLUMNS ", %s, " COLUMN_DELETED ") VALUES (", t->id.quoted);
        for (size_t i = 1; i <= c->count + 4; i++)
                (void)fprintf(out, "$%zu, ", i);
        /* Two kinds of rows may be overwritten: a deleted one, as if it were new (`excluded` has the defaults of
         * columns that the task does not name), and the task's own, from a start whose outcome was lost. */
        (void)fprintf(out, "false) ON CONFLICT (%s) DO UPDATE SET ", t->id.quoted);
        for (size_t i = 0; i < t->columns_count; i++)
                (void)fprintf(out, "%s = excluded.%s, ", t->columns[i].quoted, t->columns[i].quoted);
        (void)fputs(COLUMN_DELETED " = false, " COLUMN_EPOCH " = excluded." COLUMN_EPOCH ", " COLUMN_START
                                   " = excluded." COLUMN_START ", " COLUMN_TASK " = excluded." COLUMN_TASK
                                   " WHERE (kept." COLUMN_EPOCH ", kept." COLUMN_START ") <= (excluded." COLUMN_EPOCH
                                   ", excluded." COLUMN_START ") AND (kept." COLUMN_DELETED " OR kept." COLUMN_TASK
                                   " = excluded." COLUMN_TASK ")",
                out);
}

static void put_update(FILE *out, const struct change *c)
{
        size_t fence = c->count + 1;
        (void)fprintf(out, "UPDATE %s SET ", c->table->name.quoted);
        for (size_t i = 0; i < c->count; i++)
                (void)fprintf(out, "%s = $%zu, ", c->columns[i]->quoted, i + 1);
        (void)fprintf(out,
                "%s" COLUMN_EPOCH " = $%zu, " COLUMN_START " = $%zu, " COLUMN_TASK " = $%zu WHERE %s = $%zu AND ",
                c->op == OP_DELETE ? COLUMN_DELETED " = true, " : "", fence, fence + 1, fence + 2, c->table->id.quoted,
                fence + 3);
        if (c->op == OP_UPDATE)
                (void)fputs("NOT " COLUMN_DELETED " AND ", out);
        put_fence(out, fence);
}

/* The complete text; NULL if memory ran out. */
static char *finish(FILE *out, char **text)
{
        bool is_bad = ferror(out);
        if (fclose(out) == 0 && !is_bad)
                return *text;
        free(*text);
        return NULL;
}

char *statement_change(const struct change *c)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!out)
                return NULL;
        if (c->op == OP_INSERT)
                put_insert(out, c);
        else
                put_update(out, c);
        return finish(out, &text);
}

size_t statement_values(const struct change *c, const struct writer *writer, struct value *values)
{
        size_t n = c->count;
        memcpy(values, c->values, n * sizeof(*values));
        values[n++] = (struct value){ .kind = VALUE_INTEGER, .integer = writer->fence_epoch };
        values[n++] = (struct value){ .kind = VALUE_INTEGER, .integer = writer->fence_start };
        values[n++] = (struct value){
                .kind = VALUE_TEXT,
                .text = writer->task_id,
                .text_size = strlen(writer->task_id),
        };
        values[n++] = c->id;
        return n;
}

char *statement_look(const struct table *table)
{
        char *text;
        int n = asprintf(&text,
                "SELECT " COLUMN_EPOCH ", " COLUMN_START ", CASE WHEN " COLUMN_DELETED " THEN 1 ELSE 0 END FROM %s "
                "WHERE %s = $1",
                table->name.quoted, table->id.quoted);
        return n < 0 ? NULL : text;
}

char *statement_probe(const struct table *table)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!out)
                return NULL;
        (void)fprintf(out, "SELECT ");
        for (size_t i = 0; i < table->columns_count; i++)
                (void)fprintf(out, "kept.%s, ", table->columns[i].quoted);
        (void)fprintf(out,
                "kept.%s, kept." COLUMN_DELETED ", kept." COLUMN_EPOCH ", kept." COLUMN_START ", kept." COLUMN_TASK
                " FROM %s AS kept WHERE false",
                table->id.quoted, table->name.quoted);
        return finish(out, &text);
}
