/* say.h: `quiver take heartbeat` and `quiver take finish`: what a worker without a program of its own says. */
#ifndef QUIVER_CLI_TAKE_SAY_H
#define QUIVER_CLI_TAKE_SAY_H

/* argv[0] is the word after "take".  Each returns an exit code. */
int take_heartbeat(int argc, char **argv);
int take_finish(int argc, char **argv);

/* By QV_CLIENT_FINISH_...; NULL ends it. */
extern const char *const take_outcomes[];

/* The exit code that goes with what a host said, or that none answered. */
int take_exit_code(int r);

#endif
