#include "coord/etcd/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "coord/etcd/txn_private.h"

/* --- making a transaction ---------------------------------------------------------------------------------------- */

struct txn_node *txn_look(struct etcd_txn *txn, const char *path)
{
        for (unsigned i = 0; i < txn->nodes_count; i++)
                if (!strcmp(txn->nodes[i]->path, path))
                        return txn->nodes[i];
        if (txn->nodes_count == TXN_NODES_MAX)
                abort();
        struct txn_node *node = memory_zero(1, sizeof(*node));
        (void)snprintf(node->path, sizeof(node->path), "%s", path);
        txn->nodes[txn->nodes_count++] = node;
        return node;
}

/* False: the node is at the top. */
static bool parent_of(const char *path, char ret_parent[COORD_PATH_MAX])
{
        const char *slash = strrchr(path, '/');
        size_t size = slash ? (size_t)(slash - path) : 0;
        memmove(ret_parent, path, size); /* both may be the same buffer */
        ret_parent[size] = 0;
        return slash != NULL;
}

static void add_op(struct etcd_txn *txn, struct txn_op op)
{
        char parent[COORD_PATH_MAX];
        txn->ops[txn->ops_count++] = op;
        /* One answer shows which of the parents are missing, if they must be made. */
        for (bool has = parent_of(op.path, parent); has && op.makes_parents && etcd_depth(op.path) <= ETCD_DEPTH_MAX;
                has = parent_of(parent, parent))
                (void)txn_look(txn, parent);
}

struct etcd_txn *etcd_txn_new(const char *prefix, const struct coord_request *request)
{
        struct etcd_txn *txn = memory_zero(1, sizeof(*txn));
        txn->prefix = prefix;
        if (request->op == COORD_OP_CREATE) {
                const struct coord_create *create = (const struct coord_create *)request;
                txn->is_sequential = create->flags & COORD_SEQUENTIAL;
                (void)parent_of(create->path, txn->parent);
                add_op(txn, (struct txn_op){ .kind = COORD_CREATE,
                                    .path = create->path,
                                    .data = create->data,
                                    .flags = create->flags,
                                    .makes_parents = true });
        } else if (request->op == COORD_OP_SET) {
                const struct coord_set *set = (const struct coord_set *)request;
                add_op(txn, (struct txn_op){
                                    .kind = COORD_SET, .path = set->path, .data = set->data, .version = set->version });
        } else if (request->op == COORD_OP_DELETE) {
                const struct coord_delete *del = (const struct coord_delete *)request;
                add_op(txn, (struct txn_op){ .kind = COORD_DELETE, .path = del->path, .version = del->version });
        } else {
                const struct coord_multi *multi = (const struct coord_multi *)request;
                for (uint32_t i = 0; i < multi->ops_count; i++) {
                        const struct coord_multi_op *op = &multi->ops[i];
                        add_op(txn, (struct txn_op){ .kind = op->kind,
                                            .path = op->path,
                                            .data = op->data,
                                            .version = op->version,
                                            .flags = op->flags });
                }
        }
        return txn;
}

void etcd_txn_free(struct etcd_txn *txn)
{
        if (!txn)
                return;
        for (unsigned i = 0; i < txn->nodes_count; i++) {
                strings_free(&txn->nodes[i]->children);
                strings_free(&txn->nodes[i]->spared);
                free(txn->nodes[i]);
        }
        free(txn);
}

int etcd_txn_status(const struct etcd_txn *txn, unsigned *ret_which)
{
        *ret_which = txn->which;
        return txn->status;
}

const char *etcd_txn_why(const struct etcd_txn *txn)
{
        return txn->why ? txn->why : strerror(-txn->status);
}

const char *etcd_txn_made(const struct etcd_txn *txn)
{
        return txn->is_sequential ? txn->made : txn->ops[0].path;
}

struct coord_stat etcd_txn_stat(const struct etcd_txn *txn, unsigned which)
{
        return txn->ops[which].stat;
}

/* --- executing the operations on what is known ------------------------------------------------------------------- */

/* Whether the node exists after the operations so far.  If that is unknown, `expected` is assumed and compared. */
static bool is_there(struct txn_node *node, bool expected)
{
        if (node->is_made || node->is_deleted)
                return node->is_made;
        bool there = node->seen == TXN_UNREAD ? expected : node->seen == TXN_THERE;
        if (there)
                node->must_be_there = true;
        else
                node->must_be_absent = true;
        return there;
}

static int make(struct etcd_txn *txn, struct txn_node *node, uint64_t owner, struct span data)
{
        /* In one transaction, a key that is deleted and put again would keep its creation id. */
        if (node->is_deleted) {
                txn->why = "etcd cannot delete a node and make it anew in one step";
                return -ENOTSUP;
        }
        node->is_made = true;
        node->owner = owner;
        node->data = data;
        return 0;
}

/* Whether the node can have children; makes it if it is missing. */
static int stand_on(struct etcd_txn *txn, const char *path, bool makes_parents)
{
        char above[COORD_PATH_MAX];
        struct txn_node *node = txn_look(txn, path);
        if (!is_there(node, true)) {
                if (!makes_parents)
                        return -ENOENT;
                int r = parent_of(path, above) ? stand_on(txn, above, true) : 0;
                return r ? r : make(txn, node, 0, (struct span){ 0 });
        }
        if (node->is_made)
                return node->owner ? -ENOTDIR : 0;
        if (node->seen == TXN_THERE && node->lease)
                return -ENOTDIR;
        node->must_be_permanent = true;
        return 0;
}

/* Appends the number to the name.  If the sequence is missing or invalid, the number is one above every number that a
 * child has, so that nobody overtakes the children that exist. */
