#include "coord/zookeeper/zk_handle.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/thread_signals.h"
#include "coord/zookeeper/client_log.h"
#include "coord/zookeeper/resolve.h"

struct zk_handle {
        /* Set at the start. */
        struct url url;
        char *auth;
        clientid_t id;
        uint64_t wanted_ms;

        pthread_mutex_t lock; /* guards everything below, and the use of the handle */
        pthread_cond_t wake;  /* wakes the thread: something below has changed */
        zhandle_t *zh;        /* NULL: not made yet, or closed */
        char *addresses;
        int state;           /* as the client last reported */
        uint64_t session_ms; /* negotiated; the wanted one before */
        uint64_t pulse_ms;
        bool is_ending, is_lingering;
        struct post *posts;       /* utlist: to be collected, oldest first */
        struct post *expected;    /* utlist */
        void (*ring)(void *self); /* NULL: the loop has left */
        void *self;
        unsigned references; /* held by the loop and by the thread */
};

/* --- memory ------------------------------------------------------------------------------------------------------ */

void post_free(struct post *post)
{
        if (post->drop)
                post->drop(post);
        else
                free(post);
}

/* Unlocks the handle, and frees it if this was the last reference. */
static void let_go(struct zk_handle *handle)
{
        bool is_last = !--handle->references;
        (void)pthread_mutex_unlock(&handle->lock);
        if (!is_last)
                return;
        while (handle->posts) {
                struct post *post = handle->posts;
                DL_DELETE(handle->posts, post);
                post_free(post);
        }
        url_free(&handle->url);
        explicit_bzero(&handle->id, sizeof(handle->id));
        text_free_secret(handle->auth);
        free(handle->addresses);
        (void)pthread_cond_destroy(&handle->wake);
        (void)pthread_mutex_destroy(&handle->lock);
        free(handle);
}

/* --- posts ------------------------------------------------------------------------------------------------------- */

static void post_locked(struct zk_handle *handle, struct post *post)
{
        DL_APPEND(handle->posts, post);
        if (handle->ring)
                handle->ring(handle->self);
}

void zk_handle_expect(struct zk_handle *handle, struct post *post)
{
        DL_PREPEND(handle->expected, post);
}

static void answer_locked(struct zk_handle *handle, struct post *post)
{
        DL_DELETE(handle->expected, post);
        post_locked(handle, post);
}

void zk_handle_post(struct zk_handle *handle, struct post *post)
{
        (void)pthread_mutex_lock(&handle->lock);
        if (post->kind == POST_ANSWER)
                answer_locked(handle, post);
        else
                post_locked(handle, post);
        (void)pthread_mutex_unlock(&handle->lock);
}

struct post *zk_handle_collect(struct zk_handle *handle)
{
        (void)pthread_mutex_lock(&handle->lock);
        struct post *first = handle->posts;
        handle->posts = NULL;
        (void)pthread_mutex_unlock(&handle->lock);
        return first;
}

static void post_failed(struct zk_handle *handle, const struct error *error)
{
        struct failed_post *failed = memory_zero(1, sizeof(*failed));
        failed->post.kind = POST_FAILED;
        failed->error = *error;
        zk_handle_post(handle, &failed->post);
}

/* --- callbacks on the client's threads --------------------------------------------------------------------------- */

/* The client's pipe and sockets are not close-on-exec; all our other descriptors are.  Until a connection is up, a
 * child may inherit its socket: a runner closes what it inherits. */
static void mark_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
                struct stat st;
                int fd = (int)strtol(entry->d_name, NULL, 10);
                int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : FD_CLOEXEC;
                if (flags >= 0 && !(flags & FD_CLOEXEC) && !fstat(fd, &st) &&
                        (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
                        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
        if (dir)
                (void)closedir(dir);
}

static void name_server(zhandle_t *zh, char *ret_text, size_t size)
{
        struct sockaddr_storage peer;
        socklen_t peer_size = sizeof(peer);
        char address[INET6_ADDRSTRLEN] = "";
        ret_text[0] = 0;
        if (!zookeeper_get_connected_host(zh, (struct sockaddr *)&peer, &peer_size))
                return;
        if (peer.ss_family == AF_INET6) {
                const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer;
                (void)inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof(address));
                (void)snprintf(ret_text, size, "[%s]:%u", address, ntohs(v6->sin6_port));
        } else {
                const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer;
                (void)inet_ntop(AF_INET, &v4->sin_addr, address, sizeof(address));
                (void)snprintf(ret_text, size, "%s:%u", address, ntohs(v4->sin_port));
        }
}

