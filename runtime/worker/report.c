#include "worker/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "store/store.h"
#include "task/envelope.h"
#include "view/json.h"

#define DELAY_MAX_MS (UINT64_C(3650) * 86400 * 1000) /* ten years */

void report_free(struct work_report *report)
{
        buffer_free(&report->checkpoint);
        buffer_free(&report->error);
        buffer_free(&report->result);
        buffer_free(&report->follow_ups);
        *report = (struct work_report){ 0 };
}

static int refuse_unknown(
        const char *where, const char *name, const char *const *known, size_t count, struct error *error)
{
        const char *nearest = error_nearest(name, known, count);
        return error_set(error, -EINVAL, "%sno member %s%s%s%s", where, name, nearest ? "; did you mean " : "",
                nearest ? nearest : "", nearest ? "?" : "");
}

/* A text without a NUL; NULL: it is not one. */
static const char *plain_text(const json_t *value)
{
        const char *text = json_string_value(value);
        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* The bytes of a member: its text, decoded from base64 if its name says so, or the JSON itself. */
static int take_bytes(struct buffer *to, const char *name, const json_t *value, struct error *error)
{
        size_t size = strlen(name);
        bool is_coded = size > 7 && !strcmp(name + size - 7, "_base64");
        buffer_clear(to);
        if (is_coded) {
                if (!json_is_string(value) ||
                        view_base64_decode(json_string_value(value), json_string_length(value), to))
                        return error_set(error, -EINVAL, "%s: is not base64", name);
        } else if (json_is_string(value)) {
                buffer_put(to, json_string_value(value), json_string_length(value));
        } else {
                char *text = memory_or_abort(json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY));
                buffer_put(to, text, strlen(text));
                free(text);
        }
        return 0;
}

static int take_duration(const char *name, const json_t *value, uint64_t *ret_ms, struct error *error)
{
        if (!plain_text(value))
                return error_set(error, -EINVAL, "%s: is a text with a unit, such as \"30s\"", name);
        int r = units_duration_ms(plain_text(value), ret_ms, error);
        if (r == 0 && *ret_ms > DELAY_MAX_MS)
                r = error_set(error, -EINVAL, "more than ten years");
        return r < 0 ? error_prefix(error, -EINVAL, "%s", name) : 0;
}

/* --- follow-ups --------------------------------------------------------------------------------------------------- */

struct follow_up {
        struct ring_submit submit;
        struct buffer headers, payload;
};

/* Checks each header like an envelope's, and packs it like a runner's. */
static int take_header(struct buffer *to, const char *name, struct span value, bool is_base64, struct error *error)
{
        struct buffer lines = { 0 };
        struct buffer bytes = { 0 };
        struct task_header header;
        int r = is_base64 ? header_put_base64(&lines, span_of_text(name), value, error)
                          : header_put(&lines, span_of_text(name), value, error);
        struct span rest = { (const char *)lines.data, lines.size };
        if (r == 0 && header_next(&rest, &header)) {
                header_put_value(&bytes, &header);
                size_t size = bytes.size;
                ring_put_header(to, &(struct ring_task_header){ .name = name,
                                            .value = buffer_text(&bytes),
                                            .value_size = size,
                                            .is_bytes = is_base64 });
        }
        buffer_free(&lines);
        buffer_free(&bytes);
        return r;
}

static int take_headers(struct buffer *to, const char *field, const json_t *headers, struct error *error)
{
        bool is_base64 = !strcmp(field, "headers_base64");
        const char *name;
        json_t *value;
        int r = json_is_object(headers) ? 0 : error_set(error, -EINVAL, "%s: is an object of texts", field);
        json_object_foreach((json_t *)headers, name, value)
        {
                const char *text = plain_text(value);
                if (r == 0 && !text)
                        r = error_set(error, -EINVAL, "%s.%s: must be a text", field, name);
                if (r == 0)
                        r = take_header(to, name, span_of_text(text), is_base64, error);
                if (r < 0)
                        break;
        }
        return r;
}

