#include "coord/local/bell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A socket's name holds 107 bytes, so the path goes through the folder's descriptor. */
static struct sockaddr_un address(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE])
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        char name[FOLDER_NAME_MAX];
        folder_name(name, "bell", nonce);
        (void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s", folder->fd, name);
        return to;
}

int local_bell_open(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE], struct error *error)
{
        struct sockaddr_un own = address(folder, nonce);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof(own)) == 0)
                return fd;
        int r = error_set(
                error, -errno, "cannot make the doorbell's socket in the coordination folder: %s", strerror(errno));
        if (fd >= 0)
                (void)close(fd);
        return r;
}

void local_bell_drain(int fd)
{
        char byte;
        while (recv(fd, &byte, sizeof(byte), 0) >= 0)
                ;
}

void local_bell_ring(const struct folder *folder, const struct local_tree *tree, uint64_t own_id)
{
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        for (const struct tree_session *session = tree->sessions; session; session = session->hh.next) {
                struct sockaddr_un to = address(folder, session->nonce);
                if (session->id != own_id)
                        (void)sendto(fd, "!", 1, 0, (const struct sockaddr *)&to, sizeof(to));
        }
        (void)close(fd);
}
