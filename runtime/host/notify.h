/* notify.h: reports the host's state to the service manager, as sd_notify(3) does: lines in a datagram to
 * $NOTIFY_SOCKET; and takes over the socket that the manager listens on.
 *
 * Without that variable nothing is sent.  Never blocks; a message that cannot be sent is dropped. */
#ifndef QUIVER_HOST_NOTIFY_H
#define QUIVER_HOST_NOTIFY_H

#include <stdint.h>

struct notify {
        int fd;              /* -1: there is no service manager */
        uint64_t beat_ms;    /* interval of the messages to the manager's watchdog; 0: no watchdog */
        uint64_t beat_at_ms; /* when the next message is due; UINT64_MAX: never */
        int listen_fd;       /* a socket that the manager listens on for us (sd_listen_fds(3)); -1: none */
};

/* Reads $NOTIFY_SOCKET, $WATCHDOG_USEC, $WATCHDOG_PID, $LISTEN_FDS and $LISTEN_PID, and removes them from the
 * environment of our children, to which the socket is not passed on. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* Sends one message, such as "READY=1\nSTATUS=…". */
__attribute__((format(printf, 2, 3))) void notify_say(const struct notify *n, const char *format, ...);
/* Sends RELOADING=1 with the time that the protocol requires. */
void notify_reloading(const struct notify *n);
/* Called before the loop sleeps: sends WATCHDOG=1 if it is due. */
void notify_beat(struct notify *n, uint64_t now_ms);

#endif
