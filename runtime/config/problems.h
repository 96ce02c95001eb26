/* problems.h: everything that is wrong with a configuration, each with its file and line. */
#ifndef QUIVER_CONFIG_PROBLEMS_H
#define QUIVER_CONFIG_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/file_trust.h"

#define PROBLEMS_MAX 50

struct problem {
        char *file;
        uint32_t line; /* 0: the file as a whole */
        bool is_warning;
        char *text; /* one line, printable */
};

/* For whom a configuration is read.  A file that others on the machine could have written is a problem only for a host,
 * which runs what the file names as its own user.  A command or a producer needs the store and no handler: a mistake in
 * a handler's block is only a warning for it. */
enum config_reader { READER_ANYBODY, READER_COMMAND, READER_CHECK, READER_HOST };

/* Zero-initialised is empty.  Problems beyond PROBLEMS_MAX are counted but not kept. */
struct problems {
        enum config_reader reader; /* set by the caller before loading */
        bool is_in_handlers;
        struct problem *items;
        size_t count;
        size_t errors; /* all problems that are not warnings, kept or not */
        size_t left_off;
};

/* A place in a file; the name is borrowed. */
struct config_place {
        const char *file;
        uint32_t line;
};

/* Whether the file is read by or for a host. */
static inline bool problems_is_host(const struct problems *p)
{
        return p->reader == READER_CHECK || p->reader == READER_HOST;
}

/* Problems added between these two calls concern handlers only. */
static inline void problems_begin_handlers(struct problems *p)
{
        p->is_in_handlers = true;
}
static inline void problems_end_handlers(struct problems *p)
{
        p->is_in_handlers = false;
}

__attribute__((format(printf, 3, 4))) void problems_error(
        struct problems *p, struct config_place place, const char *format, ...);
__attribute__((format(printf, 3, 4))) void problems_warn(
        struct problems *p, struct config_place place, const char *format, ...);

/* Adds a problem if the file, described by `prefix`, could have been written by others than its owner and a host is to
 * rely on it. */
void problems_judge(struct problems *p, struct config_place place, const char *prefix, const struct file_trust *trust);

/* Sorts by file and line; problems of one line keep the order in which they were found. */
void problems_sort(struct problems *p);

/* "FILE:LINE: TEXT" or "FILE:LINE: warning: TEXT", cut to fit.  Returns `text`. */
const char *problem_format(const struct problem *problem, char *text, size_t size);

void problems_free(struct problems *p);

#endif
