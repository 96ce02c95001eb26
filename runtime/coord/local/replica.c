#include "coord/local/replica.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "coord/driver.h"

enum record_kind {
        RECORD_CHANGE = 1,
        RECORD_OPEN,
        RECORD_END,
        RECORD_SEAL,
        /* what a log begins with */
        RECORD_SESSION,
        RECORD_NODE,
        RECORD_NEXT_ID,
};

/* --- reading ----------------------------------------------------------------------------------------------------- */

static struct tree_session read_session(struct reader *r)
{
        struct tree_session session = { .id = reader_u64(r) };
        size_t size = 0;
        const void *nonce = reader_block(r, &size);
        session.session_ms = reader_u64(r);
        session.pid = reader_u64(r);
        session.started = reader_u64(r);
        if (size == TREE_NONCE_SIZE)
                memcpy(session.nonce, nonce, TREE_NONCE_SIZE);
        else
                r->is_bad = true;
        return session;
}

/* Every process skips the same records, so all see the same tree. */
static void pass_over(const struct replica *replica, const char *what)
{
        log_event(LEVEL_WARN, "coordination-value", "driver=local log=log-%u text=%s hint=%s", replica->log.number,
                LOG_QUOTE(what), LOG_QUOTE("the record is not valid and is not used"));
}

static void read_node(struct replica *replica, struct reader *r)
{
        const char *path = reader_text(r);
        struct span data;
        data.data = reader_block(r, &data.size);
        struct coord_stat stat;
        stat.created = reader_u64(r);
        stat.version = reader_u64(r);
        stat.owner = reader_u64(r);
        uint64_t next_sequence = reader_u64(r);
        uint64_t children_changes = reader_u64(r);
        if (r->is_bad || tree_restore(&replica->tree, path, data, &stat, next_sequence, children_changes) < 0)
                pass_over(replica, r->is_bad ? "a node" : path);
}

static bool read_change(struct reader *r, struct tree_change *change, struct coord_multi_op *ops)
{
        change->session = reader_u64(r);
        change->makes_parents = reader_u32(r);
        change->ops = ops;
        change->ops_count = reader_u32(r);
        if (change->ops_count > COORD_MULTI_MAX)
                return false;
        for (uint32_t i = 0; i < change->ops_count; i++) {
                struct coord_multi_op *op = &ops[i];
                op->kind = reader_u32(r);
                op->path = reader_text(r);
                op->data.data = reader_block(r, &op->data.size);
                op->version = reader_u64(r);
                op->flags = reader_u32(r);
                if (r->is_bad || coord_path_check(op->path, NULL))
                        return false;
        }
        return true;
}

/* The record is ours: copies its results for the caller that waits. */
static void answer(struct replica *replica, const struct tree_change *change)
{
        struct tree_change *own = replica->own_change;
        if (!own || own->ops_count != change->ops_count)
                return;
        memcpy(own->made, change->made, sizeof(own->made));
        for (uint32_t i = 0; i < own->ops_count; i++) {
                own->ops[i].status = change->ops[i].status;
                own->ops[i].stat = change->ops[i].stat;
        }
}

static void apply_change(struct replica *replica, struct reader *r, bool is_own)
{
        struct coord_multi_op ops[COORD_MULTI_MAX] = { 0 };
        struct tree_change change = { 0 };
        if (!read_change(r, &change, ops)) {
                pass_over(replica, "a change");
                return;
        }
        int status = tree_apply(&replica->tree, &change);
        if (is_own) {
                replica->own_status = status;
                answer(replica, &change);
        }
}

/* Never moves back: an id is given only once. */
static void read_next_id(struct replica *replica, uint64_t next_id)
{
        if (next_id >= replica->tree.next_id && next_id < TREE_ID_MAX)
                replica->tree.next_id = next_id;
        else
                pass_over(replica, "the next id");
}

