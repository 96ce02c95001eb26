#include "host/report/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

/* --- waiting tasks --- */

static uint64_t age_of(const struct survey *survey, const struct claimed *c, uint64_t now_ms, uint64_t wall_ms)
{
        if (c->submitted_ms)
                return store_age_ms(survey->created_ms, c->submitted_ms, wall_ms);
        return c->claimed_ms && now_ms > c->claimed_ms ? now_ms - c->claimed_ms : 0;
}

static void see_claimed(
        struct survey *survey, const struct shard *shard, const struct claimed *c, uint64_t now_ms, uint64_t wall_ms)
{
        if (c->state == CLAIMED_ENDED || c->pool >= survey->handlers_count)
                return;
        struct survey_handler *h = &survey->handlers[c->pool];
        h->waiting++; /* running tasks are subtracted below */
        h->waiting_lanes[STORE_SEQ_LANE(c->seq)] += now_ms < shard->until_ms;
        h->age_ms = max_u64(h->age_ms, age_of(survey, c, now_ms, wall_ms));
}

/* --- running tasks --- */

static void note_long(struct survey *survey, uint64_t now_ms, const struct survey_running *running)
{
        if (now_ms - running->started_ms < SURVEY_LONG_MS)
                return;
        if (survey->list_count == survey->list_room) {
                survey->list_room = survey->list_room ? 2 * survey->list_room : 16;
                survey->list = memory_resize(survey->list, survey->list_room * sizeof(*survey->list));
        }
        survey->list[survey->list_count++] = *running;
}

static void see_running(struct survey *survey, const struct handler *handler, const struct generation *generation,
        const struct process *p, const struct ring_view *view, uint64_t now_ms)
{
        const struct claimed *c = view->owner;
        const struct shard *shard = c->pool_task.owner;
        struct survey_handler *h = &survey->handlers[handler->slot];
        struct ring_seat_view seat;
        enum lane lane = STORE_SEQ_LANE(c->seq);
        h->running++;
        h->running_lanes[lane]++;
        h->waiting -= h->waiting > 0;
        h->waiting_lanes[lane] -= now_ms < shard->until_ms && h->waiting_lanes[lane];
        if (shard->number < survey->shards)
                survey->running[shard->number]++;
        ring_host_seat(&p->ring, view->seat, &seat);
        uint64_t handed_ms = c->pool_task.handed_ms;
        uint64_t started_ms = max_u64(min_u64(seat.started_ns / 1000000, now_ms), min_u64(handed_ms, now_ms));
        h->longest_ms = max_u64(h->longest_ms, now_ms - started_ms);
        note_long(survey, now_ms,
                &(struct survey_running){ .task = c,
                        .handler = handler,
                        .generation = generation->version.number,
                        .file_hash = generation->copy.hash,
                        .pid = (int32_t)p->pid,
                        .started_ms = started_ms,
                        .progress_done = seat.progressed_ns ? seat.progress_done : 0,
                        .progress_total = seat.progressed_ns ? seat.progress_total : 0 });
}

/* Counts a task that a worker or another host's seat runs. */
static void see_lent(struct survey *survey, const struct handlers *handlers, const struct lent *lent, uint64_t now_ms)
{
        struct survey_handler *h = &survey->handlers[lent->slot];
        if (!lent->claimed || !lent->is_handed || lent->is_ended)
                return;
        enum lane lane = STORE_SEQ_LANE(lent->claimed->seq);
        h->running++;
        h->running_lanes[lane]++;
        h->waiting -= h->waiting > 0;
        h->waiting_lanes[lane] -= now_ms < lent->shard->until_ms && h->waiting_lanes[lane];
        if (lent->shard->number < survey->shards)
                survey->running[lent->shard->number]++;
        h->longest_ms = max_u64(h->longest_ms, now_ms - lent->started_ms);
        note_long(survey, now_ms,
                &(struct survey_running){ .task = lent->claimed,
                        .handler = handlers->list[lent->slot],
                        .worker = lent->worker,
                        .is_seat = lent->is_seat,
                        .until_ms = lent->told_ms + lent->told_for_ms,
                        .started_ms = lent->started_ms,
                        .progress_done = lent->progress_done,
                        .progress_total = lent->progress_total });
}

static void see_pool(
        struct survey *survey, const struct handler *handler, const struct generation *generation, uint64_t now_ms)
{
        const struct pool *pool = &generation->pool_io.pool;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                const struct process *p = pool->runners[i].process;
                struct ring_view view;
                for (uint32_t cursor = 0; p && ring_host_each(&p->ring, &cursor, &view);)
                        if (view.is_started) {
                                survey->handlers[handler->slot].seated++;
                                /* A borrowed task is counted by its owner. */
                                if (!((const struct pool_task *)view.owner)->is_borrowed)
                                        see_running(survey, handler, generation, p, &view, now_ms);
                        }
        }
}

