/* assign_fixture.h: a fleet whose assignments follow each other, and what every one of them must keep. */
#ifndef QUIVER_TESTS_ASSIGN_FIXTURE_H
#define QUIVER_TESTS_ASSIGN_FIXTURE_H

#include "check.h"

#include <stdlib.h>

#include "host/membership/assign.h"

#define MEMBERSHIP_MAX 256u
#define NOW_S          UINT64_C(1763256000)

struct membership {
        struct assign_member members[MEMBERSHIP_MAX];
        uint32_t count;
        uint64_t created; /* the last creation id that was given */
        struct assign_input input;
        struct assignment now;   /* the last document; no slots: there is none */
        struct assign_plan plan; /* how it came about; `next` has moved to `now` */
};

static inline void membership_open(struct membership *f, uint32_t shards)
{
        *f = (struct membership){ .input = { .shards_count = shards, .unix_s = NOW_S, .may_plan = true } };
}

static inline void membership_close(struct membership *f)
{
        assignment_free(&f->now);
        assign_plan_free(&f->plan);
}

/* Joins a member whose nonce and name are made from `number`, which nobody else has. */
static inline struct assign_member *membership_join(struct membership *f, uint32_t number, uint32_t weight)
{
        assert_true(f->count < MEMBERSHIP_MAX);
        struct assign_member *m = &f->members[f->count++];
        *m = (struct assign_member){ .weight = weight, .sees_store = true, .created = ++f->created };
        /* Nonces are not in the order of joining. */
        uint32_t scattered = number * UINT32_C(2654435761);
        memcpy(m->nonce, &scattered, sizeof(scattered));
        memcpy(m->nonce + sizeof(scattered), &number, sizeof(number));
        (void)snprintf(m->name, sizeof(m->name), "host-%u", number);
        return m;
}

static inline struct assign_member *membership_find(struct membership *f, uint32_t number)
{
        for (uint32_t i = 0; i < f->count; i++)
                if (!memcmp(f->members[i].nonce + sizeof(number), &number, sizeof(number)))
                        return &f->members[i];
        fail_msg("host-%u is no member", number);
        return NULL;
}

static inline void membership_remove(struct membership *f, uint32_t number)
{
        struct assign_member *m = membership_find(f, number);
        *m = f->members[--f->count];
}

static inline uint32_t owned_by(const struct assignment *a, const struct assign_member *m)
{
        uint32_t count = 0;
        for (uint32_t shard = 0; shard < a->shards_count; shard++) {
                const struct assign_owner *owner = assignment_owner(a, shard);
                count += owner && !memcmp(owner->nonce, m->nonce, sizeof(m->nonce));
        }
        return count;
}

static inline uint32_t membership_owns(struct membership *f, uint32_t number)
{
        return owned_by(&f->now, membership_find(f, number));
}

static inline const struct assignment *membership_previous(const struct membership *f)
{
        return f->now.slots ? &f->now : NULL;
}

/* The next document. */
static inline void membership_assign(struct membership *f)
{
        struct error error;
        assign_plan_free(&f->plan);
        f->input.members = f->members;
        f->input.members_count = f->count;
        assert_int_equal(assign_plan(membership_previous(f), &f->input, &f->plan, &error), 0);
        if (f->plan.is_changed) {
                assignment_free(&f->now);
                f->now = f->plan.next;
                f->plan.next = (struct assignment){ 0 };
        }
}

#endif
