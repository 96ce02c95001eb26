/* secret.h: a text that stands in a file's first line, and is read again when the file changes.
 *
 * So a token or a key is replaced by writing its file (by rename): no reload is needed. */
#ifndef QUIVER_WEBHOOK_SECRET_H
#define QUIVER_WEBHOOK_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <quiver/plugin.h>

struct secret {
        char *name; /* as settings call it */
        char *path;
        char *text;         /* wiped when it is replaced */
        uint64_t looked_ms; /* when the file was looked at last */
        struct stat seen;
        bool is_reported; /* that the file cannot be read any more was logged */
};

/* Reads the file for the first time.  0, or -1 after setting the reason why init fails. */
int secret_open(struct secret *s, const struct qv_host *host, const char *name, const char *path);
void secret_close(struct secret *s);

/* The text; looks at the file at most once a second.  If it cannot be read any more, the log says so once, and the text
 * stays.  Borrowed until the next call. */
const char *secret_get(struct secret *s, const struct qv_host *host, uint64_t now_ms);

#endif
