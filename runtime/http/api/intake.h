/* intake.h: shared by both intakes: a task's options as text, and a store's refusal as HTTP status. */
#ifndef QUIVER_HTTP_API_INTAKE_H
#define QUIVER_HTTP_API_INTAKE_H

#include "base/buffer.h"
#include "store/store.h"

/* Sets one option of a task: key, lane, delay, unique, merge, debounce, timeout, attempts; the name must be one of
 * these.  `value` must outlive the submission.  0, or -EINVAL with a text that names the option. */
int intake_set_option(struct store_submission *item, const char *name, const char *value, struct error *error);

/* The HTTP status of a submission: 202, or why it was not stored, with the text. */
unsigned intake_status(const struct store_submission *item, struct error *error);

#endif
