#include "host/confine/strays.h"

bool stray_is_left(const struct stray_process *stray, const struct stray_runner *runners, size_t count, bool is_shared)
{
        if (!stray->has_mark && is_shared)
                return false;
        for (size_t i = 0; i < count; i++) {
                /* By the clock's ticks a stray may be as old as its runner. */
                if (stray->has_mark ? runners[i].number == stray->number : runners[i].started <= stray->started)
                        return false;
        }
        return true;
}
