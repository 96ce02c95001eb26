/* backtrace.h: the lines of a backtrace made readable: C++ names as they were written, the source file and the line.
 *
 * A host asks a process of its own about it (backtrace_command.c, `quiver trace`): it takes time and memory to read
 * debug information, and the names come from a runner.  This file is what both sides share: the request, the answer,
 * and the text.  Plain data, no I/O.
 *
 * A request is text: the plugin's file, then a line for each line of the trace: its link-time address in that file
 * (hexadecimal; 0: it is another file's) and a space before it.  An answer has a text for each line of the request, in
 * the same order, and one more that says what is missing; each ends with a NUL. */
#ifndef QUIVER_BACKTRACE_BACKTRACE_H
#define QUIVER_BACKTRACE_BACKTRACE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/span.h"

#define BACKTRACE_LINES_MAX   256
#define BACKTRACE_REQUEST_MAX 65536
#define BACKTRACE_ANSWER_MAX  65536
#define BACKTRACE_NAME_MAX    160 /* bytes of a function's name that are shown */

/* --- the request ----------------------------------------------------------------------------------------------------
 */

struct backtrace_line {
        struct span text;
        uint64_t place; /* link-time address in the plugin's file; 0: it is another file's */
};

struct backtrace_request {
        struct span plugin;
        struct backtrace_line lines[BACKTRACE_LINES_MAX];
        size_t count;
};

/* Begins a request; false if there can be none about that file. */
bool backtrace_begin(struct buffer *request, const char *plugin);
/* Adds the lines of a text, and their number to *lines.  `places` has one number for each of its first lines.  False:
 * the request has no room for them, and none was added. */
bool backtrace_add(
        struct buffer *request, size_t *lines, const char *text, const uint64_t *places, size_t places_count);

/* Spans point into `bytes`.  0, or -EBADMSG. */
int backtrace_parse(struct span bytes, struct backtrace_request *ret);

/* --- the text -------------------------------------------------------------------------------------------------------
 */

/* The name as it was written; NULL: it is none that is known.  The caller frees it. */
typedef char *backtrace_demangle_fn(const char *name);

/* Where a piece of code stands, the innermost first: what `addr2line -a -f -i` says about one address. */
struct backtrace_source {
        struct span lines; /* pairs of lines: function, file:line */
};

/* Divides the output of addr2line about `count` addresses, in the order in which it was asked. */
void backtrace_divide(struct span output, struct backtrace_source *sources, size_t count);

/* Appends the line with its name demangled and with file and line, if they are known, after those of the functions that
 * the compiler put into it.  True: file and line are known. */
bool backtrace_put_line(
        struct buffer *to, struct span line, const struct backtrace_source *source, backtrace_demangle_fn *demangle);

/* --- the answer -----------------------------------------------------------------------------------------------------
 */

/* The next text of an answer, and moves *answer past it; NULL at its end. */
const char *backtrace_next(struct span *answer);

#endif
