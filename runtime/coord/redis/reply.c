/* reply.c: the scripts' answers: a word, the changed keys, and the result. */
#include <errno.h>
#include <string.h>

#include "coord/redis/redis_tree.h"

#define NUMBER_DIGITS   16u
#define SEQUENCE_DIGITS 10u

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

bool rtree_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number)
{
        const redisReply *at = element(reply, index);
        uint64_t number = 0;
        if (at && at->type == REDIS_REPLY_INTEGER) {
                if (at->integer < 0 || (uint64_t)at->integer > REPLY_NUMBER_MAX)
                        return false;
                *ret_number = (uint64_t)at->integer;
                return true;
        }
        struct span text = rtree_reply_span(reply, index);
        if (!text.size || text.size > NUMBER_DIGITS)
                return false;
        for (size_t i = 0; i < text.size; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return false;
                number = number * 10 + (uint64_t)(text.data[i] - '0');
        }
        if (number > REPLY_NUMBER_MAX)
                return false;
        *ret_number = number;
        return true;
}

bool rtree_reply_stat(const redisReply *reply, size_t index, struct coord_stat *ret_stat)
{
        struct coord_stat stat;
        if (!rtree_reply_number(reply, index, &stat.version) || !rtree_reply_number(reply, index + 1, &stat.created) ||
                !rtree_reply_number(reply, index + 2, &stat.owner))
                return false;
        *ret_stat = stat;
        return true;
}

void rtree_reply_names(struct coord_children *children, const redisReply *names)
{
        size_t count = names && names->type == REDIS_REPLY_ARRAY ? names->elements : 0;
        remote_names_begin(children, count);
        for (size_t i = 0; i < count; i++)
                remote_names_add(children, rtree_reply_span(names, i));
        remote_names_end(children);
}

bool rtree_reply_is_made(struct span made, const char *path, unsigned flags)
{
        size_t size = strlen(path);
        size_t digits = flags & COORD_SEQUENTIAL ? SEQUENCE_DIGITS : 0;
        if (made.size != size + digits || memcmp(made.data, path, size) != 0)
                return false;
        for (size_t i = size; i < made.size; i++)
                if (made.data[i] < '0' || made.data[i] > '9')
                        return false;
        return true;
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
                { SPAN_TEXT("BROKEN"), -EBADMSG },
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
                if (key.size && key.data[0] == '!')
                        coord_note(&tree->remote.coord, key.data + 1);
                else
                        rtree_watch_rang(tree, key.data ? key.data : "", key.size);
        }
        if (span_is(word, SPAN_TEXT("OK")))
                return REPLY_OK;
        if (span_is(word, SPAN_TEXT("FAILED")))
                return REPLY_FAILED;
        if (span_is(word, SPAN_TEXT("BROKEN")))
                return REPLY_BROKEN;
        return span_is(word, SPAN_TEXT("EXPIRED")) ? REPLY_EXPIRED : REPLY_UNKNOWN;
}
