/* alarm.h: alarms on an app's status: "oldest=5m", "dead@mail=1", "hosts=3".
 *
 * NAME=LIMIT fires at the limit and above; `hosts` fires below it.  NAME@HANDLER=LIMIT looks at one handler only. */
#ifndef QUIVER_VIEW_ALARM_H
#define QUIVER_VIEW_ALARM_H

#include "base/error.h"
#include "task/envelope.h"
#include "view/status.h"

struct alarm {
        size_t what; /* index of the condition */
        uint64_t limit;
        char handler[TASK_HANDLER_MAX + 1]; /* "": all handlers */
};

/* 0, or -EINVAL; the text lists the conditions. */
int alarm_parse(const char *text, struct alarm *ret_alarm, struct error *error);

/* Whether the alarm fires; then `why` gets a line with the value found and the limit. */
bool alarm_is_reached(const struct alarm *alarm, const struct status *status, struct buffer *why);

#endif
