#include "coord/local/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char head[16] = "quiver coord 1\n";

#define HEAD_SIZE (sizeof(head) + LOG_MARK_SIZE)
/* A record: the mark, the payload's size and checksum, the payload. */
#define FRAME_SIZE  (LOG_MARK_SIZE + 4u + 4u)
#define RECORD_MAX  (2u * 1024u * 1024u)
#define READ_BYTES  (64u * 1024u)
#define LONG_BYTES  (1024u * 1024u)
#define LONG_FACTOR 4u

static void frame(struct buffer *to, const uint8_t mark[LOG_MARK_SIZE], const struct buffer *payload)
{
        buffer_put(to, mark, LOG_MARK_SIZE);
        buffer_put_u32(to, (uint32_t)payload->size);
        buffer_put_u32(to, (uint32_t)crc32(0, payload->data, (unsigned)payload->size));
        buffer_put(to, payload->data, payload->size);
}

static void log_name(char name[32], unsigned number)
{
        (void)snprintf(name, 32, "log-%u", number);
}

/* --- a new file -------------------------------------------------------------------------------------------------- */

void log_draft_init(struct log_draft *draft)
{
        *draft = (struct log_draft){ 0 };
        if (getrandom(draft->mark, sizeof(draft->mark), 0) != (ssize_t)sizeof(draft->mark))
                abort();
        buffer_put(&draft->bytes, head, sizeof(head));
        buffer_put(&draft->bytes, draft->mark, sizeof(draft->mark));
}

void log_draft_add(struct log_draft *draft, const struct buffer *payload)
{
        frame(&draft->bytes, draft->mark, payload);
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
        while (size) {
                ssize_t n = write(fd, data, size);
                if (n < 0)
                        return -errno;
                data += n;
                size -= (size_t)n;
        }
        return 0;
}

