/* wait.c: the outcome of one task, copied into one piece of memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "client/call.h"
#include "client/events.h"

#define WAIT_MAX_MS (TASK_NUMBER_MAX / 2)

CALL_START(reply)

static struct qv_client_outcome *copy_outcome(const struct store_reply *reply)
{
        size_t texts;
        size_t count = events_measure(reply->note.events, &texts);
        size_t size = sizeof(struct qv_client_outcome) + count * sizeof(struct qv_client_event);
        struct qv_client_outcome *outcome =
                memory_zero(1, size + texts + reply->reason.size + 1 + reply->data.size + 1);
        struct qv_client_event *events = (struct qv_client_event *)(outcome + 1);
        char *at = (char *)outcome + size;
        events_copy(reply->note.events, events, &at);
        outcome->size = sizeof(*outcome);
        outcome->state = reply->state == REPLY_DONE ? QV_CLIENT_DONE : QV_CLIENT_DEAD;
        outcome->events = events;
        outcome->events_count = count;
        outcome->error = count && reply->state == REPLY_DEAD ? events[count - 1].text : "";
        outcome->reason = text_put(&at, reply->reason);
        outcome->attempts = reply->note.attempts;
        outcome->crashes = reply->note.crashes;
        outcome->interruptions = reply->note.interruptions;
        outcome->laters = reply->note.laters;
        outcome->merged = reply->note.merged;
        if (reply->has_data) {
                outcome->result_size = reply->data.size;
                outcome->result = text_put(&at, reply->data);
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
                return error_set(error, -EINVAL, "id: is NULL; give the id that the submit returned");
        struct client_call call = { .start = start_reply, .take = take_outcome, .self = &outcome, .is_patient = true };
        call.reply.id = (struct span){ id, strlen(id) };
        /* UINT64_MAX must not overflow when the time is added. */
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
