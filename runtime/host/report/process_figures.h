/* process_figures.h: what this process uses of its machine. */
#ifndef QUIVER_HOST_REPORT_PROCESS_FIGURES_H
#define QUIVER_HOST_REPORT_PROCESS_FIGURES_H

#include <stdint.h>

/* A negative number: the system does not say. */
struct process_figures {
        double cpu_s;
        int64_t resident_bytes, virtual_bytes;
        int64_t open_fds, max_fds;
};

void process_figures_read(struct process_figures *ret_figures);

#endif
