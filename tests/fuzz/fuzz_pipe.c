/* Any bytes as what a worker of the pipe plugin writes: frames are taken apart within their bounds, or refused with a
 * reason. */
#include <errno.h>
#include <string.h>

#include "../plugins/pipe/frame.h"
#include "choices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAME_MAX 4096u

static void look_at(const char *text, size_t size)
{
        volatile char seen = 0;
        for (size_t i = 0; i < size; i++)
                seen = (char)(seen ^ text[i]);
}

static void read_fields(const struct frame *f)
{
        static const char *const names[] = { "id", "key", "retry_after_ms", "header.a", "", "percent" };
        uint64_t number;
        struct frame_headers headers;
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                const char *value = frame_get(f, names[i]);
                look_at(value, value ? strlen(value) : 0);
                demand(frame_get_number(f, names[i], 7, &number) == 0 || value);
        }
        if (frame_get_headers(f, &headers) < 0)
                return;
        demand(headers.texts_count <= QV_HEADERS_MAX && headers.bytes_count <= QV_HEADERS_MAX);
        for (size_t i = 0; i < headers.texts_count; i++)
                look_at(headers.texts[i].value, strlen(headers.texts[i].value));
        for (size_t i = 0; i < headers.bytes_count; i++)
                look_at(headers.bytes[i].value, headers.bytes[i].value_size);
}

static void read_frames(struct choices *c)
{
        struct bytes in = { 0 };
        struct frame f;
        const char *why = NULL;
        bool has_length = choose(c, 4);
        while (c->size) {
                /* A length that is right, so that what follows is read. */
                size_t rest = c->size < 255 ? c->size : 255;
                char length[4] = { 0, 0, 0, (char)rest };
                if (has_length)
                        bytes_put(&in, length, sizeof(length));
                bytes_put(&in, c->data, rest);
                c->data += rest;
                c->size -= rest;
                int r;
                while ((r = frame_parse(&f, &in, FRAME_MAX, &why)) == 1) {
                        demand(f.size <= in.size && f.body_size <= f.size && f.kind);
                        look_at(f.body, f.body_size);
                        read_fields(&f);
                        bytes_drop(&in, f.size);
                }
                demand(r == 0 || (r == -EBADMSG && why));
                if (r)
                        break;
        }
        bytes_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        read_frames(&c);
        return 0;
}
