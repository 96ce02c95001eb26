/* lender.h: when a host says that it wants seats: one record per handler in the store (store/mail.h, `wanting`).
 *
 *         content     everything of the handler has a seat, or starts within a moment
 *         short       something waits beyond the seats; if that lasts, tasks that could be lent are counted
 *         wanting     the record is there; it is said again while that goes on, long before it is forgotten
 *
 * Written when wanting begins and when it ends, and never more often than LENDER_PACE_MS over all handlers of a host: a
 * host that is just busy writes once, one that is idle never.  A host that asked and got less than it offered does not
 * ask again by itself; it is rung by the record being said once more.
 *
 * Plain data, no I/O, no clock. */
#ifndef QUIVER_HOST_LEND_LENDER_H
#define QUIVER_HOST_LEND_LENDER_H

#include <stdbool.h>
#include <stdint.h>

#define LENDER_AFTER_MS UINT64_C(100)   /* short for so long: it is counted what could be lent */
#define LENDER_LOOK_MS  UINT64_C(100)   /* and again after this */
#define LENDER_REST_MS  UINT64_C(10000) /* the same once it is said: who asks in vain has it counted at once */
#define LENDER_PACE_MS  UINT64_C(100)   /* between two writes of a host */
#define LENDER_KEEP_MS  UINT64_C(60000)
#define LENDER_COUNT    16u /* more than so many are not counted */

/* Of one handler; zero-initialised is content. */
struct lender {
        uint64_t short_ms;  /* since when it is short of seats; 0: it is not */
        uint64_t look_ms;   /* when to count next; 0: not */
        uint32_t count;     /* what was counted last */
        bool is_told;       /* the record is there, as far as we know */
        uint64_t told_ms;   /* when it was said last */
        bool is_in_vain;    /* a host has asked since then and got less than it offered */
        bool is_telling;    /* a write is under way, which says: */
        bool is_telling_of; /* that it wants */
};

/* A turn of the loop: it is short of seats now, or not.  True: it is time to count what could be lent. */
bool lender_look(struct lender *l, bool is_short, uint64_t now_ms);
/* So many could be lent. */
void lender_counted(struct lender *l, uint32_t count, uint64_t now_ms);
/* A host asked, and got less than it offered. */
void lender_asked_in_vain(struct lender *l);

/* The record is to be written: with how many tasks (0: none any more).  `paced_ms`: no write before this. */
bool lender_wants_to_tell(const struct lender *l, uint64_t paced_ms, uint64_t now_ms, uint32_t *ret_tasks);
void lender_telling(struct lender *l, uint32_t tasks, uint64_t now_ms);
/* That write was answered. */
void lender_told(struct lender *l, bool is_done);

/* When something is to be done without any event; UINT64_MAX. */
uint64_t lender_due_ms(const struct lender *l, uint64_t paced_ms);

#endif
