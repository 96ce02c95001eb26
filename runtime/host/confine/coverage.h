/* coverage.h: describes what the limits of a handler cover on a machine.
 *
 * No I/O: the caller passes the facts about the machine. */
#ifndef QUIVER_HOST_CONFINE_COVERAGE_H
#define QUIVER_HOST_CONFINE_COVERAGE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "config/config.h"

/* What a machine offers for confining runners. */
struct coverage_facts {
        unsigned controllers; /* bits of enum cgroup_controller that a host gets for its runners */
        unsigned landlock;    /* its version; 0: none */
        bool has_namespace;   /* a runner may have its own network namespace */
        bool is_root;         /* root starts the host */
};

/* One limit: its name, and what it covers. */
struct coverage_line {
        const char *limit;  /* "memory" */
        const char *covers; /* a sentence without a full stop */
        bool is_void;       /* it has no effect */
};

#define COVERAGE_LINES_MAX 10

/* Describes the limits that are set.  Returns their number. */
size_t coverage_of(const struct limits_config *limits, const struct coverage_facts *facts,
        struct coverage_line lines[COVERAGE_LINES_MAX]);

#endif
