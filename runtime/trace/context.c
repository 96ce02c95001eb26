#include "trace/context.h"

#include <string.h>

#include "base/hash.h"

/* --- as text ----------------------------------------------------------------------------------------------------- */

enum { AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53, PARENT_SIZE = 55 };

/* -1: not a lower-case digit. */
static int digit_of(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_bytes(const char *text, uint8_t *to, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                int high = digit_of(text[2 * i]);
                int low = digit_of(text[2 * i + 1]);
                if (high < 0 || low < 0)
                        return false;
                to[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

static const char *put_bytes(char *to, const uint8_t *from, size_t size)
{
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < size; i++) {
                to[2 * i] = digits[from[i] >> 4];
                to[2 * i + 1] = digits[from[i] & 15];
        }
        to[2 * size] = 0;
        return to;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
        uint8_t all = 0;
        for (size_t i = 0; i < size; i++)
                all |= bytes[i];
        return !all;
}

bool trace_context_parse(struct span text, struct trace_context *ret)
{
        struct trace_context found;
        uint8_t version;
        const char *t = text.data;
        if (text.size < PARENT_SIZE || !take_bytes(t, &version, 1) || version == 0xff)
                return false;
        if (text.size > PARENT_SIZE && (version == 0 || t[PARENT_SIZE] != '-'))
                return false;
        if (t[AT_TRACE - 1] != '-' || t[AT_SPAN - 1] != '-' || t[AT_FLAGS - 1] != '-')
                return false;
        if (!take_bytes(t + AT_TRACE, found.trace, TRACE_ID_SIZE) ||
                !take_bytes(t + AT_SPAN, found.span, TRACE_SPAN_ID_SIZE) || !take_bytes(t + AT_FLAGS, &found.flags, 1))
                return false;
        if (is_zero(found.trace, TRACE_ID_SIZE) || is_zero(found.span, TRACE_SPAN_ID_SIZE))
                return false;
        found.flags &= TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM;
        *ret = found;
        return true;
}

const char *trace_context_put(char to[static TRACE_PARENT_TEXT], const struct trace_context *context)
{
        memcpy(to, "00-", AT_TRACE);
        (void)put_bytes(to + AT_TRACE, context->trace, TRACE_ID_SIZE);
        to[AT_SPAN - 1] = '-';
        (void)put_bytes(to + AT_SPAN, context->span, TRACE_SPAN_ID_SIZE);
        to[AT_FLAGS - 1] = '-';
        (void)put_bytes(to + AT_FLAGS, &context->flags, 1);
        return to;
}

const char *trace_id_put(char to[static TRACE_ID_TEXT], const uint8_t id[static TRACE_ID_SIZE])
{
        return put_bytes(to, id, TRACE_ID_SIZE);
}

const char *trace_span_id_put(char to[static TRACE_SPAN_ID_TEXT], const uint8_t id[static TRACE_SPAN_ID_SIZE])
{
        return put_bytes(to, id, TRACE_SPAN_ID_SIZE);
}

/* --- ids --------------------------------------------------------------------------------------------------------- */

#define SEED_HIGH UINT64_C(0x9e3779b97f4a7c15)
#define SEED_LOW  UINT64_C(0xc2b2ae3d27d4eb4f)

/* FNV changes its upper bits little for the last bytes of input; this spreads them (the end of splitmix64). */
static uint64_t spread(uint64_t x)
{
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
        return spread(hash ^ spread(number + SEED_HIGH));
}

/* An id must not be zero. */
static void put_id(uint8_t to[static 8], uint64_t id)
{
        id += !id;
        for (unsigned i = 0; i < 8; i++)
                to[i] = (uint8_t)(id >> (56 - 8 * i));
}

static uint64_t hash_of(uint64_t seed, struct span first, struct span second)
{
        uint64_t hash = hash_bytes(HASH_START ^ seed, (const uint8_t *)first.data, first.size);
        hash = hash_bytes(hash, (const uint8_t *)"", 1);
        return spread(hash_bytes(hash, (const uint8_t *)second.data, second.size));
}

struct trace_context trace_context_begin(struct span app, struct span task)
{
        struct trace_context context = { .flags = 0 };
        put_id(context.trace, hash_of(SEED_HIGH, app, task));
        put_id(context.trace + 8, hash_of(SEED_LOW, app, task));
        return context;
}

struct trace_context trace_context_within(const struct trace_context *context, enum trace_span_use use,
        struct span task, uint64_t fence_epoch, uint64_t fence_start)
{
        struct trace_context within = *context;
        uint64_t hash = hash_of((uint64_t)use, (struct span){ (const char *)context->trace, TRACE_ID_SIZE }, task);
        hash = add_number(add_number(hash, fence_epoch), fence_start);
        put_id(within.span, hash);
        return within;
}

bool trace_context_has_span(const struct trace_context *context)
{
        return !is_zero(context->span, TRACE_SPAN_ID_SIZE);
}

bool trace_is_chosen(const uint8_t id[static TRACE_ID_SIZE], double ratio)
{
        uint64_t low = 0;
        for (unsigned i = 8; i < TRACE_ID_SIZE; i++)
                low = low << 8 | id[i];
        return (double)(low >> 1) < ratio * 9223372036854775808.0 || ratio >= 1;
}
