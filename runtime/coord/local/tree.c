#include "coord/local/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "coord/driver.h"

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static void *copy_bytes(const void *data, size_t size)
{
        char *made = memory_alloc(size + 1);
        if (size)
                memcpy(made, data, size);
        made[size] = 0;
        return made;
}

static struct tree_node *node_new(const char *path, struct span data)
{
        struct tree_node *node = memory_zero(1, sizeof(*node));
        node->path = copy_bytes(path, strlen(path));
        node->data = copy_bytes(data.data, data.size);
        node->size = data.size;
        return node;
}

static void node_free(struct tree_node *node)
{
        free(node->path);
        free(node->data);
        free(node);
}

static void node_link(struct local_tree *tree, struct tree_node *parent, struct tree_node *node)
{
        node->parent = parent;
        HASH_ADD_KEYPTR(hh, tree->nodes, node->path, strlen(node->path), node);
        if (parent) {
                DL_PREPEND(parent->children, node);
                parent->children_changes++;
        }
}

static void node_unlink(struct local_tree *tree, struct tree_node *node)
{
        HASH_DEL(tree->nodes, node);
        DL_DELETE(node->parent->children, node);
        node->parent->children_changes++;
}

struct tree_node *tree_get(const struct local_tree *tree, const char *path)
{
        struct tree_node *node;
        HASH_FIND(hh, tree->nodes, path, strlen(path), node);
        return node;
}

/* The size of the parent's path in `path`. */
static size_t parent_size(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? (size_t)(slash - path) : 0;
}

static struct tree_node *get_prefix(const struct local_tree *tree, const char *path, size_t size)
{
        struct tree_node *node;
        HASH_FIND(hh, tree->nodes, path, size, node);
        return node;
}

void tree_init(struct local_tree *tree, uint64_t first_id)
{
        *tree = (struct local_tree){ .next_id = first_id };
        node_link(tree, NULL, node_new("", (struct span){ 0 }));
}

void tree_free(struct local_tree *tree)
{
        struct tree_node *node = tree->nodes, *next_node;
        struct tree_session *session = tree->sessions, *next_session;
        HASH_CLEAR(hh, tree->nodes);
        HASH_CLEAR(hh, tree->sessions);
        for (; node; node = next_node) {
                next_node = node->hh.next;
                node_free(node);
        }
        for (; session; session = next_session) {
                next_session = session->hh.next;
                free(session);
        }
        *tree = (struct local_tree){ 0 };
}

int tree_restore(struct local_tree *tree, const char *path, struct span data, const struct coord_stat *stat,
        uint64_t next_sequence, uint64_t children_changes)
{
        struct tree_node *node = tree_get(tree, path);
        struct tree_node *parent = path[0] ? get_prefix(tree, path, parent_size(path)) : NULL;
        if (path[0] ? node != NULL || !parent || parent->stat.owner || coord_path_check(path, NULL) : stat->owner != 0)
                return -EPROTO;
        if (data.size > COORD_DATA_MAX || stat->created >= TREE_ID_MAX || stat->version >= TREE_ID_MAX ||
                next_sequence > TREE_SEQUENCE_MAX + 1 || (stat->owner && !tree_session_get(tree, stat->owner)))
                return -EPROTO;
        if (!node) {
                node = node_new(path, data);
                node_link(tree, parent, node);
        }
        node->stat = *stat;
        node->next_sequence = next_sequence;
        node->children_changes = children_changes;
        if (stat->created >= tree->next_id)
                tree->next_id = stat->created + 1;
        return 0;
}

/* --- sessions ---------------------------------------------------------------------------------------------------- */

uint64_t tree_session_add(struct local_tree *tree, const struct tree_session *session)
{
        if (session->id >= TREE_ID_MAX || session->session_ms > TREE_SESSION_MAX_MS ||
                tree_session_get(tree, session->id ? session->id : tree->next_id))
                return 0;
        struct tree_session *made = memory_zero(1, sizeof(*made));
        *made = *session;
        if (!made->id)
                made->id = tree->next_id;
        if (made->id >= tree->next_id)
                tree->next_id = made->id + 1;
        HASH_ADD(hh, tree->sessions, id, sizeof(made->id), made);
        return made->id;
}

struct tree_session *tree_session_get(const struct local_tree *tree, uint64_t id)
{
        struct tree_session *session;
        HASH_FIND(hh, tree->sessions, &id, sizeof(id), session);
        return session;
}

struct tree_session *tree_session_find(const struct local_tree *tree, const uint8_t nonce[TREE_NONCE_SIZE])
{
        for (struct tree_session *session = tree->sessions; session; session = session->hh.next)
                if (!memcmp(session->nonce, nonce, TREE_NONCE_SIZE))
                        return session;
        return NULL;
}

void tree_session_end(struct local_tree *tree, uint64_t id)
{
        struct tree_session *session = tree_session_get(tree, id);
        struct tree_node *node, *next;
        if (!session)
                return;
        HASH_DEL(tree->sessions, session);
        free(session);
        for (node = tree->nodes; node; node = next) {
                next = node->hh.next;
                if (node->stat.owner != id)
                        continue;
                node_unlink(tree, node);
                node_free(node);
        }
}

/* --- changes ----------------------------------------------------------------------------------------------------- */

/* What is needed to undo one operation. */
struct undo {
        struct tree_node *made;    /* CREATE */
        struct tree_node *deleted; /* DELETE: detached, not freed */
        struct tree_node *set;     /* SET: the node, and its former value */
        char *data;
        size_t size;
};

