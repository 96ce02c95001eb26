/* shard_row.h: one shard's row: its lease, its counters, where its lanes begin and end.
 *
 * Rows stay in memory between transactions.  They are read again when another process has written, and written once, at
 * the end of a transaction that changed them. */
#ifndef QUIVER_STORE_SQLITE_SHARD_SHARD_ROW_H
#define QUIVER_STORE_SQLITE_SHARD_SHARD_ROW_H

#include "store/sqlite/file/query.h"
#include "store/store.h"

/* X(field, column) for every number of the row that the first schema had. */
#define SHARD_FIRST_NUMBERS(X)                                                                                         \
        X(is_held, held)                                                                                               \
        X(epoch, epoch)                                                                                                \
        X(until_ms, until)                                                                                             \
        X(ttl_ms, ttl)                                                                                                 \
        X(boot, boot)                                                                                                  \
        X(call, call)                                                                                                  \
        X(want_epoch, want_epoch)                                                                                      \
        X(want_firm_ms, want_firm)                                                                                     \
        X(want_until_ms, want_until)                                                                                   \
        X(want_drain_ms, want_drain)                                                                                   \
        X(tail[LANE_HIGH], high_tail)                                                                                  \
        X(taken[LANE_HIGH], high_taken)                                                                                \
        X(queued[LANE_HIGH], high_queued)                                                                              \
        X(tail[LANE_NORMAL], normal_tail)                                                                              \
        X(taken[LANE_NORMAL], normal_taken)                                                                            \
        X(queued[LANE_NORMAL], normal_queued)                                                                          \
        X(tail[LANE_LOW], low_tail)                                                                                    \
        X(taken[LANE_LOW], low_taken)                                                                                  \
        X(queued[LANE_LOW], low_queued)                                                                                \
        X(delayed, delayed)                                                                                            \
        X(in_flight, in_flight)                                                                                        \
        X(parked, parked)                                                                                              \
        X(dead, dead)                                                                                                  \
        X(results, results)                                                                                            \
        X(keys, keys)                                                                                                  \
        X(controls, controls)                                                                                          \
        X(returned, returned)                                                                                          \
        X(submitted, submitted)                                                                                        \
        X(done, done)                                                                                                  \
        X(dropped, dropped)                                                                                            \
        X(results_dropped, results_dropped)                                                                            \
        X(last_delayed, last_delayed)                                                                                  \
        X(last_dead, last_dead)                                                                                        \
        X(last_result, last_result)                                                                                    \
        X(last_control, last_control)                                                                                  \
        X(last_key, last_key)
/* X(field, column) for every number of the row. */
#define SHARD_NUMBERS(X)                                                                                               \
        SHARD_FIRST_NUMBERS(X)                                                                                         \
        X(merged, merged)                                                                                              \
        X(parked_high, parked_high)                                                                                    \
        X(parked_low, parked_low)

#define LAST_RANGES STORE_CALL_TASKS

/* Upper bounds of stored numbers, which leave room for more: 48 bits for a lane's, 50 for a shard's. */
#define LANE_NUMBER_MAX  ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) - (UINT64_C(1) << 32))
#define SHARD_NUMBER_MAX ((UINT64_C(1) << SHARD_SHIFT) - (UINT64_C(1) << 32))

/* A range of consecutive seqs. */
struct seq_range {
        uint64_t first;
        uint64_t count;
};

struct sqlite_shard_row {
        uint32_t shard;
        uint64_t loaded_in; /* generation of the table in which it was read: a row from an older one may have changed
                               since */
        const char *bad_number; /* name of a number that is out of range: the row then reads as all zero, and is not
                                   written */
        bool is_dirty;

        uint64_t epoch;
        bool is_held;                     /* false: released, or never owned */
        uint8_t holder[STORE_NONCE_SIZE]; /* the last holder, also after its release */
        uint64_t until_ms;
        uint64_t ttl_ms;
        uint64_t boot; /* the boot in which until_ms was written */
        uint64_t call;

        uint64_t want_epoch; /* 0: no other host wants the shard */
        uint8_t want_nonce[STORE_NONCE_SIZE];
        uint64_t want_firm_ms; /* since when the want is firm; 0: patient */
        uint64_t want_until_ms;
        uint64_t want_drain_ms;

        uint64_t tail[LANES];  /* the last number given in the lane */
        uint64_t taken[LANES]; /* last claimed number: above it tasks are queued, up to it in flight.  Beyond the tail
                                  if the lane was found empty: numbers up to there will not be given any more */

        uint64_t queued[LANES];
        uint64_t delayed;
        uint64_t in_flight;
        uint64_t parked; /* all lanes */
        uint64_t parked_high;
        uint64_t parked_low;
        uint64_t dead;
        uint64_t results;
        uint64_t keys;
        uint64_t controls; /* controls not yet returned to an owner */
        uint64_t returned; /* controls of the last call, kept until the next */
        uint64_t submitted;
        uint64_t done;
        uint64_t dropped;
        uint64_t results_dropped;
        uint64_t merged; /* also the number of the last merge record (merge.c) */

        uint64_t last_delayed;
        uint64_t last_dead;
        uint64_t last_result;
        uint64_t last_control;
        uint64_t last_key;

        struct seq_range *last; /* seqs that the last call claimed */
        uint32_t last_count;