static void session_changed(zhandle_t *zh, int type, int state, const char *path, void *context)
{
        struct zk_handle *handle = context;
        (void)path;
        if (type != ZOO_SESSION_EVENT)
                return;
        struct session_post *session = memory_zero(1, sizeof(*session));
        session->post.kind = POST_SESSION;
        session->state = state;
        if (state == ZOO_CONNECTED_STATE) {
                mark_descriptors();
                session->id = *zoo_client_id(zh);
                session->session_ms = (uint64_t)zoo_recv_timeout(zh);
                name_server(zh, session->server, sizeof(session->server));
        }
        (void)pthread_mutex_lock(&handle->lock);
        handle->state = state;
        if (session->session_ms)
                handle->session_ms = session->session_ms;
        post_locked(handle, &session->post);
        (void)pthread_cond_signal(&handle->wake);
        (void)pthread_mutex_unlock(&handle->lock);
}

void zk_handle_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
        (void)zh;
        (void)state;
        /* Session events reach every watcher, too. */
        if (type == ZOO_SESSION_EVENT || !path)
                return;
        struct changed_post *changed = memory_zero(1, sizeof(*changed) + strlen(path) + 1);
        changed->post.kind = POST_CHANGED;
        memcpy(changed->path, path, strlen(path) + 1);
        zk_handle_post(context, &changed->post);
}

/* --- the handle -------------------------------------------------------------------------------------------------- */

static void make_handle(struct zk_handle *handle)
{
        const clientid_t *id = handle->id.client_id ? &handle->id : NULL;
        zk_client_log_level();
        /* The client's threads take the lock before they post, so none posts before the handle is set. */
        (void)pthread_mutex_lock(&handle->lock);
        zhandle_t *zh = zookeeper_init2(handle->addresses, session_changed, (int)handle->wanted_ms, id, handle,
                ZOO_NO_LOG_CLIENTENV, zk_client_log);
        int e = errno;
        if (zh) {
                (void)zoo_set_servers_resolution_delay(zh, -1);
                if (handle->auth)
                        (void)zoo_add_auth(zh, "digest", handle->auth, (int)strlen(handle->auth), NULL, NULL);
        }
        handle->zh = zh;
        (void)pthread_mutex_unlock(&handle->lock);
        mark_descriptors();
        if (!zh) {
                struct error error;
                (void)error_set(&error, 0, "the ZooKeeper client does not start: %s", strerror(e));
                post_failed(handle, &error);
        }
}

static void begin(struct zk_handle *handle)
{
        struct error error;
        char *found = zk_resolve(&handle->url, &error);
        (void)pthread_mutex_lock(&handle->lock);
        if (found) {
                free(handle->addresses);
                handle->addresses = found;
        }
        bool is_wanted = !handle->is_ending || handle->is_lingering;
        (void)pthread_mutex_unlock(&handle->lock);
        if (!handle->addresses)
                post_failed(handle, &error);
        else if (is_wanted)
                make_handle(handle);
}

static bool is_deserted(const struct zk_handle *handle)
{
        return clock_boot_ms() - handle->pulse_ms > handle->session_ms;
}

static bool may_close(const struct zk_handle *handle)
{
        if (!handle->is_ending)
                return is_deserted(handle);
        return !handle->is_lingering || !handle->zh || handle->state == ZOO_CONNECTED_STATE ||
               handle->state == ZOO_EXPIRED_SESSION_STATE || handle->state == ZOO_AUTH_FAILED_STATE;
}

