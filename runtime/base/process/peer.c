#include "base/process/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process/process_stat.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5; Debian 12's headers lack it */
#endif

/* The process behind a pidfd; -1: it was reaped; 0: it is not visible from here. */
static pid_t pid_of(int pidfd)
{
        char path[40];
        char line[128];
        int pid = 0;
        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "Pid: %d", &pid) == 1)
                        break;
        if (file)
                (void)fclose(file);
        return (pid_t)pid;
}

int peer_find(int fd, struct socket_peer *ret)
{
        struct ucred told;
        socklen_t size = sizeof(told);
        int pidfd = -1;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &told, &size) < 0)
                return -errno;
        *ret = (struct socket_peer){ .uid = told.uid, .pid = told.pid };
        /* The pid alone may belong to another process since the peer connected; a pidfd shows that. */
        size = sizeof(pidfd);
        int r = getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size);
        ret->is_ours = told.pid > 0 && told.pid != getpid() && process_descends(told.pid, getpid());
        if (r == 0 && pidfd >= 0) {
                if (told.pid > 0 && pid_of(pidfd) != told.pid) /* the peer has ended */
                        ret->is_ours = true;
                (void)close(pidfd);
        } else if (errno == ESRCH) {
                ret->is_ours = true;
        }
        return 0;
}
