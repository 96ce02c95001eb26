/* command.h: the settings `command`, `shell`, `cwd` and `env`, checked: the program to start and its environment. */
#ifndef QUIVER_PLUGINS_COMMAND_H
#define QUIVER_PLUGINS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

/* A list of owned strings that ends with NULL. */
struct strings {
        char **list;
        size_t count, room;
};

/* 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int strings_addf(struct strings *s, const char *format, ...);
/* Frees all but the first `count`. */
void strings_cut(struct strings *s, size_t count);
void strings_free(struct strings *s);

struct command {
        char *path; /* the path found for argv[0] */
        char *cwd;  /* NULL: the runner's working directory */
        struct strings argv;
        struct strings env; /* the environment of every start; more may be added and removed with strings_cut() */
};

/* 0, or -1 after setting the reason why init fails. */
int command_read(struct command *c, const struct qv_host *host);
void command_free(struct command *c);

/* Larger than any reasonable value, and small enough that no sum overflows. */
#define COMMAND_MS_MAX    3600000u
#define COMMAND_BYTES_MAX (1u << 30)

/* A time ("500ms", "2s", "1m") or a size ("64KiB", "1MiB") from the settings, from 1 to `most`; a bare number is
 * milliseconds or bytes.  0, or -1 after setting the reason why init fails. */
int command_read_ms(const struct qv_host *host, const char *name, uint64_t fallback_ms, uint64_t most, uint64_t *ret);
int command_read_bytes(const struct qv_host *host, const char *name, uint64_t fallback, uint64_t most, uint64_t *ret);

#endif