        /* As of the last read or write, which is enough for producers: shard_peek(). */
        bool is_known;
        uint64_t known_leases;
        bool known_held;
        uint8_t known_holder[STORE_NONCE_SIZE];
        uint64_t known_delayed;
        uint64_t known_backlog;
        uint64_t known_put;
};

/* Tasks appended to a shard since its row was last written.  A submit would have to write the wide row of every shard
 * that it touches, few to a page.  It writes tallies instead, 64 shards to a page, and the next writer of the row adds
 * them in.  A shard's state is its row plus its tally; a row in memory includes both. */
struct shard_tally {
        uint64_t tail[LANES];  /* the last number given */
        uint64_t put;          /* all tasks ever appended; only grows */
        uint32_t added[LANES]; /* tasks to add to `queued` */
        uint32_t submitted;
};
#define TALLY_MANY (UINT32_C(1) << 31) /* above this the row has to be written */

struct tally_group {
        uint64_t loaded_in;
        bool is_bad;
        bool is_dirty;
};

/* Row ids: the shard in the top bits. */
#define SHARD_SHIFT 50
static inline uint64_t shard_id(uint32_t shard, uint64_t number)
{
        return (uint64_t)shard << SHARD_SHIFT | number;
}
static inline uint64_t shard_number(uint64_t id)
{
        return id & ((UINT64_C(1) << SHARD_SHIFT) - 1);
}
static inline uint64_t lane_seq(enum lane lane, uint64_t number)
{
        return (uint64_t)lane << STORE_SEQ_LANE_SHIFT | number;
}
static inline uint64_t seq_number(uint64_t seq)
{
        return seq & ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) - 1);
}

/* Whether the shard has given this seq, and a claim has passed it. */
static inline bool seq_is_taken(const struct sqlite_shard_row *s, uint64_t seq)
{
        return seq <= STORE_SEQ_MAX && seq_number(seq) && seq_number(seq) <= s->taken[STORE_SEQ_LANE(seq)];
}

static inline uint64_t shard_queued(const struct sqlite_shard_row *s)
{
        return s->queued[LANE_HIGH] + s->queued[LANE_NORMAL] + s->queued[LANE_LOW];
}

/* Where the log grows (log.h). */
struct log_position {
        uint64_t segment;
        uint32_t filled; /* tasks that the segment got */
        uint64_t loaded_in;
        bool is_dirty;
};

/* All rows of a store. */
struct shard_table {
        uint64_t generation; /* grows when another process has written, or a transaction was undone */
        struct log_position position;
        struct shard_tally *tallies;
        struct tally_group *groups;
        bool has_dirty_group;
        uint64_t leases; /* grows when a holder changes, or tasks are delayed */
        uint64_t leases_loaded_in;
        struct sqlite_shard_row *rows;
        uint32_t count;
        uint64_t data_version;
        uint32_t *dirty; /* numbers of the rows to be written */
        uint32_t dirty_count;
};

void shard_table_init(struct shard_table *table, uint32_t count);
void shard_table_free(struct shard_table *table);
/* Adds the rows of a new store. */
void shard_table_create(struct shard_table *table, struct database *db);
/* At the start of a transaction: forgets what another process may have changed. */
void shard_table_begin(struct shard_table *table, struct database *db);
/* Call before COMMIT: writes the changed rows. */
void shard_table_flush(struct shard_table *table, struct database *db);
/* Call after ROLLBACK: forgets everything. */
void shard_table_forget(struct shard_table *table);

/* A row for producers: holder and an upper bound of the backlog.  Exact unless another process has written since; then
 * at least the holder is exact, and nothing was delayed. */
struct sqlite_shard_row *shard_peek(struct shard_table *table, struct database *db, uint32_t shard);
/* Upper bound of the tasks that wait in the shard. */
uint64_t shard_backlog(struct shard_table *table, struct database *db, const struct sqlite_shard_row *shard);
static inline bool shard_is_exact(const struct shard_table *table, const struct sqlite_shard_row *s)
{
        return s->loaded_in == table->generation;
}

/* tally.c */
void tallies_init(struct shard_table *table);
struct shard_tally *shard_tally(struct shard_table *table, struct database *db, uint32_t shard);
bool tally_is_bad(struct shard_table *table, struct database *db, uint32_t shard);
struct shard_tally *tally_change(struct shard_table *table, struct database *db, uint32_t shard);
/* Clears the tally: the row includes it now. */
void tally_take(struct shard_table *table, struct database *db, uint32_t shard);
/* Resets a tally that cannot be read. */
void tally_clear(struct shard_table *table, struct database *db, uint32_t shard);
void tallies_flush(struct shard_table *table, struct database *db);
void tallies_forget(struct shard_table *table);
uint64_t leases_get(struct shard_table *table, struct database *db);
void leases_changed(struct shard_table *table, struct database *db);

/* log.c: writes the log's position; part of shard_table_flush(). */
void log_position_flush(struct shard_table *table, struct database *db);

/* Memory for the seqs that a call claims, allocated on first use. */
__attribute__((returns_nonnull)) struct seq_range *shard_last_room(struct sqlite_shard_row *s);

/* Whether a number of the row is out of range. */
bool shard_is_bad(struct shard_table *table, struct database *db, uint32_t shard);
/* A row to read.  Never NULL; all zero once the database has failed, which a bad row causes. */
struct sqlite_shard_row *shard_get(struct shard_table *table, struct database *db, uint32_t shard);
/* A row to change. */
struct sqlite_shard_row *shard_change(struct shard_table *table, struct database *db, uint32_t shard);

#endif
