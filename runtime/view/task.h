/* task.h: a task from a store, its envelope, its history and its result, as JSON and as text.
 *
 * Values are shown as stored; the text ends with the commands that help. */
#ifndef QUIVER_VIEW_TASK_H
#define QUIVER_VIEW_TASK_H

#include <jansson.h>

#include "store/admin.h"
#include "store/results.h"

/* Everything that is known of the task. */
json_t *listed_as_json(const struct store_listed *task);
/* `where` comes from view/whereabouts.h. */
void listed_as_text(struct buffer *to, const struct store_listed *task, const json_t *where, uint64_t now_ms);

/* For a task that was merged into another one. */
json_t *merged_as_json(struct span id, struct span into, uint64_t at_ms);
void merged_as_text(struct buffer *to, struct span id, struct span into, uint64_t at_ms);

/* Adds the envelope's fields, except id and key, to `object` or to the text. */
void envelope_as_json(json_t *object, const struct envelope *envelope);
void envelope_as_text(struct buffer *to, const struct envelope *envelope);

/* Adds the task's costs so far, and its history, to `object`. */
void note_as_json(json_t *object, const struct task_note *note);
/* One indented line, with further lines of the event below. */
void event_as_text(struct buffer *to, const struct note_event *event);

json_t *result_as_json(const struct store_result *result);
/* ID<TAB>KEY<TAB>HANDLER<TAB>DATA and a newline; tabs and newlines in them are escaped. */
void result_as_text(struct buffer *to, const struct store_result *result);

#endif
