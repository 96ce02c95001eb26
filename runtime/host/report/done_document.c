#include "host/report/done_document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

#define KINDS_MAX   256u /* per document; tasks of further kinds are left out, with all older tasks */
#define KIND_BYTES  (TASK_HANDLER_MAX * 6u + 32u)
#define TASK_BYTES  (TASK_ID_MAX + WORKER_NAME_MAX + 104u)
#define HASH_DIGITS 8

/* --- writing --- */

static uint64_t ago_ms(int64_t at_ms, uint64_t now_ms)
{
        return (int64_t)now_ms > at_ms ? now_ms - (uint64_t)at_ms : 0;
}

struct document {
        struct buffer tasks;
        json_t *kinds;
        const struct done_task *of_kind[KINDS_MAX]; /* one task of each kind */
        uint32_t kinds_count;
};

static bool is_same_kind(const struct done_task *a, const struct done_task *b)
{
        return a->generation == b->generation && a->hash == b->hash &&
               span_is((struct span){ a->handler, a->handler_size }, (struct span){ b->handler, b->handler_size });
}

/* Returns KINDS_MAX if there is no room for another kind. */
static uint32_t kind_ensure(struct document *d, const struct done_task *task)
{
        char hash[HASH_DIGITS + 1];
        for (uint32_t i = 0; i < d->kinds_count; i++)
                if (is_same_kind(d->of_kind[i], task))
                        return i;
        if (d->kinds_count == KINDS_MAX)
                return KINDS_MAX;
        json_t *handler = json_stringn(task->handler, task->handler_size);
        (void)snprintf(hash, sizeof(hash), "%08" PRIx32, task->hash);
        (void)json_array_append_new(d->kinds, json_pack("[o, I, s]", handler ? handler : json_string("(not UTF-8)"),
                                                      (json_int_t)task->generation, hash));
        d->of_kind[d->kinds_count] = task;
        return d->kinds_count++;
}

/* False: there is no room for the task. */
static bool put_task(struct document *d, const struct done_task *task, uint64_t now_ms, size_t max)
{
        size_t kinds = (size_t)(d->kinds_count + 1) * KIND_BYTES;
        if (d->tasks.size + kinds + TASK_BYTES > max)
                return false;
        uint32_t kind = kind_ensure(d, task);
        if (kind == KINDS_MAX)
                return false;
        /* Ids and worker names need no quoting in JSON: task/id.h, worker/fence.h. */
        buffer_printf(&d->tasks, "%s[\"%.*s\",%" PRIu32 ",%" PRIu32 ",%" PRId32 ",%" PRIu64 ",%" PRIu64 ",",
                d->tasks.size ? "," : "", (int)task->id_size, task->id, kind, task->attempt, task->pid,
                ago_ms(task->at_ms, now_ms), task->ran_ms);
        if (task->has_result)
                buffer_printf(&d->tasks, "%" PRIu32, task->result_bytes);
        else
                buffer_printf(&d->tasks, "null");
        if (task->worker_size)
                buffer_printf(
                        &d->tasks, ",\"%.*s\"%s]", (int)task->worker_size, task->worker, task->is_seat ? ",true" : "");
        else
                buffer_printf(&d->tasks, "]");
        return true;
}

static char *finish(struct document *d, const struct done_tasks *done, const char *host, int64_t since_ms, bool is_last,
        uint64_t now_ms)
{
        struct buffer text = { 0 };
        json_t *head =
                json_pack("{s:s, s:I, s:I, s:b, s:O}", "name", host, "since_ms", (json_int_t)ago_ms(since_ms, now_ms),
                        "kept", (json_int_t)done->keep, "is_last", is_last, "kinds", d->kinds);
        char *dumped = memory_or_abort(json_dumps(head, JSON_COMPACT | JSON_PRESERVE_ORDER));
        dumped[strlen(dumped) - 1] = 0;
        buffer_printf(&text, "%s,\"tasks\":[", dumped);
        buffer_put(&text, d->tasks.data, d->tasks.size);
        buffer_printf(&text, "]}");
        char *copy = memory_text(buffer_text(&text));
        free(dumped);
        json_decref(head);
        json_decref(d->kinds);
        buffer_free(&d->tasks);
        buffer_free(&text);
        return copy;
}

char *done_document_make(
        const struct done_tasks *done, const char *host, uint64_t age_ms, bool is_last, uint64_t now_ms, size_t max)
{
        struct document d = { .kinds = json_array() };
        const struct done_task *task = NULL;
        int64_t since_ms = done->since_ms;
        size_t head = 6 * strlen(host) + 128;
        for (uint32_t back = 0; (task = done_tasks_get(done, back)); back++)
                if (ago_ms(task->at_ms, now_ms) > age_ms || head > max || !put_task(&d, task, now_ms, max - head))
                        break;
        if (task && task->at_ms > since_ms)
                since_ms = task->at_ms;
        return finish(&d, done, host, since_ms, is_last, now_ms);
}

