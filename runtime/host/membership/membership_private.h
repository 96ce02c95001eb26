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

/* Takes the leader's next step, if the assigner wants one. */
void membership_assign(struct membership *m, uint64_t now_ms);
/* Reads the assignment and sets a watch.  If a read is under way, another one follows it. */
void membership_read_assign(struct membership *m);
/* Called after every event: goes as far as possible, and sets the timer. */
void membership_step(struct membership *m);

#endif