static void undo_one(struct local_tree *tree, struct undo *undo)
{
        if (undo->made) {
                node_unlink(tree, undo->made);
                node_free(undo->made);
        }
        if (undo->deleted)
                node_link(tree, undo->deleted->parent, undo->deleted);
        if (undo->set) {
                free(undo->set->data);
                undo->set->data = undo->data;
                undo->set->size = undo->size;
                undo->set->stat.version--;
        }
}

static void undo_forget(struct undo *undo)
{
        if (undo->deleted)
                node_free(undo->deleted);
        if (undo->set)
                free(undo->data);
}

static int check_version(const struct tree_node *node, uint64_t version)
{
        if (!node)
                return -ENOENT;
        return version == COORD_ANY_VERSION || version == node->stat.version ? 0 : -ESTALE;
}

static struct tree_node *make(
        struct local_tree *tree, struct tree_node *parent, const char *path, struct span data, uint64_t owner)
{
        struct tree_node *node = node_new(path, data);
        node->stat = (struct coord_stat){ .created = tree->next_id++, .owner = owner };
        node_link(tree, parent, node);
        return node;
}

/* The parent of `path`; makes missing parents if allowed. */
static int find_parent(struct local_tree *tree, const char *path, bool makes_parents, struct tree_node **ret_parent)
{
        size_t size = parent_size(path);
        size_t found = size;
        struct tree_node *parent;
        char name[COORD_PATH_MAX];
        while (!(parent = get_prefix(tree, path, found)))
                while (found && path[--found] != '/')
                        ;
        if (found < size && !makes_parents)
                return -ENOENT;
        if (parent->stat.owner)
                return -ENOTDIR;
        while (found < size) {
                found += found ? 1 : 0;
                found += strcspn(path + found, "/");
                (void)snprintf(name, sizeof(name), "%.*s", (int)found, path);
                parent = make(tree, parent, name, (struct span){ 0 }, 0);
        }
        *ret_parent = parent;
        return 0;
}

static int apply_create(
        struct local_tree *tree, struct tree_change *change, struct coord_multi_op *op, struct undo *undo)
{
        struct tree_node *parent;
        uint64_t owner = op->flags & COORD_EPHEMERAL ? change->session : 0;
        bool is_sequential = op->flags & COORD_SEQUENTIAL;
        if (!is_sequential && tree_get(tree, op->path))
                return -EEXIST;
        int r = find_parent(tree, op->path, change->makes_parents, &parent);
        if (r)
                return r;
        if (is_sequential && parent->next_sequence > TREE_SEQUENCE_MAX)
                return -EOVERFLOW;
        if (is_sequential)
                (void)snprintf(change->made, sizeof(change->made), "%.*s%010" PRIu64, (int)sizeof(change->made) - 11,
                        op->path, parent->next_sequence++);
        else
                (void)snprintf(change->made, sizeof(change->made), "%s", op->path);
        /* Somebody made a node of that name by hand, digits included. */
        if (is_sequential && tree_get(tree, change->made))
                return -EEXIST;
        undo->made = make(tree, parent, change->made, op->data, owner);
        op->stat = undo->made->stat;
        return 0;
}

static int apply_set(struct local_tree *tree, struct coord_multi_op *op, struct undo *undo)
{
        struct tree_node *node = tree_get(tree, op->path);
        int r = check_version(node, op->version);
        if (r)
                return r;
        *undo = (struct undo){ .set = node, .data = node->data, .size = node->size };
        node->data = copy_bytes(op->data.data, op->data.size);
        node->size = op->data.size;
        node->stat.version++;
        op->stat = node->stat;
        return 0;
}

static int apply_delete(struct local_tree *tree, struct coord_multi_op *op, struct undo *undo)
{
        struct tree_node *node = tree_get(tree, op->path);
        int r = check_version(node, op->version);
        if (r)
                return r;
        if (node->children)
                return -ENOTEMPTY;
        op->stat = node->stat;
        node_unlink(tree, node);
        undo->deleted = node;
        return 0;
}

static int apply_check(struct local_tree *tree, struct coord_multi_op *op)
{
        struct tree_node *node = tree_get(tree, op->path);
        int r = check_version(node, op->version);
        if (!r)
                op->stat = node->stat;
        return r;
}

static int apply_one(struct local_tree *tree, struct tree_change *change, struct coord_multi_op *op, struct undo *undo)
{
        switch (op->kind) {
        case COORD_CHECK:
                return apply_check(tree, op);
        case COORD_SET:
                return apply_set(tree, op, undo);
        case COORD_CREATE:
                return apply_create(tree, change, op, undo);
        case COORD_DELETE:
                return apply_delete(tree, op, undo);
        }
        return -EINVAL;
}

int tree_apply(struct local_tree *tree, struct tree_change *change)
{
        struct undo undo[COORD_MULTI_MAX] = { 0 };
        int r = 0;
        uint32_t i = 0;
        if (change->session && !tree_session_get(tree, change->session))
                return -EOWNERDEAD;
        for (; !r && i < change->ops_count; i++)
                r = change->ops[i].status = apply_one(tree, change, &change->ops[i], &undo[i]);
        if (r)
                while (i--)
                        undo_one(tree, &undo[i]);
        else
                while (i--)
                        undo_forget(&undo[i]);
        return r;
}
