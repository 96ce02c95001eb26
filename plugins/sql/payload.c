#include "payload.h"

#include "text.h"

const char *op_name(enum op op)
{
        static const char *const names[] = { "insert", "update", "delete" };
        return names[op];
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static void set_text(struct value *v, const char *text, size_t size)
{
        v->kind = VALUE_TEXT;
        v->text = text;
        v->text_size = size;
}

/* Nested values are stored as JSON text, in a json or text column. */
static int set_nested(struct value *v, const json_t *json)
{
        v->owned = json_dumps(json, JSON_COMPACT);
        if (!v->owned)
                return -ENOMEM;
        set_text(v, v->owned, strlen(v->owned));
        return 0;
}

static int value_read(struct value *v, const json_t *json)
{
        *v = (struct value){ .kind = VALUE_NULL };
        switch (json_typeof(json)) {
        case JSON_NULL:
                return 0;
        case JSON_TRUE:
        case JSON_FALSE:
                v->kind = VALUE_BOOLEAN;
                v->integer = json_is_true(json);
                return 0;
        case JSON_INTEGER:
                v->kind = VALUE_INTEGER;
                v->integer = json_integer_value(json);
                return 0;
        case JSON_REAL:
                v->kind = VALUE_REAL;
                v->real = json_real_value(json);
                return 0;
        case JSON_STRING:
                set_text(v, json_string_value(json), json_string_length(json));
                return 0;
        default:
                return set_nested(v, json);
        }
}

/* --- members ----------------------------------------------------------------------------------------------------- */

static int check_members(const struct qv_task *task, json_t *root)
{
        static const char *const known[] = { "op", "table", "id", "data" };
        char buffer[SHOWN_SIZE];
        const char *name;
        json_t *value;
        json_object_foreach(root, name, value)
        {
                size_t i = 0;
                while (i < 4 && strcmp(name, known[i]) != 0)
                        i++;
                if (i == 4) {
                        qv_errorf(task, "payload: unknown member \"%s\"; it has op, table, id and data",
                                text_shown(name, buffer));
                        return -EINVAL;
                }
        }
        return 0;
}

static int read_op(struct change *c, const struct qv_task *task)
{
        const char *text = json_string_value(json_object_get(c->root, "op"));
        char buffer[SHOWN_SIZE];
        for (enum op op = OP_INSERT; text && op <= OP_DELETE; op++) {
                if (!strcmp(text, op_name(op))) {
                        c->op = op;
                        return 0;
                }
        }
        qv_errorf(task, "op is %s%s%s; it must be \"insert\", \"update\" or \"delete\"", text ? "\"" : "",
                text ? text_shown(text, buffer) : "no text", text ? "\"" : "");
        return -EINVAL;
}

static int read_table(struct change *c, const struct settings *settings, const struct qv_task *task)
{
        const char *name = json_string_value(json_object_get(c->root, "table"));
        char buffer[SHOWN_SIZE];
        if (!name) {
                qv_errorf(task, "table is missing or no text");
                return -EINVAL;
        }
        c->table = settings_table(settings, name);
        if (c->table)
                return 0;
        qv_errorf(task, "table \"%s\" is not allowed; the handler's `tables` has those that are",
                text_shown(name, buffer));
        return -EINVAL;
}

static int read_id(struct change *c, const struct qv_task *task)
{
        const json_t *id = json_object_get(c->root, "id");
        if (json_is_integer(id) || (json_is_string(id) && json_string_length(id)))
                return value_read(&c->id, id);
        qv_errorf(task, "id is missing; it must be a text or an integer");
        return -EINVAL;
}

static int check_columns(const struct change *c, const struct qv_task *task, json_t *data)
{
        char buffer[SHOWN_SIZE];
        const char *name;
        json_t *value;
        json_object_foreach(data, name, value)
        {
                if (!table_column(c->table, name)) {
                        qv_errorf(task, "column \"%s\" of table \"%s\" is not allowed", text_shown(name, buffer),
                                c->table->name.plain);
                        return -EINVAL;
                }
        }
        return 0;
}

static int read_data(struct change *c, const struct qv_task *task)
{
        json_t *data = json_object_get(c->root, "data");
        if (data && !json_is_object(data)) {
                qv_errorf(task, "data is no object");
                return -EINVAL;
        }
        size_t count = json_object_size(data);
        if (c->op == OP_DELETE ? count > 0 : c->op == OP_UPDATE && count == 0) {
                qv_errorf(task, c->op == OP_DELETE ? "a delete has no data" : "an update needs data");
                return -EINVAL;
        }
        if (check_columns(c, task, data) < 0)
                return -EINVAL;
        for (size_t i = 0; i < c->table->columns_count; i++) {
                const json_t *value = json_object_get(data, c->table->columns[i].plain);
                if (!value)
                        continue;
                c->columns[c->count] = &c->table->columns[i];
                if (value_read(&c->values[c->count++], value) < 0) {
                        qv_errorf(task, "column \"%s\": out of memory", c->table->columns[i].plain);
                        return -EINVAL;
                }
        }
        return 0;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

int change_read(struct change *c, const struct settings *settings, const struct qv_task *task)
{
        json_error_t error;
        c->count = 0;
        c->id = (struct value){ .kind = VALUE_NULL };
        /* JSON_ALLOW_NUL is not set: neither database would keep what follows a NUL in a text. */
        c->root = json_loadb(task->payload, task->payload_size, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(c->root)) {
                qv_errorf(task, "payload: %s", c->root ? "no JSON object" : error.text);
                json_decref(c->root);
                return -EINVAL;
        }
        if (check_members(task, c->root) == 0 && read_op(c, task) == 0 && read_table(c, settings, task) == 0 &&
                read_id(c, task) == 0 && read_data(c, task) == 0)
                return 0;
        change_free(c);
        return -EINVAL;
}

void change_free(struct change *c)
{
        for (size_t i = 0; i < c->count; i++)
                free(c->values[i].owned);
        json_decref(c->root);
        c->root = NULL;
        c->count = 0;
}
