/* look.h: a sequence of store requests that gathers what a person wants to see of an app.
 *
 * Decides without I/O: look_next() takes the answer to the last request and fills in the next one, which the driver
 * starts: a command through the client library (cli/look.h), or a host's HTTP server on its loop (http/api/look_io.h).
 * So both show the same.  Each look is bounded, and says how far it looked. */
#ifndef QUIVER_LOOK_LOOK_H
#define QUIVER_LOOK_LOOK_H

#include "store/admin.h"
#include "store/app.h"
#include "store/limits.h"
#include "store/results.h"
#include "store/schedules.h"
#include "view/whereabouts.h"

struct look {
        /* Takes the answer to the last request, if there was one, and fills in the next; false: the look is complete.
         * The answer's memory is valid until it returns. */
        bool (*next)(struct look *look);
        /* Starts the request, whose request.done the driver has set. */
        void (*start)(struct store *store, struct look *look);
        struct store_info info; /* of the store; set by the driver */
        void *driver;           /* for the driver */
        union {
                struct store_request request;
                struct store_count count;
                struct store_list list;
                struct store_find find;
                struct store_keys keys;
                struct store_dead_groups groups;
                struct store_desired_get desired;
                struct store_desired_set desired_set;
                struct store_status_list documents;
                struct store_app_get app;
                struct store_schedule_list schedules;
                struct store_schedule_set schedule_set;
                struct store_submit submit;
                struct store_limit_look limit;
                struct store_consume consume;
                struct store_commit commit;
        };
};

static inline bool look_next(struct look *look)
{
        return look->next(look);
}

/* These fill in the next request, and return true, like next(). */
bool look_ask_count(struct look *look, uint32_t first_shard, uint32_t shards, struct store_counts *counts);
bool look_ask_list(
        struct look *look, uint32_t shard, enum store_state state, struct store_cursor cursor, uint32_t page);
bool look_ask_find(struct look *look, struct span id, struct store_cursor cursor);
/* `key` not empty: only that key. */
bool look_ask_keys(struct look *look, uint32_t shard, struct span key, struct store_cursor cursor, uint32_t page);
bool look_ask_groups(struct look *look, uint32_t shard);
bool look_ask_desired(struct look *look);
bool look_ask_documents(struct look *look, enum store_document kind);
bool look_ask_app(struct look *look);
/* `name` not empty: only that schedule. */
bool look_ask_schedules(struct look *look, uint32_t shard, struct span name);
/* These change something; a look that uses them says so in its header. */
bool look_set_schedule(struct look *look, const struct store_schedule_set *set);
bool look_submit(struct look *look, struct store_submission *items, uint32_t count);
bool look_set_desired(struct look *look, struct store_desired item);
bool look_unset_desired(struct look *look, struct span name);
bool look_ask_limit(struct look *look, struct span name, uint64_t cursor);
bool look_consume(struct look *look, const struct store_consume *consume);
bool look_commit(struct look *look, const struct store_commit *commit);

/* --- whereabouts, a part of several looks --- */

struct whereabouts_look {
        struct whereabouts w;
        unsigned step;
};

/* True: a request was filled in.  False: `w` is complete, and the current answer does not belong to this part. */
bool whereabouts_look_next(struct whereabouts_look *part, struct look *look);
void whereabouts_look_free(struct whereabouts_look *part);

/* --- places in a list, as a text that a client sends back --- */

/* Where a list continues. */
struct look_place {
        uint32_t shard;
        uint32_t part; /* which state or list of the shard */
        struct store_cursor cursor;
        uint32_t skip; /* items to skip in the page at the cursor */
};

#define LOOK_PLACE_TEXT 80

/* Returns `text`. */
const char *look_place_text(char text[LOOK_PLACE_TEXT], const struct look_place *place);
/* False: not a valid place. */
bool look_place_parse(const char *text, struct look_place *ret_place);

#endif
