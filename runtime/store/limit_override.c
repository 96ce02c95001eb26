#include "store/limit_override.h"

#include <inttypes.h>
#include <string.h>

#include "base/numbers.h"
#include "store/limits.h"

struct override_field {
        const char *name;
        size_t offset;
        uint64_t max;
};

static const struct override_field fields[] = {
        { "version", offsetof(struct limit_override, version), TASK_NUMBER_MAX },
        { "rate", offsetof(struct limit_override, rate), STORE_LIMIT_MAX },
        { "per", offsetof(struct limit_override, per_ms), STORE_LIMIT_PERIOD_MS / 2 },
        { "burst", offsetof(struct limit_override, burst), STORE_LIMIT_MAX },
        { "concurrency", offsetof(struct limit_override, concurrency), STORE_LIMIT_MAX },
        { "until", offsetof(struct limit_override, until_ms), TASK_NUMBER_MAX },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t *at(struct limit_override *o, const struct override_field *field)
{
        return (uint64_t *)((char *)o + field->offset);
}

void limit_override_put(struct buffer *to, const struct limit_override *override)
{
        struct limit_override copy = *override;
        for (size_t i = 0; i < FIELDS; i++)
                if (*at(&copy, &fields[i]))
                        buffer_printf(to, "%s%s=%" PRIu64, i ? " " : "", fields[i].name, *at(&copy, &fields[i]));
}

static bool read_field(struct span word, struct limit_override *o)
{
        const char *equals = memchr(word.data, '=', word.size);
        if (!equals)
                return false;
        struct span name = { word.data, (size_t)(equals - word.data) };
        for (size_t i = 0; i < FIELDS; i++) {
                uint64_t number = 0;
                if (!span_is(name, span_of_text(fields[i].name)))
                        continue;
                if (equals + 1 == word.data + word.size)
                        return false;
                for (const char *digit = equals + 1; digit < word.data + word.size; digit++) {
                        if (*digit < '0' || *digit > '9')
                                return false;
                        number = number * 10 + (uint64_t)(*digit - '0');
                        if (number > fields[i].max)
                                return false;
                }
                *at(o, &fields[i]) = number;
                return true;
        }
        return false;
}

bool limit_override_read(struct span text, struct limit_override *ret)
{
        struct limit_override o = { 0 };
        while (text.size) {
                const char *space = memchr(text.data, ' ', text.size);
                size_t size = space ? (size_t)(space - text.data) : text.size;
                if (!read_field((struct span){ text.data, size }, &o))
                        return false;
                size += space != NULL;
                text = (struct span){ text.data + size, text.size - size };
        }
        if (!o.version)
                return false;
        *ret = o;
        return true;
}

bool limit_override_is_on(const struct limit_override *o, uint64_t wall_ms)
{
        return (o->rate || o->per_ms || o->burst || o->concurrency) && (!o->until_ms || wall_ms < o->until_ms);
}

uint64_t limit_override_version(const struct limit_override *o, uint64_t wall_ms)
{
        return o->until_ms && wall_ms >= o->until_ms ? max_u64(o->version, o->until_ms) : o->version;
}
