/* settings.h: the handler's `config = { … }`, checked: the database, and the tables and columns that tasks may change.
 */
#ifndef QUIVER_SQL_SETTINGS_H
#define QUIVER_SQL_SETTINGS_H

#include <quiver/plugin.h>

#define TABLES_MAX  64
#define COLUMNS_MAX 64 /* of one table, without its id and the plugin's own columns */

/* The plugin's own columns; README.md has the DDL. */
#define COLUMN_DELETED "is_deleted"
#define COLUMN_EPOCH   "fence_epoch"
#define COLUMN_START   "fence_start"
#define COLUMN_TASK    "fence_task"

/* A name, plain and quoted for SQL. */
struct name {
        const char *plain; /* borrowed from the host */
        char *quoted;
};

struct table {
        struct name name;
        struct name id;
        struct name columns[COLUMNS_MAX];
        size_t columns_count;
};

struct driver;

struct settings {
        const struct driver *driver;
        const char *where; /* SQLite: the file; PostgreSQL: the whole url.  Borrowed */
        char *password;    /* NULL: none */
        uint64_t connect_timeout_ms;
        uint64_t statement_timeout_ms;
        struct table *tables;
        size_t tables_count;
};

/* 0, or -1 after setting the reason why init fails. */
int settings_read(struct settings *s, const struct qv_host *host);
void settings_free(struct settings *s);

/* The table of that name; NULL if tasks may not change it. */
const struct table *settings_table(const struct settings *s, const char *name);
const struct name *table_column(const struct table *table, const char *name);

#endif
