#include "host/handler/desired.h"

#include <string.h>

static bool is_pause_of(struct span name, const char *handler)
{
        static const char prefix[] = "pause.";
        size_t length = sizeof(prefix) - 1;
        return name.size == length + strlen(handler) && !memcmp(name.data, prefix, length) &&
               !memcmp(name.data + length, handler, strlen(handler));
}

bool desired_is_paused(
        const struct store_desired *items, size_t count, const struct handler_config *handler, struct span *ret_reason)
{
        for (size_t i = 0; i < count; i++) {
                bool is_meant = span_is(items[i].name, SPAN_TEXT("pause")) || is_pause_of(items[i].name, handler->name);
                for (size_t j = 0; !is_meant && j < handler->tasks.count; j++)
                        is_meant = is_pause_of(items[i].name, handler->tasks.items[j]);
                if (is_meant) {
                        *ret_reason = items[i].value;
                        return true;
                }
        }
        return false;
}
