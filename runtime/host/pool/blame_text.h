/* blame_text.h: the text for a task's history when a start ended without an answer: the cause, the last lines of
 * standard error, the backtrace.  Plain data, no I/O. */
#ifndef QUIVER_HOST_POOL_BLAME_TEXT_H
#define QUIVER_HOST_POOL_BLAME_TEXT_H

#include "host/pool/blame.h"

#define BLAME_TEXT_MAX 4096 /* longer texts are cut */

/* Writes the error text of the task: "crashed: SIGSEGV at address 0x0", then the last lines of standard error since
 * `since_ms`, then the backtrace.  `death` may be NULL: the process has not died.  Returns `text`. */
const char *blame_text(
        char *text, size_t size, enum blame_why why, uint32_t seat, uint64_t since_ms, const struct death *death);

#endif