/* Skips a record that this version does not know or that is invalid; every process does the same. */
static void apply(struct replica *replica, struct span payload)
{
        struct reader r;
        reader_init(&r, payload.data, payload.size);
        uint32_t kind = reader_u32(&r);
        uint64_t writer = reader_u64(&r);
        uint64_t call = reader_u64(&r);
        bool is_own = writer == replica->writer && call == replica->call;
        struct tree_session session;
        switch (r.is_bad ? 0 : kind) {
        case RECORD_CHANGE:
                apply_change(replica, &r, is_own);
                break;
        case RECORD_OPEN:
        case RECORD_SESSION:
                session = read_session(&r);
                if (r.is_bad || (kind == RECORD_OPEN) != !session.id ||
                        !(session.id = tree_session_add(&replica->tree, &session))) {
                        pass_over(replica, "a session");
                        break;
                }
                if (is_own)
                        replica->own_session = session.id;
                break;
        case RECORD_END:
                tree_session_end(&replica->tree, reader_u64(&r));
                break;
        case RECORD_SEAL:
                replica->is_sealed = true;
                break;
        case RECORD_NODE:
                read_node(replica, &r);
                break;
        case RECORD_NEXT_ID:
                read_next_id(replica, reader_u64(&r));
                log_begins_here(&replica->log);
                break;
        default:
                break;
        }
        replica->is_own_seen |= is_own;
        replica->has_changed = true;
}

/* --- a new log with the current state ---------------------------------------------------------------------------- */

static void begin(struct buffer *b, enum record_kind kind, uint64_t writer, uint64_t call)
{
        buffer_clear(b);
        buffer_put_u32(b, kind);
        buffer_put_u64(b, writer);
        buffer_put_u64(b, call);
}

static void put_session(struct buffer *b, const struct tree_session *session)
{
        buffer_put_u64(b, session->id);
        buffer_put_block(b, session->nonce, TREE_NONCE_SIZE);
        buffer_put_u64(b, session->session_ms);
        buffer_put_u64(b, session->pid);
        buffer_put_u64(b, session->started);
}

/* Parents come before their children. */
static void draft_nodes(struct log_draft *draft, struct buffer *b, const struct tree_node *node)
{
        begin(b, RECORD_NODE, 0, 0);
        buffer_put_text(b, node->path);
        buffer_put_block(b, node->data, node->size);
        buffer_put_u64(b, node->stat.created);
        buffer_put_u64(b, node->stat.version);
        buffer_put_u64(b, node->stat.owner);
        buffer_put_u64(b, node->next_sequence);
        buffer_put_u64(b, node->children_changes);
        log_draft_add(draft, b);
        for (const struct tree_node *child = node->children; child; child = child->next)
                draft_nodes(draft, b, child);
}

static int write_log(const struct local_tree *tree, int dir_fd, unsigned number, struct error *error)
{
        struct log_draft draft;
        struct buffer b = { 0 };
        log_draft_init(&draft);
        for (const struct tree_session *session = tree->sessions; session; session = session->hh.next) {
                begin(&b, RECORD_SESSION, 0, 0);
                put_session(&b, session);
                log_draft_add(&draft, &b);
        }
        draft_nodes(&draft, &b, tree_get(tree, ""));
        begin(&b, RECORD_NEXT_ID, 0, 0);
        buffer_put_u64(&b, tree->next_id);
        log_draft_add(&draft, &b);
        buffer_free(&b);
        return log_draft_publish(&draft, dir_fd, number, error);
}

/* --- moving along ------------------------------------------------------------------------------------------------- */

/* Opens the newest log; makes the first one, or the one after a sealed log, if nobody has.  A log is removed only when
 * it is two behind: a slow process that is about to make a log that others have left behind must find the newer one. */
static int open_newest(struct replica *replica, unsigned after, struct error *error)
{
        char old[32];
        for (;;) {
                unsigned number = 0, again = 0;
                int r = log_newest(replica->dir_fd, &number, error);
                if (!r && number <= after) {
                        number = after + 1;
                        r = write_log(&replica->tree, replica->dir_fd, number, error);
                        /* In a folder that was removed nothing can be made. */
                        if (r == -ENOENT)
                                return error_set(error, -ESTALE, "the folder was removed while it was in use");
                }
                if (!r)
                        r = log_open(&replica->log, replica->dir_fd, number, error);
                if (r && r != -ENOENT)
                        return r;
                if (!r)
                        r = log_newest(replica->dir_fd, &again, error);
                if (!r && again == number) {
                        (void)snprintf(old, sizeof(old), "log-%u", number >= 2 ? number - 2 : 0);
                        (void)unlinkat(replica->dir_fd, old, 0);
                        return 0;
                }
                log_close(&replica->log);
                if (r && r != -ENOENT)
                        return r;
        }
}