int log_draft_publish(struct log_draft *draft, int dir_fd, unsigned number, struct error *error)
{
        char name[32], temporary[64];
        uint64_t mark;
        log_name(name, number);
        memcpy(&mark, draft->mark, sizeof(mark));
        (void)snprintf(temporary, sizeof(temporary), "new-%u-%016" PRIx64, number, mark);
        int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_all(fd, draft->bytes.data, draft->bytes.size);
        if (!r && fdatasync(fd) < 0)
                r = -errno;
        if (!r && linkat(dir_fd, temporary, dir_fd, name, 0) < 0 && errno != EEXIST)
                r = -errno;
        if (fd >= 0) {
                (void)close(fd);
                (void)unlinkat(dir_fd, temporary, 0);
                (void)fsync(dir_fd);
        }
        buffer_free(&draft->bytes);
        return r ? error_set(error, r, "%s: %s", name, strerror(-r)) : 0;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

int log_newest(int dir_fd, unsigned *ret_number, struct error *error)
{
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;
        unsigned newest = 0;
        if (!dir) {
                int r = error_set(error, -errno, "the folder cannot be read: %s", strerror(errno));
                if (fd >= 0)
                        (void)close(fd);
                return r;
        }
        while ((entry = readdir(dir))) {
                unsigned number = 0;
                char name[32];
                if (sscanf(entry->d_name, "log-%9u", &number) != 1 || number <= newest)
                        continue;
                log_name(name, number);
                if (!strcmp(name, entry->d_name))
                        newest = number;
        }
        (void)closedir(dir);
        *ret_number = newest;
        return 0;
}

int log_open(struct log *log, int dir_fd, unsigned number, struct error *error)
{
        char name[32];
        uint8_t start[HEAD_SIZE];
        struct stat st;
        log_name(name, number);
        int fd = openat(dir_fd, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return error_set(error, errno == ELOOP ? -EACCES : -errno, "%s: %s", name, strerror(errno));
        bool is_ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 2;
        if (!is_ours || pread(fd, start, sizeof(start), 0) != (ssize_t)sizeof(start) ||
                memcmp(start, head, sizeof(head)) != 0) {
                (void)close(fd);
                return error_set(error, -EPROTO,
                        "%s: not a coordination log of this version of Quiver; stop all hosts and remove it", name);
        }
        *log = (struct log){ .dir_fd = dir_fd, .fd = fd, .number = number, .at = HEAD_SIZE };
        memcpy(log->mark, start + sizeof(head), LOG_MARK_SIZE);
        return 0;
}

void log_close(struct log *log)
{
        if (log->fd >= 0)
                (void)close(log->fd);
        log->fd = -1;
        buffer_free(&log->read);
}

int log_check(const struct log *log, const char *folder)
{
        char path[4200];
        struct stat there, ours;
        (void)snprintf(path, sizeof(path), "%s/log-%u", folder, log->number);
        if (stat(path, &there) < 0)
                return -errno;
        if (fstat(log->fd, &ours) < 0)
                return -errno;
        return there.st_ino == ours.st_ino && there.st_dev == ours.st_dev ? 0 : -ESTALE;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static uint32_t number_at(const uint8_t *at)
{
        uint32_t value;
        memcpy(&value, at, sizeof(value));
        return value;
}

/* Whether these bytes begin with a complete record. */
static bool is_record(const struct log *log, const uint8_t *at, size_t size)
{
        if (size < FRAME_SIZE || memcmp(at, log->mark, LOG_MARK_SIZE) != 0)
                return false;
        uint32_t payload = number_at(at + LOG_MARK_SIZE);
        return payload <= RECORD_MAX && payload <= size - FRAME_SIZE &&
               (uint32_t)crc32(0, at + FRAME_SIZE, payload) == number_at(at + LOG_MARK_SIZE + 4);
}

/* Finds the first complete record.  Bytes before it are a record that was cut short, because another was appended after
 * it. */
static const uint8_t *find_record(const struct log *log, size_t *ret_size)
{
        if (!log->read.data)
                return NULL;
        const uint8_t *at = log->read.data + log->from;
        const uint8_t *end = log->read.data + log->read.size;
        while (at < end && (at = memmem(at, (size_t)(end - at), log->mark, LOG_MARK_SIZE))) {
                *ret_size = (size_t)(end - at);
                if (is_record(log, at, *ret_size))
                        return at;
                at++;
        }
        return NULL;
}

static ssize_t read_more(struct log *log)
{
        if (log->from) {
                log->at += log->from;
                log->read.size -= log->from;
                memmove(log->read.data, log->read.data + log->from, log->read.size);
                log->from = 0;
        }
        uint8_t *to = buffer_reserve(&log->read, READ_BYTES);
        ssize_t n = pread(log->fd, to, READ_BYTES, (off_t)(log->at + log->read.size));
        if (n > 0)
                log->read.size += (size_t)n;
        return n < 0 ? -errno : n;
}

bool log_next(struct log *log, struct span *ret_payload, int *ret_status)
{
        const uint8_t *at;
        size_t size = 0;
        *ret_status = 0;
        while (!(at = find_record(log, &size))) {
                ssize_t n = read_more(log);
                if (n > 0)
                        continue;
                *ret_status = (int)n;
                return false;
        }
        uint32_t payload = number_at(at + LOG_MARK_SIZE);
        *ret_payload = (struct span){ (const char *)at + FRAME_SIZE, payload };
        log->from = (size_t)(at - log->read.data) + FRAME_SIZE + payload;
        return true;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

int log_append(struct log *log, const struct buffer *payload, struct error *error)
{
        struct buffer record = { 0 };
        frame(&record, log->mark, payload);
        ssize_t n = write(log->fd, record.data, record.size);
        int r = n < 0 ? -errno : (size_t)n < record.size ? -ENOSPC : 0;
        buffer_free(&record);
        return r ? error_set(error, r, "log-%u: %s", log->number, strerror(-r)) : 0;
}

int log_sync(struct log *log, struct error *error)
{
        return fdatasync(log->fd) < 0 ? error_set(error, -errno, "log-%u: %s", log->number, strerror(errno)) : 0;
}

void log_begins_here(struct log *log)
{
        log->first_bytes = log->at + log->from;
}

bool log_is_long(const struct log *log)
{
        uint64_t bytes = log->at + log->from;
        return bytes > LONG_BYTES && bytes > LONG_FACTOR * log->first_bytes;
}
