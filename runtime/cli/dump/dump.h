/* dump.h: what the files that write a dump share. */
#ifndef QUIVER_CLI_DUMP_DUMP_H
#define QUIVER_CLI_DUMP_DUMP_H

#include <jansson.h>

#include "cli/dump/dump_format.h"

struct dump_line;

struct dumping {
        uint32_t shard;
        struct dump_line *lines; /* NULL: written as they come */
        size_t count;
        size_t room;

        char name[DUMP_NAME_SIZE + 1];
        uint32_t sum; /* of every byte so far */
        uint64_t chunks;
        uint32_t chunk_lines;
        size_t chunk_bytes;
        uint64_t tasks;
        struct dump_records records;
        uint64_t left_out; /* what no load would take; named on standard error */
        bool is_too_long;  /* a line that no load would read */
        struct cli_progress progress;
};

/* Writes a line of the current chunk; the object is gone afterwards. */
void dump_write_line(struct dumping *d, json_t *object);
/* What follows stands in another chunk. */
void dump_end_chunk(struct dumping *d);
/* Says on standard error what is left out, and counts it. */
__attribute__((format(printf, 2, 3))) void dump_leave_out(struct dumping *d, const char *format, ...);

/* Under which names tasks of d->shard were submitted.  0 or -errno. */
int dump_names(struct cli_store *s, struct dumping *d, struct error *error);
/* What is not a task and comes after all tasks.  0 or -errno. */
int dump_schedules(struct cli_store *s, struct dumping *d, struct error *error);
int dump_rooms(struct cli_store *s, struct dumping *d, struct error *error);

#endif
