/* stray_mark.h: the variable by which a process that a plugin left behind can be told from others.
 *
 * QUIVER_RUNNER=RUN.NUMBER stands in the environment of a runner, and so of what it starts: RUN names the run of its
 * host, NUMBER the runner.  A plugin can remove it; then only a control group finds the process. */
#ifndef QUIVER_BASE_PROCESS_STRAY_MARK_H
#define QUIVER_BASE_PROCESS_STRAY_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STRAY_VARIABLE "QUIVER_RUNNER="
#define STRAY_RUN_MAX  17
#define STRAY_MARK_MAX 80

/* The name of a host's run: made of its nonce, and not the nonce itself, which is nothing for a plugin to know. */
void stray_run(char run[STRAY_RUN_MAX], const void *nonce, size_t size);
/* Writes the variable. */
void stray_mark_put(char mark[STRAY_MARK_MAX], const char *run, uint64_t number);
/* Whether an environment, variables that each end with a NUL, has a mark of `run`; then its number. */
bool stray_mark_find(const char *environment, size_t size, const char *run, uint64_t *ret_number);
/* The same for a process.  False also if its environment may not be read. */
bool stray_mark_read(pid_t pid, const char *run, uint64_t *ret_number);

/* Kills every process of this machine that has a mark of `run`.  Returns how many there were: to be called until there
 * are none. */
unsigned stray_mark_kill(const char *run);

#endif