json_t *done_document_of(
        const struct done_tasks *done, const char *host, uint64_t age_ms, uint64_t now_ms, struct span id)
{
        struct document d = { .kinds = json_array() };
        const struct done_task *task = done_tasks_find(done, id);
        if (task && ago_ms(task->at_ms, now_ms) <= age_ms)
                (void)put_task(&d, task, now_ms, SIZE_MAX);
        char *text = finish(&d, done, host, done->since_ms, false, now_ms);
        json_t *json = json_loads(text, 0, NULL);
        free(text);
        return json;
}

/* --- reading --- */

static bool read_number(const json_t *from, size_t i, uint64_t max, uint64_t *ret)
{
        json_int_t value = json_integer_value(json_array_get(from, i));
        *ret = (uint64_t)value;
        return json_is_integer(json_array_get(from, i)) && value >= 0 && (uint64_t)value <= max;
}

static bool read_text(const json_t *json, size_t max, struct span *ret)
{
        *ret = (struct span){ json_string_value(json), json_string_length(json) };
        return ret->size && ret->size <= max;
}

/* An age beyond what any document keeps. */
#define AGO_MAX ((uint64_t)INT64_MAX / 4)

static bool read_task(const json_t *from, const json_t *kinds, uint64_t now_ms, uint64_t age_ms, struct done_task *ret)
{
        struct span id;
        struct span handler;
        uint64_t kind, attempt, pid, ago, generation, result = 0;
        const char *hash;
        if (!read_text(json_array_get(from, 0), TASK_ID_MAX, &id) || task_id_check(id, NULL, NULL) < 0 ||
                !read_number(from, 1, KINDS_MAX, &kind) || !read_number(from, 2, UINT32_MAX, &attempt) ||
                !read_number(from, 3, INT32_MAX, &pid) || !read_number(from, 4, AGO_MAX, &ago) ||
                !read_number(from, 5, AGO_MAX, &ret->ran_ms))
                return false;
        const json_t *of = json_array_get(kinds, kind);
        hash = json_string_value(json_array_get(of, 2));
        if (!read_text(json_array_get(of, 0), TASK_HANDLER_MAX, &handler) ||
                !read_number(of, 1, UINT32_MAX, &generation) || !hash)
                return false;
        ret->has_result = read_number(from, 6, UINT32_MAX, &result);
        ret->result_bytes = ret->has_result ? (uint32_t)result : 0;
        ret->at_ms = (int64_t)now_ms - (int64_t)(ago + min_u64(age_ms, AGO_MAX));
        ret->attempt = (uint32_t)attempt;
        ret->generation = (uint32_t)generation;
        ret->hash = (uint32_t)strtoul(hash, NULL, 16);
        ret->pid = (int32_t)pid;
        done_task_name(ret, id, handler);
        struct span worker = { json_string_value(json_array_get(from, 7)),
                json_string_length(json_array_get(from, 7)) };
        bool is_good = worker.size && worker_name_check(worker, NULL) == 0;
        done_task_set_worker(
                ret, is_good ? worker : (struct span){ 0 }, is_good && json_is_true(json_array_get(from, 8)));
        return true;
}

void done_document_read(struct done_tasks *done, struct span document, uint64_t document_age_ms, uint64_t now_ms)
{
        struct done_tasks all;
        struct done_task task;
        json_t *said = json_loadb(document.size ? document.data : "", document.size, 0, NULL);
        const json_t *tasks = json_object_get(said, "tasks");
        const json_t *kinds = json_object_get(said, "kinds");
        const json_t *since = json_object_get(said, "since_ms");
        json_int_t ago = json_integer_value(since);
        if (!json_is_integer(since) || ago < 0 || (uint64_t)ago > AGO_MAX) {
                json_decref(said);
                return;
        }
        done_tasks_init(&all, done->keep, 0);
        /* The last document of a killed host lacks what it did in its last seconds. */
        all.since_ms = done->since_ms;
        if (json_is_true(json_object_get(said, "is_last")))
                all.since_ms = (int64_t)now_ms - ago - (int64_t)min_u64(document_age_ms, AGO_MAX);
        for (size_t i = json_array_size(tasks); i-- > 0 && all.keep;)
                if (read_task(json_array_get(tasks, i), kinds, now_ms, document_age_ms, &task))
                        *done_tasks_add(&all) = task;
        for (uint32_t back = done->count; back-- > 0;)
                *done_tasks_add(&all) = *done_tasks_get(done, back);
        /* Numbers that were written are not given again. */
        all.added = max_u64(all.added, done->added);
        free(done->list);
        *done = all;
        json_decref(said);
}
