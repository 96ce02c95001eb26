/* reload_history.h: what became of the latest versions of handlers on this host, for `status` and for whoever asked. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_HISTORY_H
#define QUIVER_HOST_HANDLER_RELOAD_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/names.h"

#define HISTORY_MAX 128 /* entries; the oldest go */

struct history_entry {
        uint32_t reload; /* which one, counted from 1; 0: the host's start */
        char handler[NAME_HANDLER_MAX + 1];
        uint32_t generation; /* 0: it did not come so far */
        uint64_t file_hash;
        char version[64];    /* the plugin's own */
        uint64_t at_ms;      /* wall time of the latest outcome */
        char by[64];         /* "start", "SIGHUP", "quiver reload" */
        const char *outcome; /* "waiting", "starting", "serving", "good", "unproven", "refused", "held back", "rolled
                                back", "superseded", "removed" */
        char text[256];      /* why, if there is something to say */
};

/* What can become of a version that a reload brought, in the end. */
#define HISTORY_OUTCOMES 6u
extern const char *const history_outcomes[HISTORY_OUTCOMES];

struct history {
        struct history_entry entries[HISTORY_MAX];
        uint64_t count;                   /* ever */
        uint64_t ended[HISTORY_OUTCOMES]; /* by history_outcomes: versions of reloads, ever */
};

/* A new entry, zeroed but for handler and time; borrowed until HISTORY_MAX more are added. */
struct history_entry *history_add(struct history *h, const char *handler);
/* The latest about that generation of the handler, or NULL. */
struct history_entry *history_find(struct history *h, const char *handler, uint32_t generation);
void history_set(struct history *h, struct history_entry *entry, const char *outcome, const char *text);
/* Something was refused, held back or rolled back in that reload. */
bool history_has_failed(const struct history *h, uint32_t reload);

/* The generation of the i-th entry of that reload, and whose it is; false: it has no more. */
bool history_generation(
        const struct history *h, uint32_t reload, uint32_t i, const char **ret_handler, uint32_t *ret_generation);

/* An array of objects, oldest first; of one reload, or of all (UINT32_MAX). */
json_t *history_json(const struct history *h, uint32_t reload);
/* The same of one handler, the latest first, at most so many; short, for a document of limited size. */
json_t *history_versions(const struct history *h, const char *handler, size_t max);

#endif
