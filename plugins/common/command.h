/* command.h: the settings `command`, `shell`, `cwd` and `env`, checked: what to start, and with what around it. */
#ifndef QUIVER_PLUGINS_COMMAND_H
#define QUIVER_PLUGINS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

/* Strings of its own, NULL at the end. */
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
        char *path; /* of argv[0], found */
        char *cwd;  /* NULL: the runner's */
        struct strings argv;
        struct strings env; /* what every start gets; more may be added, and cut off again */
};

/* 0, or -1 after it has told the host why init fails. */
int command_read(struct command *c, const struct qv_host *host);
void command_free(struct command *c);

/* Above any sense, and far from overflowing anything. */
#define COMMAND_MS_MAX    3600000u
#define COMMAND_BYTES_MAX (1u << 30)

/* A time ("500ms", "2s", "1m") or a size ("64KiB", "1MiB") from the settings, from 1 to `most`; a bare number is
 * milliseconds or bytes.  0, or -1 after it has told the host why init fails. */
int command_read_ms(const struct qv_host *host, const char *name, uint64_t fallback_ms, uint64_t most, uint64_t *ret);
int command_read_bytes(const struct qv_host *host, const char *name, uint64_t fallback, uint64_t most, uint64_t *ret);

#endif
