/* terminal.h: the terminal while a program has the whole screen: its size, its keys, and the way back.
 *
 * The terminal is as it was after terminal_close(), after SIGTERM and its like, after a crash (of whichever
 * thread: base/thread_signals.h), and while the process is stopped.  There is one terminal: only one
 * thread may use this. */
#ifndef QUIVER_CLI_TOP_TERMINAL_H
#define QUIVER_CLI_TOP_TERMINAL_H

#include "base/buffer.h"
#include "base/error.h"

/* Standard input and output must be a terminal.  0, or -errno with the text. */
int terminal_open(struct error *error);
void terminal_close(void);

/* Of standard output; 80 and 24 if it does not say. */
void terminal_size(unsigned *ret_columns, unsigned *ret_lines);

/* Replaces what is on the screen.  Nothing while the process is in the background. */
void terminal_draw(const struct buffer *lines);
/* Writes over the last line. */
void terminal_say(const char *text);

/* Waits until a key was pressed, the size has changed or the process was continued, at most so long.  Appends the bytes
 * of the keys.  0, or -EPIPE: nobody will press any more. */
int terminal_wait(uint64_t wait_ms, struct buffer *keys);

#endif
