#include "host/lend/lend_message.h"

#include <errno.h>
#include <string.h>

#include "task/id.h"

#define MAGIC      "qvlend1"
#define ORDER_MARK UINT32_C(0x01020304)

void lend_message_put(struct buffer *to, const struct lend_message *message)
{
        struct buffer task = { 0 };
        buffer_put_text(to, MAGIC);
        buffer_put_u32(to, ORDER_MARK);
        buffer_put_u32(to, message->kind);
        buffer_put_block(to, message->from, sizeof(message->from));
        buffer_put_text(to, message->host);
        switch (message->kind) {
        case LEND_ASK:
                buffer_put_text(to, message->handler);
                buffer_put_u32(to, message->seats);
                buffer_put_text(to, message->worker);
                return;
        case LEND_NONE:
                buffer_put_text(to, message->handler);
                return;
        case LEND_HAND:
        case LEND_STOP:
        case LEND_DECLINE:
        case LEND_KINDS:
                break;
        }
        buffer_put_u32(to, message->shard);
        buffer_put_u64(to, message->fence.epoch);
        buffer_put_u64(to, message->fence.start);
        buffer_put_u64(to, message->fence.seq);
        buffer_put_text(to, message->id);
        if (message->kind != LEND_HAND)
                return;
        buffer_put_u32(to, message->is_worker);
        buffer_put_u64(to, message->ttl_ms);
        buffer_put_u64(to, message->timeout_ms);
        buffer_put_u32(to, message->attempt);
        buffer_put_u32(to, message->attempts_max);
        buffer_put_u32(to, message->crashes);
        buffer_put_u32(to, message->lane);
        envelope_put(&task, &message->task);
        buffer_put_block(to, task.data, task.size);
        buffer_put_block(to, message->checkpoint.data, message->checkpoint.size);
        buffer_free(&task);
}

/* --- reading --- */

static int bad(struct error *error, const char *what)
{
        return error_set(error, -EBADMSG, "a message of another host: its %s is malformed", what);
}

static bool is_host(const char *name)
{
        return worker_name_check(span_of_text(name), NULL) == 0;
}

static int read_ask(struct reader *r, struct lend_message *m, struct error *error)
{
        m->handler = reader_text(r);
        if (task_handler_check(span_of_text(m->handler), NULL) < 0)
                return bad(error, "handler");
        if (m->kind == LEND_NONE)
                return 0;
        m->seats = reader_u32(r);
        m->worker = reader_text(r);
        if (m->seats < 1 || m->seats > LEND_SEATS_MAX)
                return bad(error, "number of seats");
        if (*m->worker && worker_name_check(span_of_text(m->worker), NULL) < 0)
                return bad(error, "worker");
        return 0;
}

static int read_start(struct reader *r, struct lend_message *m, struct error *error)
{
        m->shard = reader_u32(r);
        m->fence.epoch = reader_u64(r);
        m->fence.start = reader_u64(r);
        m->fence.seq = reader_u64(r);
        m->id = reader_text(r);
        if (!m->fence.epoch || m->fence.epoch > TASK_NUMBER_MAX || !m->fence.start ||
                m->fence.start > TASK_NUMBER_MAX || !m->fence.seq || m->fence.seq > STORE_SEQ_MAX)
                return bad(error, "fence");
        uint32_t shard;
        if (task_id_check(span_of_text(m->id), &shard, NULL) < 0 || shard != m->shard)
                return bad(error, "id");
        return 0;
}

static int read_task(struct reader *r, struct lend_message *m, struct error *error)
{
        size_t size;
        m->is_worker = reader_u32(r) != 0;
        m->ttl_ms = reader_u64(r);
        m->timeout_ms = reader_u64(r);
        m->attempt = reader_u32(r);
        m->attempts_max = reader_u32(r);
        m->crashes = reader_u32(r);
        uint32_t lane = reader_u32(r);
        const void *task = reader_block(r, &size);
        m->checkpoint.data = reader_block(r, &m->checkpoint.size);
        if (r->is_bad || lane >= LANES || !m->attempt || m->attempt > NOTE_COUNT_MAX ||
                m->attempts_max > NOTE_COUNT_MAX || m->crashes > NOTE_COUNT_MAX || !m->ttl_ms ||
                m->ttl_ms > LEND_TTL_MAX || m->timeout_ms > TASK_NUMBER_MAX || m->checkpoint.size > NOTE_CHECKPOINT_MAX)
                return bad(error, "numbers");
        m->lane = (enum lane)lane;
        if (envelope_parse(task, size, &m->task, NULL) < 0 || !span_is(m->task.id, span_of_text(m->id)))
                return bad(error, "task");
        /* Only a task for a worker may have a key: a key's order is kept by the owner of its shard. */
        if (!m->is_worker && m->task.key.size && !span_is(m->task.key, m->task.id))
                return bad(error, "key");
        return 0;
}

int lend_message_parse(struct span bytes, struct lend_message *ret, struct error *error)
{
        struct lend_message m = { .host = "", .handler = "", .worker = "", .id = "" };
        struct reader r;
        size_t size;
        int result = 0;
        reader_init(&r, bytes.data, bytes.size);
        if (strcmp(reader_text(&r), MAGIC) != 0 || reader_u32(&r) != ORDER_MARK)
                return bad(error, "beginning");
        uint32_t kind = reader_u32(&r);
        const void *from = reader_block(&r, &size);
        m.host = reader_text(&r);
        if (r.is_bad || !kind || kind >= LEND_KINDS || size != sizeof(m.from) || !is_host(m.host))
                return bad(error, "sender");
        memcpy(m.from, from, sizeof(m.from));
        m.kind = (enum lend_kind)kind;
        if (m.kind == LEND_ASK || m.kind == LEND_NONE)
                result = read_ask(&r, &m, error);
        else
                result = read_start(&r, &m, error);
        if (result == 0 && m.kind == LEND_HAND)
                result = read_task(&r, &m, error);
        if (result < 0)
                return result;
        if (r.is_bad || r.size)
                return bad(error, "length");
        *ret = m;
        return 0;
}
