/* journal.h: datagrams to the socket of systemd's journal. */
#ifndef QUIVER_BASE_LOG_JOURNAL_H
#define QUIVER_BASE_LOG_JOURNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct journal {
        int fd;           /* -1: not open */
        uint64_t dropped; /* lines lost since the last one that the journal took */
};

/* Connects to the socket at `path`.  0, or -errno with the text set. */
int journal_open(struct journal *journal, const char *path, struct error *error);
/* Sends one datagram.  A line that is too long goes as a sealed file (memfd), as the journal's protocol requires.
 * Never waits: a journal that hangs must not stop a host.  0; -EAGAIN if it had no room (counted); another -errno if it
 * is gone. */
int journal_send(struct journal *journal, const char *datagram, size_t size);

#endif
