#include "coord/etcd/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "coord/driver.h"

unsigned etcd_depth(const char *path)
{
        unsigned depth = 1;
        for (; *path; path++)
                depth += *path == '/';
        return depth;
}

void etcd_name_node(struct buffer *to, const char *prefix, const char *path)
{
        buffer_printf(to, "%snode/%u/%s", prefix, etcd_depth(path), path);
}

void etcd_name_children(struct buffer *to, const char *prefix, const char *path)
{
        if (*path)
                buffer_printf(to, "%snode/%u/%s/", prefix, etcd_depth(path) + 1, path);
        else
                buffer_printf(to, "%snode/1/", prefix);
}

void etcd_name_sequence(struct buffer *to, const char *prefix, const char *path)
{
        buffer_printf(to, "%ssequence/%s", prefix, path);
}

void etcd_name_session(struct buffer *to, const char *prefix, uint64_t lease)
{
        buffer_printf(to, "%ssession/%016" PRIx64, prefix, lease);
}

void etcd_name_end(struct buffer *key)
{
        key->data[key->size - 1]++; /* the last byte is a slash or a NUL */
}

bool etcd_name_read(struct span key, const char *prefix, char *ret_path)
{
        static const char kind[] = "node/";
        size_t begin = strlen(prefix);
        char path[COORD_PATH_MAX];
        unsigned depth = 0;
        if (key.size <= begin || memcmp(key.data, prefix, begin) != 0)
                return false;
        key = (struct span){ key.data + begin, key.size - begin };
        if (key.size < sizeof(kind) || memcmp(key.data, kind, sizeof(kind) - 1) != 0)
                return false;
        size_t at = sizeof(kind) - 1;
        for (; at < key.size && key.data[at] >= '0' && key.data[at] <= '9' && depth < COORD_PATH_MAX; at++)
                depth = depth * 10 + (unsigned)(key.data[at] - '0');
        if (at >= key.size || key.data[at] != '/' || key.size - at - 1 >= sizeof(path) ||
                memchr(key.data + at, 0, key.size - at))
                return false;
        memcpy(path, key.data + at + 1, key.size - at - 1);
        path[key.size - at - 1] = 0;
        if (coord_path_check(path, NULL) || etcd_depth(path) != depth)
                return false;
        memcpy(ret_path, path, key.size - at);
        return true;
}

void etcd_put_bytes(struct buffer *json, const char *name, const void *data, size_t size)
{
        bool is_first = json->size && json->data[json->size - 1] == '{';
        buffer_printf(json, "%s\"%s\":\"", is_first ? "" : ",", name);
        base64_put(json, data, size);
        buffer_put(json, "\"", 1);
}

void etcd_put_key(struct buffer *json, const char *name, const struct buffer *key)
{
        etcd_put_bytes(json, name, key->data, key->size);
}
