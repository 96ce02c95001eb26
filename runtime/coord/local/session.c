#include "coord/local/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/numbers.h"

/* The start time of the process in ticks since boot, which together with the pid identifies a process.  0: there is
 * none. */
static uint64_t process_started(uint64_t pid)
{
        char path[64], text[1024];
        uint64_t started = 0;
        (void)snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        ssize_t n = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
        text[n > 0 ? n : 0] = 0;
        /* The process name may contain anything; the third field begins after its closing parenthesis. */
        char *at = strrchr(text, ')');
        for (unsigned field = 2; at && field < 22; field++)
                at = strchr(at + 1, ' ');
        if (at)
                started = strtoull(at + 1, NULL, 10);
        return started;
}

/* --- our own ----------------------------------------------------------------------------------------------------- */

static struct flock whole_file(short type)
{
        return (struct flock){ .l_type = type, .l_whence = SEEK_SET };
}

int own_session_hold(
        struct own_session *own, const struct folder *folder, uint64_t session_ms, uint64_t now_ms, struct error *error)
{
        char name[FOLDER_NAME_MAX];
        struct flock lock = whole_file(F_WRLCK);
        *own = (struct own_session){ .tree = { .session_ms = session_ms, .pid = (uint64_t)getpid() }, .fd = -1 };
        own->tree.started = process_started(own->tree.pid);
        if (getrandom(own->tree.nonce, TREE_NONCE_SIZE, 0) != (ssize_t)TREE_NONCE_SIZE)
                abort();
        folder_name(name, "session", own->tree.nonce);
        own->fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (own->fd < 0 || fcntl(own->fd, F_OFD_SETLK, &lock) < 0) {
                int r = error_set(error, -errno, "%s: %s", name, strerror(errno));
                own_session_drop(own, folder);
                return r;
        }
        own_session_beat(own, now_ms);
        return 0;
}

void own_session_beat(struct own_session *own, uint64_t now_ms)
{
        /* If the disk is full, the old heartbeat stays, which is correct: this one was not recorded. */
        if (own->fd >= 0 && pwrite(own->fd, &now_ms, sizeof(now_ms), 0) < 0)
                return;
}

void own_session_drop(struct own_session *own, const struct folder *folder)
{
        if (own->fd < 0)
                return;
        folder_sweep(folder, own->tree.nonce);
        (void)close(own->fd);
        *own = (struct own_session){ .fd = -1 };
}

/* --- sessions of other processes --------------------------------------------------------------------------------- */

static void peer_open_pidfd(struct peer *peer, int epoll_fd, const struct tree_session *session)
{
        if (session->pid == (uint64_t)getpid() || session->pid > INT32_MAX)
                return;
        int fd = (int)syscall(SYS_pidfd_open, (pid_t)session->pid, 0);
        if (fd < 0)
                return;
        /* Checked after opening the pidfd: from then on it cannot refer to another process. */
        struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = session->id };
        if (process_started(session->pid) != session->started || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
                (void)close(fd);
                return;
        }
        peer->pidfd = fd;
}

static struct peer *peer_add(struct peers *peers, const struct tree_session *session)
{
        struct peer *peer = memory_zero(1, sizeof(*peer));
        *peer = (struct peer){
                .id = session->id, .fd = -1, .pidfd = -1, .session_ms = session->session_ms, .next = peers->first
        };
        memcpy(peer->nonce, session->nonce, TREE_NONCE_SIZE);
        peers->first = peer;
        peer_open_pidfd(peer, peers->epoll_fd, session);
        return peer;
}

static void peer_free(struct peer *peer)
{
        if (peer->fd >= 0)
                (void)close(peer->fd);
        if (peer->pidfd >= 0)
                (void)close(peer->pidfd);
        free(peer);
}

/* False: there is no such file, or it is not one that a host would have made. */
static bool peer_open_file(struct peer *peer, const struct folder *folder)
{
        char name[FOLDER_NAME_MAX];
        struct stat st;
        if (peer->fd >= 0)
                return true;
        folder_name(name, "session", peer->nonce);
        peer->fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (peer->fd < 0)
                return errno != ENOENT && errno != ELOOP && errno != ENXIO;
        return fstat(peer->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static bool peer_is_dead(struct peer *peer, const struct folder *folder, uint64_t now_ms)
{
        struct flock lock = whole_file(F_WRLCK);
        uint64_t beat = 0;
        if (!peer_open_file(peer, folder))
                return true;
        if (peer->fd >= 0 && fcntl(peer->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
                return true;
        /* A heartbeat counts from when it was written, but never from the future. */
        if (peer->fd >= 0 && pread(peer->fd, &beat, sizeof(beat), 0) == (ssize_t)sizeof(beat) && beat != peer->beat) {
                peer->beat = beat;
                peer->counted_ms = min_u64(beat, now_ms);
        }
        if (!peer->counted_ms)
                peer->counted_ms = now_ms;
        return now_ms > peer->counted_ms + peer->session_ms;
}

static struct peer *peer_find(const struct peers *peers, uint64_t id)
{
        struct peer *peer = peers->first;
        while (peer && peer->id != id)
                peer = peer->next;
        return peer;
}

static void forget_ended(struct peers *peers, const struct local_tree *tree)
{
        for (struct peer **at = &peers->first; *at;) {
                struct peer *peer = *at;
                if (tree_session_get(tree, peer->id)) {
                        at = &peer->next;
                } else {
                        *at = peer->next;
                        peer_free(peer);
                }
        }
}

uint64_t peers_look(struct peers *peers, const struct folder *folder, const struct local_tree *tree, uint64_t own_id,
        uint64_t now_ms)
{
        forget_ended(peers, tree);
        peers->due_ms = UINT64_MAX;
        for (const struct tree_session *session = tree->sessions; session; session = session->hh.next) {
                if (session->id == own_id)
                        continue;
                struct peer *peer = peer_find(peers, session->id);
                if (!peer)
                        peer = peer_add(peers, session);
                if (peer_is_dead(peer, folder, now_ms))
                        return peer->id;
                if (peer->counted_ms + peer->session_ms < peers->due_ms)
                        peers->due_ms = peer->counted_ms + peer->session_ms;
        }
        return 0;
}

void peers_free(struct peers *peers)
{
        while (peers->first) {
                struct peer *peer = peers->first;
                peers->first = peer->next;
                peer_free(peer);
        }
}
