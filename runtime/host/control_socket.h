/* control_socket.h: the file of a host's control socket, FOLDER/NAME.sock.
 *
 * All names are relative to the folder's descriptor, because the address of a socket is short and the folder's path may
 * be long. */
#ifndef QUIVER_HOST_CONTROL_SOCKET_H
#define QUIVER_HOST_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define CONTROL_SUFFIX   ".sock"
#define CONTROL_NAME_MAX 96

struct control_socket {
        int fd;        /* the listening socket; owned by the caller */
        int folder_fd; /* closed by control_socket_remove() */
        char file[CONTROL_NAME_MAX + sizeof(CONTROL_SUFFIX)];
        struct stat made; /* identifies our file, so that another host's is not removed */
};

/* Listens as NAME.sock; or, if a running host has that name, as `second`.sock.  Removes the sockets of dead hosts from
 * the folder.  Only the owner may open the file.  0, or -errno with the text set. */
int control_socket_open(
        struct control_socket *s, const char *folder, const char *name, const char *second, struct error *error);

/* Removes the file if it is still ours.  The listening descriptor is not closed. */
void control_socket_remove(struct control_socket *s);

/* Connects to one of the folder's files.  Returns a non-blocking descriptor; -ECONNREFUSED if its host is dead;
 * -ENOENT; -EAGAIN if the host's queue of connections is full; or another -errno. */
int control_socket_connect(int folder_fd, const char *file);

/* Whether `file` has the form of a control socket's name. */
bool control_socket_is_name(const char *file);

#endif