static int take_follow_up_member(struct follow_up *f, const char *name, const json_t *value, struct error *error)
{
        static const char *const known[] = { "handler", "key", "lane", "delay", "headers", "headers_base64", "payload",
                "payload_base64" };
        struct ring_submit *s = &f->submit;
        enum lane lane;
        if (!strcmp(name, "headers") || !strcmp(name, "headers_base64"))
                return take_headers(&f->headers, name, value, error);
        if (!strcmp(name, "payload") || !strcmp(name, "payload_base64"))
                return take_bytes(&f->payload, name, value, error);
        if (!strcmp(name, "delay"))
                return take_duration(name, value, &s->delay_ms, error);
        if (strcmp(name, "handler") != 0 && strcmp(name, "key") != 0 && strcmp(name, "lane") != 0)
                return refuse_unknown("", name, known, sizeof(known) / sizeof(known[0]), error);
        const char *text = plain_text(value);
        if (!text)
                return error_set(error, -EINVAL, "%s: must be a text", name);
        if (!strcmp(name, "handler")) {
                s->handler = text;
                return task_handler_check(span_of_text(text), error);
        }
        if (!strcmp(name, "key")) {
                s->key = text;
                return task_key_check(span_of_text(text), error);
        }
        if (!lane_parse(span_of_text(text), &lane))
                return error_set(error, -EINVAL, "lane: %s; it is high, normal or low", text);
        s->lane = (int32_t)LANE_NORMAL - (int32_t)lane;
        return 0;
}

static int take_follow_up(struct work_report *r, const json_t *object, struct error *error)
{
        struct follow_up f = { .submit = { .handler = "", .key = "" } };
        const char *name;
        json_t *value;
        int status = json_is_object(object) ? 0 : error_set(error, -EINVAL, "is not an object");
        json_object_foreach((json_t *)object, name, value)
        {
                status = take_follow_up_member(&f, name, value, error);
                if (status < 0)
                        break;
        }
        if (status == 0 && !*f.submit.handler)
                status = error_set(error, -EINVAL, "handler: is missing");
        if (status == 0) {
                f.submit.headers = f.headers.data;
                f.submit.headers_size = f.headers.size;
                f.submit.payload = f.payload.data;
                f.submit.payload_size = f.payload.size;
                ring_put_submit(&r->follow_ups, &f.submit);
                r->follow_ups_count++;
        }
        buffer_free(&f.headers);
        buffer_free(&f.payload);
        return status;
}

