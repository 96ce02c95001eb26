/* shard_names.h: what keys of a shard wait for in the store, as far as its owner knows.
 *
 * A task whose handler is paused, down or not served here goes back to the store, and its key waits there for a name
 * (store/names.h).  The owner remembers the names, so that it wakes a shard's keys when one of them opens and asks no
 * shard in vain.  Without I/O: the shard asks what to wake next. */
#ifndef QUIVER_HOST_SHARD_SHARD_NAMES_H
#define QUIVER_HOST_SHARD_SHARD_NAMES_H

#include "host/shard/routes.h"
#include "store/names.h"

/* So many names of a shard are remembered.  If there are more, they are read from the store when something opens. */
#define SHARD_NAMES_MAX  256u
#define SHARD_NAME_NONE  UINT32_MAX
#define SHARD_NAMES_PAGE 8u /* keys that the first call wakes; each further one twice as many */

struct shard_name {
        char text[STORE_NAME_MAX + 1];
        uint32_t size;
        uint32_t page; /* so many keys are woken by the next call: few at first, so that some start at once on every
                          shard */
        bool is_open;  /* what it stands for takes tasks: its keys are to be woken */
        bool is_probe; /* it does not yet, but wants to try with one task */
};

/* Zero-initialised is empty. */
struct shard_names {
        struct shard_name *list;
        uint32_t count;
        bool must_read;                 /* the store has names that are not here */
        bool is_partial;                /* there were more than are remembered */
        char after[STORE_NAME_MAX + 1]; /* must_read: names up to this one are known; empty: none */
        uint32_t waking;                /* the one that a call under way wakes, or the last did */
        bool has_woken;                 /* keys were woken that are not claimed yet: others have to wait */
};

void shard_names_clear(struct shard_names *n);
void shard_names_add(struct shard_names *n, struct routes *routes, struct span name);
/* A page of names that the store has. */
void shard_names_read(struct shard_names *n, struct routes *routes, const struct store_names *page);
/* What is open has changed.  True if something is to be woken or read now. */
bool shard_names_look(struct shard_names *n, struct routes *routes);
/* The pool wants to try with one task.  False if no key of the shard waits for it. */
bool shard_names_probe(struct shard_names *n, struct routes *routes, uint32_t pool);
/* Whether a key of the shard waits for the pool, as far as it is known. */
bool shard_names_has(const struct shard_names *n, const struct routes *routes, uint32_t pool);
/* The one to wake next, in turn; SHARD_NAME_NONE. */
uint32_t shard_names_next(const struct shard_names *n);
/* Keys of the one that was to be woken have been, or there were none. */
void shard_names_woken(struct shard_names *n, struct routes *routes, uint32_t woken, bool has_more);

#endif
