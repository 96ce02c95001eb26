/* app.h: what is recorded about an app as a whole, for all its hosts.
 *
 * The schema says how records are laid out: a build that does not know it is refused.  Features are what records an app
 * may have besides: each is switched on once, for good, when every host knows it (`quiver app upgrade`).  So hosts of
 * two builds run side by side until then, and a host that lacks a feature that is on is refused by name.
 * How many shards there are and which coordination its hosts use stand in store_options. */
#ifndef QUIVER_STORE_APP_H
#define QUIVER_STORE_APP_H

#include "id/layout.h"
#include "store/store.h"

#define STORE_FEATURES_MAX     64u
#define STORE_FEATURE_NAME_MAX 31u   /* [a-z][a-z0-9_-]* */
#define STORE_MEMBERS_MAX      1000u /* what max_members may be at most */

/* One that this build knows. */
struct store_feature {
        const char *name;
        const char *since; /* the version that had it first */
        const char *about; /* what it lets an app have, for people */
};

/* By name.  A program that is linked with another table of its own is a build that lacks some (tests do that). */
extern const struct store_feature store_features[];
extern const size_t store_features_count;

/* NULL: this build does not know it. */
const struct store_feature *store_feature_find(const char *name);

/* As it is recorded, every number in its range. */
struct store_app {
        uint32_t schema;
        uint32_t shards;
        uint32_t max_members; /* 0: no limit */
        struct id_layout ids; /* how the bits of its ids are given out; fixed when it is made */
        char features[STORE_FEATURES_MAX][STORE_FEATURE_NAME_MAX + 1]; /* those that are on, by name */
        uint32_t features_count;
        uint64_t created_ms; /* store time; 0: an older Quiver made it, and did not say */
};

/* How old something is that says since when it is there: at least 0, and no older than an app that was made at
 * `created_ms` (0: not known).  0: it does not say. */
uint64_t store_age_ms(uint64_t created_ms, uint64_t since_ms, uint64_t now_ms);

bool store_app_has(const struct store_app *app, const char *feature);
/* The first feature that is on and that this build lacks; NULL: none. */
const char *store_app_lacks(const struct store_app *app);

/* Reads it anew; store_info() then has it, too.  SQLite: 5 rows.  Redis: one script. */
struct store_app_get {
        struct store_request request;

        struct store_app app;
        struct span coordination; /* empty: none is recorded */
};
void store_app_get(struct store *store, struct store_app_get *get);

/* Changes what is said, all of it or nothing, and rings every host as a change of the desired state does.  Whether
 * every host is ready for it is for the caller to find out before.  -E2BIG: too many features.  SQLite: 4 rows.  Redis:
 * one script. */
struct store_app_set {
        struct store_request request;
        const struct span *features; /* switched on besides those that are */
        uint32_t features_count;
        bool has_max_members;
        uint32_t max_members;     /* ≤ STORE_MEMBERS_MAX */
        struct span coordination; /* empty: stays */
};
void store_app_set(struct store *store, struct store_app_set *set);

#endif
