/* load.h: putting a dump's chunks into the shards where they belong now. */
#ifndef QUIVER_CLI_DUMP_LOAD_H
#define QUIVER_CLI_DUMP_LOAD_H

#include "cli/dump/dump_format.h"

/* Zero it and set the first three.  What goes wrong is in reader->error. */
struct loading {
        struct cli_store *s;
        struct dump_reader *reader; /* its head was read */
        struct cli_progress progress;

        bool has_begun;              /* some shard has some of this dump */
        uint64_t loaded;             /* tasks put in */
        uint64_t were_there;         /* tasks that an earlier load had put in */
        struct dump_records records; /* put in */
        uint64_t left_out;           /* records that the store has otherwise; named on standard error */

        /* private */
        uint64_t *taken;    /* per shard: the highest chunk it had when we began */
        uint64_t *last;     /* per shard: the last chunk that had something for it */
        uint32_t *shard_of; /* per line of the chunk: where it belongs here */
        struct store_moved *items;
        struct store_remembered *names;
        struct kept_schedules schedules; /* that the store had when the first one came */
        bool has_schedules;              /* those were read */
        struct buffer left_room;         /* the name of the room that was left as it is last */
};

/* Asks every shard what it has of the dump.  0 or -errno. */
int loading_start(struct loading *l);
/* Reads the chunks and puts in what is not there. */
int loading_run(struct loading *l);
void loading_free(struct loading *l);

/* --- load_records.c: what is not a task, and comes after all tasks --- */

uint32_t load_schedule_shard(const struct store_schedule *schedule, uint32_t shards);
/* Puts it in, if the store has none of the name or an older version.  It may be repeated. */
int load_schedule(struct loading *l, uint32_t shard, const struct store_schedule *schedule);
/* Makes the room, so that its numbers begin where they began.  One that the store has already, and not from this dump,
 * is left as it is, with all its entries.  It may be repeated. */
int load_room(struct loading *l, const struct store_room *room);
/* Puts in the entry of this line, and those of the lines right after it that fit into the same call.  *ret_lines: how
 * many that were.  It may be repeated. */
int load_entries(struct loading *l, uint32_t line, uint32_t *ret_lines);

#endif
