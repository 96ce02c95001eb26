#include "base/setting_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

int setting_list_add(struct setting_list *s, const char *name, const char *value)
{
        size_t bytes = strlen(name) + strlen(value) + 2;
        if (bytes > SETTINGS_BYTES_MAX - s->bytes)
                return -E2BIG;
        s->bytes += bytes;
        s->items = array_grow(s->items, s->count, sizeof(*s->items));
        s->items[s->count++] = (struct setting){ .name = text_copy(name), .value = text_copy(value) };
        return 0;
}

const char *setting_list_get(const struct setting_list *s, const char *name)
{
        for (size_t i = 0; i < s->count; i++)
                if (!strcmp(s->items[i].name, name))
                        return s->items[i].value;
        return NULL;
}

void setting_list_free(struct setting_list *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free((char *)s->items[i].name);
                free((char *)s->items[i].value);
        }
        free(s->items);
        *s = (struct setting_list){ 0 };
}
