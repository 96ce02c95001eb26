/* Mailboxes: messages for one host, until it confirms that it has handled them. */
#include <errno.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

/* A row of `mailbox`; all zero: none. */
struct mailbox {
        uint64_t last; /* the last number given */
        uint64_t messages;
        uint64_t bytes;
};

static struct span nonce_span(const uint8_t nonce[STORE_NONCE_SIZE])
{
        return (struct span){ (const char *)nonce, STORE_NONCE_SIZE };
}

static struct mailbox mailbox_get(struct sqlite_store *s, const uint8_t nonce[STORE_NONCE_SIZE])
{
        struct mailbox m = { 0 };
        struct query q = query(&s->db, STATEMENT_MAILBOX_GET);
        bind_span(&q, nonce_span(nonce));
        bind_number(&q, s->now_ms);
        if (query_row(&q))
                m = (struct mailbox){ min_u64(column_number(&q, 0), TASK_NUMBER_MAX),
                        min_u64(column_number(&q, 1), TASK_NUMBER_MAX),
                        min_u64(column_number(&q, 2), TASK_NUMBER_MAX) };
        query_end(&q);
        return m;
}

/* `until_ms` 0: unchanged. */
static void mailbox_set(
        struct sqlite_store *s, const uint8_t nonce[STORE_NONCE_SIZE], const struct mailbox *m, uint64_t until_ms)
{
        struct query q = query(&s->db, until_ms ? STATEMENT_MAILBOX_PUT : STATEMENT_MAILBOX_SET);
        bind_span(&q, nonce_span(nonce));
        bind_number(&q, m->last);
        bind_number(&q, m->messages);
        bind_number(&q, m->bytes);
        if (until_ms)
                bind_number(&q, until_ms);
        (void)query_run(&q);
}

static void remove_both(struct sqlite_store *s, struct span nonce)
{
        struct query q = query(&s->db, STATEMENT_MAIL_REMOVE_ALL);
        bind_span(&q, nonce);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_MAILBOX_REMOVE);
        bind_span(&q, nonce);
        (void)query_run(&q);
}

/* Removes one expired mailbox, because a post creates at most one. */
static void sweep(struct sqlite_store *s, struct arena_chunk **arena)
{
        struct query q = query(&s->db, STATEMENT_MAILBOX_OLD);
        bind_number(&q, s->now_ms);
        bool is_there = query_row(&q);
        struct span nonce = is_there ? arena_copy(arena, column_span(&q, 0)) : (struct span){ 0 };
        query_end(&q);
        if (is_there)
                remove_both(s, nonce);
}

void sqlite_post(struct sqlite_store *s, struct store_request *request)
{
        struct store_post *post = (struct store_post *)request;
        sweep(s, request_arena(request));
        struct mailbox m = mailbox_get(s, post->nonce);
        if (m.last == TASK_NUMBER_MAX) {
                operation_refuse(request, -EPROTO,
                        "post: what is known of the mailbox is out of range; fsck --repair counts it anew");
                return;
        }
        if (m.messages >= STORE_MAIL_MESSAGES || m.bytes + post->bytes.size > STORE_MAIL_BYTES) {
                post_refuse(post, m.messages, m.bytes);
                return;
        }
        /* An expired or empty mailbox may have left-over messages, which must not come back. */
        if (!m.messages)
                remove_both(s, nonce_span(post->nonce));
        /* At least the time: a mailbox that was removed and created again must not give numbers that its reader has
         * handled. */
        post->number = m.last + 1 > s->now_ms * 1000 ? m.last + 1 : s->now_ms * 1000;
        struct query q = query(&s->db, STATEMENT_MAIL_PUT);
        bind_span(&q, nonce_span(post->nonce));
        bind_number(&q, post->number);
        bind_span(&q, post->bytes);
        (void)query_run(&q);
        m = (struct mailbox){ post->number, m.messages + 1, m.bytes + post->bytes.size };
        mailbox_set(s, post->nonce, &m, s->now_ms + post->keep_ms);
        doorbells_add(&s->bells, post->nonce, BELL_MAIL);
}

/* Removes messages that the reader has handled.  A number above `last` belongs to an earlier mailbox. */
static void forget(struct sqlite_store *s, const struct store_mail_take *take, struct mailbox *m)
{
        if (!take->after || !m->messages || take->after > m->last)
                return;
        struct query q = query(&s->db, STATEMENT_MAIL_SIZES);
        bind_span(&q, nonce_span(take->nonce));
        bind_number(&q, take->after);
        uint64_t messages = query_row(&q) ? column_number(&q, 0) : 0;
        uint64_t bytes = messages ? column_number(&q, 1) : 0;
        query_end(&q);
        if (!messages)
                return;
        q = query(&s->db, STATEMENT_MAIL_REMOVE);
        bind_span(&q, nonce_span(take->nonce));
        bind_number(&q, take->after);
        (void)query_run(&q);
        m->messages -= min_u64(messages, m->messages);
        m->bytes -= min_u64(bytes, m->bytes);
        mailbox_set(s, take->nonce, m, 0);
}

void sqlite_mail_take(struct sqlite_store *s, struct store_request *request)
{
        struct store_mail_take *take = (struct store_mail_take *)request;
        struct arena_chunk **arena = request_arena(request);
        struct mailbox m = mailbox_get(s, take->nonce);
        uint64_t bytes = 0;
        take->messages_count = 0;
        take->has_more = false;
        if (!m.messages)
                return;
        forget(s, take, &m);
        take->messages = arena_take(arena, take->messages_max * sizeof(*take->messages));
        struct query q = query(&s->db, STATEMENT_MAIL_PAGE);
        bind_span(&q, nonce_span(take->nonce));
        bind_number(&q, (uint64_t)take->messages_max + 1);
        while (query_row(&q)) {
                struct span message = column_span(&q, 1);
                bool is_full = take->messages_count &&
                               (take->messages_count == take->messages_max || bytes + message.size > STORE_CALL_BYTES);
                if (is_full) {
                        take->has_more = true;
                        break;
                }
                bytes += message.size;
                take->messages[take->messages_count++] =
                        (struct store_message){ .number = min_u64(column_number(&q, 0), TASK_NUMBER_MAX),
                                .bytes = arena_copy(arena, message) };
        }
        query_end(&q);
}
