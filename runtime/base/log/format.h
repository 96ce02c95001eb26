/* format.h: a log line in the forms that log systems read.  No I/O.
 *
 * Callers write key=value pairs (base/log.h).  Logfmt uses them unchanged.  The other forms are made from them, so
 * every form has the same fields under the same names:
 *
 *   json     {"time":"2026-11-16T10:00:00.123Z","level":"info","event":"takeover","shard":7,"from":"host-a"}
 *   journal  the native protocol of systemd's journal: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, QUIVER_TIME,
 *            QUIVER_LEVEL, QUIVER_EVENT, QUIVER_SHARD …
 *
 * An unquoted value that is a JSON number becomes a number in JSON; everything else becomes a string.  log_quote()
 * quotes a text that looks like a number, so that a field does not change its type with its value. */
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

/* A line with its newline.  Invalid UTF-8 becomes U+FFFD.  Returns its length. */
size_t log_as_json(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs);
/* A datagram.  Returns its length. */
size_t log_as_journal(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs);

/* Whether the text is a JSON number. */
bool log_is_number(const char *text, size_t size);

#endif
