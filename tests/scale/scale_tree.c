/* scale_tree.c: the authority and a host's end of it.  Nothing is lost on the way: sim/ is about that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/membership/assign_doc.h"
#include "scale.h"

/* Data that several answers under way point to. */
struct scale_blob {
        uint32_t uses;
        size_t size;
        char data[];
};

struct scale_watch {
        struct scale_watch *next;
        struct scale_coord *coord;
        uint64_t life;
        bool is_children;
};

/* A node, or a place where somebody waits for one. */
struct scale_node {
        UT_hash_handle hh;
        struct scale_node *parent; /* NULL: it is at the top */
        struct scale_node *children, *prev, *next;
        uint32_t children_count;
        struct scale_blob *blob; /* NULL: there is no node */
        struct coord_stat stat;
        struct scale_watch *watches;
        char path[];
};

struct scale_counts scale_counts;
uint32_t scale_failing;
static struct scale_node *nodes;
static uint64_t next_created, next_sequence;
static uint64_t link_free_ns;
static uint64_t second, second_bytes;

static void release(struct scale_blob *blob)
{
        if (blob && !--blob->uses)
                free(blob);
}

static struct scale_blob *keep(struct span data)
{
        struct scale_blob *blob = memory_alloc(sizeof(*blob) + data.size + 1);
        *blob = (struct scale_blob){ .uses = 1, .size = data.size };
        if (data.size)
                memcpy(blob->data, data.data, data.size);
        return blob;
}

