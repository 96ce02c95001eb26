#include "base/log/journal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int journal_open(struct journal *journal, const char *path, struct error *error)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        if (strlen(path) >= sizeof(address.sun_path))
                return error_set(error, -ENAMETOOLONG, "the path of the journal's socket is too long: %s", path);
        memcpy(address.sun_path, path, strlen(path) + 1);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r = fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
        if (r < 0) {
                if (fd >= 0)
                        (void)close(fd);
                return error_set(error, r, "cannot reach the journal at %s: %s", path, strerror(-r));
        }
        if (journal->fd >= 0)
                (void)close(journal->fd);
        journal->fd = fd;
        return 0;
}

int journal_send(struct journal *journal, const char *datagram, size_t size)
{
        if (send(journal->fd, datagram, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
                journal->dropped = 0;
                return 0;
        }
        if (errno != EAGAIN && errno != ENOBUFS)
                return -errno;
        journal->dropped++;
        return -EAGAIN;
}
