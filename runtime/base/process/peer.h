/* peer.h: who is at the other end of a Unix socket. */
#ifndef QUIVER_BASE_PROCESS_PEER_H
#define QUIVER_BASE_PROCESS_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct socket_peer {
        uid_t uid;
        pid_t pid; /* 0: not visible from our process namespace */
        /* We or our descendants started it: a runner, or a process that a plugin left behind.  Also set for a process
         * that has ended since it connected, because that can no longer be checked. */
        bool is_ours;
};

/* 0, or -errno. */
int peer_find(int fd, struct socket_peer *ret);

#endif
