/* stray_mark.h: the environment variable that identifies a process which a plugin left behind.
 *
 * QUIVER_RUNNER=RUN.NUMBER is in the environment of a runner and its descendants: RUN names the run of its host, NUMBER
 * the runner.  A plugin can remove it; then only a control group finds the process. */
#ifndef QUIVER_BASE_PROCESS_STRAY_MARK_H
#define QUIVER_BASE_PROCESS_STRAY_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STRAY_VARIABLE "QUIVER_RUNNER="
#define STRAY_RUN_MAX  17
#define STRAY_MARK_MAX 80

/* The name of a host's run: derived from its nonce, which itself must stay unknown to plugins. */
void stray_run(char run[STRAY_RUN_MAX], const void *nonce, size_t size);
/* Writes the variable. */
void stray_mark_put(char mark[STRAY_MARK_MAX], const char *run, uint64_t number);
/* Whether the environment, NUL-terminated variables, has a mark of `run`; returns its number. */
bool stray_mark_find(const char *environment, size_t size, const char *run, uint64_t *ret_number);
/* Reads the mark of a process.  False also if its environment may not be read. */
bool stray_mark_read(pid_t pid, const char *run, uint64_t *ret_number);

/* Kills every process of this machine that has a mark of `run`.  Returns how many there were; call it until there are
 * none. */
unsigned stray_mark_kill(const char *run);

#endif
