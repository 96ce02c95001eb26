/* notify.h: tells the service manager how we are, as sd_notify(3) does: lines in a datagram to $NOTIFY_SOCKET.
 *
 * Without one, nothing happens.  Never blocks; a lost word is lost. */
#ifndef QUIVER_HOST_NOTIFY_H
#define QUIVER_HOST_NOTIFY_H

#include <stdint.h>

struct notify {
        int fd;              /* -1: nobody listens */
        uint64_t beat_ms;    /* how often the manager's watchdog wants to hear of us; 0: it does not */
        uint64_t beat_at_ms; /* next time; UINT64_MAX: never */
};

/* Looks at $NOTIFY_SOCKET and $WATCHDOG_USEC, and hides them from the children. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* "READY=1\nSTATUS=…": one message. */
__attribute__((format(printf, 2, 3))) void notify_say(const struct notify *n, const char *format, ...);
/* RELOADING=1 with the time that goes with it. */
void notify_reloading(const struct notify *n);
/* From the loop, before it sleeps: a sign of life, if one is due. */
void notify_beat(struct notify *n, uint64_t now_ms);

#endif
