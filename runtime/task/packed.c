#include "task/packed.h"

#include <errno.h>
#include <string.h>

#include "task/envelope_private.h"

enum {
        IS_PACKED = 0x80,
        HAS_MADE_ID = 1,
        HAS_GIVEN_ID = 2,
        HAS_DELAY = 4, /* `submitted` is stored as the time since the id was made */
        HAS_SUBMITTED = 8,
        HAS_MORE = 16,
        KNOWN = IS_PACKED | 31
};

enum {
        MORE_NOT_BEFORE = 1,
        MORE_UNIQUE = 2,
        MORE_ATTEMPTS = 4,
        MORE_TIMEOUT = 8,
        MORE_REPLY = 16,
        MORE_HEADERS = 32,
        MORE_OTHERS = 64,
        MORE_MERGE = 128, /* followed by `debounce` */
};

#define NUMBER_SIZE 10u /* the most bytes that a 64-bit number takes */

/* --- writing ----------------------------------------------------------------------------------------------------- */

static uint8_t *put_number(uint8_t *at, uint64_t value)
{
        for (; value > 0x7f; value >>= 7)
                *at++ = (uint8_t)(value | 0x80);
        *at++ = (uint8_t)value;
        return at;
}

static uint8_t *put_word(uint8_t *at, struct span word)
{
        *at++ = (uint8_t)word.size;
        return word.size ? mempcpy(at, word.data, word.size) : at;
}

static uint8_t more_of(const struct envelope *e)
{
        return (uint8_t)((e->not_before_ms ? MORE_NOT_BEFORE : 0) | (e->unique_ms ? MORE_UNIQUE : 0) |
                         (e->attempts ? MORE_ATTEMPTS : 0) | (e->timeout_ms ? MORE_TIMEOUT : 0) |
                         (e->reply_ms ? MORE_REPLY : 0) | (e->headers.size ? MORE_HEADERS : 0) |
                         (e->others.size ? MORE_OTHERS : 0) | (e->is_merge ? MORE_MERGE : 0));
}

/* Appends the lines of one kind, which may be mixed with the other kind in the envelope. */
static uint8_t *put_lines(
        uint8_t *at, const struct envelope *e, void (*put)(struct buffer *to, const struct envelope *envelope))
{
        struct buffer lines = { 0 };
        put(&lines, e);
        at = put_number(at, lines.size);
        at = lines.size ? mempcpy(at, lines.data, lines.size) : at;
        buffer_free(&lines);
        return at;
}

static uint8_t *put_more(uint8_t *at, const struct envelope *e, uint8_t more)
{
        *at++ = more;
        at = more & MORE_NOT_BEFORE ? put_number(at, e->not_before_ms) : at;
        at = more & MORE_UNIQUE ? put_number(at, e->unique_ms) : at;
        at = more & MORE_ATTEMPTS ? put_number(at, e->attempts) : at;
        at = more & MORE_TIMEOUT ? put_number(at, e->timeout_ms) : at;
        at = more & MORE_REPLY ? put_number(at, e->reply_ms) : at;
        at = more & MORE_MERGE ? put_number(at, e->debounce_ms) : at;
        if (more & MORE_OTHERS)
                at = put_lines(at, e, envelope_put_others);
        if (more & MORE_HEADERS)
                at = put_lines(at, e, envelope_put_headers);
        return at;
}