/* Sleeps for a quarter of the session's timeout, or until woken. */
static void doze(struct zk_handle *handle)
{
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + handle->session_ms / 4 * NS_PER_MS;
        until.tv_sec += (time_t)(ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
        (void)pthread_cond_timedwait(&handle->wake, &handle->lock, &until);
}

static void *keep(void *self)
{
        struct zk_handle *handle = self;
        begin(handle);
        (void)pthread_mutex_lock(&handle->lock);
        while (!may_close(handle))
                doze(handle);
        zhandle_t *zh = handle->zh;
        handle->zh = NULL;
        (void)pthread_mutex_unlock(&handle->lock);
        if (zh)
                (void)zookeeper_close(zh);
        struct post *gone = memory_zero(1, sizeof(*gone));
        gone->kind = POST_GONE;
        (void)pthread_mutex_lock(&handle->lock);
        while (handle->expected)
                answer_locked(handle, handle->expected);
        post_locked(handle, gone);
        let_go(handle);
        return NULL;
}

/* --- for the loop ------------------------------------------------------------------------------------------------ */

static void init_locks(struct zk_handle *handle)
{
        pthread_condattr_t attributes;
        (void)pthread_mutex_init(&handle->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&handle->wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
}

static void start_handle(struct zk_handle *handle)
{
        pthread_t thread;
        sigset_t all, before;
        /* Signals are handled on the loop's thread; the client's threads inherit this mask. */
        thread_signals_of_others(&all);
        (void)pthread_sigmask(SIG_BLOCK, &all, &before);
        int r = pthread_create(&thread, NULL, keep, handle);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r)
                abort();
        (void)pthread_detach(thread);
}

struct zk_handle *zk_handle_start(const struct zk_handle_options *options)
{
        struct zk_handle *handle = memory_zero(1, sizeof(*handle));
        struct error error;
        init_locks(handle);
        /* The URL was parsed before, so it is valid. */
        if (url_parse(options->url->text, URL_FOR_COORDINATION, "/", &handle->url, &error))
                abort();
        handle->auth = text_copy(options->auth);
        handle->addresses = text_copy(options->addresses);
        if (options->id)
                handle->id = *options->id;
        handle->wanted_ms = handle->session_ms = options->session_ms;
        handle->pulse_ms = clock_boot_ms();
        handle->state = ZOO_NOTCONNECTED_STATE;
        handle->ring = options->ring;
        handle->self = options->self;
        handle->references = 2;
        start_handle(handle);
        return handle;
}

zhandle_t *zk_handle_lock(struct zk_handle *handle)
{
        (void)pthread_mutex_lock(&handle->lock);
        if (handle->zh)
                return handle->zh;
        (void)pthread_mutex_unlock(&handle->lock);
        return NULL;
}

void zk_handle_unlock(struct zk_handle *handle)
{
        (void)pthread_mutex_unlock(&handle->lock);
}

void zk_handle_pulse(struct zk_handle *handle)
{
        (void)pthread_mutex_lock(&handle->lock);
        handle->pulse_ms = clock_boot_ms();
        (void)pthread_mutex_unlock(&handle->lock);
}

void zk_handle_end(struct zk_handle *handle, bool lingers)
{
        (void)pthread_mutex_lock(&handle->lock);
        handle->is_ending = true;
        handle->is_lingering = lingers;
        (void)pthread_cond_signal(&handle->wake);
        (void)pthread_mutex_unlock(&handle->lock);
}

void zk_handle_leave(struct zk_handle *handle)
{
        (void)pthread_mutex_lock(&handle->lock);
        handle->is_ending = true;
        handle->is_lingering = false;
        handle->ring = NULL;
        (void)pthread_cond_signal(&handle->wake);
        let_go(handle);
}

char *zk_handle_addresses(struct zk_handle *handle)
{
        (void)pthread_mutex_lock(&handle->lock);
        char *copy = text_copy(handle->addresses);
        (void)pthread_mutex_unlock(&handle->lock);
        return copy;
}
