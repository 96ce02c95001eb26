/* limit_act.h: one limit of an app: shown with the values that its home has, changed for a while, or set back to what
 * the configuration says.  Looks at the app as a whole first (status_look.h), so that it is known which limits there
 * are.
 *
 * SET and CLEAR change the desired state: every host hears of it. */
#ifndef QUIVER_LOOK_LIMIT_ACT_H
#define QUIVER_LOOK_LIMIT_ACT_H

#include "look/status_look.h"
#include "store/limit_override.h"

enum limit_act_kind { LIMIT_ACT_SHOW, LIMIT_ACT_SET, LIMIT_ACT_CLEAR };

/* Zeroed but for what the caller sets, then limit_act_init(). */
struct limit_act {
        struct status_look status; /* its look is the one that is driven */
        enum limit_act_kind kind;
        const char *name; /* the caller's */
        struct limit_override
                wanted;          /* SET: without a version; until_ms is how long from now, 0: until it is cleared */
        uint32_t shown_max;      /* SHOW: stops after a page with that many values */
        struct look_place place; /* SHOW: where it begins; afterwards where it goes on */

        int result; /* -errno: nothing was changed, and why */
        struct error error;
        json_t *found; /* view/limits.h; SHOW: with `home` and `values` */
        bool has_more;
        bool is_changed;

        /* private */
        bool (*next_status)(struct look *look);
        unsigned step;
        char item[128];
        struct buffer value;
};

void limit_act_init(struct limit_act *act, const char *store_url, uint64_t now_ms);
void limit_act_free(struct limit_act *act);

/* Reads what is to be set out of a JSON object: rate, per, burst, concurrency, for.  0 or -EINVAL with the text. */
int limit_act_read(struct span body, struct limit_override *ret, struct error *error);

#endif