static struct scale_node *ensure(const char *path)
{
        struct scale_node *node = NULL;
        size_t size = strlen(path);
        HASH_FIND(hh, nodes, path, size, node);
        if (node)
                return node;
        node = memory_zero(1, sizeof(*node) + size + 1);
        memcpy(node->path, path, size);
        HASH_ADD_KEYPTR(hh, nodes, node->path, size, node);
        const char *slash = strrchr(path, '/');
        if (slash) {
                char parent[COORD_PATH_MAX];
                (void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
                node->parent = ensure(parent);
        }
        return node;
}

struct span scale_tree_data(const char *path)
{
        const struct scale_node *node = ensure(path);
        return node->blob ? (struct span){ node->blob->data, node->blob->size } : (struct span){ "", 0 };
}

/* --- the server's link --- */

static void count_sent(uint64_t bytes)
{
        uint64_t now = scale_now_ns / NS_PER_S;
        if (now != second)
                second_bytes = 0;
        second = now;
        second_bytes += bytes;
        scale_counts.bytes_out += bytes;
        scale_counts.peak_bytes = max_u64(scale_counts.peak_bytes, second_bytes);
}

/* When what is sent now will have arrived: the link sends one after the other. */
static uint64_t send_delay_ns(uint64_t bytes)
{
        link_free_ns = max_u64(link_free_ns, scale_now_ns) + bytes * NS_PER_S / SCALE_LINK;
        count_sent(bytes);
        return link_free_ns - scale_now_ns + SCALE_TRAVEL_NS;
}

struct scale_notice {
        struct scale_coord *coord;
        uint64_t life;
        char path[];
};

static void on_notice(void *arg)
{
        struct scale_notice *n = arg;
        if (n->life == n->coord->life)
                n->coord->base.events.changed(n->coord->base.events.self, n->path);
        free(n);
}

static void tell(const struct scale_watch *w, const char *path)
{
        size_t size = strlen(path) + 1;
        struct scale_notice *n = memory_alloc(sizeof(*n) + size);
        *n = (struct scale_notice){ .coord = w->coord, .life = w->life };
        memcpy(n->path, path, size);
        scale_counts.notices++;
        scale_at(send_delay_ns(size), on_notice, n);
}

static void ring(struct scale_node *node, bool is_children)
{
        for (struct scale_watch **at = &node->watches; *at;) {
                struct scale_watch *w = *at;
                if (w->is_children != is_children) {
                        at = &w->next;
                        continue;
                }
                *at = w->next;
                if (w->life == w->coord->life)
                        tell(w, node->path);
                free(w);
        }
}

static void changed(struct scale_node *node, bool is_new_or_gone)
{
        scale_counts.stream_events++;
        scale_counts.stream_bytes += strlen(node->path) + (node->blob ? node->blob->size : 0);
        ring(node, false);
        if (is_new_or_gone && node->parent)
                ring(node->parent, true);
}

static void watch(struct scale_node *node, struct scale_coord *coord, bool is_children)
{
        struct scale_watch *w;
        LL_FOREACH (node->watches, w)
                if (w->coord == coord && w->life == coord->life && w->is_children == is_children)
                        return;
        w = memory_alloc(sizeof(*w));
        *w = (struct scale_watch){ .coord = coord, .life = coord->life, .is_children = is_children };
        LL_PREPEND(node->watches, w);
}

/* --- changes --- */

static int create(uint64_t session, const char *path, struct span data, unsigned flags, struct coord_stat *ret_stat)
{
        struct scale_node *node = ensure(path);
        if (node->blob)
                return -EEXIST;
        node->blob = keep(data);
        node->stat = (struct coord_stat){ .created = ++next_created, .owner = flags & COORD_EPHEMERAL ? session : 0 };
        if (node->parent) {
                DL_APPEND(node->parent->children, node);
                node->parent->children_count++;
        }
        *ret_stat = node->stat;
        changed(node, true);
        return 0;
}

static int set(const char *path, struct span data, uint64_t version, struct coord_stat *ret_stat)
{
        struct scale_node *node = ensure(path);
        if (!node->blob)
                return -ENOENT;
        if (version != COORD_ANY_VERSION && version != node->stat.version)
                return -ESTALE;
        release(node->blob);
        node->blob = keep(data);
        node->stat.version++;
        *ret_stat = node->stat;
        changed(node, false);
        return 0;
}

static void remove_node(struct scale_node *node)
{
        release(node->blob);
        node->blob = NULL;
        if (node->parent) {
                DL_DELETE(node->parent->children, node);
                node->parent->children_count--;
        }
        changed(node, true);
}

void scale_tree_end_session(uint64_t session)
{
        for (struct scale_node *node = nodes; node; node = node->hh.next)
                if (node->blob && node->stat.owner == session)
                        remove_node(node);
}

static int check_op(const struct coord_multi_op *op)
{
        const struct scale_node *node = ensure(op->path);
        if (op->kind == COORD_CREATE)
                return node->blob ? -EEXIST : 0;
        if (!node->blob)
                return -ENOENT;
        return op->version == COORD_ANY_VERSION || op->version == node->stat.version ? 0 : -ESTALE;
}

static void note_document(const struct coord_multi_op *op)
{
        static uint64_t counted;
        struct assignment read = { 0 };
        struct error error;
        if (strcmp(op->path, "assign") != 0 || assign_doc_parse(op->data, &read, &error) < 0)
                return;
        scale_counts.documents++;
        scale_counts.document_bytes = op->data.size;
        for (uint32_t i = 0; i < read.shards_count && read.generation > counted; i++)
                scale_counts.moves += read.slots[i].epoch == read.generation;
        counted = read.generation;
        assignment_free(&read);
}

static int multi(struct coord_multi *m, uint64_t session)
{
        for (uint32_t i = 0; i < m->ops_count; i++) {
                int r = check_op(&m->ops[i]);
                if (r < 0)
                        return m->ops[i].status = r;
        }
        for (uint32_t i = 0; i < m->ops_count; i++) {
                struct coord_multi_op *op = &m->ops[i];
                scale_counts.bytes_in += op->data.size;
                note_document(op);
                if (op->kind == COORD_SET)
                        (void)set(op->path, op->data, op->version, &op->stat);
                else if (op->kind == COORD_CREATE)
                        (void)create(session, op->path, op->data, op->flags, &op->stat);
                else if (op->kind == COORD_DELETE)
                        remove_node(ensure(op->path));
        }
        return 0;
}

/* --- requests --- */

struct scale_request {
        struct scale_coord *coord;
        uint64_t life;
        struct coord_request *request;
        struct scale_blob *blob;
        int status;
};

static void on_answer(void *arg)
{
        struct scale_request *r = arg;
        if (r->life == r->coord->life)
                coord_finish_error(r->request, r->status, "status %d", r->status);
        release(r->blob);
        free(r);
}

static uint64_t do_create(struct scale_request *r, struct coord_create *c)
{
        char made[COORD_PATH_MAX];
        scale_counts.writes++;
        scale_counts.bytes_in += c->data.size;
        if (c->flags & COORD_SEQUENTIAL)
                (void)snprintf(made, sizeof(made), "%.400s%010llu", c->path, (unsigned long long)next_sequence++);
        else
                (void)snprintf(made, sizeof(made), "%s", c->path);
        r->status = create(r->coord->base.session, made, c->data, c->flags, &c->stat);
        c->made = arena_copy(coord_arena(r->request), (struct span){ made, strlen(made) }).data;
        return strlen(made);
}

static uint64_t do_get(struct scale_request *r, struct coord_get *get)
{
        struct scale_node *node = ensure(get->path);
        scale_counts.reads++;
        if (scale_failing && !strcmp(get->path, "assign")) {
                scale_failing--;
                r->status = -ECONNRESET;
                return 0;
        }
        if (get->watch)
                watch(node, r->coord, false);
        if (!node->blob) {
                r->status = -ENOENT;
                return 0;
        }
        r->blob = node->blob;
        r->blob->uses++;
        get->data = (struct span){ r->blob->data, r->blob->size };
        get->stat = node->stat;
        return r->blob->size;
}

static uint64_t do_list(struct scale_request *r, struct coord_children *list)
{
        struct scale_node *node = ensure(list->path), *child;
        uint64_t bytes = 0;
        uint32_t count = 0;
        scale_counts.lists++;
        if (list->watch)
                watch(node, r->coord, true);
        const char **names = arena_take(coord_arena(r->request), (node->children_count + 1) * sizeof(char *));
        DL_FOREACH (node->children, child) {
                const char *name = strrchr(child->path, '/') + 1;
                names[count] = arena_copy(coord_arena(r->request), (struct span){ name, strlen(name) }).data;
                bytes += strlen(names[count++]);
        }
        list->names = names;
        list->names_count = count;
        return bytes;
}

static void on_arrival(void *arg)
{
        struct scale_request *r = arg;
        uint64_t bytes = 0;
        if (r->life != r->coord->life) {
                free(r);
                return;
        }
        const char *path = coord_op_path(r->request);
        scale_counts.bytes_in += strlen(path);
        switch (r->request->op) {
        case COORD_OP_CREATE:
                bytes = do_create(r, (struct coord_create *)r->request);
                break;
        case COORD_OP_GET:
                bytes = do_get(r, (struct coord_get *)r->request);
                break;
        case COORD_OP_CHILDREN:
                bytes = do_list(r, (struct coord_children *)r->request);
                break;
        case COORD_OP_SET: {
                struct coord_set *s = (struct coord_set *)r->request;
                scale_counts.writes++;
                scale_counts.bytes_in += s->data.size;
                r->status = set(path, s->data, s->version, &s->stat);
                break;
        }
        case COORD_OP_DELETE: {
                struct scale_node *node = ensure(path);
                scale_counts.writes++;
                if (node->blob)
                        remove_node(node);
                else
                        r->status = -ENOENT;
                break;
        }
        default:
                scale_counts.writes++;
                r->status = multi((struct coord_multi *)r->request, r->coord->base.session);
        }
        scale_at(send_delay_ns(bytes), on_answer, r);
}

static void start(struct coord *base, struct coord_request *request)
{
        struct scale_coord *coord = (struct scale_coord *)base;
        struct scale_request *r = memory_zero(1, sizeof(*r));
        *r = (struct scale_request){
                .coord = coord, .life = coord->life, .request = request, .status = request->status
        };
        scale_at(SCALE_TRAVEL_NS, request->status < 0 ? on_answer : on_arrival, r);
}

static void token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        (void)coord;
        *ret_token = 0;
}

const struct coord_driver scale_driver = { .scheme = "scale", .start = start, .token = token };

void scale_tree_open(struct scale_coord *coord, const struct coord_events *events)
{
        struct coord_options options = { .app = "scale", .session_ms = SCALE_SESSION_MS, .events = events };
        coord_base_init(&coord->base, &scale_driver, &options, "scale:");
}

void scale_tree_connect(struct scale_coord *coord, uint64_t session)
{
        coord_tell(&coord->base, COORD_ALIVE, session);
        coord->base.events.look(coord->base.events.self);
}
