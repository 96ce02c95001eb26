/* schedules_apply.h: what is asked of a store so that its schedules are those of a host's configuration.
 *
 * Every host does this when it starts and after a reload; none has to be the leader, since the store decides by
 * versions.  A configuration's version is the time when its youngest file was written.  The newest that a host has
 * taken up is in force, and stands in the desired state as "schedules.VERSION": each host adds its own, and removes
 * older ones, so that the newest remains in whichever order they come.
 *
 *         read the newest → list → put ours → note our version → read and list again → delete what no longer stands
 * there
 *
 * A host that is killed on the way does the rest when it is back.  Records are written with the version, so that of two
 * hosts at once the newer one wins, and what has an older version than the one in force is left over from a host that
 * lost that race: whoever comes next deletes it.  A host whose configuration is older than the one in force changes
 * nothing else.  Schedules that were set by command are never touched: if the name stands in the file, too, that is a
 * conflict, and said.
 *
 * A look (look.h): decides and does no I/O. */
#ifndef QUIVER_LOOK_SCHEDULES_APPLY_H
#define QUIVER_LOOK_SCHEDULES_APPLY_H

#include "look/look.h"
#include "schedule/record.h"

#define SCHEDULES_MARK     "schedules." /* a name of the desired state, followed by the version */
#define SCHEDULES_MARK_MAX 32u
#define SCHEDULES_BY_MAX   160u
#define SCHEDULES_OLD_MAX  16u /* older versions that one pass removes */

/* The configuration in force, as the desired state has it. */
struct schedules_mark {
        uint64_t version;          /* 0: no configuration with schedules was ever taken up */
        char by[SCHEDULES_BY_MAX]; /* who took it up */
};

/* {"version": …, "by": …}; NULL: there is none. */
json_t *schedules_mark_as_json(const struct schedules_mark *mark);
/* Takes up an item of the desired state, if it is such a mark and newer. */
void schedules_mark_add(struct schedules_mark *mark, const struct store_desired *item);

enum file_schedule_state {
        FILE_SCHEDULE_STANDS,   /* as the file says */
        FILE_SCHEDULE_OLDER,    /* a newer configuration says otherwise */
        FILE_SCHEDULE_CONFLICT, /* it was set by command, and stays as it is */
};

/* One of the configuration. */
struct file_schedule {
        char name[STORE_SCHEDULE_NAME_MAX + 1];
        struct schedule wanted; /* with its zone */
        char *definition;
        enum file_schedule_state state; /* after the pass */
};

/* Zeroed, then schedules_apply_init(); schedules_apply_free() after. */
struct schedules_apply {
        struct look look;
        struct file_schedule *files; /* the look's own */
        uint32_t files_count;
        uint64_t version; /* of the configuration */
        const char *host; /* the caller's */
        uint64_t now_ms;  /* by the wall clock */

        /* The answer. */
        struct schedules_mark newest; /* after the pass */
        bool is_older;                /* a newer configuration than ours is in force */
        uint32_t others;              /* is_older: schedules that it has and ours has not, or otherwise */
        uint32_t set, deleted;        /* that were changed */

        /* private */
        unsigned step;
        uint32_t at;
        uint64_t olds[SCHEDULES_OLD_MAX]; /* versions that are marked besides */
        uint32_t olds_count;
        struct file_record *records; /* those that come from a file, or have a name of ours */
        uint32_t records_count;
        bool has_put;   /* what is listed is for deleting */
        unsigned put;   /* what was asked about the current one */
        uint64_t above; /* the version of one of its name that was deleted; 0: none is known */
        char mark[SCHEDULES_MARK_MAX];
        char by[SCHEDULES_BY_MAX];
};

/* Takes `wanted`. */
void schedules_apply_add(struct schedules_apply *apply, const char *name, struct schedule *wanted);
/* The same from the beginning: takes what `apply` was given, which is then to be freed.  The caller's. */
struct schedules_apply *schedules_apply_again(struct schedules_apply *apply);
void schedules_apply_init(struct schedules_apply *apply);
void schedules_apply_free(struct schedules_apply *apply);

#endif
