/* shard_names.h: the names that keys of a shard wait for in the store, as far as its owner knows.
 *
 * A task whose handler is paused, down or not served here goes back to the store, and its key waits there for a name
 * (store/names.h).  The owner remembers the names, so it wakes the keys when a name opens and asks no shard in vain.
 * Without I/O: the shard asks what to wake next. */
#ifndef QUIVER_HOST_SHARD_SHARD_NAMES_H
#define QUIVER_HOST_SHARD_SHARD_NAMES_H

#include "host/shard/routes.h"
#include "store/names.h"

/* Names remembered per shard.  If there are more, they are read from the store when a pool or limit opens. */
#define SHARD_NAMES_MAX  256u
#define SHARD_NAME_NONE  UINT32_MAX
#define SHARD_NAMES_PAGE 8u /* keys that the first wake asks for; each further one asks for twice as many */

struct shard_name {
        char text[STORE_NAME_MAX + 1];
        uint32_t size;
        uint32_t page; /* keys that the next wake asks for: few at first, so that every shard starts some at once */
        bool is_open;  /* its pool or limit takes tasks: wake its keys */
        bool is_probe; /* its pool wants one task to test whether it works again */
};

/* All zero is a valid empty set. */
struct shard_names {
        struct shard_name *list;
        uint32_t count;
        bool must_read;                 /* the store has names that are not in `list` */
        bool is_partial;                /* the store has more names than SHARD_NAMES_MAX */
        char after[STORE_NAME_MAX + 1]; /* must_read: the last name read so far; empty: none */
        uint32_t waking;                /* index of the name that the current or last wake is about */
        bool has_woken;                 /* woken keys are not claimed yet: further wakes wait */
};

void shard_names_clear(struct shard_names *n);
void shard_names_add(struct shard_names *n, struct routes *routes, struct span name);
/* Adds a page of names from the store. */
void shard_names_read(struct shard_names *n, struct routes *routes, const struct store_names *page);
/* Pools or limits have opened or shut: updates is_open.  True if there is something to wake or read now. */
bool shard_names_look(struct shard_names *n, struct routes *routes);
/* The pool wants one task to test whether it works again.  False if no key of the shard waits for it. */
bool shard_names_probe(struct shard_names *n, struct routes *routes, uint32_t pool);
/* Whether a key of the shard waits for the pool, as far as it is known. */
bool shard_names_has(const struct shard_names *n, const struct routes *routes, uint32_t pool);
/* The name to wake next, round robin; SHARD_NAME_NONE. */
uint32_t shard_names_next(const struct shard_names *n);
/* The wake was answered: `woken` keys of the name, and whether there are more. */
void shard_names_woken(struct shard_names *n, struct routes *routes, uint32_t woken, bool has_more);

#endif
