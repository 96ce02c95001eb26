/* payload.h: a task's JSON, checked against the settings:
 *
 *         {"op": "insert" | "update" | "delete", "table": "customer", "id": "17", "data": {"name": "Ann"}} */
#ifndef QUIVER_SQL_PAYLOAD_H
#define QUIVER_SQL_PAYLOAD_H

#include <jansson.h>

#include "database.h"

enum op { OP_INSERT, OP_UPDATE, OP_DELETE };

struct change {
        enum op op;
        const struct table *table;
        struct value id;
        /* In the order of the settings, whatever the order in the payload, so that the same columns give the same
         * statement. */
        const struct name *columns[COLUMNS_MAX];
        struct value values[COLUMNS_MAX];
        size_t count;
        json_t *root; /* the values borrow from it */
};

/* 0; or -EINVAL after setting the task's error, which names what is wrong or not allowed.  Free it only after 0. */
int change_read(struct change *c, const struct settings *settings, const struct qv_task *task);
void change_free(struct change *c);

const char *op_name(enum op op);

#endif
