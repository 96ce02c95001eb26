/* keep.h: copies of a store's answers, whose own memory is freed when the callback returns. */
#ifndef QUIVER_LOOK_KEEP_H
#define QUIVER_LOOK_KEEP_H

#include "base/arena.h"
#include "store/admin.h"

/* Zero-initialise; free with arena_free() of its arena. */
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

/* Callbacks for a find and a list of keys; `self` is the kept_task or kept_key. */
void keep_task(void *self, const struct store_listed *task);
void keep_key(void *self, const struct store_key_info *key);

#endif
