/* load.h: how busy a host's shards are, as it reports to the leader, which evens out the load.
 *
 * A load is the seat time that tasks take per second, in thousandths of a seat: 2500 means two and a half seats that
 * are always busy.  A host reports the sum over its shards and its few busiest shards, in its node in the tree
 * (member_doc.h).  It reports again only after a large change, so small variations cost no traffic.  Plain data, no
 * I/O, no clock. */
#ifndef QUIVER_HOST_MEMBERSHIP_LOAD_H
#define QUIVER_HOST_MEMBERSHIP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_BUSY_MAX 8u                   /* shards that a host reports */
#define LOAD_MAX      UINT32_C(1000000000) /* a million seats */

/* One shard and its load. */
struct load_shard {
        uint32_t shard;
        uint32_t load;
};

/* The loads of one host.  Zero-initialised: nothing is known. */
struct load_summary {
        bool is_known;                         /* false: an older host, or one that does not even out load */
        uint32_t total;                        /* of all its shards; ≤ LOAD_MAX */
        struct load_shard busy[LOAD_BUSY_MAX]; /* the busiest, sorted by shard, each once */
        uint32_t busy_count;
};

/* Takes one of the host's shards into account; the sum is limited to LOAD_MAX. */
void load_summary_add(struct load_summary *s, uint32_t shard, uint32_t load);
/* All shards were added: drops those with a small part of the sum, and sorts the others. */
void load_summary_end(struct load_summary *s);
/* The shard's load; 0: it is not among the busiest. */
uint32_t load_summary_find(const struct load_summary *s, uint32_t shard);

/* Whether `now` differs enough from the reported load to be reported. */
bool load_summary_differs(const struct load_summary *told, const struct load_summary *now);

#endif
