/* context.h: a position in a trace: its id, the current span, whether it is recorded.
 *
 * In the form of the W3C's Trace Context, in the header traceparent:
 *
 *         00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * Quiver's ids are derived from the task and never random: every owner of the task's shard, before and after a
 * takeover, gives the same ids.  So nothing about a trace is stored, and a span has one id even if two hosts handle it.
 * Plain data, no I/O, no clock. */
#ifndef QUIVER_TRACE_CONTEXT_H
#define QUIVER_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define TRACE_ID_SIZE      16u
#define TRACE_SPAN_ID_SIZE 8u
#define TRACE_ID_TEXT      (2 * TRACE_ID_SIZE + 1)
#define TRACE_SPAN_ID_TEXT (2 * TRACE_SPAN_ID_SIZE + 1)
#define TRACE_PARENT_TEXT  56u /* a traceparent and its NUL */

#define TRACE_FLAG_SAMPLED 1u
#define TRACE_FLAG_RANDOM  2u /* the id is random: passed on unchanged */

struct trace_context {
        uint8_t trace[TRACE_ID_SIZE];
        uint8_t span[TRACE_SPAN_ID_SIZE];
        uint8_t flags; /* TRACE_FLAG_…, no others */
};

/* Strict: lower-case digits, no id of zeroes, not version ff; version 00 has exactly this length, a later one may
 * continue after another hyphen.  False: it is invalid. */
bool trace_context_parse(struct span text, struct trace_context *ret);
/* Writes version 00. */
const char *trace_context_put(char to[static TRACE_PARENT_TEXT], const struct trace_context *context);
/* The ids as hexadecimal text. */
const char *trace_id_put(char to[static TRACE_ID_TEXT], const uint8_t id[static TRACE_ID_SIZE]);
const char *trace_span_id_put(char to[static TRACE_SPAN_ID_TEXT], const uint8_t id[static TRACE_SPAN_ID_SIZE]);

/* The trace of a task that came without one: the same for every start of it, on every host.  Its span is all zeroes:
 * the trace begins here. */
struct trace_context trace_context_begin(struct span app, struct span task);
/* The use of a span of a task, which makes its id distinct. */
enum trace_span_use { TRACE_SPAN_ATTEMPT, TRACE_SPAN_WAIT };
/* A span within `context`, for the start of the task with that fence. */
struct trace_context trace_context_within(const struct trace_context *context, enum trace_span_use use,
        struct span task, uint64_t fence_epoch, uint64_t fence_start);
/* Whether the context has a parent span; false where a trace begins. */
bool trace_context_has_span(const struct trace_context *context);

/* Whether a trace that begins here is recorded, with the probability `ratio` (0 to 1).  Decided by the last 8 bytes of
 * its id, as in other programs. */
bool trace_is_chosen(const uint8_t id[static TRACE_ID_SIZE], double ratio);

#endif
