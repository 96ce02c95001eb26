/* Replies: a task's outcome for a client that waits for it. */
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

/* Polling interval of a waiting reply, in case a ring is lost. */
#define LOOK_MS 500

void reply_put(struct sqlite_store *s, const struct store_ref *task, enum store_reply_state state, bool has_data,
        struct span data, struct span reason, struct span note)
{
        struct query q = query(&s->db, STATEMENT_REPLY_WAITER);
        bind_text(&q, task->id);
        if (query_row(&q)) {
                struct span waiter = column_span(&q, 0);
                if (waiter.size == STORE_NONCE_SIZE)
                        doorbells_add(&s->bells, (const uint8_t *)waiter.data, BELL_REPLY);
        }
        query_end(&q);
        q = query(&s->db, STATEMENT_REPLY_PUT);
        bind_text(&q, task->id);
        bind_number(&q, s->now_ms + task->reply_ms);
        bind_number(&q, state);
        if (has_data)
                bind_span(&q, data);
        else
                bind_null(&q);
        bind_text(&q, reason);
        bind_span(&q, note);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_REPLY_SWEEP);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
}

bool reply_must_announce(const struct store_reply *reply)
{
        return reply->wait_ms && !reply->is_announced;
}

static void announce(struct sqlite_store *s, struct store_reply *reply)
{
        struct query q = query(&s->db, STATEMENT_REPLY_WAIT);
        bind_text(&q, store_reply_id(reply));
        bind_number(&q, s->now_ms + reply->wait_ms);
        bind_span(&q, (struct span){ (const char *)s->nonce, STORE_NONCE_SIZE });
        (void)query_run(&q);
        reply->is_announced = true;
}

/* True if the task was merged into another, which has to be looked at instead. */
static bool look(struct sqlite_store *s, struct store_reply *reply)
{
        struct arena_chunk **arena = request_arena(&reply->request);
        bool is_led_on = false;
        reply->state = REPLY_PENDING;
        struct query q = query(&s->db, STATEMENT_REPLY_GET);
        bind_text(&q, store_reply_id(reply));
        bind_number(&q, s->now_ms);
        if (query_row(&q)) {
                uint64_t state = column_number(&q, 0);
                is_led_on = state == REPLY_MERGED && store_reply_follow(reply, column_span(&q, 1));
                reply->state = state <= REPLY_DEAD ? (enum store_reply_state)state : REPLY_PENDING;
                reply->has_data = !column_is_null(&q, 1);
                reply->data = arena_copy(arena, column_span(&q, 1));
                reply->reason = arena_copy(arena, column_span(&q, 2));
                struct span note = arena_copy(arena, column_span(&q, 3));
                if (note_parse(note.data, note.size, &reply->note))
                        reply->note = (struct task_note){ 0 };
        }
        query_end(&q);
        return is_led_on;
}

void sqlite_reply(struct sqlite_store *s, struct store_request *request)
{
        struct store_reply *reply = (struct store_reply *)request;
        while (look(s, reply))
                reply->is_announced = false;
        if (reply->state == REPLY_PENDING && reply_must_announce(reply))
                announce(s, reply);
}

/* --- on the loop --- */

static void on_timer(uv_timer_t *timer)
{
        reply_rang(timer->data);
}

bool reply_keep_waiting(struct sqlite_store *s, struct store_reply *reply)
{
        uint64_t now = uv_now(s->loop);
        if (reply->request.status || reply->state != REPLY_PENDING || now >= reply->deadline_ms)
                return false;
        uint64_t left = reply->deadline_ms - now;
        reply->request.next = s->waiting;
        s->waiting = &reply->request;
        (void)uv_timer_start(&s->reply_timer, on_timer, min_u64(left, LOOK_MS), 0);
        return true;
}

void reply_rang(struct sqlite_store *s)
{
        (void)uv_timer_stop(&s->reply_timer);
        while (s->waiting) {
                struct store_request *request = s->waiting;
                s->waiting = request->next;
                writer_post(s, request);
        }
}
