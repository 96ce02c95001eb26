/* backtrace.h: makes the lines of a backtrace readable: C++ names, source file and line.
 *
 * A host asks a separate process (backtrace_command.c, `quiver trace`): reading debug information takes time and
 * memory, and the names come from a runner.  This file is what both sides share: the request, the answer, and the text.
 * Plain data, no I/O.
 *
 * A request is text: the plugin's file, then a line for each line of the trace, preceded by its link-time address in
 * that file (hexadecimal; 0: another file) and a space.  An answer has a text for each line of the request, in the same
 * order, and one more that says what is missing; each ends with a NUL. */
#ifndef QUIVER_BACKTRACE_BACKTRACE_H
#define QUIVER_BACKTRACE_BACKTRACE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/span.h"

#define BACKTRACE_LINES_MAX   256
#define BACKTRACE_REQUEST_MAX 65536
#define BACKTRACE_ANSWER_MAX  65536
#define BACKTRACE_NAME_MAX    160 /* bytes of a function's name that are shown */

/* --- the request --- */

struct backtrace_line {
        struct span text;
        uint64_t place; /* link-time address in the plugin's file; 0: another file */
};

struct backtrace_request {
        struct span plugin;
        struct backtrace_line lines[BACKTRACE_LINES_MAX];
        size_t count;
};

/* Begins a request; false if the file cannot be named in one. */
bool backtrace_begin(struct buffer *request, const char *plugin);
/* Adds the lines of a text, and their number to *lines.  `places` has one number for each of its first lines.  False:
 * the request has no room for them, and none was added. */
bool backtrace_add(
        struct buffer *request, size_t *lines, const char *text, const uint64_t *places, size_t places_count);

/* Spans point into `bytes`.  0, or -EBADMSG. */
int backtrace_parse(struct span bytes, struct backtrace_request *ret);

/* --- the text --- */

/* The demangled name; NULL: it is not a mangled one.  The caller frees it. */
typedef char *backtrace_demangle_fn(const char *name);

/* The source of an address, innermost function first: the output of `addr2line -a -f -i` for one address. */
struct backtrace_source {
        struct span lines; /* pairs of lines: function, file:line */
};

/* Splits the output of addr2line for `count` addresses, in the order of the request. */
void backtrace_divide(struct span output, struct backtrace_source *sources, size_t count);

/* Appends the line with its name demangled and with file and line, if known, after lines for the functions that were
 * inlined there.  True: file and line are known. */
bool backtrace_put_line(
        struct buffer *to, struct span line, const struct backtrace_source *source, backtrace_demangle_fn *demangle);

/* --- the answer --- */

/* Returns the next text of an answer, and moves *answer past it; NULL at its end. */
const char *backtrace_next(struct span *answer);

#endif
