#include "host/shard/claimed.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/shard/lent.h"
#include "host/shard/pending_outcome.h"

static char *copy_span(char *to, struct span from, struct span *ret)
{
        if (from.size)
                memcpy(to, from.data, from.size);
        to[from.size] = 0;
        *ret = (struct span){ to, from.size };
        return to + from.size + 1;
}

/* How many of the latest events begin like that, ignoring "waited" events in between. */
static uint32_t count_latest(struct span events, struct span beginning)
{
        uint32_t count = 0;
        struct note_event event;
        while (note_event_next(&events, &event)) {
                if (event.text.size >= beginning.size && !memcmp(event.text.data, beginning.data, beginning.size))
                        count++;
                else if (!span_is(event.kind, SPAN_TEXT("waited")))
                        count = 0;
        }
        return count;
}

struct claimed *claimed_copy(struct blocks *blocks, const struct store_task *task, uint32_t pool)
{
        const struct envelope *e = &task->envelope;
        struct span needs = envelope_needs(e);
        size_t size = sizeof(struct claimed) + e->id.size + task->key.size + e->handler.size + e->headers.size +
                      needs.size + e->payload.size + 6;
        struct claimed *c = blocks_take(blocks, size);
        *c = (struct claimed){ .size_bytes = size };
        char *to = c->texts;
        to = copy_span(to, e->id, &c->id);
        to = copy_span(to, task->key, &c->key);
        to = copy_span(to, e->handler, &c->handler);
        to = copy_span(to, e->headers, &c->headers);
        to = copy_span(to, needs, &c->needs);
        (void)copy_span(to, e->payload, &c->payload);
        c->seq = task->seq;
        c->pool = pool;
        c->reply_ms = e->reply_ms;
        c->submitted_ms = e->submitted_ms;
        c->timeout_ms = e->timeout_ms;
        c->attempts_max = e->attempts;
        c->attempts = task->note.attempts;
        c->crashes = task->note.crashes;
        c->interruptions = task->note.interruptions;
        c->laters = task->note.laters;
        if (task->note.events.size) {
                c->hosts_died = count_latest(task->note.events, SPAN_TEXT(HOST_DIED));
                c->silences = count_latest(task->note.events, SPAN_TEXT(WORKER_SILENT));
                c->is_for_owner = count_latest(task->note.events, SPAN_TEXT(SEAT_FAILED)) > 0;
        }
        c->may_merge = e->is_merge && e->key.size && !needs.size && !note_has_started(&task->note);
        c->debounce_ms = e->debounce_ms;
        c->is_debounced = task->note.is_debounced;
        buffer_put(&c->checkpoint, task->note.checkpoint.data, task->note.checkpoint.size);
        return c;
}

void lent_detach(struct claimed *c, bool is_durable)
{
        struct lent *lent = c->lent;
        if (!lent)
                return;
        lent->claimed = NULL;
        lent->is_durable = is_durable;
        c->lent = NULL;
}

void claimed_free_memory(struct blocks *blocks, struct claimed *c)
{
        if (c)
                blocks_give(blocks, c, c->size_bytes);
}

void claimed_free(struct blocks *blocks, struct claimed *c)
{
        lent_detach(c, false);
        pending_outcome_free(c->pending);
        buffer_free(&c->checkpoint);
        buffer_free(&c->saved);
        buffer_free(&c->headers_packed);
        claimed_free_memory(blocks, c->donor);
        claimed_free_memory(blocks, c);
}
