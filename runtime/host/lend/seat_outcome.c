#include "host/lend/seat_outcome.h"

#include <errno.h>
#include <string.h>

#define MAGIC      "qvseat1"
#define ORDER_MARK UINT32_C(0x01020304)

enum { IS_SUSPECT = 1, IS_EXCUSED = 2, IS_REFUSED = 4, HAS_REPLY = 8, HAS_CHECKPOINT = 16, FLAGS = 32 };

void seat_outcome_put(struct buffer *to, const struct seat_outcome *o)
{
        buffer_put_text(to, MAGIC);
        buffer_put_u32(to, ORDER_MARK);
        buffer_put_u64(to, o->fence.epoch);
        buffer_put_u64(to, o->fence.start);
        buffer_put_u32(to, (uint32_t)o->outcome);
        buffer_put_u32(to, (o->is_suspect ? IS_SUSPECT : 0u) | (o->is_excused ? IS_EXCUSED : 0u) |
                                   (o->is_refused ? IS_REFUSED : 0u) | (o->has_reply ? HAS_REPLY : 0u) |
                                   (o->has_checkpoint ? HAS_CHECKPOINT : 0u));
        buffer_put_u64(to, o->ran_ms);
        buffer_put_text(to, o->error);
        size_t size = o->has_reply ? ring_reply_size(&o->reply) : 0;
        buffer_put_u32(to, (uint32_t)size);
        if (size)
                ring_pack_reply(buffer_reserve(to, size), &o->reply);
        to->size += size;
        buffer_put_block(to, o->checkpoint.data, o->checkpoint.size);
}

static int bad(struct error *error, const char *what)
{
        return error_set(error, -EBADMSG, "the outcome of a borrowed seat: its %s is malformed", what);
}

static bool is_outcome(uint32_t outcome)
{
        return strcmp(outcome_name((int)outcome), "UNKNOWN") != 0;
}

static bool is_good(const struct seat_outcome *o, uint32_t flags)
{
        return flags < FLAGS && o->fence.epoch && o->fence.epoch <= TASK_NUMBER_MAX && o->fence.start &&
               o->fence.start <= TASK_NUMBER_MAX && o->ran_ms <= TASK_NUMBER_MAX &&
               o->checkpoint.size <= NOTE_CHECKPOINT_MAX && strlen(o->error) <= NOTE_TEXT_MAX;
}

int seat_outcome_parse(struct span bytes, struct seat_outcome *ret, struct error *error)
{
        struct seat_outcome o = { 0 };
        struct reader r;
        size_t size;
        reader_init(&r, bytes.data, bytes.size);
        if (strcmp(reader_text(&r), MAGIC) != 0 || reader_u32(&r) != ORDER_MARK)
                return bad(error, "beginning");
        o.fence.epoch = reader_u64(&r);
        o.fence.start = reader_u64(&r);
        uint32_t outcome = reader_u32(&r);
        uint32_t flags = reader_u32(&r);
        o.ran_ms = reader_u64(&r);
        o.error = reader_text(&r);
        const void *reply = reader_block(&r, &size);
        o.checkpoint.data = reader_block(&r, &o.checkpoint.size);
        if (r.is_bad || r.size || !is_good(&o, flags) || !is_outcome(outcome))
                return bad(error, "numbers");
        o.outcome = (enum outcome)outcome;
        o.is_suspect = flags & IS_SUSPECT;
        o.is_excused = flags & IS_EXCUSED;
        o.is_refused = flags & IS_REFUSED;
        o.has_reply = flags & HAS_REPLY;
        o.has_checkpoint = flags & HAS_CHECKPOINT;
        if (o.has_reply && (ring_unpack_reply(reply, size, &o.reply) < 0 || o.reply.outcome != (int32_t)outcome ||
                                   o.reply.retry_after_ms > TASK_NUMBER_MAX))
                return bad(error, "answer");
        /* Only a handler's own answer can be DONE. */
        if (o.outcome == OUTCOME_DONE && !o.has_reply)
                return bad(error, "answer");
        *ret = o;
        return 0;
}
