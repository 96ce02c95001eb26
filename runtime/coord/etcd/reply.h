/* reply.h: what etcd answers, as JSON: read with a range for every number and a bound for every text.
 *
 * The gateway writes 64-bit numbers as strings, leaves out what is zero, false or empty, and writes keys and values as
 * base64.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_REPLY_H
#define QUIVER_COORD_ETCD_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* Revisions, versions, leases: etcd has them as signed numbers, none of them negative. */
#define ETCD_NUMBER_MAX ((uint64_t)INT64_MAX)

/* A whole number of the object; 0 if it is not there.  False: it cannot be. */
bool etcd_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number);

struct etcd_header {
        uint64_t cluster_id;
        uint64_t revision;
};
/* Of a reply or of one message of a stream.  False: there is none, or it cannot be. */
bool etcd_reply_header(const json_t *reply, struct etcd_header *ret_header);

/* Of a key. */
struct etcd_kv {
        uint64_t created, changed; /* revisions */
        uint64_t version;          /* 1 when made */
        uint64_t lease;            /* 0: none */
};
/* False: it cannot be. */
bool etcd_reply_kv(const json_t *kv, struct etcd_kv *ret_kv);
/* Appends the bytes of "key" or "value".  False: that is no base64, or more than `max` bytes. */
bool etcd_reply_bytes(const json_t *kv, const char *name, size_t max, struct buffer *to);

/* What gRPC calls its codes. */
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
/* An error as a unary call has it, or as a stream has it.  False: the reply is none. */
bool etcd_reply_failure(const json_t *reply, struct etcd_failure *ret_failure);
/* Copies text that somebody else wrote: cut, and without control characters. */
void etcd_text(const char *text, char ret_text[ETCD_MESSAGE_MAX + 1]);

/* --- JSON, one object after the other, as it arrives --- */

/* Zero-initialised is the beginning. */
struct etcd_frame {
        size_t seen; /* bytes of the buffer that were looked at */
        unsigned depth;
        bool is_in_text, is_escaped;
};
/* The size of the first whole object in the buffer; 0: it is not all there yet.  -EBADMSG: no object stands there. */
int64_t etcd_frame_next(struct etcd_frame *frame, struct span bytes);

#endif
