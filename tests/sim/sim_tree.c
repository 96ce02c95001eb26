/* sim_tree.c: a coordination tree and its sessions: the authority. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_tree.h"

/* --- the authority --- */

struct sim_tree *sim_tree_new(struct sim *sim)
{
        struct sim_tree *tree = calloc(1, sizeof(*tree));
        (void)sim;
        if (!tree)
                abort();
        return tree;
}

static void drop(struct sim_tree *tree, uint32_t i)
{
        free(tree->nodes[i]->data);
        free(tree->nodes[i]);
        tree->nodes[i] = tree->nodes[--tree->nodes_count];
}

void sim_tree_free(struct sim_tree *tree)
{
        while (tree->nodes_count)
                drop(tree, 0);
        free(tree);
}

static struct node *find(const struct sim_tree *tree, const char *path)
{
        for (uint32_t i = 0; i < tree->nodes_count; i++)
                if (!strcmp(tree->nodes[i]->path, path))
                        return tree->nodes[i];
        return NULL;
}

bool sim_tree_read(const struct sim *sim, const char *path, struct span *ret_data)
{
        const struct node *node = find(sim->tree, path);
        if (node)
                *ret_data = (struct span){ node->data, node->size };
        return node;
}

bool sim_tree_is_cut(const struct sim_host *h)
{
        return h->tree_cut_until_ms > h->sim->now_ms;
}

struct notice {
        struct sim_coord *coord;
        char path[COORD_PATH_MAX];
};

static void on_notice(struct sim *sim, void *arg)
{
        struct notice *n = arg;
        (void)sim;
        n->coord->base.events.changed(n->coord->base.events.self, n->path);
}

static void ring(struct sim *sim, const char *path, bool is_children)
{
        for (uint32_t i = 0; i < sim->tree->sessions_count; i++) {
                struct session *s = &sim->tree->sessions[i];
                for (uint32_t j = 0; s->is_alive && j < s->watches_count; j++) {
                        if (s->watches[j].is_children != is_children || strcmp(s->watches[j].path, path) != 0)
                                continue;
                        s->watches[j--] = s->watches[--s->watches_count];
                        if (!s->host->is_alive || s->host->life != s->life)
                                continue;
                        struct sim_coord *coord = (struct sim_coord *)s->host->coord;
                        if (sim_tree_is_cut(s->host)) {
                                coord->has_missed = true;
                                continue;
                        }
                        struct notice *n = calloc(1, sizeof(*n));
                        if (!n)
                                abort();
                        n->coord = coord;
                        (void)snprintf(n->path, sizeof(n->path), "%s", path);
                        sim_at_host(s->host, sim_travel_ms(sim), on_notice, n);
                }
        }
}

static void ring_parent(struct sim *sim, const char *path)
{
        char parent[COORD_PATH_MAX];
        (void)snprintf(parent, sizeof(parent), "%s", path);
        char *slash = strrchr(parent, '/');
        if (slash)
                *slash = 0;
        ring(sim, parent, true);
}

static void watch(struct session *s, const char *path, bool is_children)
{
        for (uint32_t i = 0; i < s->watches_count; i++)
                if (s->watches[i].is_children == is_children && !strcmp(s->watches[i].path, path))
                        return;
        if (s->watches_count == WATCHES_MAX)
                abort();
        struct watch *w = &s->watches[s->watches_count++];
        (void)snprintf(w->path, sizeof(w->path), "%s", path);
        w->is_children = is_children;
}

struct session *sim_tree_session(const struct sim_tree *tree, uint64_t number)
{
        for (uint32_t i = 0; i < tree->sessions_count; i++)
                if (tree->sessions[i].number == number)
                        return (struct session *)&tree->sessions[i];
        return NULL;
}

void sim_tree_end_session(struct sim *sim, uint64_t number)
{
        struct sim_tree *tree = sim->tree;
        struct session *s = sim_tree_session(tree, number);
        if (!s || !s->is_alive)
                return;
        s->is_alive = false;
        for (uint32_t i = 0; i < tree->nodes_count;) {
                char path[COORD_PATH_MAX];
                if (tree->nodes[i]->stat.owner != number) {
                        i++;
                        continue;
                }
                memcpy(path, tree->nodes[i]->path, sizeof(path));
                drop(tree, i);
                ring(sim, path, false);
                ring_parent(sim, path);
        }
}

static void set_data(struct node *node, struct span data)
{
        free(node->data);
        node->data = malloc(data.size + 1);
        if (!node->data)
                abort();
        if (data.size)
                memcpy(node->data, data.data, data.size);
        node->size = data.size;
}

/* --- what a request does there --- */

