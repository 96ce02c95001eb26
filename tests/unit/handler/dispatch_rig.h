/* dispatch_rig.h: a dispatch over four shards and two handlers, without a store. */
#ifndef QUIVER_TESTS_DISPATCH_RIG_H
#define QUIVER_TESTS_DISPATCH_RIG_H

#include "shard_rig.h"

#include "host/handler/dispatch.h"

#define SHARDS 4
#define A      0 /* the pools of handlers a and b */
#define B      1

struct hall {
        struct rig rigs[SHARDS];
        struct dispatch dispatch;
        struct shard_set changed;
        uint64_t next_seq;
        char keys[256][8];
};

static inline void serve(struct hall *hall, uint32_t pool, const char *handler)
{
        char *items[] = { (char *)handler };
        dispatch_serve(&hall->dispatch, pool, &(struct strings){ items, handler ? 1 : 0 }, hall->rigs[0].now_ms);
}

static inline struct hall *hall_open(void)
{
        struct hall *hall = calloc(1, sizeof(*hall));
        assert_non_null(hall);
        struct dispatch *d = &hall->dispatch;
        dispatch_init(d, SHARDS);
        shard_set_init(&hall->changed, SHARDS);
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct rig *g = &hall->rigs[i];
                rig_open(g);
                g->shard.number = i;
                g->shard.routes = &d->routes;
                g->shard.changed = &hall->changed;
                dispatch_add_shard(d, &g->shard);
        }
        assert_int_equal(dispatch_add_pool(d), A);
        assert_int_equal(dispatch_add_pool(d), B);
        serve(hall, A, "a");
        serve(hall, B, "b");
        for (uint32_t i = 0; i < SHARDS; i++)
                own(&hall->rigs[i]);
        return hall;
}

static inline void hall_close(struct hall *hall)
{
        for (uint32_t i = 0; i < SHARDS; i++)
                rig_close(&hall->rigs[i]);
        dispatch_free(&hall->dispatch);
        free(hall);
}

/* One more task of a key of its own, with the shard's next reply. */
static inline struct store_task *give(struct hall *hall, uint32_t shard, const char *handler)
{
        uint64_t seq = ++hall->next_seq;
        (void)snprintf(hall->keys[seq], sizeof(hall->keys[seq]), "k%u", (unsigned)seq);
        return hand(&hall->rigs[shard], seq, hall->keys[seq], handler);
}

/* The same, of that lane and at once. */
static inline void give_in(struct hall *hall, uint32_t shard, enum lane lane, const char *handler)
{
        struct store_task *task = give(hall, shard, handler);
        task->seq |= (uint64_t)lane << STORE_SEQ_LANE_SHIFT;
        claim(&hall->rigs[shard]);
}

static inline void give_many(struct hall *hall, uint32_t shard, uint32_t count, const char *handler)
{
        for (uint32_t i = 0; i < count; i++)
                (void)give(hall, shard, handler);
        claim(&hall->rigs[shard]);
}

/* The same for every lane. */
#define ROOM(room) ((const uint32_t[LANES]){ room, room, room })

/* A turn of the loop for one pool.  Returns how many tasks it was given, and from which shards. */
static inline uint32_t turn(
        struct hall *hall, uint32_t pool, enum dispatch_state state, uint32_t room, uint32_t *ret_shards)
{
        struct dispatch *d = &hall->dispatch;
        uint64_t now_ms = hall->rigs[0].now_ms;
        struct shard *shard;
        uint32_t count = 0;
        dispatch_look(d, &hall->changed);
        dispatch_begin(d, pool, state, ROOM(room), now_ms);
        while (count < room && dispatch_next(d, pool, ROOM(room - count), now_ms, &shard))
                ret_shards[count++] = shard->number;
        return count;
}

static inline uint32_t turn_of(struct hall *hall, uint32_t pool, uint32_t room, uint32_t *ret_shards)
{
        return turn(hall, pool, DISPATCH_OPEN, room, ret_shards);
}

#endif
