/* rules.h: what an answer means for its task.  Plain data, no I/O. */
#ifndef QUIVER_WEBHOOK_RULES_H
#define QUIVER_WEBHOOK_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <quiver/plugin.h>

/* How a request ended. */
enum answer_kind {
        ANSWERED,  /* with a status */
        DOWN,      /* nobody was reached, so nothing was sent: no address, no connection, no TLS */
        SILENT,    /* it was sent, and no whole answer came */
        FORBIDDEN, /* the address is none that may be connected to */
        STOPPED,   /* the task had to end */
};

struct answer {
        enum answer_kind kind;
        int status;              /* of ANSWERED: 200 to 599 */
        uint64_t retry_after_ms; /* what Retry-After said; 0: nothing, or no time to wait */
};

#define STATUS_MAX 600
struct rules {
        uint8_t by_status[STATUS_MAX]; /* QV_DONE, QV_RETRY ...; RULE_503 */
        uint8_t down, silent;
        uint64_t retry_after_max_ms;
};
#define RULE_503 100 /* QV_LATER if Retry-After says until when, else QV_RETRY */

struct verdict {
        int32_t outcome;
        uint64_t delay_ms; /* 0: as the handler's settings say */
};

void rules_init(struct rules *r, uint64_t retry_after_max_ms);

/* One line of `rules`: "404=retry", "4xx=reject", "down=unavailable", "silent=later".  0, or -1 after setting the
 * reason why init fails. */
int rules_read(struct rules *r, const struct qv_host *host, const char *text);

struct verdict rules_judge(const struct rules *r, const struct answer *a);

#endif
