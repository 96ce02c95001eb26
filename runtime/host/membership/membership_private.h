/* membership_private.h: what membership.c (every member) and assigner_io.c (the leader) share. */
#ifndef QUIVER_HOST_MEMBERSHIP_MEMBERSHIP_PRIVATE_H
#define QUIVER_HOST_MEMBERSHIP_MEMBERSHIP_PRIVATE_H

#include "host/membership/membership.h"

#define MEMBERSHIP_MEMBERS  "members"
#define MEMBERSHIP_ELECTION "election"
#define MEMBERSHIP_ASSIGN   "assign"
#define MEMBERSHIP_MOVES    "moves"

extern const struct member_events membership_member_events;
extern const struct leader_events membership_leader_events;

/* Does what the assigner wants next, if it wants something. */
void membership_assign(struct membership *m, uint64_t now_ms);
/* Reads the assignment, with a watch, unless that is under way; then it is read once more. */
void membership_read_assign(struct membership *m);
/* After every event: goes as far as possible, and sets the timer. */
void membership_step(struct membership *m);

#endif
