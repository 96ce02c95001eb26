/* reply.h: etcd's answers, as JSON: every number is range-checked, every text is bounded.
 *
 * The gateway writes 64-bit numbers as strings, omits zero, false and empty values, and writes keys and values as
 * base64.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_REPLY_H
#define QUIVER_COORD_ETCD_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* Revisions, versions and leases are signed in etcd, but never negative. */
#define ETCD_NUMBER_MAX ((uint64_t)INT64_MAX)

/* A whole number of the object; 0 if it is missing.  False: it is invalid. */
bool etcd_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number);

struct etcd_header {
        uint64_t cluster_id;
        uint64_t revision;
};
/* The header of a reply or of one message of a stream.  False: it is missing or invalid. */
bool etcd_reply_header(const json_t *reply, struct etcd_header *ret_header);

/* The metadata of a key. */
struct etcd_kv {
        uint64_t created, changed; /* revisions */
        uint64_t version;          /* 1 at creation */
        uint64_t lease;            /* 0: none */
};
/* False: it is invalid. */
bool etcd_reply_kv(const json_t *kv, struct etcd_kv *ret_kv);
/* Appends the bytes of "key" or "value".  False: it is not base64, or more than `max` bytes. */
bool etcd_reply_bytes(const json_t *kv, const char *name, size_t max, struct buffer *to);

/* gRPC status codes. */
enum etcd_code {
        ETCD_CODE_OK = 0,
        ETCD_CODE_UNKNOWN = 2,
        ETCD_CODE_INVALID = 3,
        ETCD_CODE_NOT_FOUND = 5,
        ETCD_CODE_DENIED = 7,
        ETCD_CODE_EXHAUSTED = 8,
        ETCD_CODE_PRECONDITION = 9,
        ETCD_CODE_OUT_OF_RANGE = 11,
        ETCD_CODE_UNAVAILABLE = 14,
        ETCD_CODE_UNAUTHENTICATED = 16,
};
#define ETCD_MESSAGE_MAX 200u
struct etcd_failure {
        unsigned code;
        char message[ETCD_MESSAGE_MAX + 1]; /* printable */
};
/* Reads an error, of a plain call or of a stream.  False: the reply is not an error. */
bool etcd_reply_failure(const json_t *reply, struct etcd_failure *ret_failure);
/* Copies foreign text: cuts it, and removes control characters. */
void etcd_text(const char *text, char ret_text[ETCD_MESSAGE_MAX + 1]);

/* --- JSON, one object after the other, as it arrives --- */

/* Splits a stream into JSON objects.  Zero-initialised is the beginning. */
struct etcd_frame {
        size_t seen; /* bytes of the buffer that were scanned */
        unsigned depth;
        bool is_in_text, is_escaped;
};
/* The size of the first complete object in the buffer; 0: it is incomplete.  -EBADMSG: no object begins there. */
int64_t etcd_frame_next(struct etcd_frame *frame, struct span bytes);

#endif
