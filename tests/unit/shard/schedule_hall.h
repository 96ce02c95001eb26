/* schedule_hall.h: a schedule of calls and its shards, each with a rig, for tests. */
#ifndef QUIVER_TESTS_SCHEDULE_HALL_H
#define QUIVER_TESTS_SCHEDULE_HALL_H

#include "shard_rig.h"

#include "host/shard/call_schedule.h"

#define SHARDS    70 /* more than fit into one word of a set */
#define CALLS_MAX 4

struct hall {
        struct rig rigs[SHARDS];
        struct call_schedule schedule;
        uint64_t now_ms;
};

static inline struct hall *hall_open(void)
{
        struct hall *hall = calloc(1, sizeof(*hall));
        assert_non_null(hall);
        call_schedule_init(&hall->schedule, SHARDS, CALLS_MAX, 0);
        hall->now_ms = 100000;
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct rig *g = &hall->rigs[i];
                rig_open(g);
                g->shard.number = i;
                call_schedule_add(&hall->schedule, &g->shard);
        }
        return hall;
}

static inline void hall_close(struct hall *hall)
{
        for (uint32_t i = 0; i < SHARDS; i++)
                rig_close(&hall->rigs[i]);
        call_schedule_free(&hall->schedule);
        free(hall);
}

static inline void set_time(struct hall *hall, uint64_t now_ms)
{
        hall->now_ms = now_ms;
        for (uint32_t i = 0; i < SHARDS; i++)
                hall->rigs[i].now_ms = now_ms;
}

static inline void make(struct hall *hall, struct shard *shard, enum shard_call call)
{
        struct rig *g = &hall->rigs[shard->number];
        if (call == SHARD_CALL_ACQUIRE)
                shard_fill_acquire(shard, &g->acquire, hall->now_ms);
        else
                shard_fill_advance(shard, &g->advance, hall->now_ms);
}

/* A turn of the loop.  Returns how many calls were made, and of whom. */
static inline uint32_t turn(struct hall *hall, uint32_t ret_shards[SHARDS])
{
        uint32_t count = 0;
        struct shard *shard;
        enum shard_call call;
        call_schedule_look(&hall->schedule, hall->now_ms);
        while ((shard = call_schedule_next(&hall->schedule, hall->now_ms, &call))) {
                assert_true(count < SHARDS);
                ret_shards[count++] = shard->number;
                make(hall, shard, call);
        }
        return count;
}

/* Answers the `count` calls of the last turn, and those that the next turns make. */
static inline void answer_all(struct hall *hall, uint32_t shards[SHARDS], uint32_t count)
{
        for (; count; count = turn(hall, shards))
                for (uint32_t i = 0; i < count; i++)
                        reply_advance(&hall->rigs[shards[i]], STORE_OK);
}

static inline void own_all(struct hall *hall)
{
        uint32_t shards[SHARDS];
        assert_int_equal(turn(hall, shards), SHARDS);
        for (uint32_t i = 0; i < SHARDS; i++)
                reply_acquire(&hall->rigs[i], STORE_GRANTED, false);
        assert_int_equal(turn(hall, shards), 0);
}

#endif
