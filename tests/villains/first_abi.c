/* DONE: built against the first plugin.h, whose tables were shorter.  Its declarations stand here as they were then, so
 * that no change to the real header can change them. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct first_header {
        const char *name, *value;
};

struct first_task {
        uint32_t size, attempt;
        const struct first_host *host;
        const char *id, *key, *handler;
        const void *payload;
        size_t payload_size;
        uint64_t fence_epoch, fence_start, deadline_ns;
        const struct first_header *headers;
        size_t headers_count;
        const void *checkpoint;
        size_t checkpoint_size;
        const uint32_t *stop_word;
        uint32_t stop_value;
};

struct first_submit {
        uint32_t size;
        int32_t lane;
        const char *handler, *key;
        const void *payload;
        size_t payload_size;
        uint64_t delay_ms;
        const struct first_header *headers;
        size_t headers_count;
};

struct first_host {
        uint32_t size, seat;
        const char *handler;
        void (*log)(const struct first_host *, int32_t, const char *);
        const char *(*config)(const struct first_host *, const char *);
        int32_t (*error)(const struct first_host *, const struct first_task *, const char *);
        int32_t (*result)(const struct first_host *, const struct first_task *, const void *, size_t);
        int32_t (*submit)(const struct first_host *, const struct first_task *, const struct first_submit *);
};

struct first_plugin {
        uint32_t size, abi_major, abi_minor, flags;
        const char *name, *version;
        int32_t (*init)(const struct first_host *, void **);
        int32_t (*handle)(void *, const struct first_task *);
        void (*close)(void *);
        void (*handle_many)(void *, const struct first_task *const *, uint32_t, int32_t *);
};

static int32_t handle(void *self, const struct first_task *task)
{
        char text[512]; /* a key has at most 255 bytes */
        struct first_header header = { "trace", "abc" };
        struct first_submit submit = { sizeof(submit), 0, "next", "k2", "more", 4, 0, &header, 1 };
        (void)self;
        if (task->size < sizeof(*task) || task->host->submit(task->host, task, &submit) != 0)
                return 2;
        int size = snprintf(text, sizeof(text), "%s %zu %.64s=%.64s %u", task->key, task->headers_count,
                task->headers_count ? task->headers[0].name : "", task->headers_count ? task->headers[0].value : "",
                (unsigned)*task->stop_word);
        return task->host->result(task->host, task, text, (size_t)size) == 0 ? 0 : 2;
}

__attribute__((visibility("default"))) extern const struct first_plugin quiver_plugin;
const struct first_plugin quiver_plugin = { sizeof(struct first_plugin), 1, 0, 0, "first_abi", "1.0", NULL, handle,
        NULL, NULL };
