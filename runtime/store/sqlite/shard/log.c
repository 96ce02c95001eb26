#include "store/sqlite/shard/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "task/id.h"

_Static_assert(SHARDS_MAX <= 1u << SHARD_BITS, "a row id has room for every shard");
_Static_assert(STORE_SUBMIT_TASKS <= SEGMENT_TASKS, "a submit fits a segment");
_Static_assert(PLACE_BITS + SEGMENT_BITS == STORE_SEQ_LANE_SHIFT, "a row id has room for every number");

/* --- numbers --- */

#define POSITION_NAME SPAN_TEXT("position")
#define FILLED_BITS   16
#define POSITION_MAX  (number_segment(LANE_NUMBER_MAX) << FILLED_BITS)

/* Lower bound of the position: behind every number that a shard has. */
static uint64_t position_from_shards(struct shard_table *table, struct database *db)
{
        struct query q = query(db, STATEMENT_SHARD_NUMBERS_MAX);
        bind_number(&q, LANE_NUMBER_MAX);
        uint64_t number = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        for (uint32_t i = 0; i < table->count; i++)
                for (unsigned lane = 0; lane < LANES && !tally_is_bad(table, db, i); lane++)
                        number = max_u64(number, shard_tally(table, db, i)->tail[lane]);
        return (number_segment(number) + 1) << FILLED_BITS;
}

static struct log_position *position(struct shard_table *table, struct database *db)
{
        struct log_position *p = &table->position;
        if (p->loaded_in == table->generation || db->failure)
                return p;
        struct query q = query(db, STATEMENT_META_GET);
        bind_text(&q, POSITION_NAME);
        uint64_t value = query_row(&q) ? column_number(&q, 0) : UINT64_MAX;
        query_end(&q);
        /* Absent: the file is from an older Quiver.  Out of range: somebody changed it.  Compute it from the shards. */
        if (value > POSITION_MAX || value < 1u << FILLED_BITS)
                value = position_from_shards(table, db);
        *p = (struct log_position){ .segment = value >> FILLED_BITS,
                .filled = (uint32_t)(value & ((1u << FILLED_BITS) - 1)),
                .loaded_in = db->failure ? 0 : table->generation };
        return p;
}

void log_position_flush(struct shard_table *table, struct database *db)
{
        struct log_position *p = &table->position;
        if (!p->is_dirty)
                return;
        p->is_dirty = false;
        struct query q = query(db, STATEMENT_META_SET);
        bind_text(&q, POSITION_NAME);
        bind_number(&q, p->segment << FILLED_BITS | p->filled);
        (void)query_run(&q);
}

static void segment_begin(struct log_position *p, uint64_t segment)
{
        p->segment = segment;
        p->filled = 0;
        p->is_dirty = true;
}

void log_expect(struct shard_table *table, struct database *db, uint32_t count)
{
        struct log_position *p = position(table, db);
        if (p->filled && p->filled + count > SEGMENT_TASKS)
                segment_begin(p, p->segment + 1);
}

uint64_t log_give(struct shard_table *table, struct database *db, struct sqlite_shard_row *shard, enum lane lane)
{
        struct log_position *p = position(table, db);
        if (p->filled >= SEGMENT_TASKS)
                segment_begin(p, p->segment + 1);
        /* Never give a number that the shard has given or that a claim has passed, whatever the position says. */
        struct shard_tally *tally = tally_change(table, db, shard->shard);
        uint64_t number = max_u64(max_u64(shard->tail[lane], tally->tail[lane]), shard->taken[lane]) + 1;
        number = max_u64(number, p->segment << PLACE_BITS);
        if (number_segment(number) > p->segment)
                segment_begin(p, number_segment(number));
        p->filled++;
        p->is_dirty = true;
        shard->tail[lane] = tally->tail[lane] = number;
        return number;
}

void log_begin(struct shard_table *table, struct database *db)
{
        struct log_position *p = position(table, db);
        segment_begin(p, p->segment + 1);
}

uint64_t log_before(struct shard_table *table, struct database *db)
{
        return (position(table, db)->segment << PLACE_BITS) - 1;
}

void log_stray_ranges(struct shard_table *table, struct database *db, uint64_t ret_ranges[STRAY_RANGES][2])
{
        const uint64_t lane_size = UINT64_C(1) << LANE_SHIFT;
        uint64_t next = (position(table, db)->segment + 1) << PLACE_BITS;
        /* Three of four lane codes are valid; ids above them and negative ids have no lane. */
        uint64_t none = ((uint64_t)LANES ^ LANE_NORMAL) * lane_size;
        for (unsigned lane = 0; lane < LANES; lane++) {
                ret_ranges[lane][0] = log_id(0, lane_seq((enum lane)lane, next));
                ret_ranges[lane][1] = ret_ranges[lane][0] | (lane_size - 1);
        }
        memcpy(ret_ranges[LANES], (uint64_t[]){ none, none | (lane_size - 1) }, sizeof(*ret_ranges));
        memcpy(ret_ranges[LANES + 1], (uint64_t[]){ 4 * lane_size, INT64_MAX }, sizeof(*ret_ranges));
        memcpy(ret_ranges[LANES + 2], (uint64_t[]){ (uint64_t)INT64_MIN, UINT64_MAX }, sizeof(*ret_ranges));
}

/* --- scanning --- */

/* Segments that one statement looks into. */
#define PROBE_SEGMENTS 32u

struct log_scan log_scan(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last)
{
        return (struct log_scan){
                .db = db, .shard = shard, .lane = lane, .number = after, .last = last, .looks = LOG_ANY_LOOKS
        };
}

