#include "store/sqlite/bell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"

#define MESSAGE_WORDS 512u

/* A socket's path is limited to 107 bytes; through the folder's descriptor every path fits. */
static void address(struct sockaddr_un *to, int dir_fd, const char *name)
{
        *to = (struct sockaddr_un){ .sun_family = AF_UNIX };
        (void)snprintf(
                to->sun_path, sizeof(to->sun_path), "/proc/self/fd/%d/%.*s", dir_fd, 2 * (int)STORE_NONCE_SIZE, name);
}

int doorbells_open(struct doorbells *bells, const char *folder, struct error *error)
{
        *bells = (struct doorbells){ .dir_fd = -1, .send_fd = -1 };
        if (mkdir(folder, 0777) < 0 && errno != EEXIST)
                return error_set(error, -errno, "%s: %s", folder, strerror(errno));
        bells->dir_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (bells->dir_fd < 0)
                return error_set(error, -errno, "%s: %s", folder, strerror(errno));
        bells->send_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (bells->send_fd < 0)
                return error_set(error, -errno, "%s: socket: %s", folder, strerror(errno));
        return 0;
}

void doorbells_close(struct doorbells *bells)
{
        if (bells->send_fd >= 0)
                (void)close(bells->send_fd);
        if (bells->dir_fd >= 0)
                (void)close(bells->dir_fd);
        free(bells->entries);
        *bells = (struct doorbells){ .dir_fd = -1, .send_fd = -1 };
}

void doorbells_add(struct doorbells *bells, const uint8_t nonce[STORE_NONCE_SIZE], uint32_t word)
{
        if (bells->count && bells->entries[bells->count - 1].word == word &&
                !memcmp(bells->entries[bells->count - 1].nonce, nonce, STORE_NONCE_SIZE))
                return;
        if (bells->count == bells->room) {
                bells->room = bells->room ? 2 * bells->room : 64;
                bells->entries = memory_resize(bells->entries, bells->room * sizeof(*bells->entries));
        }
        struct doorbell *entry = &bells->entries[bells->count++];
        memcpy(entry->nonce, nonce, STORE_NONCE_SIZE);
        entry->word = word;
}

void ring_clear(struct doorbells *bells)
{
        bells->count = 0;
        bells->has_desired = bells->has_wanting = false;
}

static void send_words(struct doorbells *bells, const char *name, const uint32_t *words, uint32_t count)
{
        struct sockaddr_un to;
        address(&to, bells->dir_fd, name);
        if (sendto(bells->send_fd, words, count * sizeof(*words), 0, (const struct sockaddr *)&to, sizeof(to)) >= 0)
                return;
        /* Nobody listens: a killed process could not remove its socket.  A full queue needs no further ring. */
        if (errno == ECONNREFUSED)
                (void)unlinkat(bells->dir_fd, name, 0);
}

