/* print.h: prints what view/ made of replies. */
#ifndef QUIVER_CLI_PRINT_H
#define QUIVER_CLI_PRINT_H

#include <jansson.h>
#include <quiver/client.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/span.h"
#include "task/note.h"

/* Prints the object on one line of standard output.  Takes ownership. */
void cli_json_print(json_t *object);
/* Prints the object over several lines, for a command that prints only one.  Takes ownership. */
void cli_json_print_wide(json_t *object);

/* Prints the text on standard output; frees the buffer's memory. */
void cli_text_print(struct buffer *text);

/* Prints bytes in the format of text_put_bytes() on standard output. */
void cli_bytes_print(struct span bytes, size_t max);

/* Converts a client library's history to the note that view/ shows.  The note points into `scratch`. */
struct task_note cli_note(const struct qv_client_history *history, struct buffer *scratch);

/* Clears the screen; does nothing if standard output is not a terminal. */
void cli_clear_screen(void);

/* Whether output may have colours: on a terminal, unless NO_COLOR is set. */
bool cli_has_color(void);

#endif
