#include "settings.h"

#include <postgresql/libpq-fe.h>
#include <stdbool.h>

#include "../common/command.h"
#include "database.h"

#define SECRET_MAX 4096
#define SQLITE_URL "sqlite:"

/* --- names ------------------------------------------------------------------------------------------------------- */

/* A quoted SQL name: in double quotes, with quotes inside doubled. */
static char *quote(const char *name)
{
        char *quoted = malloc(2 * strlen(name) + 3);
        char *to = quoted;
        if (!quoted)
                return NULL;
        *to++ = '"';
        for (; *name; name++) {
                if (*name == '"')
                        *to++ = '"';
                *to++ = *name;
        }
        *to++ = '"';
        *to = 0;
        return quoted;
}

static int set_name(struct name *name, const struct qv_host *host, const char *text)
{
        *name = (struct name){ .plain = text, .quoted = quote(text) };
        if (name->quoted && *text)
                return 0;
        return qv_init_errorf(host, name->quoted ? "tables: a name is empty" : "out of memory");
}

static bool is_own_column(const char *name)
{
        return !strcmp(name, COLUMN_DELETED) || !strcmp(name, COLUMN_EPOCH) || !strcmp(name, COLUMN_START) ||
               !strcmp(name, COLUMN_TASK);
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

static const char *table_setting(const struct qv_host *host, size_t table, const char *name)
{
        char path[64];
        (void)snprintf(path, sizeof(path), "tables.%zu.%s", table, name);
        return host->config(host, path);
}

static int read_column(struct table *table, const struct qv_host *host, const char *name)
{
        if (table->columns_count == COLUMNS_MAX)
                return qv_init_errorf(host, "table %s: more than %d columns", table->name.plain, COLUMNS_MAX);
        if (is_own_column(name) || !strcmp(name, table->id.plain))
                return qv_init_errorf(
                        host, "table %s: column %s is not for tasks; leave it out", table->name.plain, name);
        if (table_column(table, name))
                return qv_init_errorf(host, "table %s: column %s stands there twice", table->name.plain, name);
        if (set_name(&table->columns[table->columns_count], host, name) < 0)
                return -1;
        table->columns_count++;
        return 0;
}

static int read_table(struct table *table, const struct qv_host *host, size_t number, const char *name)
{
        const char *id = table_setting(host, number, "id");
        if (set_name(&table->name, host, name) < 0 || set_name(&table->id, host, id ? id : "id") < 0)
                return -1;
        if (is_own_column(table->id.plain))
                return qv_init_errorf(host, "table %s: %s cannot be its id", name, table->id.plain);
        for (size_t i = 0; i <= COLUMNS_MAX; i++) {
                char path[32];
                (void)snprintf(path, sizeof(path), "columns.%zu", i);
                const char *column = table_setting(host, number, path);
                if (!column)
                        break;
                if (read_column(table, host, column) < 0)
                        return -1;
        }
        return 0;
}

static const struct table *find_table(const struct table *tables, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (!strcmp(tables[i].name.plain, name))
                        return &tables[i];
        return NULL;
}

static int read_tables(struct settings *s, const struct qv_host *host)
{
        s->tables = calloc(TABLES_MAX, sizeof(*s->tables));
        if (!s->tables)
                return qv_init_errorf(host, "out of memory");
        for (size_t number = 0;; number++) {
                const char *name = table_setting(host, number, "name");
                if (!name)
                        break;
                if (number == TABLES_MAX)
                        return qv_init_errorf(host, "more than %d tables", TABLES_MAX);
                if (find_table(s->tables, number, name))
                        return qv_init_errorf(host, "table %s stands there twice", name);
                s->tables_count = number + 1;
                if (read_table(&s->tables[number], host, number, name) < 0)
                        return -1;
        }
        if (s->tables_count)
                return 0;
        return qv_init_errorf(
                host, "no table is allowed; set tables = ( { name = \"customer\"; columns = [\"name\"]; } )");
}

/* --- the database ------------------------------------------------------------------------------------------------ */

/* Parses the url with libpq.  A password in it is refused, because `check --show` would print it. */
static int check_postgres(const struct qv_host *host, const char *url)
{
        char *problem = NULL;
        PQconninfoOption *options = PQconninfoParse(url, &problem);
        bool has_password = false;
        if (!options) {
                (void)qv_init_errorf(host, "url: %s", problem ? problem : "out of memory");
                PQfreemem(problem);
                return -1;
        }
        for (const PQconninfoOption *o = options; o->keyword; o++)
                has_password |= o->val && (!strcmp(o->keyword, "password") || !strcmp(o->keyword, "sslpassword"));
        PQconninfoFree(options);
        if (has_password)
                return qv_init_errorf(host, "url: it has a password in it; use password_file or password_env");
        return 0;
}

static int read_url(struct settings *s, const struct qv_host *host)
{
        const char *url = host->config(host, "url");
        if (!url)
                return qv_init_errorf(
                        host, "url is not set; for instance \"sqlite:/srv/app.db\" or \"postgres://host/app\"");
        if (!strncmp(url, SQLITE_URL, strlen(SQLITE_URL)) && url[strlen(SQLITE_URL)]) {
                s->driver = &sqlite_driver;
                s->where = url + strlen(SQLITE_URL);
                return 0;
        }
        if (strncmp(url, "postgres://", 11) != 0 && strncmp(url, "postgresql://", 13) != 0)
                return qv_init_errorf(host, "url: neither sqlite:FILE nor postgres://HOST:PORT/DATABASE");
        s->driver = &postgres_driver;
        s->where = url;
        return check_postgres(host, url);
}

static int read_password_file(struct settings *s, const struct qv_host *host, const char *path)
{
        char text[SECRET_MAX];
        FILE *file = fopen(path, "re");
        if (!file)
                return qv_init_errorf(host, "password_file %s: %s", path, strerror(errno));
        size_t size = fread(text, 1, sizeof(text) - 1, file);
        bool is_bad = ferror(file) || size == sizeof(text) - 1;
        (void)fclose(file);
        text[size] = 0;
        text[strcspn(text, "\r\n")] = 0;
        s->password = is_bad || !*text ? NULL : strdup(text);
        explicit_bzero(text, sizeof(text));
        return s->password ? 0 : qv_init_errorf(host, "password_file %s: no password in its first line", path);
}

static int read_password(struct settings *s, const struct qv_host *host)
{
        const char *path = host->config(host, "password_file");
        const char *variable = host->config(host, "password_env");
        if (path && variable)
                return qv_init_errorf(host, "both password_file and password_env are set; keep one");
        if (path)
                return read_password_file(s, host, path);
        if (!variable)
                return 0;
        const char *value = getenv(variable);
        s->password = value && *value ? strdup(value) : NULL;
        return s->password ? 0
                           : qv_init_errorf(host,
                                     "password_env: %s is not set; the host needs it, and the handler's `environment` "
                                     "has to list it",
                                     variable);
}

int settings_read(struct settings *s, const struct qv_host *host)
{
        *s = (struct settings){ 0 };
        if (read_url(s, host) == 0 && read_password(s, host) == 0 &&
                command_read_ms(host, "connect_timeout", 5000, COMMAND_MS_MAX, &s->connect_timeout_ms) == 0 &&
                command_read_ms(host, "statement_timeout", 3000, COMMAND_MS_MAX, &s->statement_timeout_ms) == 0 &&
                read_tables(s, host) == 0)
                return 0;
        settings_free(s);
        return -1;
}

void settings_free(struct settings *s)
{
        for (size_t i = 0; i < s->tables_count; i++) {
                struct table *table = &s->tables[i];
                free(table->name.quoted);
                free(table->id.quoted);
                for (size_t j = 0; j < table->columns_count; j++)
                        free(table->columns[j].quoted);
        }
        free(s->tables);
        if (s->password)
                explicit_bzero(s->password, strlen(s->password));
        free(s->password);
        *s = (struct settings){ 0 };
}

const struct table *settings_table(const struct settings *s, const char *name)
{
        return find_table(s->tables, s->tables_count, name);
}

const struct name *table_column(const struct table *table, const char *name)
{
        for (size_t i = 0; i < table->columns_count; i++)
                if (!strcmp(table->columns[i].plain, name))
                        return &table->columns[i];
        return NULL;
}