static int number_it(struct etcd_txn *txn, const char *path)
{
        uint64_t number = max_u64(txn->has_sequence ? txn->sequence_read : 0, txn->has_names ? txn->above_names : 0);
        if (number > SEQUENCE_MAX) {
                txn->why = "no number is left in its sequence";
                return -EBADMSG;
        }
        txn->sequence = number;
        (void)snprintf(txn->made, sizeof(txn->made), "%s%010" PRIu64, path, number);
        if (txn->numbered && strcmp(txn->numbered->path, txn->made) != 0) {
                /* The name of an earlier attempt, whose number another process has taken. */
                (void)snprintf(txn->numbered->path, sizeof(txn->numbered->path), "%s", txn->made);
                txn->numbered->seen = TXN_UNREAD;
        }
        txn->numbered = txn_look(txn, txn->made);
        return 0;
}

static int create(struct etcd_txn *txn, const struct txn_op *op)
{
        char parent[COORD_PATH_MAX];
        const char *path = op->path;
        if (etcd_depth(path) > ETCD_DEPTH_MAX) {
                txn->why = "at most 32 names in a path, where etcd is the coordination";
                return -E2BIG;
        }
        int r = parent_of(path, parent) ? stand_on(txn, parent, op->makes_parents) : 0;
        if (r)
                return r;
        if (txn_must_read(txn))
                return 0; /* unknown yet */
        if (txn->is_sequential) {
                r = number_it(txn, path);
                if (r)
                        return r;
                path = txn->made;
        }
        struct txn_node *node = txn_look(txn, path);
        if (is_there(node, false)) {
                /* The sequence is behind the children: somebody else has written it. */
                txn->wants_names = txn->is_sequential && !txn->has_names;
                return txn->wants_names ? 0 : -EEXIST;
        }
        return make(txn, node, op->flags & COORD_EPHEMERAL ? txn->lease : 0, op->data);
}

static int check_version(struct txn_node *node, uint64_t version)
{
        if (version == COORD_ANY_VERSION)
                return 0;
        if (node->is_made)
                return version == node->sets ? 0 : -ESTALE;
        if (version < node->sets)
                return -ESTALE;
        uint64_t before = version - node->sets;
        if ((node->seen == TXN_THERE && node->version != before) ||
                (node->must_have_version && node->must_version != before))
                return -ESTALE;
        node->must_have_version = true;
        node->must_version = before;
        return 0;
}

/* Collects the children that the operations so far have deleted. */
static void spare_children(struct etcd_txn *txn, struct txn_node *node)
{
        size_t size = strlen(node->path);
        for (unsigned i = 0; i < txn->nodes_count; i++) {
                const char *path = txn->nodes[i]->path;
                if (txn->nodes[i]->is_deleted && !strncmp(path, node->path, size) && path[size] == '/' &&
                        !strchr(path + size + 1, '/'))
                        strings_add(&node->spared, path + size + 1);
        }
}

static bool has_child(struct etcd_txn *txn, const struct txn_node *node)
{
        size_t size = strlen(node->path);
        for (unsigned i = 0; i < txn->nodes_count; i++) {
                const char *path = txn->nodes[i]->path;
                if (txn->nodes[i]->is_made && !strncmp(path, node->path, size) && path[size] == '/')
                        return true;
        }
        for (size_t i = 0; node->has_children_read && i < node->children.count; i++)
                if (!strings_has(&node->spared, node->children.items[i]))
                        return true;
        return false;
}

static int remove_node(struct etcd_txn *txn, struct txn_node *node)
{
        spare_children(txn, node);
        if (has_child(txn, node))
                return -ENOTEMPTY;
        if (node->is_made) {
                txn->why = "etcd cannot make a node and delete it in one step";
                return -ENOTSUP;
        }
        node->must_be_empty = node->is_deleted = true;
        return 0;
}

static int execute(struct etcd_txn *txn, const struct txn_op *op)
{
        if (op->kind == COORD_CREATE)
                return create(txn, op);
        struct txn_node *node = txn_look(txn, op->path);
        if (!is_there(node, true))
                return -ENOENT;
        int r = check_version(node, op->version);
        if (r || op->kind == COORD_CHECK)
                return r;
        if (op->kind == COORD_DELETE)
                return remove_node(txn, node);
        node->sets++;
        node->data = op->data;
        return 0;
}

static void begin(struct txn_node *node)
{
        node->must_be_absent = node->must_be_there = node->must_be_permanent = node->must_be_empty = false;
        node->must_have_version = node->is_made = node->is_deleted = false;
        node->sets = node->owner = 0;
        node->data = (struct span){ 0 };
        strings_free(&node->spared);
}

int txn_simulate(struct etcd_txn *txn)
{
        txn->why = NULL;
        txn->status = 0;
        for (unsigned i = 0; i < txn->nodes_count; i++)
                begin(txn->nodes[i]);
        for (unsigned i = 0; !txn->status && i < txn->ops_count; i++) {
                txn->which = i;
                txn->status = execute(txn, &txn->ops[i]);
        }
        return txn->status;
}

bool txn_is_certain(const struct etcd_txn *txn)
{
        for (unsigned i = 0; i < txn->nodes_count; i++)
                if (txn->nodes[i]->seen == TXN_UNREAD)
                        return false;
        return true;
}

bool txn_must_read(const struct etcd_txn *txn)
{
        if (!txn->is_sequential)
                return false;
        if (txn->sequence_seen == TXN_UNREAD || (txn->wants_names && !txn->has_names))
                return true;
        /* Without a valid sequence the names of the children are needed, if there can be any. */
        for (unsigned i = 0; i < txn->nodes_count; i++)
                if (!strcmp(txn->nodes[i]->path, txn->parent) && txn->nodes[i]->seen == TXN_ABSENT)
                        return false;
        return !txn->has_sequence && !txn->has_names;
}