static int by_time(const void *a, const void *b)
{
        const struct survey_running *x = a;
        const struct survey_running *y = b;
        return (x->started_ms > y->started_ms) - (x->started_ms < y->started_ms);
}

void survey_take(struct survey *survey, const struct handlers *handlers, const struct shards *shards, uint64_t now_ms,
        uint64_t wall_ms)
{
        survey->handlers = memory_resize(survey->handlers, (handlers->count + 1) * sizeof(*survey->handlers));
        survey->running = memory_resize(survey->running, (shards->count + 1) * sizeof(*survey->running));
        survey->handlers_count = handlers->count;
        survey->shards = shards->count;
        survey->taken_ms = now_ms;
        survey->list_count = 0;
        memset(survey->handlers, 0, (handlers->count + 1) * sizeof(*survey->handlers));
        memset(survey->running, 0, (shards->count + 1) * sizeof(*survey->running));
        for (uint32_t i = 0; i < shards->count; i++) {
                const struct shard *shard = &shards->list[i].shard;
                for (const struct window_key *key = window_keys_first(&shard->window.keys); key;
                        key = window_keys_next(&shard->window.keys, key))
                        for (const struct claimed *c = key->first; c; c = c->next)
                                see_claimed(survey, shard, c, now_ms, wall_ms);
        }
        for (uint32_t i = 0; i < handlers->count; i++)
                for (const struct rollout_version *g = handlers->list[i]->rollout.newest; g; g = g->older)
                        if (((const struct generation *)g)->is_open)
                                see_pool(survey, handlers->list[i], (const struct generation *)g, now_ms);
        for (const struct lent *lent = handlers->remotes.all; lent; lent = lent->hh.next)
                see_lent(survey, handlers, lent, now_ms);
        if (survey->list_count)
                qsort(survey->list, survey->list_count, sizeof(*survey->list), by_time);
}

void survey_free(struct survey *survey)
{
        free(survey->handlers);
        free(survey->running);
        free(survey->list);
        *survey = (struct survey){ 0 };
}

/* --- as JSON --- */

json_t *survey_running_by_shard(const struct survey *survey)
{
        json_t *list = json_array();
        for (uint32_t i = 0; i < survey->shards; i++)
                if (survey->running[i])
                        (void)json_array_append_new(
                                list, json_pack("[I, I]", (json_int_t)i, (json_int_t)survey->running[i]));
        return list;
}

static json_t *text_of(struct span bytes)
{
        json_t *json = json_stringn(bytes.size ? bytes.data : "", bytes.size);
        return json ? json : json_string("(not UTF-8)");
}

static json_t *make_running(const struct survey_running *r, uint64_t offset_ms)
{
        char hash[17];
        uint64_t since_ms = offset_ms + r->started_ms, until_ms = offset_ms + r->until_ms;
        (void)snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)r->file_hash);
        json_t *o = json_pack("{s:o, s:s, s:o, s:I, s:I}", "id", text_of(r->task->id), "handler", r->handler->name,
                "key", text_of(r->task->key), "attempt", (json_int_t)r->task->attempts + 1, "since_ms",
                (json_int_t)since_ms);
        json_t *where = r->worker ? json_pack("{s:s, s:I}", r->is_seat ? "seat" : "worker", r->worker, "until_ms",
                                            (json_int_t)until_ms)
                                  : json_pack("{s:i, s:I, s:s}", "pid", (int)r->pid, "generation",
                                            (json_int_t)r->generation, "hash", hash);
        (void)json_object_update(o, where);
        json_decref(where);
        if (r->progress_done || r->progress_total)
                (void)json_object_set_new(o, "progress",
                        json_pack("[I, I]", (json_int_t)min_u64(r->progress_done, INT64_MAX),
                                (json_int_t)min_u64(r->progress_total, INT64_MAX)));
        return o;
}

char *survey_document(const struct survey *survey, const char *host, uint64_t offset_ms, size_t max)
{
        size_t shown = 0;
        size_t size = strlen(host) + sizeof("{\"name\":\"\",\"more\":18446744073709551615,\"tasks\":[]}");
        json_t *tasks = json_array();
        for (; shown < survey->list_count; shown++) {
                json_t *o = make_running(&survey->list[shown], offset_ms);
                size_t takes = json_dumpb(o, NULL, 0, JSON_COMPACT) + 1;
                if (size + takes > max) {
                        json_decref(o);
                        break;
                }
                size += takes;
                (void)json_array_append_new(tasks, o);
        }
        json_t *document = json_pack(
                "{s:s, s:I, s:o}", "name", host, "more", (json_int_t)(survey->list_count - shown), "tasks", tasks);
        char *text = memory_or_abort(json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER));
        json_decref(document);
        return text;
}
