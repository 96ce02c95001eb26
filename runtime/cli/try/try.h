/* try.h: the parts of `quiver try`: where tasks come from, and how what became of them is shown. */
#ifndef QUIVER_CLI_TRY_TRY_H
#define QUIVER_CLI_TRY_TRY_H

#include <stdio.h>

#include "base/buffer.h"
#include "cli/plugin_args.h"
#include "cli/plugin_session.h"

#define TRY_BATCH_MAX 128

/* What was asked for on the command line. */
struct try_request {
        struct plugin_args args;
        const char *key;     /* NULL: the task's id */
        const char *payload; /* NULL: empty, or read from standard input */
        bool is_lines;       /* a task per line of standard input */
        bool is_here;
        bool is_json;
        bool is_quiet; /* no log lines */
        uint64_t bench;
        uint64_t repeat;
        uint32_t attempt;
        uint32_t headers_count;
        struct buffer headers;  /* as in struct ring_task; owned */
        const char *checkpoint; /* NULL: none */
        uint32_t processes, threads, batch;
        uint64_t timeout_ms, grace_ms, init_ms;
        uint64_t payload_max;
        uint64_t memory_max, processes_max; /* 0: no limit */
        uint64_t core_max;                  /* 0: no core dumps */
};

/* --- what was asked for (try_options.c) --- */

/* False: end with *ret_code.  Borrows from argv; q is to be freed in every case. */
bool try_options(struct try_request *q, int argc, char **argv, int *ret_code);
void try_request_free(struct try_request *q);

/* One task on its way through. */
struct try_task {
        struct pool_task pool;
        char id[32];
        char *line; /* of --lines: its key, a NUL, its payload; NULL: the source has the payload */
        char *checkpoint;
};

/* --- where tasks come from (try_tasks.c) --- */

struct try_source {
        const struct try_request *request;
        uint64_t made;
        struct buffer payload; /* of every task, but for those of --lines */

        /* --lines */
        bool is_patient;     /* try_source_next() may wait for standard input */
        bool is_waiting;     /* it did not: ask again once there is something to read */
        bool is_at_end;      /* of standard input */
        struct buffer input; /* read, and not yet all made into tasks */
        size_t line_at;      /* where the next line begins */
        size_t looked_until; /* no newline from there to here */
        uint64_t line_number;
};

int try_source_open(struct try_source *s, const struct try_request *request, struct error *error);
void try_source_close(struct try_source *s);
/* The next task; NULL at the end, if a line is wrong (then the text is set), or if none has come yet (is_waiting). */
struct try_task *try_source_next(struct try_source *s, struct error *error);
void try_task_free(struct try_task *task);
/* The task's next start gets a copy of it. */
void try_task_keep_checkpoint(struct try_task *task, const void *data, size_t size);

/* --- how it is shown (try_show.c) --- */

struct try_counts {
        uint64_t outcomes[OUTCOME_INTERRUPTED + 1];
        uint64_t total;
};

/* Counts the task and shows it, unless it is one of many that went well. */
void try_show_settled(const struct try_request *request, struct try_counts *counts, const struct try_task *task,
        const struct settled *settled);
void try_show_log(const struct try_request *request, const struct runner_log *log, const char *task_id);
void try_show_error(const struct try_request *request, const char *text);

struct try_bench {
        uint64_t tasks;
        uint64_t elapsed_ns;
        uint64_t first_ns; /* from the start of the command to the first answer */
        uint64_t runner_bytes;
};
/* The last words: what was counted, or how fast it went.  `bench` is NULL if that means nothing. */
void try_show_end(const struct try_request *request, const struct try_counts *counts, const struct try_bench *bench);

/* --- in this process, for gdb and valgrind (try_here.c) --- */

/* Runs everything and shows it.  Returns an exit code. */
int try_here(const struct try_request *request, struct try_source *source);

#endif
