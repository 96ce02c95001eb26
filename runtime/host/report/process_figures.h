/* process_figures.h: the resources that this process uses. */
#ifndef QUIVER_HOST_REPORT_PROCESS_FIGURES_H
#define QUIVER_HOST_REPORT_PROCESS_FIGURES_H

#include <stdint.h>

/* Negative: the system does not report it. */
struct process_figures {
        double cpu_s;
        int64_t resident_bytes, virtual_bytes;
        int64_t open_fds, max_fds;
};

void process_figures_read(struct process_figures *ret_figures);

#endif
