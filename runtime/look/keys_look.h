/* keys_look.h: the keys that are not free, and one key with what it waits for. */
#ifndef QUIVER_LOOK_KEYS_LOOK_H
#define QUIVER_LOOK_KEYS_LOOK_H

#include "look/keep.h"
#include "look/look.h"

/* --- a list --- */

enum keys_step { KEYS_BEGIN, KEYS_COUNTS, KEYS_PAGE, KEYS_END };

/* Zeroed, then what is wanted, then keys_look_init(). */
struct keys_look {
        struct look look;
        const char *state; /* only those: "waiting", "parked" or "held"; NULL: all */
        uint64_t shown_max;
        uint64_t looked_max;
        /* False: it has no room for this one, which is then where the list goes on. */
        bool (*show)(void *self, const struct store_key_info *key);
        void *self;

        struct look_place place; /* where it begins; afterwards where it goes on */
        uint64_t shown, looked;
        uint64_t total; /* keys that are not free, in all shards */
        bool has_more;
        enum keys_step step;
        struct store_counts *counts;
};

void keys_look_init(struct keys_look *look);
void keys_look_free(struct keys_look *look);

/* --- one key --- */

enum key_step { KEY_WHEREABOUTS, KEY_COUNT, KEY_CLAIMED, KEY_ITSELF, KEY_HEAD, KEY_END };

/* Zeroed, then key_look_init(). */
struct key_look {
        struct look look;
        struct span key; /* the caller's */

        struct kept_key found; /* KEY_FREE if the store has no record of it */
        struct whereabouts_look where;
        struct store_counts shard;
        uint64_t claimed; /* tasks of it that a host has claimed */
        uint64_t looked;  /* of all in flight in its shard */
        json_t *first;    /* where the first of its tasks is, with its id; NULL: it has none */
        enum key_step step;
};

void key_look_init(struct key_look *look, struct span key);
void key_look_free(struct key_look *look);
/* All that is known of it. */
json_t *key_look_as_json(const struct key_look *look);

#endif
