/* fleet_parts.h: what fleet.c (one of several) and fleet_chair.c (the one that leads) need of each other. */
#ifndef QUIVER_HOST_FLEET_PARTS_H
#define QUIVER_HOST_FLEET_PARTS_H

#include "host/fleet.h"

#define FLEET_MEMBERS  "members"
#define FLEET_ELECTION "election"
#define FLEET_ASSIGN   "assign"
#define FLEET_MOVES    "moves"

extern const struct member_events fleet_member_events;
extern const struct leader_events fleet_leader_events;

/* Does what the chair wants next, if it wants something. */
void fleet_chair(struct host *h, uint64_t now_ms);
/* After every event: goes as far as possible, and sets the timer. */
void fleet_turn(struct host *h);

#endif
