/* last_run.h: what a host records about itself for the next host of its name on this machine.
 *
 * STATE/NAME.last (0600) holds the nonce of the host's leases and how to end its coordination session.  It is written
 * before the first lease is acquired and again with each new session, and removed when the host has released
 * everything.  It is input: the reader checks every field and ignores a file that is not in order. */
#ifndef QUIVER_HOST_LAST_RUN_H
#define QUIVER_HOST_LAST_RUN_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "coord/coord.h"
#include "store/store.h"

#define LAST_RUN_MAX      16384u /* bytes of the file */
#define LAST_RUN_TEXT_MAX 4096u  /* bytes of a URL */

struct last_run {
        char boot_id[64];     /* of the machine */
        uint64_t alive_id[2]; /* device and inode of NAME.alive: a copied folder has another one */
        uint8_t nonce[STORE_NONCE_SIZE];
        char app[128];
        char store[LAST_RUN_TEXT_MAX];
        char coordination[LAST_RUN_TEXT_MAX];
        char session[COORD_TOKEN_MAX]; /* "": none.  Secret */
};

/* --- last_run.c --- */

/* 0, or -EILSEQ: a text is not UTF-8. */
int last_run_put(struct buffer *to, const struct last_run *run);
/* 0, or -EBADMSG with the text set. */
int last_run_parse(struct span text, struct last_run *ret, struct error *error);
/* Why the host that starts now (`now`, without a session) must not end what `last` left behind; NULL: it may. */
const char *last_run_objection(const struct last_run *last, const struct last_run *now);

/* --- last_run_io.c --- */

/* The boot id of this machine; "" if it is not known. */
void last_run_read_boot_id(char ret_id[64]);
/* 0; -ENOENT: there is no such file; or -errno with the text set. */
int last_run_read(int folder_fd, const char *name, struct last_run *ret, struct error *error);
/* Replaces the file atomically.  0, or -errno with the text set. */
int last_run_write(int folder_fd, const char *name, const struct last_run *run, struct error *error);
void last_run_remove(int folder_fd, const char *name);

#endif
