/* dead_pick.h: which dead tasks are meant: the filters of `quiver dead`, and a look at all shards with them. */
#ifndef QUIVER_CLI_ADMIN_DEAD_PICK_H
#define QUIVER_CLI_ADMIN_DEAD_PICK_H

#include "cli/open.h"
#include "look/tasks_look.h"

bool dead_filter_is_set(const struct tasks_filter *f);
/* " of handler mail, for the reason exhausted": what the filter says, for people. */
void dead_filter_print(FILE *out, const struct tasks_filter *f);

/* A time ("2026-11-16", "2026-11-16 10:00", as `dead list` shows it), or an age ("2h").  0 or -EINVAL. */
int dead_before_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms, struct error *error);

/* The shards that can have what the filter wants: all, or the key's. */
void dead_filter_shards(
        const struct tasks_filter *f, const struct store_info *info, uint32_t *ret_first, uint32_t *ret_end);

/* The tasks of one shard that fit, by number.  A number is one death's: what is dead again later has another. */
struct dead_picked {
        uint32_t shard;
        uint64_t *numbers;
        size_t count;
};

/* Zero-initialised is none. */
struct dead_survey {
        uint64_t seen;    /* all that were dead when it began */
        uint64_t matched; /* of these */
        struct dead_picked *shards;
        uint32_t shards_count;
};

/* Looks at all that is dead now; what dies while it looks is left out.  0 or -errno. */
int dead_survey(struct cli_store *s, const struct tasks_filter *f, struct dead_survey *ret_survey, struct error *error);
void dead_survey_free(struct dead_survey *survey);

#endif
