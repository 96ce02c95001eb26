/* dump_format.h: what `dump` writes and `load` reads: one JSON object a line, in numbered chunks.
 *
 *         {"quiver": "dump", "version": 2, "name": "9f0c…", "app": "demo", "shards": 64}
 *         {"desired": "pause.mail", "value": "…"}
 *         {"held": "user-17", "reason": "by hand"}
 *         {"idempotency": "order-4711", "key": "user-17", "shard": 3, "id": "…-3", "digest": "9f86…", "left_ms":
 * 86000000}
 *         {"state": "queued", "shard": 3, "lane": "normal", "envelope": "qv1\\nkey:…", "note": "qn1\\n…"}
 *         {"state": "delayed", …, "due_in_ms": 5000}
 *         {"state": "dead", …, "id": "…", "handler": "…", "reason": "exhausted", "at_ms": 1763256000123}
 *         {"chunk": 1, "lines": 5, "sum": "1c291ca3"}
 *         {"schedule": "nightly", "version": 3, "is_paused": true, "next_ms": 1763256000000, "last_ms": 1763169600000,
 *          "fired": 7, "skipped": 1, "definition": "{…}"}
 *         {"room": "chat", "first": 5, "entries_max": 10000, "bytes_max": 67108864, "age_ms": 604800000}
 *         {"entry": "chat", "number": 5, "at_ms": 1763256000123, "bytes": "hello"}
 *         …
 *         {"end": true, "chunks": 12, "tasks": 2077, "sum": "0d4a1185"}
 *
 * A chunk's last line says its number, how many lines it has before that one, and the CRC-32 of every byte of the dump
 * up to there; the end says how many chunks and tasks there are, and the same sum.  So whatever is cut off, changed or
 * in another order is found, and where.  `name` is random: a store takes each chunk of a name once (store/admin.h).
 *
 * Tasks of a shard come in the order in which they are to be loaded, and after the holds of their keys and the names
 * under which they were submitted: whoever repeats a submit meanwhile gets the task's id, and no second one.  Schedules
 * come in chunks of their own after all tasks, so that none fires before the older tasks of its key are there; one that
 * has no next_ms does not fire again.  A room is followed by its entries, whose numbers follow on each other from
 * `first` on. Bytes that are not UTF-8 stand in base64 under NAME_base64. */
#ifndef QUIVER_CLI_DUMP_DUMP_FORMAT_H
#define QUIVER_CLI_DUMP_DUMP_FORMAT_H

#include <stdio.h>

#include "cli/open.h"
#include "cli/progress.h"
#include "client/rooms.h"
#include "client/schedules.h"

#define DUMP_VERSION     2
#define DUMP_NAME_SIZE   32u              /* hexadecimal digits */
#define DUMP_LINE_MAX    (1024u << 20)    /* bytes: more than the largest value of any store, in base64 */
#define DUMP_CHUNK_LINES STORE_CALL_TASKS /* so that the tasks of a chunk for one shard fit into one request */
#define DUMP_CHUNK_BYTES STORE_CALL_BYTES /* only the last task of a chunk exceeds it */
#define DUMP_COUNT_MAX   TASK_NUMBER_MAX

/* Refuses a store on which a host works: EXIT_DONE, or EXIT_FAILED after it said why. */
int dump_check_idle(struct cli_store *s);

/* The line that ends a chunk, or the dump, without its newline.  Returns its size. */
#define DUMP_MARK_MAX 160
size_t dump_chunk_mark(char text[DUMP_MARK_MAX], uint64_t number, uint32_t lines, uint32_t sum);
size_t dump_end_mark(char text[DUMP_MARK_MAX], uint64_t chunks, uint64_t tasks, uint32_t sum);

/* What is not a task, counted for the summary. */
struct dump_records {
        uint64_t names; /* of submits that may be repeated */
        uint64_t schedules;
        uint64_t rooms;
};
/* ", 1 idempotency key, 2 schedules, 1 room", or "" if there is none of them.  Returns `text`. */
#define DUMP_RECORDS_TEXT 144
const char *dump_records_text(const struct dump_records *records, char text[DUMP_RECORDS_TEXT]);

/* What `load` would take. */
bool dump_desired_is_fit(const struct store_desired *item);
bool dump_schedule_is_fit(const struct store_schedule *schedule);
bool dump_room_is_fit(const struct store_room *room);

/* --- reading ------------------------------------------------------------------------------------------------------ */

enum dump_kind { DUMP_TASK, DUMP_HELD, DUMP_DESIRED, DUMP_NAME, DUMP_SCHEDULE, DUMP_ROOM, DUMP_ENTRY };

/* One line of a chunk.  Its spans point into its memory. */
struct dump_record {
        enum dump_kind kind;
        uint32_t shard;                     /* TASK, NAME: where it was */
        struct store_moved task;            /* TASK */
        struct span name;                   /* HELD: the key; DESIRED; ENTRY: its room */
        struct span value;                  /* HELD: the reason; DESIRED */
        struct store_remembered remembered; /* NAME */
        struct store_schedule schedule;     /* SCHEDULE */
        struct store_room room; /* ROOM: `first` is the number of its first entry, or of the next if it is empty */
        struct store_room_entry entry; /* ENTRY */
        struct buffer memory[5];
};

/* Zero it and set `in`. */
struct dump_reader {
        FILE *in;
        char name[DUMP_NAME_SIZE + 1];
        uint32_t shards; /* of the store that was dumped */

        /* the chunk read last */
        uint64_t chunk; /* its number */
        struct dump_record lines[DUMP_CHUNK_LINES];
        uint32_t lines_count;

        uint64_t line; /* read so far, of the dump */
        uint64_t tasks;
        bool is_end; /* the end mark was there, and right, and nothing behind it */
        struct error error;

        /* private */
        size_t chunk_bytes;
        uint32_t sum;
        char *text;
        size_t text_room;
        size_t text_size;
};

/* Reads the first line: name and shards.  0, or -EINVAL with what is wrong. */
int dump_read_head(struct dump_reader *r);
/* The next whole chunk, or the end: r->is_end.  0, or -EINVAL with what is wrong, and in which line; -EIO. */
int dump_read_chunk(struct dump_reader *r);
void dump_reader_free(struct dump_reader *r);

#endif