void packed_put_head(struct buffer *to, const struct envelope *e, uint32_t shard)
{
        uint8_t made[TASK_ID_PACKED_SIZE];
        uint64_t made_ms = 0;
        uint8_t more = more_of(e);
        unsigned flags = IS_PACKED | (more ? HAS_MORE : 0);
        if (task_id_pack(e->id, shard, made, &made_ms))
                flags |= HAS_MADE_ID;
        else if (e->id.size)
                flags |= HAS_GIVEN_ID;
        if (flags & HAS_MADE_ID && e->submitted_ms >= made_ms)
                flags |= HAS_DELAY;
        else if (e->submitted_ms)
                flags |= HAS_SUBMITTED;
        size_t room = 4 + e->key.size + e->handler.size + sizeof(made) + e->id.size + e->headers.size + e->others.size +
                      10 * NUMBER_SIZE;
        uint8_t *start = buffer_reserve(to, room);
        uint8_t *at = start;
        *at++ = (uint8_t)flags;
        at = put_word(at, e->key);
        at = put_word(at, e->handler);
        if (flags & HAS_MADE_ID)
                at = mempcpy(at, made, sizeof(made));
        else if (flags & HAS_GIVEN_ID)
                at = put_word(at, e->id);
        if (flags & HAS_DELAY)
                at = put_number(at, e->submitted_ms - made_ms);
        else if (flags & HAS_SUBMITTED)
                at = put_number(at, e->submitted_ms);
        if (more)
                at = put_more(at, e, more);
        to->size += (size_t)(at - start);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* A read past the end gives an empty or zero value and sets is_bad. */
struct unpacking {
        struct span left;
        bool is_bad;
};

static struct span take(struct unpacking *u, size_t size)
{
        struct span taken = { u->left.data, size };
        if (size > u->left.size) {
                u->is_bad = true;
                return (struct span){ "", 0 };
        }
        u->left.data += size;
        u->left.size -= size;
        return taken;
}

static uint8_t take_byte(struct unpacking *u)
{
        struct span byte = take(u, 1);
        return byte.size ? (uint8_t)byte.data[0] : 0;
}

static struct span take_word(struct unpacking *u)
{
        return take(u, take_byte(u));
}

static uint64_t take_number(struct unpacking *u)
{
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 7 * NUMBER_SIZE; shift += 7) {
                uint8_t byte = take_byte(u);
                value |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return value;
        }
        u->is_bad = true;
        return 0;
}

static void take_more(struct unpacking *u, struct envelope *e)
{
        uint8_t more = take_byte(u);
        e->not_before_ms = more & MORE_NOT_BEFORE ? take_number(u) : 0;
        e->unique_ms = more & MORE_UNIQUE ? take_number(u) : 0;
        uint64_t attempts = more & MORE_ATTEMPTS ? take_number(u) : 0;
        e->attempts = (uint32_t)attempts;
        e->timeout_ms = more & MORE_TIMEOUT ? take_number(u) : 0;
        e->reply_ms = more & MORE_REPLY ? take_number(u) : 0;
        e->is_merge = more & MORE_MERGE;
        e->debounce_ms = e->is_merge ? take_number(u) : 0;
        if (more & MORE_OTHERS)
                e->others = take(u, take_number(u));
        if (more & MORE_HEADERS)
                e->headers = take(u, take_number(u));
        u->is_bad |= attempts > UINT32_MAX;
}

int packed_parse(struct span bytes, uint32_t shard, char id[TASK_ID_MADE_ROOM], struct envelope *ret_envelope,
        struct error *error)
{
        struct unpacking u = { .left = bytes };
        struct envelope e = { .lane = LANE_NORMAL };
        uint64_t made_ms = 0;
        struct span made = { 0 };
        unsigned flags = take_byte(&u);
        e.key = take_word(&u);
        e.handler = take_word(&u);
        if (flags & HAS_MADE_ID)
                made = take(&u, TASK_ID_PACKED_SIZE);
        else if (flags & HAS_GIVEN_ID)
                e.id = take_word(&u);
        size_t id_size = made.size ? task_id_unpack((const uint8_t *)made.data, shard, id, &made_ms) : 0;
        if (flags & HAS_DELAY)
                e.submitted_ms = made_ms + take_number(&u);
        else if (flags & HAS_SUBMITTED)
                e.submitted_ms = take_number(&u);
        if (flags & HAS_MORE)
                take_more(&u, &e);
        if (u.is_bad || (flags | KNOWN) != KNOWN || !(flags & IS_PACKED))
                return error_set(error, -EBADMSG, "packed: cut short, or of a newer Quiver");
        /* A made id needs no check: every pattern of its bits is a valid id. */
        if (envelope_check(&e, error))
                return -EBADMSG;
        if (id_size)
                e.id = (struct span){ id, id_size };
        e.payload = u.left;
        *ret_envelope = e;
        return 0;
}
