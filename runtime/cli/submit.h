/* submit.h: what the two halves of `quiver submit` share: one task (submit.c), many lines (submit_lines.c). */
#ifndef QUIVER_CLI_SUBMIT_H
#define QUIVER_CLI_SUBMIT_H

#include "cli/open.h"
#include "cli/task_options.h"

struct submit_request {
        const char *config;
        struct task_options task; /* with lines: the defaults of each */
        const char *payload;      /* as given; NULL: none */
        const char *traceparent;  /* the trace that the tasks belong to; NULL: none */
        const char *tracestate;   /* NULL: none */
        bool is_lines;
        bool is_json_lines;
        bool has_skip_bad;
        bool has_wait;
        bool has_json;
        uint64_t wait_ms;
        uint32_t batch; /* lines per submit request */
};

/* Submits standard input line by line.  Returns an exit code. */
int submit_lines(struct cli_store *s, const struct submit_request *request);

#endif
