/* keys_look.h: the keys that are not free; one key with what it waits for. */
#ifndef QUIVER_LOOK_KEYS_LOOK_H
#define QUIVER_LOOK_KEYS_LOOK_H

#include "look/keep.h"
#include "look/look.h"

/* --- a list --- */

enum keys_step { KEYS_BEGIN, KEYS_COUNTS, KEYS_PAGE, KEYS_END };

/* Zero it, set what is wanted, then call keys_look_init(). */
struct keys_look {
        struct look look;
        const char *state; /* "waiting", "parked" or "held"; NULL: all */
        uint64_t shown_max;
        uint64_t looked_max;
        /* Returns false if it has no room for this key: the list then continues with it. */
        bool (*show)(void *self, const struct store_key_info *key);
        void *self;

        struct look_place place; /* where to begin; afterwards where to continue */
        uint64_t shown, looked;
        uint64_t total; /* keys that are not free, over all shards */
        bool has_more;
        enum keys_step step;
        struct store_counts *counts;
};

void keys_look_init(struct keys_look *look);
void keys_look_free(struct keys_look *look);

/* --- one key --- */

enum key_step { KEY_WHEREABOUTS, KEY_COUNT, KEY_CLAIMED, KEY_ITSELF, KEY_HEAD, KEY_END };

/* Zero it, then call key_look_init(). */
struct key_look {
        struct look look;
        struct span key; /* borrowed from the caller */

        struct kept_key found; /* KEY_FREE if the store has no record of the key */
        struct whereabouts_look where;
        struct store_counts shard;
        uint64_t claimed; /* its claimed tasks */
        uint64_t looked;  /* tasks in flight of its shard that were looked at */
        json_t *first;    /* whereabouts of its first task, with the id; NULL: none */
        enum key_step step;
};

void key_look_init(struct key_look *look, struct span key);
void key_look_free(struct key_look *look);
/* Everything that is known of the key. */
json_t *key_look_as_json(const struct key_look *look);

#endif
