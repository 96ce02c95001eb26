/* Any records in the log of a local coordination, whole as far as their checksum goes: the tree that they make can be
 * written to, its sessions can end, and whoever reads the log again sees the same. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/log.h"
#include "choices.h"
#include "coord/local/replica.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = { "", "a", "a/b", "a/b/c", "b", "b/c", "a/x-0000000000", "a//b", "/", "..", "a b",
        "line/x-", "line", "a/b/c/d" };

static char where[64];

static void remove_folder(void)
{
        char log[96];
        (void)snprintf(log, sizeof(log), "%s/log-1", where);
        (void)unlink(log);
        (void)rmdir(where);
}

/* Made once, in memory where there is such a place. */
static int folder(void)
{
        static int fd = -1;
        if (fd >= 0)
                return fd;
        (void)snprintf(where, sizeof(where), "%s/quiver-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
        demand(mkdtemp(where) != NULL);
        (void)atexit(remove_folder);
        fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        demand(fd >= 0);
        return fd;
}

static void put_session(struct buffer *b, struct choices *c)
{
        uint8_t nonce[TREE_NONCE_SIZE] = { choose_byte(c) };
        buffer_put_u64(b, choose_number(c));
        buffer_put_block(b, nonce, choose(c, 8) ? sizeof(nonce) : 3);
        buffer_put_u64(b, choose(c, 2) ? 1000 : choose_number(c));
        buffer_put_u64(b, choose_number(c));
        buffer_put_u64(b, choose_number(c));
}

static void put_node(struct buffer *b, struct choices *c)
{
        buffer_put_text(b, paths[choose(c, sizeof(paths) / sizeof(paths[0]))]);
        buffer_put_block(b, "data", choose(c, 5));
        for (unsigned i = 0; i < 5; i++)
                buffer_put_u64(b, choose_number(c));
}

static void put_change(struct buffer *b, struct choices *c)
{
        uint32_t count = choose(c, 8) ? choose(c, 4) : (uint32_t)choose_number(c);
        buffer_put_u64(b, choose_number(c));
        buffer_put_u32(b, choose(c, 2));
        buffer_put_u32(b, count);
        for (uint32_t i = 0; i < count && i < 20; i++) {
                buffer_put_u32(b, choose(c, 5));
                buffer_put_text(b, paths[choose(c, sizeof(paths) / sizeof(paths[0]))]);
                buffer_put_block(b, "data", choose(c, 5));
                buffer_put_u64(b, choose(c, 2) ? COORD_ANY_VERSION : choose_number(c));
                buffer_put_u32(b, choose(c, 5));
        }
}

/* kind, writer, call, and what the kind wants, with a byte changed now and then. */
static void put_record(struct buffer *b, struct choices *c)
{
        uint32_t kind = choose(c, 9);
        buffer_put_u32(b, kind == 4 ? 3 : kind); /* not a seal: a new log would be written to disk */
        buffer_put_u64(b, 0);
        buffer_put_u64(b, 0);
        if (kind == 1)
                put_change(b, c);
        else if (kind == 2 || kind == 5)
                put_session(b, c);
        else if (kind == 6)
                put_node(b, c);
        else
                buffer_put_u64(b, choose_number(c));
        if (!choose(c, 8) && b->size > 4)
                b->data[4 + choose(c, (unsigned)(b->size - 4 < 255 ? b->size - 4 : 255))] = choose_byte(c);
        if (!choose(c, 16))
                b->size -= choose(c, (unsigned)b->size < 255 ? (unsigned)b->size : 255);
}

static void write_log(int dir, struct choices *c)
{
        static const char head[16] = "quiver coord 1\n";
        static const uint8_t mark[LOG_MARK_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        struct buffer all = { 0 }, record = { 0 };
        buffer_put(&all, head, sizeof(head));
        buffer_put(&all, mark, sizeof(mark));
        while (c->size) {
                buffer_clear(&record);
                put_record(&record, c);
                buffer_put(&all, mark, sizeof(mark));
                buffer_put_u32(&all, (uint32_t)record.size);
                buffer_put_u32(&all, (uint32_t)crc32(0, record.data, (unsigned)record.size));
                buffer_put(&all, record.data, record.size);
        }
        int fd = openat(dir, "log-1", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        demand(fd >= 0 && write(fd, all.data, all.size) == (ssize_t)all.size);
        (void)close(fd);
        buffer_free(&all);
        buffer_free(&record);
}

static void demand_same(const struct local_tree *a, const struct local_tree *b)
{
        demand(a->next_id == b->next_id && HASH_COUNT(a->nodes) == HASH_COUNT(b->nodes) &&
                HASH_COUNT(a->sessions) == HASH_COUNT(b->sessions));
        for (const struct tree_node *node = a->nodes; node; node = node->hh.next) {
                const struct tree_node *other = tree_get(b, node->path);
                demand(other && other->size == node->size && other->stat.created == node->stat.created);
                demand(!node->stat.owner || (!node->children && tree_session_get(a, node->stat.owner)));
        }
}

/* Somebody comes, stands in a line, and ends everybody's session. */
static void work(struct replica *replica)
{
        struct error error;
        struct tree_session session = { .nonce = { 0xee }, .session_ms = 1000 };
        uint64_t id = 0;
        int failure = 0;
        if (replica_session_open(replica, &session, &id, &error) < 0)
                return;
        demand(id > 0 && tree_session_get(&replica->tree, id) != NULL);
        struct coord_multi_op op = {
                .kind = COORD_CREATE, .path = "line/x-", .flags = COORD_EPHEMERAL | COORD_SEQUENTIAL
        };
        struct tree_change change = { .session = id, .makes_parents = true, .ops = &op, .ops_count = 1 };
        int r = replica_change(replica, &change, &failure, &error);
        demand(failure == 0);
        if (r == 0)
                demand(strlen(change.made) == strlen("line/x-") + 10 && tree_get(&replica->tree, change.made) != NULL);
        while (replica->tree.sessions)
                demand(replica_session_end(replica, replica->tree.sessions->id, &error) == 0);
        for (const struct tree_node *node = replica->tree.nodes; node; node = node->hh.next)
                demand(!node->stat.owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        struct replica one, two;
        struct error error;
        int dir = folder();
        log_set_level(LEVEL_ERROR);
        write_log(dir, &c);
        if (replica_open(&one, dir, &error) < 0)
                return 0;
        if (replica_open(&two, dir, &error) == 0) {
                demand_same(&one.tree, &two.tree);
                work(&one);
                demand(replica_catch_up(&two, &error) == 0);
                demand_same(&one.tree, &two.tree);
                replica_close(&two);
        }
        replica_close(&one);
        return 0;
}
