/* scale.h: a fleet of many hosts in one process, with fake time: the real membership, election and assignment code
 * (runtime/host/membership, runtime/coord) on a tree that counts what it is asked and what it sends.
 *
 * There is no store and no shard at work: what is measured is who should own what, and what agreeing on that costs.
 * One server has the tree; its link sends SCALE_LINK bytes a second, and a message takes SCALE_TRAVEL_NS each way. */
#ifndef QUIVER_TESTS_SCALE_H
#define QUIVER_TESTS_SCALE_H

#include <uthash.h>

#include "coord/driver.h"
#include "host/membership/membership.h"

#define SCALE_TRAVEL_NS  UINT64_C(500000)
#define SCALE_LINK       UINT64_C(110000000) /* a Gbit/s, less what packets take */
#define SCALE_SESSION_MS 10000u
#define SCALE_UNIX_S     UINT64_C(1763000000)

/* --- time: scale_time.c --- */

extern uint64_t scale_now_ns;

/* Calls run(arg) after that time; events of one time in the order in which they were asked for. */
void scale_at(uint64_t delay_ns, void (*run)(void *arg), void *arg);
/* Runs all events up to that time. */
void scale_run_until(uint64_t until_ns);
uint32_t scale_draw(uint32_t below);

/* --- the tree: scale_tree.c --- */

/* What the tree was asked and what it sent, since the counts were zeroed.  Bytes are of names, data and answers,
 * without what a protocol adds. */
struct scale_counts {
        uint64_t reads, writes, lists, notices; /* requests, and notices of changes to who watches */
        uint64_t bytes_in, bytes_out;
        uint64_t peak_bytes;    /* asked for within the busiest second; the link may take longer */
        uint64_t stream_events; /* changes, each of which a driver with one stream for all sends to every host */
        uint64_t stream_bytes;
        uint64_t documents, document_bytes, moves;
};
extern struct scale_counts scale_counts;
/* So many of the next reads of the assignment fail. */
extern uint32_t scale_failing;

struct scale_host;
struct scale_coord {
        struct coord base;
        struct scale_host *host;
        uint64_t life; /* grows when the host dies: what was under way then is dropped */
};

extern const struct coord_driver scale_driver;
void scale_tree_open(struct scale_coord *coord, const struct coord_events *events);
/* The session begins: the host's membership is told. */
void scale_tree_connect(struct scale_coord *coord, uint64_t session);
/* The session ends: its nodes go. */
void scale_tree_end_session(uint64_t session);
/* The data of a node as it is now; empty if there is none. */
struct span scale_tree_data(const char *path);

/* --- a host: scale_host.c --- */

struct scale_host {
        struct membership membership;
        struct scale_coord coord;
        uint32_t index;
        uint64_t session;
        bool is_alive;
        bool is_leaving;
        uint32_t load; /* that its shards have, on average */
        char name[32];
};

extern struct scale_host *scale_hosts;
extern uint32_t scale_hosts_count;

void scale_host_start(struct scale_host *h, uint32_t shards_count);
/* Power off: its session ends when its time is over. */
void scale_host_lose(struct scale_host *h);
/* SIGKILL: its guard ends its session at once. */
void scale_host_kill(struct scale_host *h);
/* SIGTERM: it gives its shards away, then goes. */
void scale_host_leave(struct scale_host *h);
struct scale_host *scale_host_leader(void);
/* Every living member has read the document that is in the tree, and the leader wants no other. */
bool scale_is_stable(void);

#endif
