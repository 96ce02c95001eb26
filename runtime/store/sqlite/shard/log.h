/* log.h: the layout of the log, and how a shard's tasks are found in it.
 *
 * The log is one table for all shards.  Each lane grows in order of arrival, a segment at a time: up to SEGMENT_TASKS
 * tasks, which are sorted by shard within it.  So a submit writes a few pages at the end of its lanes, whatever the
 * number of shards; a claim looks once into each segment and finds its shard's tasks together; and a commit removes
 * them as one run.
 *
 * A row's id is lane, segment, shard, place.  A task's number in its lane is segment and place: it grows in order of
 * arrival and is never given twice, because the segment never goes back (meta: position).  Consecutive numbers of a
 * shard within a segment are adjacent rows. */
#ifndef QUIVER_STORE_SQLITE_SHARD_LOG_H
#define QUIVER_STORE_SQLITE_SHARD_LOG_H

#include "store/sqlite/shard/shard_row.h"

/* With fewer tasks per segment a claim looks into more segments.  With more, a small submit writes more pages, because
 * its tasks are spread among those of other shards. */
#define SEGMENT_TASKS 1024u

#define PLACE_BITS     10 /* SEGMENT_TASKS */
#define SHARD_BITS     12 /* SHARDS_MAX */
#define SEGMENT_BITS   38 /* together with the place, a task's number */
#define SEGMENT_SHIFT  (PLACE_BITS + SHARD_BITS)
#define LANE_SHIFT     (SEGMENT_SHIFT + SEGMENT_BITS)
#define LOG_PLACE_MASK ((UINT64_C(1) << PLACE_BITS) - 1)

static inline uint64_t number_segment(uint64_t number)
{
        return number >> PLACE_BITS;
}

/* The lane bits of `normal` are zero: most rows are of that lane, and small ids take fewer bytes. */
static inline uint64_t log_id(uint32_t shard, uint64_t seq)
{
        uint64_t number = seq_number(seq);
        return ((seq >> STORE_SEQ_LANE_SHIFT) ^ LANE_NORMAL) << LANE_SHIFT | number_segment(number) << SEGMENT_SHIFT |
               (uint64_t)shard << PLACE_BITS | (number & LOG_PLACE_MASK);
}
/* log_id() in SQL, which has no exclusive or. */
#define LOG_ID_SQL(shard, seq)                                                                                         \
        "((((((" seq ") >> 48) | 1) - (((" seq ") >> 48) & 1)) << 60)"                                                 \
        " | ((((" seq ") & 281474976710655) >> 10) << 22) | ((" shard ") << 10) | ((" seq ") & 1023))"
static inline uint32_t log_shard(uint64_t id)
{
        return (uint32_t)(id >> PLACE_BITS) & ((1u << SHARD_BITS) - 1);
}
static inline uint64_t log_segment(uint64_t id)
{
        return (id >> SEGMENT_SHIFT) & ((UINT64_C(1) << SEGMENT_BITS) - 1);
}
/* Returns more than STORE_SEQ_MAX for a row without a valid lane. */
static inline uint64_t log_seq(uint64_t id)
{
        return ((id >> LANE_SHIFT) ^ LANE_NORMAL) << STORE_SEQ_LANE_SHIFT | log_segment(id) << PLACE_BITS |
               (id & LOG_PLACE_MASK);
}
/* Gives the shard's next task in the lane its number. */
uint64_t log_give(struct shard_table *table, struct database *db, struct sqlite_shard_row *shard, enum lane lane);
/* Announces `count` tasks, sorted by shard: begins a new segment if the current one has no room for all of them. */
void log_expect(struct shard_table *table, struct database *db, uint32_t count);
/* The highest number that was given, or that belongs to a finished segment. */
uint64_t log_before(struct shard_table *table, struct database *db);

/* Begins a segment, so that no more numbers of the previous one are given. */
void log_begin(struct shard_table *table, struct database *db);
/* Ranges of row ids, first and last, that were never given. */
#define STRAY_RANGES (LANES + 3)
void log_stray_ranges(struct shard_table *table, struct database *db, uint64_t ret_ranges[STRAY_RANGES][2]);

/* log_segments.c: registers the function that LOG_SEGMENTS uses.  Returns an SQLite code. */
int log_segments_register(sqlite3 *handle);

/* Iterates over a shard's tasks of one lane, in order. */
struct log_scan {
        struct database *db;
        uint32_t shard;
        enum lane lane;
        uint64_t number; /* numbers up to this one have been seen */
        uint64_t last;   /* end of the scan */
        uint32_t
                looks; /* remaining segments to look into; 0 before the end: the call is over, others have their turn */
        bool is_looking;
        bool is_probing;  /* looks into several segments with one statement */
        uint64_t probed;  /* the last number in those segments */
        bool is_sparse;   /* they were empty: a plain search finds where the log goes on, perhaps far away */
        uint64_t segment; /* the current segment */
        struct query row; /* id, task and note of the current task */
};
#define LOG_ANY_LOOKS UINT32_MAX
struct log_scan log_scan(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last);
/* Goes to the next task; false: no more, or no looks left. */
bool log_scan_next(struct log_scan *scan);
void log_scan_end(struct log_scan *scan);
/* Finds up to `count` tasks of a shard with numbers above `after` and up to `last`; returns their number, and their
 * seqs in order.  Fewer if there are no more, or if `looks` searches from each end of a lane do not find them.  It
 * searches from both ends at once: recent claims are near one end and long-running tasks near the other, however many
 * tasks of other shards are in between. */
uint32_t log_both_ways(struct database *db, uint32_t shard, const uint64_t after[LANES], const uint64_t last[LANES],
        uint32_t looks, uint64_t *ret_seqs, uint32_t count);
/* Number of a shard's tasks with numbers above `after` and up to `last`. */
uint64_t log_count(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last);

#endif
