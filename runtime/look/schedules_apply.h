/* schedules_apply.h: makes the schedules in the store those of a host's configuration.
 *
 * Every host does this when it starts and after a reload; no leader is needed, because the store decides by versions. A
 * configuration's version is the time when its youngest file was written.  The newest configuration that a host has
 * applied is in force.  Its mark is "schedules.VERSION" in the desired state: each host adds its own mark and removes
 * older ones, so that the newest remains in whichever order they come.
 *
 *         read the newest mark → list → put ours → set our mark → read and list again
 *         → delete schedules that are no longer in the file
 *
 * A host that is killed on the way does the rest when it is back.  Records carry the version, so that of two hosts at
 * once the newer one wins; a record with an older version than the one in force was left by a host that lost that race,
 * and the next pass deletes it.  A host whose configuration is older than the one in force changes nothing else.
 * Schedules that were set by command are never touched: if the file has the same name, that is reported as a conflict.
 *
 * A look (look.h): decides without I/O. */
#ifndef QUIVER_LOOK_SCHEDULES_APPLY_H
#define QUIVER_LOOK_SCHEDULES_APPLY_H

#include "look/look.h"
#include "schedule/record.h"

#define SCHEDULES_MARK     "schedules." /* prefix in the desired state, followed by the version */
#define SCHEDULES_MARK_MAX 32u
#define SCHEDULES_BY_MAX   160u
#define SCHEDULES_OLD_MAX  16u /* older marks that one pass removes */

/* The configuration in force, from its mark in the desired state. */
struct schedules_mark {
        uint64_t version;          /* 0: no configuration with schedules was ever applied */
        char by[SCHEDULES_BY_MAX]; /* the host that applied it */
};

/* {"version": …, "by": …}; NULL: there is none. */
json_t *schedules_mark_as_json(const struct schedules_mark *mark);
/* Takes an item of the desired state if it is a newer mark. */
void schedules_mark_add(struct schedules_mark *mark, const struct store_desired *item);

enum file_schedule_state {
        FILE_SCHEDULE_STANDS,   /* stored as in the file */
        FILE_SCHEDULE_OLDER,    /* a newer configuration differs */
        FILE_SCHEDULE_CONFLICT, /* a command has set it, so it stays as it is */
};

/* A schedule of the configuration. */
struct file_schedule {
        char name[STORE_SCHEDULE_NAME_MAX + 1];
        struct schedule wanted; /* with its zone */
        char *definition;
        enum file_schedule_state state; /* after the pass */
};

/* Zero it, then call schedules_apply_init(); free it with schedules_apply_free(). */
struct schedules_apply {
        struct look look;
        struct file_schedule *files; /* owned by the look */
        uint32_t files_count;
        uint64_t version; /* of the configuration */
        const char *host; /* borrowed from the caller */
        uint64_t now_ms;  /* wall clock */

        /* The result. */
        struct schedules_mark newest; /* after the pass */
        bool is_older;                /* a newer configuration than ours is in force */
        uint32_t others;              /* is_older: schedules in which the newer configuration differs from ours */
        uint32_t set, deleted;        /* records changed */

        /* private */
        unsigned step;
        uint32_t at;
        uint64_t olds[SCHEDULES_OLD_MAX]; /* other versions with a mark */
        uint32_t olds_count;
        struct file_record *records; /* records from a file, or with a name of ours */
        uint32_t records_count;
        bool has_put;   /* the list is for deleting */
        unsigned put;   /* the last request about the current schedule (enum apply_put) */
        uint64_t above; /* version of a deleted schedule of that name; 0: none known */
        char mark[SCHEDULES_MARK_MAX];
        char by[SCHEDULES_BY_MAX];
};

/* Takes ownership of `wanted`. */
void schedules_apply_add(struct schedules_apply *apply, const char *name, struct schedule *wanted);
/* A new pass with the input of `apply`, which must then be freed.  The caller owns it. */
struct schedules_apply *schedules_apply_again(struct schedules_apply *apply);
void schedules_apply_init(struct schedules_apply *apply);
void schedules_apply_free(struct schedules_apply *apply);

#endif
