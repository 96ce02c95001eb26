/* frame.h: the frames of the pipe protocol, version 1; sdk/pipe/README.md describes it.
 *
 *         length, 4 bytes, big-endian | kind \n | name=value \n … | \n | body: the rest, any bytes */
#ifndef QUIVER_PIPE_FRAME_H
#define QUIVER_PIPE_FRAME_H

#include <quiver/plugin.h>

#include "../common/bytes.h"

#define FRAME_PROTOCOL "1"

/* A received frame.  It points into the bytes that it was parsed from. */
struct frame {
        const char *kind;
        char *fields; /* `name=value NUL …` up to fields_end */
        const char *fields_end;
        const char *body;
        size_t body_size;
        size_t size; /* of the whole frame; drop so many bytes after using it */
};

/* Parses the first frame of `in`, in place.  1: a complete frame; 0: it is incomplete; -EBADMSG: not a frame, with the
 * reason in *ret_why. */
int frame_parse(struct frame *f, struct bytes *in, size_t size_max, const char **ret_why);

/* The value of a field; NULL if there is none. */
const char *frame_get(const struct frame *f, const char *name);

/* Reads a field as a number of at least 0; `fallback` if there is no such field.  0 or -EBADMSG. */
int frame_get_number(const struct frame *f, const char *name, uint64_t fallback, uint64_t *ret);

struct frame_headers {
        struct qv_header texts[QV_HEADERS_MAX];
        size_t texts_count;
        struct qv_header2 bytes[QV_HEADERS_MAX];
        size_t bytes_count;
};

/* Collects the fields whose names begin with "header." and "header64.", without these; the latter's values are decoded.
 * 0; -E2BIG: more than QV_HEADERS_MAX of one kind; -EBADMSG: one is not base64.  Call it once, and after all other
 * reads: it changes the fields. */
int frame_get_headers(const struct frame *f, struct frame_headers *ret);

/* Appends a frame to `out`. */
void frame_put_hello(struct bytes *out, const struct qv_host *host);
void frame_put_task(struct bytes *out, const struct qv_task *task, uint64_t deadline_left_ms);
/* What a service answered to a frame of that kind: `status` is 0, with `value`, or -errno. */
void frame_put_answer(struct bytes *out, const char *id, const char *kind, int32_t status, uint64_t value);

#endif
