/* keep.h: copies of what a store showed, for as long as they are needed: what an answer points to dies when it
 * was taken. */
#ifndef QUIVER_LOOK_KEEP_H
#define QUIVER_LOOK_KEEP_H

#include "base/arena.h"
#include "store/admin.h"

/* Zeroed before; arena_free() of its arena after. */
struct kept_task {
        struct arena_chunk *arena;
        struct store_listed task;
        bool is_there;
};
struct kept_key {
        struct arena_chunk *arena;
        struct store_key_info key;
        bool is_there;
};

/* As callbacks; `self` is the kept one. */
void keep_task(void *self, const struct store_listed *task);
void keep_key(void *self, const struct store_key_info *key);

#endif
