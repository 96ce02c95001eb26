#include "coord/zookeeper/keeper.h"

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

#include "base/clock.h"
#include "coord/zookeeper/client_log.h"
#include "coord/zookeeper/resolve.h"

struct keeper {
        /* Set at the start. */
        struct url url;
        char *auth;
        clientid_t id;
        uint64_t wanted_ms;

        pthread_mutex_t lock; /* guards all below, and the use of the handle */
        pthread_cond_t wake;  /* the keeper: something below has changed */
        zhandle_t *zh;        /* NULL: not yet, or not any more */
        char *addresses;
        int state;           /* as the client told last */
        uint64_t session_ms; /* negotiated; the wanted one before */
        uint64_t pulse_ms;
        bool is_ending, is_lingering;
        struct post *first, *last;
        struct post *expected;
        void (*ring)(void *self); /* NULL: the loop has left */
        void *self;
        unsigned references; /* the loop's and the keeper's */
};

static void *allocate(size_t size)
{
        void *made = calloc(1, size);
        if (!made)
                abort();
        return made;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

void post_free(struct post *post)
{
        if (post->drop)
                post->drop(post);
        else
                free(post);
}

static void free_posts(struct keeper *keeper)
{
        while (keeper->first) {
                struct post *next = keeper->first->next;
                post_free(keeper->first);
                keeper->first = next;
        }
}

/* Unlocks it, and frees it if this was the last one who knew it. */
static void let_go(struct keeper *keeper)
{
        bool is_last = !--keeper->references;
        (void)pthread_mutex_unlock(&keeper->lock);
        if (!is_last)
                return;
        free_posts(keeper);
        url_free(&keeper->url);
        if (keeper->auth)
                explicit_bzero(keeper->auth, strlen(keeper->auth));
        explicit_bzero(&keeper->id, sizeof(keeper->id));
        free(keeper->auth);
        free(keeper->addresses);
        (void)pthread_cond_destroy(&keeper->wake);
        (void)pthread_mutex_destroy(&keeper->lock);
        free(keeper);
}

/* --- posts ------------------------------------------------------------------------------------------------------- */

static void post_locked(struct keeper *keeper, struct post *post)
{
        post->next = NULL;
        *(keeper->last ? &keeper->last->next : &keeper->first) = post;
        keeper->last = post;
        if (keeper->ring)
                keeper->ring(keeper->self);
}

void keeper_expect(struct keeper *keeper, struct post *post)
{
        post->prev = NULL;
        post->next = keeper->expected;
        if (post->next)
                post->next->prev = post;
        keeper->expected = post;
}

static void answer_locked(struct keeper *keeper, struct post *post)
{
        *(post->prev ? &post->prev->next : &keeper->expected) = post->next;
        if (post->next)
                post->next->prev = post->prev;
        post_locked(keeper, post);
}

void keeper_post(struct keeper *keeper, struct post *post)
{
        (void)pthread_mutex_lock(&keeper->lock);
        if (post->kind == POST_ANSWER)
                answer_locked(keeper, post);
        else
                post_locked(keeper, post);
        (void)pthread_mutex_unlock(&keeper->lock);
}

struct post *keeper_collect(struct keeper *keeper)
{
        (void)pthread_mutex_lock(&keeper->lock);
        struct post *first = keeper->first;
        keeper->first = keeper->last = NULL;
        (void)pthread_mutex_unlock(&keeper->lock);
        return first;
}

static void post_failed(struct keeper *keeper, const struct error *error)
{
        struct failed_post *failed = allocate(sizeof(*failed));
        failed->post.kind = POST_FAILED;
        failed->error = *error;
        keeper_post(keeper, &failed->post);
}

/* --- what the client's threads call ------------------------------------------------------------------------------ */

/* The client's pipe and its sockets are not close-on-exec; every other descriptor of ours is.  Until a connection
 * stands, a child may still inherit its socket: a runner closes what it inherits. */
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
        struct keeper *keeper = context;
        (void)path;
        if (type != ZOO_SESSION_EVENT)
                return;
        struct session_post *session = allocate(sizeof(*session));
        session->post.kind = POST_SESSION;
        session->state = state;
        if (state == ZOO_CONNECTED_STATE) {
                mark_descriptors();
                session->id = *zoo_client_id(zh);
                session->session_ms = (uint64_t)zoo_recv_timeout(zh);
                name_server(zh, session->server, sizeof(session->server));
        }
        (void)pthread_mutex_lock(&keeper->lock);
        keeper->state = state;
        if (session->session_ms)
                keeper->session_ms = session->session_ms;
        post_locked(keeper, &session->post);
        (void)pthread_cond_signal(&keeper->wake);
        (void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
        (void)zh;
        (void)state;
        /* Every watcher is told of the session too. */
        if (type == ZOO_SESSION_EVENT || !path)
                return;
        struct changed_post *changed = allocate(sizeof(*changed) + strlen(path) + 1);
        changed->post.kind = POST_CHANGED;
        memcpy(changed->path, path, strlen(path) + 1);
        keeper_post(context, &changed->post);
}

/* --- the keeper -------------------------------------------------------------------------------------------------- */

static void make_handle(struct keeper *keeper)
{
        const clientid_t *id = keeper->id.client_id ? &keeper->id : NULL;
        zk_client_log_level();
        /* The client's threads wait for the lock before they post: none runs ahead of the handle. */
        (void)pthread_mutex_lock(&keeper->lock);
        zhandle_t *zh = zookeeper_init2(keeper->addresses, session_changed, (int)keeper->wanted_ms, id, keeper,
                ZOO_NO_LOG_CLIENTENV, zk_client_log);
        int e = errno;
        if (zh) {
                (void)zoo_set_servers_resolution_delay(zh, -1);
                if (keeper->auth)
                        (void)zoo_add_auth(zh, "digest", keeper->auth, (int)strlen(keeper->auth), NULL, NULL);
        }
        keeper->zh = zh;
        (void)pthread_mutex_unlock(&keeper->lock);
        mark_descriptors();
        if (!zh) {
                struct error error;
                (void)error_set(&error, 0, "the ZooKeeper client does not start: %s", strerror(e));
                post_failed(keeper, &error);
        }
}

static void begin(struct keeper *keeper)
{
        struct error error;
        char *found = zk_resolve(&keeper->url, &error);
        (void)pthread_mutex_lock(&keeper->lock);
        if (found) {
                free(keeper->addresses);
                keeper->addresses = found;
        }
        bool is_wanted = !keeper->is_ending || keeper->is_lingering;
        (void)pthread_mutex_unlock(&keeper->lock);
        if (!keeper->addresses)
                post_failed(keeper, &error);
        else if (is_wanted)
                make_handle(keeper);
}

static bool is_deserted(const struct keeper *keeper)
{
        return clock_boot_ms() - keeper->pulse_ms > keeper->session_ms;
}

static bool may_close(const struct keeper *keeper)
{
        if (!keeper->is_ending)
                return is_deserted(keeper);
        return !keeper->is_lingering || !keeper->zh || keeper->state == ZOO_CONNECTED_STATE ||
               keeper->state == ZOO_EXPIRED_SESSION_STATE || keeper->state == ZOO_AUTH_FAILED_STATE;
}

/* Until a quarter of a session has passed, or somebody wakes us. */
static void doze(struct keeper *keeper)
{
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + keeper->session_ms / 4 * NS_PER_MS;
        until.tv_sec += (time_t)(ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
        (void)pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until);
}

static void *keep(void *self)
{
        struct keeper *keeper = self;
        begin(keeper);
        (void)pthread_mutex_lock(&keeper->lock);
        while (!may_close(keeper))
                doze(keeper);
        zhandle_t *zh = keeper->zh;
        keeper->zh = NULL;
        (void)pthread_mutex_unlock(&keeper->lock);
        if (zh)
                (void)zookeeper_close(zh);
        struct post *gone = allocate(sizeof(*gone));
        gone->kind = POST_GONE;
        (void)pthread_mutex_lock(&keeper->lock);
        while (keeper->expected)
                answer_locked(keeper, keeper->expected);
        post_locked(keeper, gone);
        let_go(keeper);
        return NULL;
}

/* --- for the loop ------------------------------------------------------------------------------------------------ */

static void init_locks(struct keeper *keeper)
{
        pthread_condattr_t attributes;
        (void)pthread_mutex_init(&keeper->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&keeper->wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
}

static void start_keeper(struct keeper *keeper)
{
        pthread_t thread;
        sigset_t all, before;
        /* Signals are for the loop; the client's threads inherit this. */
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_BLOCK, &all, &before);
        int r = pthread_create(&thread, NULL, keep, keeper);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r)
                abort();
        (void)pthread_detach(thread);
}

