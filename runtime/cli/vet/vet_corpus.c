/* vet_corpus.c: payloads that the author gives: as they are, and changed a little. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "cli/open.h"
#include "cli/vet/vet.h"

#define ITEMS_MAX 10000
#define FILE_MAX  ((size_t)64 << 20) /* of a file with a payload per line */

static int add(struct vet_corpus *c, const void *data, size_t size, const char *place, struct error *error)
{
        if (size > VET_PAYLOAD_MAX)
                return error_set(error, -EMSGSIZE, "%s: a payload of %zu bytes; at most 1 MiB is tried", place, size);
        if (c->count == ITEMS_MAX)
                return error_set(error, -E2BIG, "%s: more than %d payloads", place, ITEMS_MAX);
        c->items = array_grow(c->items, c->count, sizeof(*c->items));
        c->items[c->count] = (struct buffer){ 0 };
        buffer_put(&c->items[c->count++], data, size);
        return 0;
}

/* A payload per line. */
static int read_lines(struct vet_corpus *c, int fd, const char *path, struct error *error)
{
        struct buffer text = { 0 };
        int r = cli_read_all(fd, FILE_MAX, &text);
        if (r < 0)
                r = error_set(error, r, "--corpus %s: %s", path, r == -EMSGSIZE ? "more than 64 MiB" : strerror(-r));
        for (size_t at = 0; r == 0 && at < text.size;) {
                const uint8_t *newline = memchr(text.data + at, '\n', text.size - at);
                size_t end = newline ? (size_t)(newline - text.data) : text.size;
                r = add(c, text.data + at, end - at, path, error);
                at = end + 1;
        }
        buffer_free(&text);
        return r;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

/* A payload per file, in the order of their names, so that a seed means the same on every machine. */
static int read_folder(struct vet_corpus *c, const char *path, struct error *error)
{
        struct dirent **entries = NULL;
        int count = scandir(path, &entries, is_shown, by_name);
        int r = count < 0 ? error_set(error, -errno, "--corpus %s: %s", path, strerror(errno)) : 0;
        for (int i = 0; i < count; i++) {
                char name[4096];
                struct buffer bytes = { 0 };
                struct stat st;
                (void)snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
                int fd = r == 0 ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
                if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
                        r = cli_read_all(fd, VET_PAYLOAD_MAX, &bytes);
                        r = r < 0 ? error_set(
                                            error, r, "%s: %s", name, r == -EMSGSIZE ? "more than 1 MiB" : strerror(-r))
                                  : add(c, bytes.data, bytes.size, name, error);
                }
                if (fd >= 0)
                        (void)close(fd);
                buffer_free(&bytes);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int vet_corpus_load(struct vet_corpus *c, const char *path, struct error *error)
{
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(error, -errno, "--corpus %s: %s", path, strerror(errno));
        int r = S_ISDIR(st.st_mode) ? read_folder(c, path, error) : read_lines(c, fd, path, error);
        (void)close(fd);
        if (r == 0 && !c->count)
                r = error_set(error, -EINVAL,
                        "--corpus %s: it has no payload; one per line, or a folder with one per file", path);
        return r;
}

void vet_corpus_free(struct vet_corpus *c)
{
        for (size_t i = 0; i < c->count; i++)
                buffer_free(&c->items[i]);
        free(c->items);
        *c = (struct vet_corpus){ 0 };
}

/* --- changes --- */

static void cut_out(struct buffer *b, size_t at, size_t size)
{
        memmove(b->data + at, b->data + at + size, b->size - at - size);
        b->size -= size;
}

static void put_in(struct buffer *b, size_t at, const void *data, size_t size)
{
        if (b->size + size > VET_PAYLOAD_MAX || !size)
                return;
        (void)buffer_reserve(b, size);
        memmove(b->data + at + size, b->data + at, b->size - at);
        memcpy(b->data + at, data, size);
        b->size += size;
}

/* Numbers at the ends of what fits, and what parsers trip over. */
static void put_in_odd(uint64_t *state, struct buffer *b, size_t at)
{
        static const char *const odd[] = { "", "-1", "0", "2147483648", "4294967296", "18446744073709551616", "1e999",
                "null", "\"", "\\", "{", "[", "\xff", "%n", "../", "\r\n", "\xef\xbb\xbf" };
        const char *text = odd[vet_below(state, sizeof(odd) / sizeof(*odd))];
        put_in(b, at, *text ? text : "\0", *text ? strlen(text) : 1);
}

static void change_once(uint64_t *state, const struct vet_corpus *c, struct buffer *b)
{
        size_t at = (size_t)vet_below(state, b->size + 1);
        size_t left = b->size - at;
        size_t size = left ? (size_t)vet_below(state, min_u64(left, 64)) + 1 : 0;
        const struct buffer *other = &c->items[vet_below(state, c->count)];
        switch (vet_below(state, 7)) {
        case 0: /* a bit */
                if (left)
                        b->data[at] ^= (uint8_t)(1u << vet_below(state, 8));
                break;
        case 1: /* a byte */
                if (left)
                        b->data[at] = (uint8_t)vet_below(state, 256);
                break;
        case 2:
                if (size)
                        cut_out(b, at, size);
                break;
        case 3: /* the end */
                b->size = at;
                break;
        case 4: /* twice */
                if (size) {
                        uint8_t copy[64];
                        memcpy(copy, b->data + at, size);
                        put_in(b, at, copy, size);
                }
                break;
        case 5: /* a part of another one */
                if (other->size) {
                        size_t from = (size_t)vet_below(state, other->size);
                        put_in(b, at, other->data + from, (size_t)vet_below(state, other->size - from) + 1);
                }
                break;
        default:
                put_in_odd(state, b, at);
        }
}

void vet_mutate(uint64_t *state, const struct vet_corpus *c, struct buffer *to)
{
        const struct buffer *from = &c->items[vet_below(state, c->count)];
        buffer_put(to, from->data, from->size);
        for (uint64_t i = vet_below(state, 4) + 1; i; i--)
                change_once(state, c, to);
}