static int follow(struct replica *replica, struct error *error)
{
        unsigned after = replica->log.number;
        log_close(&replica->log);
        int r = open_newest(replica, after, error);
        if (r)
                return r;
        tree_free(&replica->tree);
        tree_init(&replica->tree, 1);
        replica->is_sealed = false;
        return 0;
}

int replica_catch_up(struct replica *replica, struct error *error)
{
        struct span payload;
        int r = 0;
        if (replica->log.fd < 0)
                return error_set(error, -EBADF, "the coordination log is not open, since it could not be read before");
        do {
                if (replica->is_sealed)
                        r = follow(replica, error);
                while (!r && !replica->is_sealed && log_next(&replica->log, &payload, &r))
                        apply(replica, payload);
        } while (!r && replica->is_sealed);
        return r;
}

int replica_open(struct replica *replica, int dir_fd, struct error *error)
{
        *replica = (struct replica){ .dir_fd = dir_fd, .log.fd = -1 };
        if (getrandom(&replica->writer, sizeof(replica->writer), 0) != (ssize_t)sizeof(replica->writer))
                abort();
        /* The ids of a tree that was wiped and made again continue above the old ones, as far as the clock tells. */
        tree_init(&replica->tree, clock_wall_ms() * 1000);
        int r = open_newest(replica, 0, error);
        if (!r) {
                tree_free(&replica->tree);
                tree_init(&replica->tree, 1);
                r = replica_catch_up(replica, error);
        }
        if (r)
                replica_close(replica);
        return r;
}

void replica_close(struct replica *replica)
{
        log_close(&replica->log);
        tree_free(&replica->tree);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

/* Appends until the record is read back.  A record after a seal is void, and is appended again to the next log. */
static int submit(struct replica *replica, const struct buffer *payload, struct error *error)
{
        unsigned number;
        int r;
        replica->is_own_seen = false;
        replica->own_status = 0;
        replica->has_appended = true;
        do {
                number = replica->log.number;
                r = log_append(&replica->log, payload, error);
                if (!r)
                        r = replica_catch_up(replica, error);
        } while (!r && !replica->is_own_seen && replica->log.number != number);
        if (!r && !replica->is_own_seen)
                r = error_set(error, -EIO, "log-%u: what was written cannot be read back", replica->log.number);
        return r;
}

int replica_change(struct replica *replica, struct tree_change *change, int *ret_failure, struct error *error)
{
        struct buffer b = { 0 };
        begin(&b, RECORD_CHANGE, replica->writer, ++replica->call);
        buffer_put_u64(&b, change->session);
        buffer_put_u32(&b, change->makes_parents);
        buffer_put_u32(&b, change->ops_count);
        for (uint32_t i = 0; i < change->ops_count; i++) {
                const struct coord_multi_op *op = &change->ops[i];
                buffer_put_u32(&b, op->kind);
                buffer_put_text(&b, op->path);
                buffer_put_block(&b, op->data.data, op->data.size);
                buffer_put_u64(&b, op->version);
                buffer_put_u32(&b, op->flags);
        }
        replica->own_change = change;
        *ret_failure = submit(replica, &b, error);
        replica->own_change = NULL;
        buffer_free(&b);
        return *ret_failure ? *ret_failure : replica->own_status;
}

int replica_session_open(
        struct replica *replica, const struct tree_session *session, uint64_t *ret_id, struct error *error)
{
        struct buffer b = { 0 };
        begin(&b, RECORD_OPEN, replica->writer, ++replica->call);
        put_session(&b, session);
        replica->own_session = 0;
        int r = submit(replica, &b, error);
        buffer_free(&b);
        if (!r && !replica->own_session)
                r = error_set(error, -EIO, "log-%u: no session can begin in it", replica->log.number);
        if (!r)
                *ret_id = replica->own_session;
        return r;
}

int replica_session_end(struct replica *replica, uint64_t id, struct error *error)
{
        struct buffer b = { 0 };
        begin(&b, RECORD_END, replica->writer, ++replica->call);
        buffer_put_u64(&b, id);
        int r = submit(replica, &b, error);
        buffer_free(&b);
        return r;
}

int replica_tidy(struct replica *replica, struct error *error)
{
        struct buffer b = { 0 };
        if (!log_is_long(&replica->log))
                return 0;
        begin(&b, RECORD_SEAL, replica->writer, ++replica->call);
        int r = submit(replica, &b, error);
        buffer_free(&b);
        return r;
}
