#include "base/log/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
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

/* Sealed: the journal reads a file only if nobody can change it any more. */
static int make_file(const char *data, size_t size)
{
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
        int fd = memfd_create("quiver-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd >= 0 && write(fd, data, size) == (ssize_t)size && fcntl(fd, F_ADD_SEALS, seals) == 0)
                return fd;
        if (fd >= 0)
                (void)close(fd);
        return -EMSGSIZE;
}

/* Sends an empty datagram with the file's descriptor. */
static int send_file(const struct journal *journal, const char *data, size_t size)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .room = { 0 } };
        struct msghdr message = { .msg_control = &control, .msg_controllen = sizeof(control) };
        int fd = make_file(data, size);
        if (fd < 0)
                return fd;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof(fd));
        int r = sendmsg(journal->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
        (void)close(fd);
        return r;
}

int journal_send(struct journal *journal, const char *datagram, size_t size)
{
        int r = send(journal->fd, datagram, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
        if (r == -EMSGSIZE)
                r = send_file(journal, datagram, size);
        if (r == 0) {
                journal->dropped = 0;
                return 0;
        }
        if (r != -EAGAIN && r != -ENOBUFS)
                return r;
        journal->dropped++;
        return -EAGAIN;
}
