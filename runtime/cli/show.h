/* show.h: tasks, bytes and times for people. */
#ifndef QUIVER_CLI_SHOW_H
#define QUIVER_CLI_SHOW_H

#include <stdint.h>
#include <stdio.h>

#include "task/note.h"

#define SHOW_TIME_MAX 40

/* "2026-11-16 10:00:00.123Z".  Returns `text`. */
const char *show_time(char text[SHOW_TIME_MAX], uint64_t unix_ms);

/* The bytes on one line, control characters and what is not UTF-8 escaped (\n, \x00); at most `max` bytes of them, and
 * then how many were left off. */
void show_bytes(FILE *out, struct span bytes, size_t max);

/* As a word for a shell: quoted where that is needed. */
void show_word(FILE *out, struct span word);

/* One indented line per event. */
void show_history(FILE *out, struct span events);

/* "s" unless there is one. */
const char *show_plural(uint64_t count);

#endif
