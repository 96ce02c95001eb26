#include "base/rights.h"

#include <stdlib.h>
#include <string.h>

void rights_add(struct strings *to, const char *rule)
{
        if (!strings_has(to, rule))
                strings_add(to, rule);
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_all(struct buffer *to, const struct strings *rules)
{
        for (size_t i = 0; i < rules->count; i++)
                buffer_printf(to, " %s", rules->items[i]);
}

void rights_put(struct buffer *to, const struct rights *rights)
{
        struct strings commands = { 0 };
        for (size_t i = 0; i < rights->commands.count; i++)
                strings_add(&commands, rights->commands.items[i]);
        if (commands.count)
                qsort(commands.items, commands.count, sizeof(*commands.items), compare);
        put_all(to, &rights->keys);
        put_all(to, &rights->channels);
        buffer_printf(to, " -@all");
        put_all(to, &commands);
        put_all(to, &rights->selectors);
        strings_free(&commands);
}

void rights_free(struct rights *rights)
{
        strings_free(&rights->keys);
        strings_free(&rights->channels);
        strings_free(&rights->commands);
        strings_free(&rights->selectors);
}
