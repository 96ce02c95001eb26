/* records_look.h: small records of an app: its dead tasks by group, its schedules, itself. */
#ifndef QUIVER_LOOK_RECORDS_LOOK_H
#define QUIVER_LOOK_RECORDS_LOOK_H

#include "look/look.h"
#include "look/schedules_apply.h"

enum records_kind { RECORDS_DEAD_GROUPS, RECORDS_SCHEDULES, RECORDS_APP };

/* Zeroed, then records_look_init(). */
struct records_look {
        struct look look;
        enum records_kind kind;
        uint32_t shown_max;      /* SCHEDULES: stops after a page with that many */
        struct look_place place; /* SCHEDULES: where it begins; afterwards where it goes on */

        json_t *found;                  /* a list: groups, schedules; APP: an object; NULL: there is none */
        uint64_t total;                 /* DEAD_GROUPS: how many tasks are dead */
        uint64_t time_ms;               /* DEAD_GROUPS: by the store's clock, when it began */
        uint32_t unreadable;            /* SCHEDULES: records that are left out */
        struct schedules_mark in_force; /* SCHEDULES: the configuration whose schedules they are */
        bool has_more;
        bool has_begun;
        bool has_marks; /* SCHEDULES: the desired state was read */
        struct store_counts *counts;
};

void records_look_init(struct records_look *look, enum records_kind kind);
void records_look_free(struct records_look *look);

#endif