static void send_everybody(struct doorbells *bells, uint32_t word)
{
        int fd = openat(bells->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;
        if (!dir) {
                if (fd >= 0)
                        (void)close(fd);
                return;
        }
        while ((entry = readdir(dir)))
                if (strlen(entry->d_name) == (size_t)2 * STORE_NONCE_SIZE)
                        send_words(bells, entry->d_name, &word, 1);
        (void)closedir(dir);
}

static int entry_compare(const void *a, const void *b)
{
        const struct doorbell *x = a;
        const struct doorbell *y = b;
        int by_nonce = memcmp(x->nonce, y->nonce, STORE_NONCE_SIZE);
        return by_nonce ? by_nonce : (x->word > y->word) - (x->word < y->word);
}

void doorbells_send(struct doorbells *bells)
{
        if (bells->count)
                qsort(bells->entries, bells->count, sizeof(*bells->entries), entry_compare);
        for (uint32_t i = 0; i < bells->count;) {
                const struct doorbell *first = &bells->entries[i];
                uint32_t words[MESSAGE_WORDS];
                uint32_t count = 0;
                char name[2 * STORE_NONCE_SIZE + 1];
                for (; i < bells->count && count < MESSAGE_WORDS &&
                        !memcmp(bells->entries[i].nonce, first->nonce, STORE_NONCE_SIZE);
                        i++)
                        if (!count || words[count - 1] != bells->entries[i].word)
                                words[count++] = bells->entries[i].word;
                (void)units_hex(name, first->nonce, STORE_NONCE_SIZE);
                send_words(bells, name, words, count);
        }
        if (bells->has_desired)
                send_everybody(bells, BELL_DESIRED);
        if (bells->has_wanting)
                send_everybody(bells, BELL_WANTING);
        ring_clear(bells);
}

static void hear(struct bell *bell, uint32_t word)
{
        const struct store_bell *l = &bell->listener;
        void (*const heard)(void *self) = word == BELL_DESIRED   ? l->desired
                                          : word == BELL_MAIL    ? l->mail
                                          : word == BELL_WANTING ? l->wanting
                                                                 : NULL;
        if (word == BELL_REPLY)
                bell->reply(bell->reply_self);
        else if (heard)
                heard(l->self);
        else if (word < SHARDS_MAX && l->shard)
                l->shard(l->self, word);
        else if (word >= BELL_ROOM && word - BELL_ROOM < SHARDS_MAX && l->room)
                l->room(l->self, word - BELL_ROOM);
}

/* The queue is empty again.  If it was full meanwhile, some messages were refused and are unknown: look at
 * everything. */
static void caught_up(struct bell *bell)
{
        bool was_full = bell->heard >= bell->queue_max;
        bell->heard = 0;
        if (!was_full)
                return;
        bell->reply(bell->reply_self);
        if (bell->listener.desired)
                bell->listener.desired(bell->listener.self);
        if (bell->listener.look)
                bell->listener.look(bell->listener.self);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
        struct bell *bell = poll->data;
        (void)events;
        /* Bounded, so that the loop can do other work; what is left wakes it again. */
        for (unsigned i = 0; status == 0 && i < 64; i++) {
                uint32_t words[MESSAGE_WORDS];
                ssize_t n = recv(bell->fd, words, sizeof(words), 0);
                if (n < 0) {
                        caught_up(bell);
                        return;
                }
                bell->heard++;
                for (size_t w = 0; w < (size_t)n / sizeof(*words) && bell->fd >= 0; w++)
                        hear(bell, words[w]);
                if (bell->fd < 0)
                        return;
        }
}

static unsigned queue_max(void)
{
        unsigned max = 10;
        FILE *f = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
        if (f) {
                if (fscanf(f, "%u", &max) != 1 || !max)
                        max = 10;
                (void)fclose(f);
        }
        return max;
}

int bell_open(struct bell *bell, uv_loop_t *loop, int dir_fd, const uint8_t nonce[STORE_NONCE_SIZE],
        const struct store_bell *listener, struct error *error)
{
        struct sockaddr_un own;
        (void)units_hex(bell->name, nonce, STORE_NONCE_SIZE);
        bell->dir_fd = dir_fd;
        bell->queue_max = queue_max();
        if (listener)
                bell->listener = *listener;
        address(&own, dir_fd, bell->name);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return error_set(error, -errno, "doorbell: socket: %s", strerror(errno));
        (void)unlinkat(dir_fd, bell->name, 0);
        if (bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0) {
                int r = error_set(error, -errno, "doorbell: bind: %s", strerror(errno));
                (void)close(fd);
                return r;
        }
        bell->fd = fd;
        (void)uv_poll_init(loop, &bell->poll, fd);
        bell->poll.data = bell;
        (void)uv_poll_start(&bell->poll, UV_READABLE, on_readable);
        /* Listening alone must not keep the loop alive. */
        uv_unref((uv_handle_t *)&bell->poll);
        return 0;
}

void bell_close(struct bell *bell)
{
        if (bell->fd < 0)
                return;
        (void)uv_poll_stop(&bell->poll);
        (void)unlinkat(bell->dir_fd, bell->name, 0);
        (void)close(bell->fd);
        bell->fd = -1;
}
