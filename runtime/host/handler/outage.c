#include "host/handler/outage.h"

#include <stdio.h>

bool outage_goes_on(struct outage *o, const char *text, uint64_t now_ms)
{
        if (!o->is_on) {
                o->is_on = true;
                o->is_told = false;
                o->since_ms = now_ms;
                o->untold++;
        }
        (void)snprintf(o->text, sizeof(o->text), "%s", text);
        return !o->is_told && (!o->has_told || now_ms >= o->told_ms + OUTAGE_PACE_MS);
}

void outage_told(struct outage *o, uint64_t now_ms)
{
        o->is_told = o->has_told = true;
        o->told_ms = now_ms;
        o->untold = 0;
}

bool outage_over(struct outage *o, uint64_t now_ms, uint64_t *ret_lasted_ms)
{
        bool is_to_tell = o->is_on && o->is_told;
        if (is_to_tell)
                *ret_lasted_ms = now_ms - o->since_ms;
        o->is_on = o->is_told = false;
        return is_to_tell;
}