static int take_follow_ups(struct work_report *r, const json_t *list, struct error *error)
{
        if (!json_is_array(list) || json_array_size(list) > QV_SUBMITS_MAX)
                return error_set(error, -EINVAL, "follow_ups: is a list of at most %u tasks", QV_SUBMITS_MAX);
        for (size_t i = 0; i < json_array_size(list); i++)
                if (take_follow_up(r, json_array_get(list, i), error) < 0)
                        return error_prefix(error, -EINVAL, "follow_ups[%zu]", i);
        return 0;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

static int take_outcome(struct work_report *r, const json_t *value, struct error *error)
{
        static const struct {
                const char *name;
                enum outcome outcome;
        } outcomes[] = { { "done", OUTCOME_DONE }, { "retry", OUTCOME_RETRY }, { "reject", OUTCOME_REJECT },
                { "unavailable", OUTCOME_UNAVAILABLE }, { "later", OUTCOME_LATER }, { "limited", OUTCOME_LIMITED } };
        const char *text = plain_text(value);
        for (size_t i = 0; text && i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
                if (!strcmp(text, outcomes[i].name)) {
                        r->outcome = outcomes[i].outcome;
                        return 0;
                }
        return error_set(error, -EINVAL, "outcome: is done, retry, later, reject or unavailable");
}

static int take_progress(struct work_report *r, const json_t *value, struct error *error)
{
        json_int_t done = json_integer_value(json_array_get(value, 0));
        json_int_t total = json_integer_value(json_array_get(value, 1));
        if (json_array_size(value) != 2 || !json_is_integer(json_array_get(value, 0)) ||
                !json_is_integer(json_array_get(value, 1)) || done < 0 || total < 0)
                return error_set(error, -EINVAL, "progress: is two numbers, how much is done and of how much, [3, 10]");
        r->has_progress = true;
        r->progress_done = (uint64_t)done;
        r->progress_total = (uint64_t)total;
        return 0;
}

static int take_checkpoint(struct work_report *r, const char *name, const json_t *value, struct error *error)
{
        r->has_checkpoint = true;
        int status = take_bytes(&r->checkpoint, name, value, error);
        if (status == 0 && r->checkpoint.size > NOTE_CHECKPOINT_MAX)
                status = error_set(
                        error, -EINVAL, "%s: %zu bytes, at most %u", name, r->checkpoint.size, NOTE_CHECKPOINT_MAX);
        return status;
}

static int take_error(struct work_report *r, const json_t *value, struct error *error)
{
        const char *text = plain_text(value);
        if (!text)
                return error_set(error, -EINVAL, "error: must be a text");
        buffer_clear(&r->error);
        buffer_put(&r->error, text, min_u64(strlen(text), NOTE_TEXT_MAX));
        return 0;
}

static int take_member(struct work_report *r, const char *name, const json_t *value, struct error *error)
{
        static const char *const known[] = { "fence", "progress", "checkpoint", "checkpoint_base64", "outcome", "error",
                "retry_after", "result", "result_base64", "follow_ups" };
        size_t known_count = r->kind == REPORT_OUTCOME ? sizeof(known) / sizeof(known[0]) : 4;
        size_t i = 0;
        while (i < known_count && strcmp(name, known[i]) != 0)
                i++;
        if (i == known_count)
                return refuse_unknown("", name, known, known_count, error);
        switch (i) {
        case 0:
                return fence_parse(span_of_text(plain_text(value) ? plain_text(value) : ""), &r->fence, error);
        case 1:
                return take_progress(r, value, error);
        case 2:
        case 3:
                return take_checkpoint(r, name, value, error);
        case 4:
                return take_outcome(r, value, error);
        case 5:
                return take_error(r, value, error);
        case 6:
                r->has_retry_after = true;
                return take_duration(name, value, &r->retry_after_ms, error);
        case 9:
                return take_follow_ups(r, value, error);
        default:
                r->has_result = true;
                return take_bytes(&r->result, name, value, error);
        }
}

/* Checks combinations of members. */
static int check_whole(const json_t *object, const struct work_report *r, struct error *error)
{
        if (!json_object_get(object, "fence"))
                return error_set(error, -EINVAL, "fence: is missing; give back the text that the task came with");
        if (r->kind == REPORT_HEARTBEAT)
                return 0;
        if (!json_object_get(object, "outcome"))
                return error_set(error, -EINVAL,
                        "outcome: is missing; it is done, retry, later, limited, reject or unavailable");
        if (r->outcome != OUTCOME_DONE && (r->has_result || r->follow_ups_count))
                return error_set(error, -EINVAL, "result, follow_ups: belong to the outcome done");
        if (r->has_retry_after && r->outcome != OUTCOME_RETRY && r->outcome != OUTCOME_LATER &&
                r->outcome != OUTCOME_LIMITED && r->outcome != OUTCOME_UNAVAILABLE)
                return error_set(
                        error, -EINVAL, "retry_after: belongs to the outcomes retry, later, limited and unavailable");
        return 0;
}

int report_parse(struct span json, enum report_kind kind, struct work_report *ret, struct error *error)
{
        struct work_report r = { .kind = kind };
        json_error_t where;
        const char *name;
        json_t *value;
        json_t *object =
                json_loadb(json.size ? json.data : "", json.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
        *ret = (struct work_report){ 0 };
        int status =
                json_is_object(object)
                        ? 0
                        : error_set(error, -EINVAL, object ? "it is no JSON object" : "it is not JSON: %s", where.text);
        json_object_foreach(object, name, value)
        {
                status = take_member(&r, name, value, error);
                if (status < 0)
                        break;
        }
        if (status == 0)
                status = check_whole(object, &r, error);
        json_decref(object);
        if (status < 0) {
                report_free(&r);
                return status;
        }
        *ret = r;
        return 0;
}
