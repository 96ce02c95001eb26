/* backtrace_command.h: `quiver trace`: the process that makes a backtrace readable. */
#ifndef QUIVER_BACKTRACE_BACKTRACE_COMMAND_H
#define QUIVER_BACKTRACE_BACKTRACE_COMMAND_H

/* Started by the process that watches a runner, with its pid: reads a request (backtrace.h) from standard input and
 * writes the answer to standard output. */
int cmd_trace(int argc, char **argv);

#endif
