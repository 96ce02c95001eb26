/* log.h: one line per event: logfmt or JSON on standard error, or fields for systemd's journal.
 *
 *         time=2026-11-16T10:00:00.123Z level=info event=takeover shard=7 epoch=42 from=host-a after_ms=10312
 *
 * A line is one write(2), so lines of several processes do not mix.  Level error means that someone must act.  A field
 * has the same name in every line: task, key, handler, shard, trace. */
#ifndef QUIVER_BASE_LOG_H
#define QUIVER_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum log_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_INFO, LEVEL_DEBUG };

enum log_format { FORMAT_LOGFMT, FORMAT_JSON, FORMAT_JOURNAL };

#define LOG_LINE_MAX 4096

/* Drops lines that are more detailed than `level`.  LEVEL_INFO until the first call. */
void log_set_level(enum log_level level);
enum log_level log_level_get(void);
/* "error", "warn", "info", "debug"; "unknown" for anything else. */
const char *log_level_name(int level);
/* False if no level has that name. */
bool log_level_parse(const char *name, enum log_level *ret_level);

/* FORMAT_LOGFMT until the first call.  `journal` is the path of the journal's socket, used by FORMAT_JOURNAL only.  0,
 * or -errno with the text set. */
int log_set_format(enum log_format format, const char *journal, struct error *error);

enum log_format log_format_get(void);
/* The path that log_set_format() was given; NULL without a journal. */
const char *log_journal_get(void);

/* Makes the file the process's standard error, and thereby its log and the guard's; creates it for this user only.
 * Called again after the file was renamed, it creates a new one.  0, or -errno with the text set. */
int log_to_file(const char *path, struct error *error);
/* The path that log_to_file() was given; NULL: none. */
const char *log_file_get(void);

/* `event` is lower case, its words joined by hyphens; `format` gives the rest of the line as key=value pairs.  Values
 * that may hold spaces go through log_quote(). */
__attribute__((format(printf, 3, 4))) void log_event(enum log_level level, const char *event, const char *format, ...);

/* Writes `value` as a logfmt value: unchanged, or, if it is not plain or looks like a number, in double quotes with
 * control characters, quotes and backslashes escaped; cut to fit `size` bytes (at least 8).  Returns `text`. */
const char *log_quote(char *text, size_t size, const char *value);
/* log_quote() into a buffer that lives to the end of the enclosing block. */
#define LOG_QUOTE(value) log_quote((char[1024]){ 0 }, 1024, (value))

#endif
