/* wait.c: one task's outcome, copied into one piece of memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "client/call.h"

#define WAIT_MAX_MS (TASK_NUMBER_MAX / 2)

CALL_START(reply)

static const char *put_text(char **at, struct span text)
{
        char *start = *at;
        if (text.size)
                memcpy(start, text.data, text.size);
        start[text.size] = 0;
        *at = start + text.size + 1;
        return start;
}

/* Counts the events and the bytes that their texts take. */
static size_t measure_events(struct span events, size_t *ret_bytes)
{
        struct note_event event;
        size_t count = 0;
        *ret_bytes = 0;
        for (; note_event_next(&events, &event); count++)
                *ret_bytes += event.kind.size + 1 + event.text.size + 1;
        return count;
}

static struct qv_client_outcome *copy_outcome(const struct store_reply *reply)
{
        size_t texts;
        size_t count = measure_events(reply->note.events, &texts);
        size_t size = sizeof(struct qv_client_outcome) + count * sizeof(struct qv_client_event);
        struct qv_client_outcome *outcome =
                memory_zero(1, size + texts + reply->reason.size + 1 + reply->data.size + 1);
        struct qv_client_event *events = (struct qv_client_event *)(outcome + 1);
        char *at = (char *)outcome + size;
        struct span rest = reply->note.events;
        struct note_event event;
        for (size_t i = 0; note_event_next(&rest, &event); i++) {
                events[i].at_ms = event.at_ms;
                events[i].kind = put_text(&at, event.kind);
                events[i].text = put_text(&at, event.text);
        }
        outcome->size = sizeof(*outcome);
        outcome->state = reply->state == REPLY_DONE ? QV_CLIENT_DONE : QV_CLIENT_DEAD;
        outcome->events = events;
        outcome->events_count = count;
        outcome->error = count ? events[count - 1].text : "";
        outcome->reason = put_text(&at, reply->reason);
        outcome->attempts = reply->note.attempts;
        outcome->crashes = reply->note.crashes;
        outcome->interruptions = reply->note.interruptions;
        if (reply->has_data) {
                outcome->result_size = reply->data.size;
                outcome->result = put_text(&at, reply->data);
        }
        return outcome;
}

static void take_outcome(struct client_call *call)
{
        struct qv_client_outcome **outcome = call->self;
        if (call->reply.state != REPLY_PENDING)
                *outcome = copy_outcome(&call->reply);
}

int qv_client_wait(
        struct qv_client *client, const char *id, uint64_t timeout_ms, struct qv_client_outcome **ret_outcome)
{
        struct error *error = client_error_start();
        struct qv_client_outcome *outcome = NULL;
        if (!id)
                return error_set(error, -EINVAL, "id: is not said");
        struct client_call call = { .start = start_reply, .take = take_outcome, .self = &outcome };
        call.reply.id = (struct span){ id, strlen(id) };
        /* "For ever" must not wrap around when the time is added. */
        call.reply.wait_ms = min_u64(timeout_ms, WAIT_MAX_MS);
        int r = client_call(client, &call, error);
        if (r < 0)
                return r;
        if (call.reply.state == REPLY_PENDING)
                return error_set(error, -EAGAIN, "task %s has not ended yet", id);
        *ret_outcome = outcome;
        return 0;
}

void qv_client_outcome_free(struct qv_client_outcome *outcome)
{
        free(outcome);
}
