/* What the tests of merging share. */
#ifndef TEST_MERGE_RIG_H
#define TEST_MERGE_RIG_H

#include "shard_rig.h"

static inline void merge_open(struct rig *g)
{
        rig_open(g);
        g->limits.can_merge = true;
        own(g);
}

/* One more for the next reply that may be merged. */
static inline struct store_task *hand_merge(struct rig *g, uint64_t seq, const char *key, const char *handler)
{
        struct store_task *t = hand(g, seq, key, handler);
        t->envelope.key = t->key;
        t->envelope.is_merge = true;
        t->envelope.payload = seq == 1 ? SPAN_TEXT("one") : seq == 2 ? SPAN_TEXT("two") : SPAN_TEXT("the last");
        t->envelope.headers = seq == 1 ? SPAN_TEXT("header.of:one\n") : SPAN_TEXT("header.of:last\n");
        return t;
}

static inline void assert_merged(const struct rig *g, uint64_t into, uint32_t count)
{
        const struct store_outcome *o = said(g, into);
        assert_non_null(o);
        assert_int_equal(o->kind, STORE_MERGE);
        assert_int_equal(o->merged_count, count);
        for (uint32_t i = 0; i < count; i++)
                assert_true(o->merged[i].seq > (i ? o->merged[i - 1].seq : into));
}

#endif