struct keeper *keeper_start(const struct keeper_options *options)
{
        struct keeper *keeper = allocate(sizeof(*keeper));
        struct error error;
        init_locks(keeper);
        /* It was read before: it can be read again. */
        if (url_parse(options->url->text, URL_FOR_COORDINATION, "/", &keeper->url, &error))
                abort();
        keeper->auth = options->auth ? strdup(options->auth) : NULL;
        keeper->addresses = options->addresses ? strdup(options->addresses) : NULL;
        if (options->id)
                keeper->id = *options->id;
        keeper->wanted_ms = keeper->session_ms = options->session_ms;
        keeper->pulse_ms = clock_boot_ms();
        keeper->state = ZOO_NOTCONNECTED_STATE;
        keeper->ring = options->ring;
        keeper->self = options->self;
        keeper->references = 2;
        start_keeper(keeper);
        return keeper;
}

zhandle_t *keeper_lock(struct keeper *keeper)
{
        (void)pthread_mutex_lock(&keeper->lock);
        if (keeper->zh)
                return keeper->zh;
        (void)pthread_mutex_unlock(&keeper->lock);
        return NULL;
}

void keeper_unlock(struct keeper *keeper)
{
        (void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_pulse(struct keeper *keeper)
{
        (void)pthread_mutex_lock(&keeper->lock);
        keeper->pulse_ms = clock_boot_ms();
        (void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_end(struct keeper *keeper, bool lingers)
{
        (void)pthread_mutex_lock(&keeper->lock);
        keeper->is_ending = true;
        keeper->is_lingering = lingers;
        (void)pthread_cond_signal(&keeper->wake);
        (void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_leave(struct keeper *keeper)
{
        (void)pthread_mutex_lock(&keeper->lock);
        keeper->is_ending = true;
        keeper->is_lingering = false;
        keeper->ring = NULL;
        (void)pthread_cond_signal(&keeper->wake);
        let_go(keeper);
}

char *keeper_addresses(struct keeper *keeper)
{
        (void)pthread_mutex_lock(&keeper->lock);
        char *copy = keeper->addresses ? strdup(keeper->addresses) : NULL;
        (void)pthread_mutex_unlock(&keeper->lock);
        return copy;
}
