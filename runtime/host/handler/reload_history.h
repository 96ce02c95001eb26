/* reload_history.h: what became of the latest versions of handlers on this host, for `status` and for callers of a
 * reload. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_HISTORY_H
#define QUIVER_HOST_HANDLER_RELOAD_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/names.h"

#define HISTORY_MAX 128 /* entries; the oldest are dropped */

struct history_entry {
        uint32_t reload; /* the reload that brought it, counted from 1; 0: the host's start */
        char handler[NAME_HANDLER_MAX + 1];
        uint32_t generation; /* 0: no generation was made */
        uint64_t file_hash;
        char version[64];    /* the plugin's own version */
        uint64_t at_ms;      /* wall time of the latest outcome */
        char by[64];         /* "start", "SIGHUP", "quiver reload" */
        const char *outcome; /* "waiting", "starting", "serving", "removed", or one of history_outcomes */
        char text[256];      /* the reason, if there is one */
};

/* The final outcomes of a version that a reload brought. */
#define HISTORY_OUTCOMES 6u
extern const char *const history_outcomes[HISTORY_OUTCOMES];

struct history {
        struct history_entry entries[HISTORY_MAX];
        uint64_t count;                   /* of all entries ever added */
        uint64_t ended[HISTORY_OUTCOMES]; /* counts of versions that reloads brought, by history_outcomes */
};

/* Adds an entry, zeroed except for handler and time; borrowed until HISTORY_MAX more are added. */
struct history_entry *history_add(struct history *h, const char *handler);
/* The latest entry about that generation of the handler, or NULL. */
struct history_entry *history_find(struct history *h, const char *handler, uint32_t generation);
void history_set(struct history *h, struct history_entry *entry, const char *outcome, const char *text);
/* Whether the reload had a version that was refused, held back or rolled back. */
bool history_has_failed(const struct history *h, uint32_t reload);

/* The generation and handler of the reload's i-th entry; false: it has no more. */
bool history_generation(
        const struct history *h, uint32_t reload, uint32_t i, const char **ret_handler, uint32_t *ret_generation);

/* An array of objects, oldest first, about one reload or about all (UINT32_MAX). */
json_t *history_json(const struct history *h, uint32_t reload);
/* The entries of one handler in short form, the latest first, at most `max`, for a document of limited size. */
json_t *history_versions(const struct history *h, const char *handler, size_t max);

#endif
