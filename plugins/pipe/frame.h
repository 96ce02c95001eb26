/* frame.h: the frames of the pipe protocol, version 1.  sdk/pipe/README.md is its one page.
 *
 *         length, 4 bytes, big-endian | kind \n | name=value \n … | \n | body: the rest, any bytes */
#ifndef QUIVER_PIPE_FRAME_H
#define QUIVER_PIPE_FRAME_H

#include <quiver/plugin.h>

#include "../common/bytes.h"

#define FRAME_PROTOCOL "1"

/* One received frame.  Points into the bytes that it was parsed from. */
struct frame {
        const char *kind;
        char *fields; /* name=value NUL … up to fields_end */
        const char *fields_end;
        const char *body;
        size_t body_size;
        size_t size; /* of all of it: drop so much when done with it */
};

/* Parses the first frame of `in`, in place.  1: there it is; 0: it is not all there yet; -EBADMSG: no frame, and
 * `ret_why` says why. */
int frame_parse(struct frame *f, struct bytes *in, size_t size_max, const char **ret_why);

/* The value of a field; NULL if it is not there. */
const char *frame_get(const struct frame *f, const char *name);

/* A field that is a number, from 0 up; `fallback` if it is not there.  0 or -EBADMSG. */
int frame_get_number(const struct frame *f, const char *name, uint64_t fallback, uint64_t *ret);

/* The fields whose names begin with "header.", without that; up to `room` of them.  Returns how many there are.
 * The last to be asked for: it takes the fields apart. */
size_t frame_get_headers(const struct frame *f, struct qv_header *headers, size_t room);

/* Appends a frame to `out`. */
void frame_put_hello(struct bytes *out, const struct qv_host *host);
void frame_put_task(struct bytes *out, const struct qv_task *task, uint64_t deadline_left_ms);

#endif