static uint64_t id_of(const struct log_scan *scan, uint64_t number)
{
        return log_id(scan->shard, lane_seq(scan->lane, number));
}

/* Looks into the next segments, as many as there are looks left. */
static void probe(struct log_scan *scan)
{
        uint64_t segment = number_segment(scan->number + 1);
        uint64_t count = min_u64(scan->looks, PROBE_SEGMENTS);
        scan->probed = min_u64(((segment + count) << PLACE_BITS) - 1, scan->last);
        scan->row = query(scan->db, STATEMENT_LOG_SEGMENTS);
        bind_number(&scan->row, id_of(scan, scan->number + 1));
        bind_number(&scan->row, id_of(scan, scan->probed));
        scan->is_looking = scan->is_probing = true;
        scan->is_sparse = true;
}

/* The probed segments have no more tasks of the shard. */
static void probe_end(struct log_scan *scan)
{
        log_scan_end(scan);
        scan->looks -=
                (uint32_t)min_u64(scan->looks, number_segment(scan->probed) + 1 - number_segment(scan->number + 1));
        scan->number = scan->probed;
}

static void look(struct log_scan *scan)
{
        if (!scan->is_sparse && scan->looks > 1 && number_segment(scan->number + 1) < number_segment(scan->last)) {
                probe(scan);
                return;
        }
        scan->is_sparse = false;
        scan->row = query(scan->db, STATEMENT_LOG_FROM);
        bind_number(&scan->row, id_of(scan, scan->number + 1));
        bind_number(&scan->row, id_of(scan, scan->last));
        scan->segment = number_segment(scan->number + 1);
        scan->is_looking = true;
        scan->looks--;
}

/* Continues where the shard may have its next row, given the next row of another shard.  Skips segments without
 * rows. */
static void pass(struct log_scan *scan, uint64_t next)
{
        uint64_t segment = log_segment(next);
        if (segment == scan->segment || log_shard(next) > scan->shard)
                segment++;
        scan->number = (segment << PLACE_BITS) - 1;
}

bool log_scan_next(struct log_scan *scan)
{
        while (scan->is_looking || (scan->number < scan->last && scan->looks)) {
                if (!scan->is_looking)
                        look(scan);
                if (!query_row(&scan->row)) {
                        if (scan->is_probing && !scan->db->failure) {
                                probe_end(scan);
                                continue;
                        }
                        log_scan_end(scan);
                        scan->number = scan->last;
                        return false;
                }
                uint64_t id = column_number(&scan->row, 0);
                if (log_shard(id) == scan->shard) {
                        scan->is_sparse = false;
                        scan->segment = log_segment(id);
                        scan->number = seq_number(log_seq(id));
                        return true;
                }
                log_scan_end(scan);
                pass(scan, id);
        }
        return false;
}

void log_scan_end(struct log_scan *scan)
{
        if (scan->is_looking)
                query_end(&scan->row);
        scan->is_looking = scan->is_probing = false;
}

/* --- both ways --- */

/* Searches backwards for the shard's next row below `last`, in one segment.  False: none there, and `last` is now
 * before that segment. */
static bool look_back(struct log_scan *scan)
{
        struct query q = query(scan->db, STATEMENT_LOG_UP_TO);
        bind_number(&q, id_of(scan, scan->number + 1));
        bind_number(&q, id_of(scan, scan->last));
        bool is_there = query_row(&q);
        uint64_t id = is_there ? column_number(&q, 0) : 0;
        query_end(&q);
        uint64_t segment = log_segment(id);
        if (is_there && log_shard(id) == scan->shard) {
                scan->last = seq_number(log_seq(id)) - 1;
                return true;
        }
        /* Rows of higher shards come last in their segment: the shard's own rows, if any, are before them. */
        bool is_behind = is_there && log_shard(id) > scan->shard && segment < number_segment(scan->last);
        scan->last = !is_there ? scan->number : max_u64(scan->number, ((segment + is_behind) << PLACE_BITS) - 1);
        return false;
}

/* Searches forwards in one segment. */
static bool look_ahead(struct log_scan *scan)
{
        scan->looks = 1;
        bool is_found = log_scan_next(scan);
        log_scan_end(scan);
        return is_found;
}

static int by_number(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

uint32_t log_both_ways(struct database *db, uint32_t shard, const uint64_t after[LANES], const uint64_t last[LANES],
        uint32_t looks, uint64_t *ret_seqs, uint32_t count)
{
        struct log_scan scans[LANES];
        uint32_t found = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
                scans[lane] = log_scan(db, shard, (enum lane)lane, after[lane], last[lane]);
        for (bool is_open = true; is_open && looks && found < count && !db->failure; looks--) {
                is_open = false;
                for (unsigned lane = 0; lane < LANES; lane++) {
                        struct log_scan *scan = &scans[lane];
                        if (scan->number < scan->last && found < count && look_ahead(scan))
                                ret_seqs[found++] = lane_seq((enum lane)lane, scan->number);
                        if (scan->number < scan->last && found < count && look_back(scan))
                                ret_seqs[found++] = lane_seq((enum lane)lane, scan->last + 1);
                        is_open |= scan->number < scan->last;
                }
        }
        if (found)
                qsort(ret_seqs, found, sizeof(*ret_seqs), by_number);
        return found;
}

uint64_t log_count(struct database *db, uint32_t shard, enum lane lane, uint64_t after, uint64_t last)
{
        struct log_scan scan = log_scan(db, shard, lane, after, last);
        uint64_t count = 0;
        while (log_scan_next(&scan))
                count++;
        return count;
}
