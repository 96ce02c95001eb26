/* lender.h: decides when a host says that it wants seats: one `wanting` record per handler in the store (store/mail.h).
 *
 *         content     every task of the handler has a seat, or gets one within a moment
 *         short       tasks wait beyond the seats; if that lasts, tasks that could be lent are counted
 *         wanting     the record is written, and repeated long before it expires while tasks still wait
 *
 * Written when wanting begins and when it ends, at most once per LENDER_PACE_MS over all handlers of a host: a host
 * that is just busy writes once, an idle one never.  A borrower that got fewer tasks than it offered seats does not ask
 * again by itself; the repeated record rings it.
 *
 * Plain data, no I/O, no clock. */
#ifndef QUIVER_HOST_LEND_LENDER_H
#define QUIVER_HOST_LEND_LENDER_H

#include <stdbool.h>
#include <stdint.h>

#define LENDER_AFTER_MS UINT64_C(100)   /* the handler is short for this long before tasks are counted */
#define LENDER_LOOK_MS  UINT64_C(100)   /* between two counts */
#define LENDER_REST_MS  UINT64_C(10000) /* between two counts while wanting; an ASK in vain counts at once */
#define LENDER_PACE_MS  UINT64_C(100)   /* between two writes of one host */
#define LENDER_KEEP_MS  UINT64_C(60000)
#define LENDER_COUNT    16u /* the count stops here */

/* The state of one handler.  Zero-initialised is content. */
struct lender {
        uint64_t short_ms;  /* since when the handler is short of seats; 0: it is not */
        uint64_t look_ms;   /* when to count next; 0: never */
        uint32_t count;     /* the last count */
        bool is_told;       /* the record exists, as far as we know */
        uint64_t told_ms;   /* when it was last written */
        bool is_in_vain;    /* a host has asked since told_ms and got fewer tasks than it offered seats */
        bool is_telling;    /* a write is under way */
        bool is_telling_of; /* that write says that the handler wants seats */
};

/* Called in each turn of the loop, with whether the handler is short of seats.  True: count the tasks that could be
 * lent. */
bool lender_look(struct lender *l, bool is_short, uint64_t now_ms);
/* The result of the count. */
void lender_counted(struct lender *l, uint32_t count, uint64_t now_ms);
/* A host asked and got fewer tasks than it offered seats. */
void lender_asked_in_vain(struct lender *l);

/* Whether to write the record, and with how many tasks (0: it wants none any more).  No write before `paced_ms`. */
bool lender_wants_to_tell(const struct lender *l, uint64_t paced_ms, uint64_t now_ms, uint32_t *ret_tasks);
void lender_telling(struct lender *l, uint32_t tasks, uint64_t now_ms);
/* The write was answered. */
void lender_told(struct lender *l, bool is_done);

/* When lender_look() is due without an event; UINT64_MAX: never. */
uint64_t lender_due_ms(const struct lender *l, uint64_t paced_ms);

#endif
