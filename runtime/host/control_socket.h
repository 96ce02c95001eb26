/* control_socket.h: the file under which a host's control socket is found, FOLDER/NAME.sock.
 *
 * All names go by the folder's descriptor, so that a long path is no obstacle: a socket's own address is short. */
#ifndef QUIVER_HOST_CONTROL_SOCKET_H
#define QUIVER_HOST_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define CONTROL_SUFFIX   ".sock"
#define CONTROL_NAME_MAX 96

struct control_socket {
        int fd;        /* listens; the caller's to close, or to hand on */
        int folder_fd; /* ours */
        char file[CONTROL_NAME_MAX + sizeof(CONTROL_SUFFIX)];
        struct stat made; /* the file, to tell it from another's */
};

/* Listens as NAME.sock; or, if a living host has that name, as `second`.sock.  What dead hosts have left behind in the
 * folder is removed.  Only the owner may open the file.  0 or -errno with the text. */
int control_socket_open(
        struct control_socket *s, const char *folder, const char *name, const char *second, struct error *error);

/* Removes the file if it is still ours.  The listening descriptor is not closed. */
void control_socket_remove(struct control_socket *s);

/* A connection to one of the folder's files.  The descriptor, non-blocking; -ECONNREFUSED: nobody listens there any
 * more; -ENOENT; -EAGAIN: somebody does, and has no time; others. */
int control_socket_connect(int folder_fd, const char *file);

/* Whether it is the name of a control socket. */
bool control_socket_is_name(const char *file);

#endif
