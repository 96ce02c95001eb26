/* tasks_look.h: which tasks wait and for what, which run and where, which are dead: a list with filters.
 *
 * What runs comes from the hosts' documents; all else from the store, a page at a time.  Bounded: so many tasks are
 * looked at, and it says how far it looked and where to go on. */
#ifndef QUIVER_LOOK_TASKS_LOOK_H
#define QUIVER_LOOK_TASKS_LOOK_H

#include "base/arena.h"
#include "look/look.h"

enum tasks_state { SHOW_ALL, SHOW_WAITING, SHOW_RUNNING, SHOW_DELAYED, SHOW_PARKED, SHOW_HELD, SHOW_DEAD, SHOW_STATES };
/* "all", "waiting" (also parked and held), "running", "delayed", "parked", "held", "dead". */
const char *tasks_state_name(enum tasks_state state);
/* False: there is no such state. */
bool tasks_state_parse(const char *name, enum tasks_state *ret_state);

/* NULL and 0: any. */
struct tasks_filter {
        enum tasks_state state;
        const char *handler; /* "unknown": of a dead task that cannot be read */
        const char *key;
        const char *host;    /* that runs it or has claimed it */
        const char *error;   /* part of the last error */
        const char *cause;   /* DEAD: the line of the last error by which groups are counted, as it is */
        const char *reason;  /* DEAD */
        uint64_t older_ms;   /* submitted (dead: given up) so long ago */
        uint64_t created_ms; /* when the app was made: nothing is older; 0: not known.  Set by a look */
        uint64_t before_ms;  /* submitted (dead: given up) before that, store time */
};

/* What the task failed with last: the text of its latest event that has one. */
struct span task_last_error(const struct store_listed *task);
/* All but its state and its host. */
bool tasks_filter_fits(const struct tasks_filter *f, const struct store_listed *task, uint64_t now_ms);

/* Keys of the shard that is looked at, by their text. */
struct shard_keys {
        struct arena_chunk *arena;
        struct store_key_info *list;
        uint32_t count, room;
        json_t *places; /* key → its place in the list */
};

enum tasks_step { TASKS_WHEREABOUTS, TASKS_COUNTS, TASKS_KEYS, TASKS_PAGE, TASKS_END };

/* Zeroed, then what is wanted, then tasks_look_init(). */
struct tasks_look {
        struct look look;
        struct tasks_filter filter;
        bool is_plain;   /* Without whereabouts: of dead tasks there are none. */
        uint64_t now_ms; /* unix time */
        uint64_t shown_max;
        uint64_t looked_max;
        uint64_t shard_max; /* show no more of one shard; 0: no such limit */
        uint32_t keys_max;  /* of one shard, that are read to say what tasks wait for */
        /* A task that fits; `where` is what view/whereabouts.h says of it, borrowed; NULL: it is a plain look.  False:
         * it has no room for this one, which is then where the list goes on. */
        bool (*show)(void *self, const struct store_listed *task, const json_t *where);
        void *self;

        struct look_place place; /* where it begins; afterwards where it goes on */
        uint64_t shown, looked;
        uint64_t shard_shown; /* of the shard at hand */
        uint64_t total;       /* tasks in the states that can have what is wanted, in all shards */
        uint64_t time_ms;     /* by the store's clock, when it began */
        bool has_more;        /* another one fits, or has not been looked at */
        enum tasks_step step;
        struct store_counts *counts;
        struct whereabouts_look where;
        struct shard_keys keys;
};

void tasks_look_init(struct tasks_look *look);
void tasks_look_free(struct tasks_look *look);

#endif
