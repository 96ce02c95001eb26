#include "coord/etcd/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

#define NUMBER_DIGITS 20u
#define DEPTH_MAX     64u

/* --- numbers and bytes ------------------------------------------------------------------------------------------- */

static bool read_digits(const char *text, uint64_t *ret_number)
{
        uint64_t number = 0;
        size_t size = strlen(text);
        if (!size || size > NUMBER_DIGITS)
                return false;
        for (size_t i = 0; i < size; i++) {
                unsigned digit = (unsigned)(text[i] - '0');
                if (digit > 9 || number > (UINT64_MAX - digit) / 10)
                        return false;
                number = number * 10 + digit;
        }
        *ret_number = number;
        return true;
}

bool etcd_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number)
{
        const json_t *at = json_object_get(object, name);
        uint64_t number = 0;
        if (json_is_string(at)) {
                if (!read_digits(json_string_value(at), &number))
                        return false;
        } else if (json_is_integer(at)) {
                if (json_integer_value(at) < 0)
                        return false;
                number = (uint64_t)json_integer_value(at);
        } else if (at) {
                return false;
        }
        if (number > max)
                return false;
        *ret_number = number;
        return true;
}

bool etcd_reply_header(const json_t *reply, struct etcd_header *ret_header)
{
        const json_t *header = json_object_get(reply, "header");
        struct etcd_header read;
        if (!json_is_object(header) || !etcd_number(header, "cluster_id", UINT64_MAX, &read.cluster_id) ||
                !etcd_number(header, "revision", ETCD_NUMBER_MAX, &read.revision))
                return false;
        *ret_header = read;
        return true;
}

bool etcd_reply_kv(const json_t *kv, struct etcd_kv *ret_kv)
{
        struct etcd_kv read;
        if (!json_is_object(kv) || !etcd_number(kv, "create_revision", ETCD_NUMBER_MAX, &read.created) ||
                !etcd_number(kv, "mod_revision", ETCD_NUMBER_MAX, &read.changed) ||
                !etcd_number(kv, "version", ETCD_NUMBER_MAX, &read.version) ||
                !etcd_number(kv, "lease", ETCD_NUMBER_MAX, &read.lease))
                return false;
        if (!read.created || !read.version || read.changed < read.created)
                return false;
        *ret_kv = read;
        return true;
}

bool etcd_reply_bytes(const json_t *kv, const char *name, size_t max, struct buffer *to)
{
        const json_t *at = json_object_get(kv, name);
        size_t size;
        if (!at)
                return true;
        struct span text = { json_string_value(at), json_string_length(at) };
        return text.data && base64_is_exact(text, &size) && size <= max && !base64_decode(text, to);
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

void etcd_text(const char *text, char ret_text[ETCD_MESSAGE_MAX + 1])
{
        size_t size = 0;
        for (; size < ETCD_MESSAGE_MAX && text[size]; size++)
                ret_text[size] = (char)(text[size] >= ' ' && text[size] < 0x7f ? text[size] : '?');
        ret_text[size] = 0;
}

static bool read_failure(const json_t *at, const char *code, struct etcd_failure *ret_failure)
{
        const char *message = json_string_value(json_object_get(at, "message"));
        uint64_t number = 0;
        if (!message || !etcd_number(at, code, 16, &number))
                return false;
        ret_failure->code = number ? (unsigned)number : ETCD_CODE_UNKNOWN;
        etcd_text(message, ret_failure->message);
        return true;
}

bool etcd_reply_failure(const json_t *reply, struct etcd_failure *ret_failure)
{
        const json_t *error = json_object_get(reply, "error");
        if (json_is_object(error))
                return read_failure(error, "grpc_code", ret_failure);
        return json_is_string(error) && read_failure(reply, "code", ret_failure);
}

/* --- streams ----------------------------------------------------------------------------------------------------- */

int64_t etcd_frame_next(struct etcd_frame *frame, struct span bytes)
{
        while (frame->seen < bytes.size) {
                char at = bytes.data[frame->seen++];
                if (frame->is_in_text) {
                        if (frame->is_escaped)
                                frame->is_escaped = false;
                        else if (at == '\\')
                                frame->is_escaped = true;
                        else if (at == '"')
                                frame->is_in_text = false;
                } else if (at == '"' && frame->depth) {
                        frame->is_in_text = true;
                } else if (at == '{' || (at == '[' && frame->depth)) {
                        if (++frame->depth > DEPTH_MAX)
                                return -EBADMSG;
                } else if (at == '}' || at == ']') {
                        if (!frame->depth)
                                return -EBADMSG;
                        if (!--frame->depth) {
                                size_t size = frame->seen;
                                *frame = (struct etcd_frame){ 0 };
                                return (int64_t)size;
                        }
                } else if (!frame->depth && !strchr(" \t\r\n", at)) {
                        return -EBADMSG;
                }
        }
        return 0;
}
