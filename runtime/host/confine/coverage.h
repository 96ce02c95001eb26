/* coverage.h: what the limits of a handler are worth on a machine, in words.
 *
 * Without I/O: whoever asks says what the machine has. */
#ifndef QUIVER_HOST_CONFINE_COVERAGE_H
#define QUIVER_HOST_CONFINE_COVERAGE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "config/config.h"

/* What a machine has to confine runners with. */
struct coverage_facts {
        unsigned controllers; /* bits of enum cgroup_controller that a host gets for its runners */
        unsigned landlock;    /* its version; 0: none */
        bool has_namespace;   /* a runner may leave the network */
        bool is_root;         /* the host is started by root */
};

/* One limit: its name, and what it covers. */
struct coverage_line {
        const char *limit;  /* "memory" */
        const char *covers; /* a sentence without a full stop */
        bool is_void;       /* it has no effect */
};

#define COVERAGE_LINES_MAX 10

/* Those limits that are set.  Returns their number. */
size_t coverage_of(const struct limits_config *limits, const struct coverage_facts *facts,
        struct coverage_line lines[COVERAGE_LINES_MAX]);

#endif
