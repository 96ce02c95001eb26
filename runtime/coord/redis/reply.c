/* What the scripts answer: a word, the keys they changed, and what was asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coord/redis/redis_tree.h"

static const redisReply *element(const redisReply *reply, size_t index)
{
        return reply && reply->type == REDIS_REPLY_ARRAY && index < reply->elements ? reply->element[index] : NULL;
}

struct span rtree_reply_span(const redisReply *reply, size_t index)
{
        const redisReply *at = element(reply, index);
        bool is_text = at && (at->type == REDIS_REPLY_STRING || at->type == REDIS_REPLY_STATUS);
        return is_text ? (struct span){ at->str, (size_t)at->len } : (struct span){ 0 };
}

uint64_t rtree_reply_number(const redisReply *reply, size_t index)
{
        const redisReply *at = element(reply, index);
        if (at && at->type == REDIS_REPLY_INTEGER)
                return (uint64_t)at->integer;
        return at && at->type == REDIS_REPLY_STRING ? strtoull(at->str, NULL, 10) : 0;
}

int rtree_reply_errno(struct span word)
{
        static const struct {
                struct span word;
                int status;
        } known[] = {
                { SPAN_TEXT("NONODE"), -ENOENT },
                { SPAN_TEXT("EXISTS"), -EEXIST },
                { SPAN_TEXT("VERSION"), -ESTALE },
                { SPAN_TEXT("NOTEMPTY"), -ENOTEMPTY },
                { SPAN_TEXT("EPHEMERAL"), -ENOTDIR },
        };
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (span_is(word, known[i].word))
                        return known[i].status;
        return -EPROTO;
}

enum reply_verdict rtree_reply_read(struct redis_tree *tree, const redisReply *reply)
{
        struct span word = rtree_reply_span(reply, 0);
        const redisReply *changed = element(reply, 1);
        for (size_t i = 0; changed && changed->type == REDIS_REPLY_ARRAY && i < changed->elements; i++) {
                struct span key = rtree_reply_span(changed, i);
                rtree_watch_rang(tree, key.data ? key.data : "", key.size);
        }
        if (span_is(word, SPAN_TEXT("OK")))
                return REPLY_OK;
        if (span_is(word, SPAN_TEXT("FAILED")))
                return REPLY_FAILED;
        return span_is(word, SPAN_TEXT("EXPIRED")) ? REPLY_EXPIRED : REPLY_UNKNOWN;
}
