/* log.h: where tasks stand in the log, and how a shard's are found there.
 *
 * The log is one table for all shards.  Each lane grows in order of arrival, a segment at a time: up to SEGMENT_TASKS
 * tasks, which lie by shard within it.  So a submit writes a few pages at the end of its lanes, whatever the number of
 * shards; a claim looks once into each segment and finds there what its shard has, together; and a commit removes that
 * as a run.
 *
 * A row's id is lane, segment, shard, place.  A task's number in its lane is segment and place: it grows in order of
 * arrival, and is not given twice, since the segment never goes back (meta: position).  Numbers of a shard that follow
 * on each other within a segment stand side by side. */
#ifndef QUIVER_STORE_SQLITE_SHARD_LOG_H
#define QUIVER_STORE_SQLITE_SHARD_LOG_H

#include "store/sqlite/shard/shard_row.h"

/* Fewer tasks in a segment: more looks for a claim.  More: more pages that a small submit writes, for its tasks then
 * stand among those of others. */
#define SEGMENT_TASKS 1024u

#define PLACE_BITS     10 /* SEGMENT_TASKS */
#define SHARD_BITS     12 /* SHARDS_MAX */
#define SEGMENT_BITS   38 /* with the place, those of a number */
#define SEGMENT_SHIFT  (PLACE_BITS + SHARD_BITS)
#define LANE_SHIFT     (SEGMENT_SHIFT + SEGMENT_BITS)
#define LOG_PLACE_MASK ((UINT64_C(1) << PLACE_BITS) - 1)

static inline uint64_t number_segment(uint64_t number)
{
        return number >> PLACE_BITS;
}

/* The normal lane's bits are zero: most rows are of it, and a small id takes fewer bytes. */
static inline uint64_t log_id(uint32_t shard, uint64_t seq)
{
        uint64_t number = seq_number(seq);
        return ((seq >> STORE_SEQ_LANE_SHIFT) ^ LANE_NORMAL) << LANE_SHIFT | number_segment(number) << SEGMENT_SHIFT |
               (uint64_t)shard << PLACE_BITS | (number & LOG_PLACE_MASK);
}
/* The same as SQL, in which an exclusive or has to be spelled. */
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
/* Above STORE_SEQ_MAX for a row of no lane. */
static inline uint64_t log_seq(uint64_t id)
{
        return ((id >> LANE_SHIFT) ^ LANE_NORMAL) << STORE_SEQ_LANE_SHIFT | log_segment(id) << PLACE_BITS |
               (id & LOG_PLACE_MASK);
}
/* Whether a run of numbers may go on with this one: the first place of a segment has another shard's row before it. */
static inline bool log_is_beside(uint64_t seq, uint64_t next)
{
        return next == seq + 1 && (next & LOG_PLACE_MASK);
}

/* The number of the shard's next task in the lane. */
uint64_t log_give(struct shard_table *table, struct database *db, struct sqlite_shard_row *shard, enum lane lane);
/* So many tasks are about to come, in order of their shards: they get a segment of their own if this one has no room
 * for them all. */
void log_expect(struct shard_table *table, struct database *db, uint32_t count);
/* The last number that was ever given, or will be in segments that are over. */
uint64_t log_before(struct shard_table *table, struct database *db);

/* Begins a segment, so that no number of the one before is given any more. */
void log_begin(struct shard_table *table, struct database *db);
/* The row ids, first and last, that nobody gave. */
#define STRAY_RANGES (LANES + 3)
void log_stray_ranges(struct shard_table *table, struct database *db, uint64_t ret_ranges[STRAY_RANGES][2]);

/* log_segments.c: what LOG_SEGMENTS needs.  An SQLite code. */
int log_segments_register(sqlite3 *handle);

/* A shard's tasks of one lane, in order. */
struct log_scan {
        struct database *db;
        uint32_t shard;
        enum lane lane;
        uint64_t number; /* all up to it have been seen */
        uint64_t last;   /* those above it are not looked at */
        uint32_t looks;  /* into segments, that are left; 0 before the end: others have their turn first */
        bool is_looking;
        bool is_probing;  /* into several segments at once */
        uint64_t probed;  /* the last number in them */
        bool is_sparse;   /* they had nothing: a plain look finds out where the log goes on, which may be far away */
        uint64_t segment; /* that it is looking into */
        struct query row; /* id, task, note of the task that was found */
};
#define LOG_ANY_LOOKS UINT32_MAX
struct log_scan log_scan(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last);
/* The next task; false: no more, or no looks left. */
bool log_scan_next(struct log_scan *scan);
void log_scan_end(struct log_scan *scan);
/* The seqs of `count` tasks of a shard, in order, whose numbers are above `after` and not above `last`; fewer if there
 * are no more, or if so many looks from each end of a lane do not find them.  Returns how many.  It looks from both
 * ends at once: what was claimed last stands near the one, and what has been running for long near the other, however
 * many tasks of other shards lie in between. */
uint32_t log_both_ways(struct database *db, uint32_t shard, const uint64_t after[LANES], const uint64_t last[LANES],
        uint32_t looks, uint64_t *ret_seqs, uint32_t count);
/* How many there are. */
uint64_t log_count(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last);

#endif
