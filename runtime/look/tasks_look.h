/* tasks_look.h: a filtered list of tasks: waiting and for what, running and where, dead.
 *
 * Running tasks come from the hosts' documents; all others from the store, a page at a time.  The number of tasks
 * looked at is bounded; the look says how far it got and where to continue. */
#ifndef QUIVER_LOOK_TASKS_LOOK_H
#define QUIVER_LOOK_TASKS_LOOK_H

#include "base/arena.h"
#include "look/look.h"

enum tasks_state { SHOW_ALL, SHOW_WAITING, SHOW_RUNNING, SHOW_DELAYED, SHOW_PARKED, SHOW_HELD, SHOW_DEAD, SHOW_STATES };
/* "all", "waiting" (includes parked and held), "running", "delayed", "parked", "held", "dead". */
const char *tasks_state_name(enum tasks_state state);
/* False: there is no such state. */
bool tasks_state_parse(const char *name, enum tasks_state *ret_state);

/* NULL and 0 match anything. */
struct tasks_filter {
        enum tasks_state state;
        const char *handler; /* "unknown": a dead task that cannot be parsed */
        const char *key;
        const char *host;    /* the host that runs or has claimed it */
        const char *error;   /* substring of the last error */
        const char *cause;   /* DEAD: the exact line of the last error by which groups are counted */
        const char *reason;  /* DEAD */
        uint64_t older_ms;   /* submitted (dead: given up) at least this long ago */
        uint64_t created_ms; /* creation time of the app, which bounds ages; 0: unknown.  Set by a look */
        uint64_t before_ms;  /* submitted (dead: given up) before this store time */
};

/* The task's last error: the text of its latest event that has one. */
struct span task_last_error(const struct store_listed *task);
/* Checks everything except the state and the host. */
bool tasks_filter_fits(const struct tasks_filter *f, const struct store_listed *task, uint64_t now_ms);

/* The keys of the current shard, by their text. */
struct shard_keys {
        struct arena_chunk *arena;
        struct store_key_info *list;
        uint32_t count, room;
        json_t *places; /* key → its index in the list */
};

enum tasks_step { TASKS_WHEREABOUTS, TASKS_COUNTS, TASKS_KEYS, TASKS_PAGE, TASKS_END };

/* Zero it, set what is wanted, then call tasks_look_init(). */
struct tasks_look {
        struct look look;
        struct tasks_filter filter;
        bool is_plain;   /* without whereabouts, as for dead tasks */
        uint64_t now_ms; /* unix time */
        uint64_t shown_max;
        uint64_t looked_max;
        uint64_t shard_max; /* show at most this many per shard; 0: no limit */
        uint32_t keys_max;  /* keys read per shard to find out what tasks wait for */
        /* Called for a matching task; `where` is borrowed (view/whereabouts.h), NULL for a plain look.  Returns false
         * if it has no room for this task: the list then continues with it. */
        bool (*show)(void *self, const struct store_listed *task, const json_t *where);
        void *self;

        struct look_place place; /* where to begin; afterwards where to continue */
        uint64_t shown, looked;
        uint64_t shard_shown; /* shown of the current shard */
        uint64_t total;       /* tasks in matching states, over all shards */
        uint64_t time_ms;     /* store time at the beginning */
        bool has_more;        /* another task matches, or was not looked at */
        enum tasks_step step;
        struct store_counts *counts;
        struct whereabouts_look where;
        struct shard_keys keys;
};

void tasks_look_init(struct tasks_look *look);
void tasks_look_free(struct tasks_look *look);

#endif
