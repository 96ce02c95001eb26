/* format.h: a line of the log in the forms that log systems read.  No I/O.
 *
 * Whoever logs writes key=value pairs (base/log.h).  As logfmt they stay what they are.  The other forms are made from
 * them, so that every form has the same fields by the same names:
 *
 *   json     {"time":"2026-11-16T10:00:00.123Z","level":"info","event":"takeover","shard":7,"from":"host-a"}
 *   journal  the native protocol of systemd's journal: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, QUIVER_TIME,
 *            QUIVER_LEVEL, QUIVER_EVENT, QUIVER_SHARD …
 *
 * A value without quotes that is a JSON number is a number in JSON; everything else is a string.  log_quote() puts
 * quotes around a text that looks like a number, so that a field does not change its type with its value. */
#ifndef QUIVER_BASE_LOG_FORMAT_H
#define QUIVER_BASE_LOG_FORMAT_H

#include <stddef.h>

#include "base/log.h"

/* Enough for any line of LOG_LINE_MAX: a pair of four bytes becomes at most sixteen. */
#define LOG_FORMATTED_MAX (4 * LOG_LINE_MAX + 256)

struct log_head {
        const char *time; /* 2026-11-16T10:00:00.123Z */
        enum log_level level;
        const char *event;
};

/* A line with its newline.  Bytes that are no UTF-8 become U+FFFD.  Returns its length. */
size_t log_as_json(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs);
/* A datagram.  Returns its length. */
size_t log_as_journal(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs);

/* Whether the text is a number as JSON writes one. */
bool log_is_number(const char *text, size_t size);

#endif
