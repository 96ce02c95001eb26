/* tree_users.h: who asks a coordination tree in a fuzzer: a candidate, one who wants a lock, a member who follows the
 * others.  Whatever they are told of a node is one that can be. */
#ifndef QUIVER_TESTS_FUZZ_TREE_USERS_H
#define QUIVER_TESTS_FUZZ_TREE_USERS_H

#include <string.h>

#include "choices.h"
#include "coord/driver.h"
#include "coord/leader.h"
#include "coord/lock.h"
#include "coord/member.h"

struct tree_users {
        uint64_t created_max; /* no creation id is above it */
        struct leader leader;
        struct lock lock;
        struct member member;
};

static void users_ignore(void *self)
{
        (void)self;
}

static void users_acquired(void *self, uint64_t token)
{
        (void)self;
        (void)token;
}

static void users_mate(void *self, const char *name, uint64_t created, struct span data)
{
        const struct tree_users *users = self;
        (void)data;
        demand(created <= users->created_max);
        demand(coord_name_is_good((struct span){ name, strlen(name) }));
}

static void users_left(void *self, const char *name)
{
        (void)self;
        demand(name[0]);
}

static void users_known(void *self, bool is_known)
{
        (void)self;
        (void)is_known;
}

static void users_session(void *self, enum coord_state state, uint64_t session)
{
        struct tree_users *users = self;
        demand(session > 0);
        leader_session(&users->leader, state, session);
        lock_session(&users->lock, state, session);
        member_session(&users->member, state, session);
}

static void users_changed(void *self, const char *path)
{
        struct tree_users *users = self;
        leader_changed(&users->leader, path);
        lock_changed(&users->lock, path);
        member_changed(&users->member, path);
}

static void users_look(void *self)
{
        struct tree_users *users = self;
        leader_look(&users->leader);
        lock_look(&users->lock);
        member_look(&users->member);
}

/* What the tree is opened with. */
static inline struct coord_events users_events(struct tree_users *users)
{
        return (struct coord_events){ users_session, users_changed, users_look, users };
}

static inline void users_begin(struct tree_users *users, struct coord *coord)
{
        static const struct leader_events leader = { users_ignore, users_ignore };
        static const struct member_events member = { users_mate, users_mate, users_left, users_known };
        struct lock_events lock = { .acquired = users_acquired, .lost = users_ignore, .self = users };
        leader_init(&users->leader, coord, "election", "me", &leader, users);
        lock_init(&users->lock, coord, "one", "me", &lock);
        member_init(&users->member, coord, "members", "me", &member, users);
        member_follow(&users->member, true);
        leader_stand(&users->leader, true);
        lock_acquire(&users->lock);
        member_set(&users->member, (struct span){ "here", 4 });
}

#endif