static int create(struct sim *sim, uint64_t session, const char *path, struct span data, unsigned flags, char *made,
        struct coord_stat *stat)
{
        struct sim_tree *tree = sim->tree;
        (void)snprintf(made, COORD_PATH_MAX, "%s", path);
        if (flags & COORD_SEQUENTIAL)
                (void)snprintf(made, COORD_PATH_MAX, "%.400s%010llu", path, (unsigned long long)++tree->next_sequence);
        if (find(tree, made))
                return -EEXIST;
        if (tree->nodes_count == NODES_MAX)
                sim_fail(sim, "the tree is full");
        struct node *node = calloc(1, sizeof(*node));
        if (!node)
                abort();
        memcpy(node->path, made, COORD_PATH_MAX);
        set_data(node, data);
        node->stat.created = ++tree->next_created;
        node->stat.owner = flags & COORD_EPHEMERAL ? session : 0;
        *stat = node->stat;
        tree->nodes[tree->nodes_count++] = node;
        ring(sim, made, false);
        ring_parent(sim, made);
        return 0;
}

static int set(struct sim *sim, const char *path, struct span data, uint64_t version, struct coord_stat *stat)
{
        struct node *node = find(sim->tree, path);
        if (!node)
                return -ENOENT;
        if (version != COORD_ANY_VERSION && version != node->stat.version)
                return -ESTALE;
        set_data(node, data);
        node->stat.version++;
        *stat = node->stat;
        ring(sim, path, false);
        return 0;
}

static int delete (struct sim *sim, const char *path)
{
        for (uint32_t i = 0; i < sim->tree->nodes_count; i++)
                if (!strcmp(sim->tree->nodes[i]->path, path)) {
                        drop(sim->tree, i);
                        ring(sim, path, false);
                        ring_parent(sim, path);
                        return 0;
                }
        return -ENOENT;
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(struct sim *sim, struct parcel *p)
{
        size_t size = strlen(p->path);
        p->names = calloc(NODES_MAX, sizeof(*p->names));
        if (!p->names)
                abort();
        for (uint32_t i = 0; i < sim->tree->nodes_count; i++) {
                const char *path = sim->tree->nodes[i]->path;
                if (!strncmp(path, p->path, size) && path[size] == '/' && !strchr(path + size + 1, '/'))
                        p->names[p->names_count++] = strdup(path + size + 1);
        }
        qsort(p->names, p->names_count, sizeof(*p->names), compare);
}

static int check_op(const struct sim *sim, const struct coord_multi_op *op)
{
        const struct node *node = find(sim->tree, op->path);
        if (op->kind == COORD_CREATE)
                return node ? -EEXIST : 0;
        if (!node)
                return -ENOENT;
        return op->version == COORD_ANY_VERSION || op->version == node->stat.version ? 0 : -ESTALE;
}

static int multi(struct sim *sim, struct parcel *p)
{
        char made[COORD_PATH_MAX];
        for (uint32_t i = 0; i < p->ops_count; i++) {
                int r = check_op(sim, &p->ops[i]);
                if (r < 0)
                        return p->ops[i].status = r;
        }
        for (uint32_t i = 0; i < p->ops_count; i++) {
                struct coord_multi_op *op = &p->ops[i];
                if (op->kind == COORD_SET)
                        (void)set(sim, op->path, op->data, op->version, &op->stat);
                else if (op->kind == COORD_CREATE)
                        (void)create(sim, p->session, op->path, op->data, op->flags, made, &op->stat);
                else if (op->kind == COORD_DELETE)
                        (void)delete (sim, op->path);
        }
        return 0;
}

void sim_tree_execute(struct sim *sim, struct parcel *p)
{
        struct session *s = sim_tree_session(sim->tree, p->session);
        struct node *node = find(sim->tree, p->path);
        if (!s || !s->is_alive) {
                p->status = -EOWNERDEAD;
                return;
        }
        s->heard_ms = sim->now_ms;
        if (!p->host->is_alive || p->host->life != p->life || p->host->paused_until_ms > sim->now_ms) {
                sim->kept_ms = sim->now_ms;
                sim->counts.kept++;
        }
        switch (p->op) {
        case COORD_OP_CREATE:
                p->status = create(
                        sim, p->session, p->path, (struct span){ p->data, p->size }, p->flags, p->made, &p->stat);
                break;
        case COORD_OP_GET:
                if (p->watch)
                        watch(s, p->path, false);
                p->status = node ? 0 : -ENOENT;
                if (node) {
                        p->stat = node->stat;
                        p->data = malloc(node->size + 1);
                        if (!p->data)
                                abort();
                        memcpy(p->data, node->data, node->size);
                        p->size = node->size;
                }
                break;
        case COORD_OP_SET:
                p->status = set(sim, p->path, (struct span){ p->data, p->size }, p->version, &p->stat);
                break;
        case COORD_OP_DELETE:
                p->status = delete (sim, p->path);
                break;
        case COORD_OP_CHILDREN:
                if (p->watch)
                        watch(s, p->path, true);
                list(sim, p);
                break;
        default:
                p->status = multi(sim, p);
        }
}
