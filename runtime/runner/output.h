/* output.h: a handler's standard output and error.
 *
 * Both are pipes that the host reads line by line.  The host limits the rate: it goes on reading and drops lines over
 * the rate.  A handler that prints endlessly is slowed down only by its own full pipe. */
#ifndef QUIVER_RUNNER_OUTPUT_H
#define QUIVER_RUNNER_OUTPUT_H

/* Makes standard output line-buffered, so that lines printed before a crash are not lost. */
void output_init(void);

/* Flushes the rest of the last line, unless another thread holds the stream's lock: exiting must not wait for it. */
void output_flush(void);

#endif
