/* alarm.h: conditions of an app's status that a person wants to hear of: "oldest=5m", "dead@mail=1", "hosts=3".
 *
 * NAME=LIMIT is reached from the limit on; `hosts` below it.  NAME@HANDLER=LIMIT looks at one handler only. */
#ifndef QUIVER_VIEW_ALARM_H
#define QUIVER_VIEW_ALARM_H

#include "base/error.h"
#include "task/envelope.h"
#include "view/status.h"

struct alarm {
        size_t what; /* which of the conditions */
        uint64_t limit;
        char handler[TASK_HANDLER_MAX + 1]; /* "": all */
};

/* 0, or -EINVAL; the text names the conditions that there are. */
int alarm_parse(const char *text, struct alarm *ret_alarm, struct error *error);

/* Whether it is reached; then a line in `why` says what was found and what the limit is. */
bool alarm_is_reached(const struct alarm *alarm, const struct status *status, struct buffer *why);

#endif
