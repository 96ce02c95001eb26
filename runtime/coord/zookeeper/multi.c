/* multi.c: requests of several operations in one step. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "coord/zookeeper/zookeeper.h"

static void add(struct zk *zk, struct call_multi *all, const struct coord_multi_op *op)
{
        uint32_t i = all->count++;
        zoo_op_t *to = &all->ops[i];
        const char *path = all->paths[i] = zk_path(zk, op->path);
        int version = zk_version(op->version);
        switch (op->kind) {
        case COORD_CHECK:
                zoo_check_op_init(to, path, version);
                break;
        case COORD_SET:
                zoo_set_op_init(to, path, op->data.data, (int)op->data.size, version, &all->stats[i]);
                break;
        case COORD_CREATE:
                zoo_create_op_init(to, path, op->data.data, (int)op->data.size, zk->acl,
                        op->flags & COORD_EPHEMERAL ? ZOO_EPHEMERAL : 0, all->made[i], sizeof(all->made[i]));
                break;
        case COORD_DELETE:
                zoo_delete_op_init(to, path, version);
                break;
        }
}

static bool has_kind(const struct coord_multi *multi, enum coord_multi_kind kind)
{
        for (uint32_t i = 0; i < multi->ops_count; i++)
                if (multi->ops[i].kind == kind)
                        return true;
        return false;
}

struct zk_call *zk_multi_call(struct zk *zk, struct coord_multi *multi)
{
        struct zk_call *call = zk_call_new(zk_path(zk, NULL));
        call->step = STEP_MULTI;
        call->multi = memory_zero(1, sizeof(*call->multi));
        for (uint32_t i = 0; i < multi->ops_count; i++)
                add(zk, call->multi, &multi->ops[i]);
        /* A create within a multi returns no creation id.  The id is the number of the transaction, which a set
         * returns; so a multi without a set gets one more, of the app's root. */
        if (has_kind(multi, COORD_CREATE) && !has_kind(multi, COORD_SET))
                add(zk, call->multi, &(struct coord_multi_op){ .kind = COORD_SET, .version = COORD_ANY_VERSION });
        return call;
}

static uint64_t transaction(const struct call_multi *all)
{
        for (uint32_t i = 0; i < all->count; i++)
                if (all->ops[i].type == ZOO_SETDATA_OP)
                        return (uint64_t)all->stats[i].mzxid;
        return 0;
}

static void give_stats(struct coord_multi *multi, const struct zk_call *call, uint64_t session)
{
        for (uint32_t i = 0; i < multi->ops_count; i++) {
                struct coord_multi_op *op = &multi->ops[i];
                if (op->kind == COORD_SET)
                        op->stat = zk_stat(&call->multi->stats[i]);
                else if (op->kind == COORD_CREATE)
                        op->stat = (struct coord_stat){ .created = transaction(call->multi),
                                .owner = op->flags & COORD_EPHEMERAL ? session : 0 };
        }
}

int zk_multi_answer(struct coord_multi *multi, const struct zk_call *call)
{
        if (call->rc == ZOK) {
                give_stats(multi, call, multi->request.coord->session);
                return 0;
        }
        /* The operations after the one that failed report that they were not tried. */
        for (uint32_t i = 0; i < multi->ops_count; i++) {
                int rc = call->multi->results[i].err;
                if (rc != ZOK && rc != ZRUNTIMEINCONSISTENCY) {
                        multi->ops[i].status = zk_errno(rc);
                        break;
                }
        }
        return zk_errno(call->rc);
}
