/* records_look.h: small records of an app: its dead tasks by group, its schedules, the app's own record. */
#ifndef QUIVER_LOOK_RECORDS_LOOK_H
#define QUIVER_LOOK_RECORDS_LOOK_H

#include "look/look.h"
#include "look/schedules_apply.h"

enum records_kind { RECORDS_DEAD_GROUPS, RECORDS_SCHEDULES, RECORDS_APP };

/* Zero it, then call records_look_init(). */
struct records_look {
        struct look look;
        enum records_kind kind;
        uint32_t shown_max;      /* SCHEDULES: stop after a page with this many */
        struct look_place place; /* SCHEDULES: where to begin; afterwards where to continue */

        json_t *found;                  /* a list of groups or schedules; APP: an object; NULL: none */
        uint64_t total;                 /* DEAD_GROUPS: number of dead tasks */
        uint64_t time_ms;               /* DEAD_GROUPS: store time at the beginning */
        uint32_t unreadable;            /* SCHEDULES: unreadable records, which are left out */
        struct schedules_mark in_force; /* SCHEDULES: the configuration whose schedules are in force */
        bool has_more;
        bool has_begun;
        bool has_marks; /* SCHEDULES: the desired state was read */
        struct store_counts *counts;
};

void records_look_init(struct records_look *look, enum records_kind kind);
void records_look_free(struct records_look *look);

#endif
