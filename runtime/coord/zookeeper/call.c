#include "coord/zookeeper/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

struct zk_call *zk_call_new(char *path)
{
        struct zk_call *call = memory_zero(1, sizeof(*call));
        call->path = path;
        return call;
}

static void forget_answer(struct zk_call *call)
{
        free(call->bytes);
        call->bytes = NULL;
        call->size = 0;
        call->count = 0;
}

void zk_call_free(struct zk_call *call)
{
        if (!call)
                return;
        if (call->multi)
                for (uint32_t i = 0; i < call->multi->count; i++)
                        free(call->multi->paths[i]);
        forget_answer(call);
        free(call->multi);
        free(call->path);
        free(call);
}

/* --- on the client's threads: copy, and hand over ---------------------------------------------------------------- */

static void keep_bytes(struct zk_call *call, const char *bytes, size_t size)
{
        call->bytes = memory_alloc(size + 1);
        if (size)
                memcpy(call->bytes, bytes, size);
        call->bytes[size] = 0;
        call->size = size;
}

static void answer(const void *data, int rc, const struct Stat *stat)
{
        struct zk_call *call = (struct zk_call *)data;
        call->rc = rc;
        if (stat)
                call->stat = *stat;
        zk_handle_post(call->handle, &call->post);
}

static void on_void(int rc, const void *data)
{
        answer(data, rc, NULL);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
        answer(data, rc, rc == ZOK ? stat : NULL);
}

static void on_made(int rc, const char *path, const struct Stat *stat, const void *data)
{
        if (rc == ZOK)
                keep_bytes((struct zk_call *)data, path, strlen(path));
        answer(data, rc, rc == ZOK ? stat : NULL);
}

static void on_parent(int rc, const char *path, const void *data)
{
        (void)path;
        answer(data, rc, NULL);
}

static void on_data(int rc, const char *bytes, int size, const struct Stat *stat, const void *data)
{
        /* A node without data has size -1. */
        if (rc == ZOK)
                keep_bytes((struct zk_call *)data, bytes, size > 0 ? (size_t)size : 0);
        answer(data, rc, rc == ZOK ? stat : NULL);
}

static void on_names(int rc, const struct String_vector *names, const void *data)
{
        struct zk_call *call = (struct zk_call *)data;
        struct buffer all = { 0 };
        if (rc == ZOK) {
                for (int32_t i = 0; i < names->count; i++)
                        buffer_put(&all, names->data[i], strlen(names->data[i]) + 1);
                call->count = (uint32_t)names->count;
                keep_bytes(call, (const char *)all.data, all.size);
                buffer_free(&all);
        }
        answer(data, rc, NULL);
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

static int send_create(struct zk_call *call, zhandle_t *zh)
{
        int flags = (call->flags & COORD_EPHEMERAL ? ZOO_EPHEMERAL : 0) |
                    (call->flags & COORD_SEQUENTIAL ? ZOO_SEQUENCE : 0);
        return zoo_acreate2(zh, call->path, call->data.data, (int)call->data.size, call->acl, flags, on_made, call);
}

static int send_parent(struct zk_call *call, zhandle_t *zh)
{
        char cut = call->path[call->parent_size];
        call->path[call->parent_size] = 0;
        int rc = zoo_acreate(zh, call->path, "", 0, call->acl, 0, on_parent, call);
        call->path[call->parent_size] = cut;
        return rc;
}

static int send_step(struct zk_call *call, zhandle_t *zh)
{
        watcher_fn watcher = call->watch ? zk_handle_watcher : NULL;
        switch (call->step) {
        case STEP_CREATE:
                return send_create(call, zh);
        case STEP_PARENT:
                return send_parent(call, zh);
        case STEP_GET:
                return zoo_awget(zh, call->path, watcher, call->handle, on_data, call);
        case STEP_EXISTS:
                return zoo_awexists(zh, call->path, watcher, call->handle, on_stat, call);
        case STEP_SET:
                return zoo_aset(zh, call->path, call->data.data, (int)call->data.size, call->version, on_stat, call);
        case STEP_DELETE:
                return zoo_adelete(zh, call->path, call->version, on_void, call);
        case STEP_CHILDREN:
                return zoo_awget_children(zh, call->path, watcher, call->handle, on_names, call);
        case STEP_MULTI:
                return zoo_amulti(zh, (int)call->multi->count, call->multi->ops, call->multi->results, on_void, call);
        }
        return ZUNIMPLEMENTED;
}

static void drop(struct post *post)
{
        zk_call_free((struct zk_call *)post);
}

int zk_call_send(struct zk_call *call, struct zk_handle *handle)
{
        forget_answer(call);
        call->handle = handle;
        call->post.kind = POST_ANSWER;
        call->post.drop = drop;
        call->is_out = true;
        call->rc = ZCLOSING; /* if there will be no answer */
        zhandle_t *zh = zk_handle_lock(handle);
        int rc = zh ? send_step(call, zh) : ZINVALIDSTATE;
        /* The client's threads wait for the lock before they answer. */
        if (rc == ZOK)
                zk_handle_expect(handle, &call->post);
        else
                call->is_out = false;
        if (zh)
                zk_handle_unlock(handle);
        return rc;
}
