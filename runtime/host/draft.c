#include "host/draft.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct outcome_draft *make(enum store_outcome_kind kind, size_t room)
{
        struct outcome_draft *draft = malloc(sizeof(*draft) + room);
        if (!draft)
                abort();
        *draft = (struct outcome_draft){ .outcome.kind = kind, .room = room };
        return draft;
}

void draft_free(struct outcome_draft *draft)
{
        if (!draft)
                return;
        free(draft->follow_ups);
        free(draft);
}

static struct span keep(struct outcome_draft *draft, const void *data, size_t size)
{
        char *to = draft->bytes + draft->size;
        assert(size <= draft->room - draft->size);
        if (size)
                memcpy(to, data, size);
        draft->size += size;
        return (struct span){ to, size };
}

struct outcome_draft *draft_new(enum store_outcome_kind kind, enum task_cost cost, const char *error)
{
        size_t size = strlen(error);
        struct outcome_draft *draft = make(kind, size);
        draft->outcome.cost = cost;
        draft->outcome.error = keep(draft, error, size);
        return draft;
}

struct outcome_draft *draft_checkpoint(const void *data, size_t size)
{
        struct outcome_draft *draft = make(STORE_CHECKPOINT, size);
        draft->outcome.checkpoint = keep(draft, data, size);
        return draft;
}

/* name NUL value NUL … → the envelope's header lines. */
static int put_headers(struct buffer *to, const struct ring_submit *submit, struct error *error)
{
        const char *at = submit->headers;
        const char *end = at + submit->headers_size;
        while (at < end) {
                const char *value = memchr(at, 0, (size_t)(end - at));
                if (!value++ || value >= end || !memchr(value, 0, (size_t)(end - value)))
                        return error_set(error, -EBADMSG, "a follow-up's headers are malformed");
                int r = header_put(to, (struct span){ at, strlen(at) }, (struct span){ value, strlen(value) }, error);
                if (r < 0)
                        return r;
                at = value + strlen(value) + 1;
        }
        return 0;
}

static int put_follow_up(
        struct outcome_draft *draft, struct store_follow_up *to, const struct ring_submit *submit, struct error *error)
{
        struct buffer headers = { 0 };
        int r = put_headers(&headers, submit, error);
        to->envelope = (struct envelope){
                .handler = keep(draft, submit->handler, strlen(submit->handler)),
                .key = keep(draft, submit->key, strlen(submit->key)),
                .headers = keep(draft, headers.data, headers.size),
                .payload = keep(draft, submit->payload, submit->payload_size),
                .lane = submit->lane > 0   ? LANE_HIGH
                        : submit->lane < 0 ? LANE_LOW
                                           : LANE_NORMAL,
        };
        to->delay_ms = submit->delay_ms;
        buffer_free(&headers);
        return r < 0 ? r : envelope_check(&to->envelope, error);
}

/* What the runner counted must be there, all of it and nothing else. */
static int put_follow_ups(struct outcome_draft *draft, const struct ring_reply *reply, struct error *error)
{
        struct reader submits;
        struct ring_submit submit;
        uint32_t *count = &draft->outcome.follow_ups_count;
        reader_init(&submits, reply->submits, reply->submits_size);
        for (; *count < reply->submits_count; ++*count) {
                if (ring_next_submit(&submits, &submit) < 0)
                        return error_set(error, -EBADMSG, "follow-up %u is malformed", *count + 1);
                int r = put_follow_up(draft, &draft->follow_ups[*count], &submit, error);
                if (r < 0)
                        return r;
        }
        return submits.size ? error_set(error, -EBADMSG, "there are more follow-ups than were counted") : 0;
}

struct outcome_draft *draft_done(const struct ring_reply *reply, struct error *error)
{
        /* A header line takes seven bytes more than its packed form, and that has three at least. */
        struct outcome_draft *draft = make(STORE_DONE, reply->result_size + 4 * (size_t)reply->submits_size);
        draft->outcome.has_result = reply->has_result;
        draft->outcome.result = keep(draft, reply->result, reply->result_size);
        draft->follow_ups = reply->submits_count ? calloc(reply->submits_count, sizeof(*draft->follow_ups)) : NULL;
        if (reply->submits_count && !draft->follow_ups)
                abort();
        draft->outcome.follow_ups = draft->follow_ups;
        if (put_follow_ups(draft, reply, error) < 0) {
                draft_free(draft);
                return NULL;
        }
        return draft;
}
