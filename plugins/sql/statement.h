/* statement.h: a change as SQL that both databases accept.
 *
 * Names come from the settings and are quoted; everything else is bound.  The fence is part of the statement's
 * condition, so that comparing and writing are one atomic step. */
#ifndef QUIVER_SQL_STATEMENT_H
#define QUIVER_SQL_STATEMENT_H

#include "payload.h"

/* The writer of a row: the values of its fence columns after the change. */
struct writer {
        int64_t fence_epoch, fence_start;
        const char *task_id;
};

/* The text, which the caller frees; NULL without memory.  It changes one row, or none if the fence or the row's state
 * forbids it. */
char *statement_change(const struct change *c);

/* Fills in the values of $1 to $n and returns n.  `values` has room for VALUES_MAX and borrows from both arguments. */
size_t statement_values(const struct change *c, const struct writer *writer, struct value *values);

/* A statement that reads the `struct seen` of the row whose id is $1: fence_epoch, fence_start, and whether it is
 * deleted, as 0 or 1.  The caller frees it; NULL without memory. */
char *statement_look(const struct table *table);

/* A statement that fails if the table or one of its columns does not exist.  The caller frees it; NULL without memory.
 */
char *statement_probe(const struct table *table);

#endif
