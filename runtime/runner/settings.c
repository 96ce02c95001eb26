#include "runner/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void settings_init(struct settings *s, const struct setting *list, size_t count)
{
        *s = (struct settings){ .list = list, .count = count };
        if (!count)
                return;
        s->was_read = memory_zero(count, sizeof(*s->was_read));
}

void settings_free(struct settings *s)
{
        if (!s)
                return;
        free((void *)s->was_read);
        *s = (struct settings){ 0 };
}

const char *settings_get(struct settings *s, const char *name)
{
        for (size_t i = 0; i < s->count; i++) {
                if (strcmp(s->list[i].name, name) != 0)
                        continue;
                atomic_store_explicit(&s->was_read[i], true, memory_order_relaxed);
                return s->list[i].value;
        }
        return NULL;
}

void settings_put_unread(const struct settings *s, struct buffer *to)
{
        const char *comma = "";
        for (size_t i = 0; i < s->count; i++) {
                if (atomic_load_explicit(&s->was_read[i], memory_order_relaxed))
                        continue;
                buffer_printf(to, "%s%s", comma, s->list[i].name);
                comma = ", ";
        }
}
