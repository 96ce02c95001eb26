/* limit_act.h: one limit of an app: shows it with the values at its home, changes it for a while, or sets it back to
 * the configuration.  Reads the status of the whole app first (status_look.h), to know which limits there are.
 *
 * SET and CLEAR change the desired state, which every host reads. */
#ifndef QUIVER_LOOK_LIMIT_ACT_H
#define QUIVER_LOOK_LIMIT_ACT_H

#include "look/status_look.h"
#include "store/limit_override.h"

enum limit_act_kind { LIMIT_ACT_SHOW, LIMIT_ACT_SET, LIMIT_ACT_CLEAR };

/* Zero it, set the caller's fields, then call limit_act_init(). */
struct limit_act {
        struct status_look status; /* drive its look */
        enum limit_act_kind kind;
        const char *name;             /* borrowed from the caller */
        struct limit_override wanted; /* SET: without a version; until_ms is relative to now, 0: until cleared */
        uint32_t shown_max;           /* SHOW: stop after a page with this many values */
        struct look_place place;      /* SHOW: where to begin; afterwards where to continue */

        int result; /* -errno: nothing was changed; see the error */
        struct error error;
        json_t *found; /* as in view/limits.h; SHOW: with `home` and `values` */
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

/* Parses what to set from a JSON object: rate, per, burst, concurrency, for.  0, or -EINVAL with the text set. */
int limit_act_read(struct span body, struct limit_override *ret, struct error *error);

#endif
