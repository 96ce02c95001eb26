/* output.h: a handler's standard output and error.
 *
 * Both are pipes that the host reads, line by line, and bounds there: it goes on reading and throws away what is over
 * the rate.  So one who prints without end is slowed down by its own full pipe, and nobody else is. */
#ifndef QUIVER_RUNNER_OUTPUT_H
#define QUIVER_RUNNER_OUTPUT_H

/* Whole lines: what a handler has printed when it crashes is there to read. */
void output_init(void);

/* Writes what is left of the last line, unless another thread is busy printing: leaving must not wait for it. */
void output_flush(void);

#endif
