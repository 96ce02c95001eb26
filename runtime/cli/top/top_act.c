#include "cli/top/top_act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "task/envelope.h"
#include "view/text.h"

/* The member as a text; NULL: it is empty, or not there. */
static const char *text_of(struct buffer *to, const json_t *item, const char *name)
{
        top_bytes(item, name, to);
        const char *text = buffer_text(to);
        return *text ? text : NULL;
}

int top_act_count(struct cli_store *s, struct top_action *action, struct dead_survey *ret_survey, struct error *error)
{
        struct buffer handler = { 0 };
        struct buffer reason = { 0 };
        struct buffer wrong = { 0 };
        struct tasks_filter filter = { .handler = text_of(&handler, action->item, "handler"),
                .reason = text_of(&reason, action->item, "reason"),
                .error = text_of(&wrong, action->item, "error") };
        int r = dead_survey(s, &filter, ret_survey, error);
        if (r == 0)
                action->count = ret_survey->matched;
        buffer_free(&handler);
        buffer_free(&reason);
        buffer_free(&wrong);
        return r;
}

static int requeue(struct cli_store *s, const struct dead_survey *survey, struct buffer *message, struct error *error)
{
        struct store_dead dead = { 0 };
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < survey->shards_count; i++) {
                const struct dead_picked *picked = &survey->shards[i];
                for (size_t at = 0; r == 0 && at < picked->count; at += STORE_CALL_TASKS)
                        r = client_dead_numbers(s->client, picked->shard, DEAD_REQUEUE, picked->numbers + at,
                                min_u64(STORE_CALL_TASKS, picked->count - at), &dead, error);
        }
        buffer_printf(message, "%" PRIu32 " of %" PRIu64 " requeued", dead.acted, survey->matched);
        if (dead.unreadable)
                buffer_printf(message, "; %" PRIu32 " cannot be read: quiver fsck", dead.unreadable);
        if (dead.refused)
                buffer_printf(message, "; %" PRIu32 " are too long for max_payload", dead.refused);
        buffer_printf(message, ". ");
        return r;
}

static int set_pause(struct cli_store *s, const struct top_action *action, struct error *error)
{
        struct buffer handler = { 0 };
        const char *name = action->item
                                   ? text_of(&handler, action->item, top_is_problem(action->item) ? "handler" : "name")
                                   : NULL;
        char desired[sizeof("pause.") + TASK_HANDLER_MAX] = "pause";
        int r = name ? task_handler_check(span_of_text(name), error) : 0;
        if (r == 0 && name)
                (void)snprintf(desired, sizeof(desired), "pause.%s", name);
        if (r == 0) {
                r = qv_client_set_desired(s->client, desired, action->verb == TOP_PAUSE ? TOP_PAUSE_REASON : NULL);
                if (r < 0)
                        (void)error_set(error, r, "%s", qv_client_error());
        }
        buffer_free(&handler);
        return r;
}

static int set_hold(struct cli_store *s, const struct top_action *action, struct error *error)
{
        struct buffer key = { 0 };
        bool is_pending = false;
        top_bytes(action->item, "key", &key);
        int r = client_key_act(s->client, action->verb == TOP_HOLD ? CONTROL_HOLD : CONTROL_UNHOLD,
                (struct span){ (const char *)key.data, key.size }, SPAN_TEXT(""), &is_pending, error);
        if (r == -ENOENT)
                (void)error_set(error, r, "the key is neither parked nor held; there is nothing to unhold");
        buffer_free(&key);
        return r;
}

void top_act(
        struct cli_store *s, const struct top_action *action, const struct dead_survey *survey, struct buffer *message)
{
        struct error error = { "" };
        int r;
        if (action->verb == TOP_REQUEUE)
                r = requeue(s, survey, message, &error);
        else if (action->verb == TOP_PAUSE || action->verb == TOP_RESUME)
                r = set_pause(s, action, &error);
        else
                r = set_hold(s, action, &error);
        buffer_printf(message, r < 0 ? "Failed: " : "Done: ");
        top_command(message, action);
        if (r < 0)
                text_put_between(message, ": ", error.text, "");
}
