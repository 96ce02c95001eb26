#include "host/pool/line_reader.h"

#include <string.h>

#include "base/numbers.h"

/* A token bucket with a burst of one second: each line moves `full_ms` ahead by its share of a second. */
static bool may_pass(struct line_reader *l, uint64_t now_ms)
{
        if (!l->rate)
                return true;
        if (l->full_ms < now_ms)
                l->full_ms = now_ms;
        uint64_t price_us = 1000000 / l->rate;
        if (l->full_ms * 1000 + price_us > (now_ms + 1000) * 1000)
                return false;
        l->spent_us += price_us;
        l->full_ms += l->spent_us / 1000;
        l->spent_us %= 1000;
        return true;
}

/* A line is passed on as a C string, which a NUL would cut. */
static void blank_nuls(char *line, size_t size)
{
        for (char *nul; (nul = memchr(line, 0, size)); line = nul + 1) {
                *nul = ' ';
                size -= (size_t)(nul + 1 - line);
        }
}

static void emit(struct line_reader *l, uint64_t now_ms, line_reader_fn *fn, void *arg)
{
        blank_nuls(l->line, l->size);
        if (l->is_cut) {
                memcpy(l->line + l->size, "...", 3);
                l->size += 3;
        }
        l->line[l->size] = 0;
        if (may_pass(l, now_ms)) {
                fn(arg, l->line, l->dropped);
                l->dropped = 0;
        } else {
                l->dropped++;
        }
        l->size = 0;
        l->is_cut = false;
}

void line_reader_feed(
        struct line_reader *l, const char *data, size_t size, uint64_t now_ms, line_reader_fn *fn, void *arg)
{
        while (size) {
                const char *newline = memchr(data, '\n', size);
                size_t part = newline ? (size_t)(newline - data) : size;
                size_t room = LINE_READER_MAX - l->size;
                size_t taken = min_u64(part, room);
                memcpy(l->line + l->size, data, taken);
                l->size += taken;
                if (taken < part)
                        l->is_cut = true;
                if (newline) {
                        emit(l, now_ms, fn, arg);
                        part++;
                }
                data += part;
                size -= part;
        }
}

void line_reader_end(struct line_reader *l, uint64_t now_ms, line_reader_fn *fn, void *arg)
{
        if (l->size || l->is_cut)
                emit(l, now_ms, fn, arg);
        /* There is no later line to carry the count. */
        if (l->dropped)
                fn(arg, "(end of output)", l->dropped);
        l->dropped = 0;
}
