#include "guard/order.h"

#include <errno.h>
#include <string.h>

static void put_files(struct buffer *to, const struct tls_files *files)
{
        buffer_put_text(to, files->ca_file);
        buffer_put_text(to, files->cert_file);
        buffer_put_text(to, files->key_file);
        buffer_put_text(to, files->server_name);
}

static struct tls_files get_files(struct reader *r)
{
        struct tls_files files;
        files.ca_file = reader_text(r);
        files.cert_file = reader_text(r);
        files.key_file = reader_text(r);
        files.server_name = reader_text(r);
        return files;
}

void order_put_start(struct buffer *to, const struct guard_start *start)
{
        buffer_put_u32(to, GUARD_START);
        buffer_put_block(to, start->nonce, sizeof(start->nonce));
        buffer_put_u64(to, start->ttl_ms);
        buffer_put_u32(to, start->leases);
        buffer_put_text(to, start->app);
        buffer_put_text(to, start->cgroup ? start->cgroup : "");
        buffer_put_text(to, start->store_url);
        buffer_put_text(to, start->store_user);
        buffer_put_text(to, start->store_password);
        buffer_put_text(to, start->store_sentinel_user);
        buffer_put_text(to, start->store_sentinel_password);
        buffer_put_text(to, start->coord_url);
        buffer_put_text(to, start->coord_user);
        buffer_put_text(to, start->coord_password);
        buffer_put_text(to, start->coord_sentinel_user);
        buffer_put_text(to, start->coord_sentinel_password);
        put_files(to, &start->store_tls);
        put_files(to, &start->coord_tls);
}

void order_put_session(struct buffer *to, const char *token)
{
        buffer_put_u32(to, GUARD_SESSION);
        buffer_put_text(to, token);
}

void order_put_runners(struct buffer *to, const pid_t *pids, uint32_t count)
{
        buffer_put_u32(to, GUARD_RUNNERS);
        buffer_put_u32(to, count);
        for (uint32_t i = 0; i < count; i++)
                buffer_put_u32(to, (uint32_t)pids[i]);
}

void order_put_reaped(struct buffer *to, pid_t pid)
{
        buffer_put_u32(to, GUARD_REAPED);
        buffer_put_u32(to, (uint32_t)pid);
}

void order_put_ttl(struct buffer *to, uint64_t ttl_ms)
{
        buffer_put_u32(to, GUARD_TTL);
        buffer_put_u64(to, ttl_ms);
}

void order_put_bye(struct buffer *to)
{
        buffer_put_u32(to, GUARD_BYE);
}

int order_open(struct reader *r, const void *data, size_t size, enum guard_order *ret_order)
{
        reader_init(r, data, size);
        uint32_t order = reader_u32(r);
        if (r->is_bad || order < GUARD_START || order > GUARD_BYE)
                return -EBADMSG;
        *ret_order = (enum guard_order)order;
        return 0;
}

int order_get_start(struct reader *r, struct guard_start *ret)
{
        size_t size;
        struct guard_start start = { 0 };
        const void *nonce = reader_block(r, &size);
        if (r->is_bad || size != sizeof(start.nonce))
                return -EBADMSG;
        memcpy(start.nonce, nonce, size);
        start.ttl_ms = reader_u64(r);
        start.leases = reader_u32(r);
        start.app = reader_text(r);
        start.cgroup = reader_text(r);
        start.store_url = reader_text(r);
        start.store_user = reader_text(r);
        start.store_password = reader_text(r);
        start.store_sentinel_user = reader_text(r);
        start.store_sentinel_password = reader_text(r);
        start.coord_url = reader_text(r);
        start.coord_user = reader_text(r);
        start.coord_password = reader_text(r);
        start.coord_sentinel_user = reader_text(r);
        start.coord_sentinel_password = reader_text(r);
        start.store_tls = get_files(r);
        start.coord_tls = get_files(r);
        if (r->is_bad)
                return -EBADMSG;
        *ret = start;
        return 0;
}
