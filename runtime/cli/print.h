/* print.h: how a command prints what view/ made of the replies. */
#ifndef QUIVER_CLI_PRINT_H
#define QUIVER_CLI_PRINT_H

#include <jansson.h>
#include <quiver/client.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/span.h"
#include "task/note.h"

/* One object a line, on standard output.  Takes the object. */
void cli_json_print(json_t *object);
/* The same over several lines, for a command that prints only one. */
void cli_json_print_wide(json_t *object);

/* The text, on standard output; empties the buffer and frees its memory. */
void cli_text_print(struct buffer *text);

/* Bytes as text_put_bytes() shows them, on standard output. */
void cli_bytes_print(struct span bytes, size_t max);

/* A history as the client library returns it, as view/ shows it.  The note points into `scratch`. */
struct task_note cli_note(const struct qv_client_history *history, struct buffer *scratch);

/* Before a text that replaces the one on the screen; nothing if standard output is no terminal. */
void cli_clear_screen(void);

/* Whether what is printed may have colours: on a terminal, unless NO_COLOR is set. */
bool cli_has_color(void);

#endif
