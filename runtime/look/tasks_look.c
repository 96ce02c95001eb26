#include "look/tasks_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "view/json.h"

static const char *const state_names[SHOW_STATES] = { "all", "waiting", "running", "delayed", "parked", "held",
        "dead" };

const char *tasks_state_name(enum tasks_state state)
{
        return state_names[state];
}

bool tasks_state_parse(const char *name, enum tasks_state *ret_state)
{
        for (unsigned i = 0; i < SHOW_STATES; i++) {
                if (strcmp(state_names[i], name) != 0)
                        continue;
                *ret_state = (enum tasks_state)i;
                return true;
        }
        return false;
}

/* --- matching ---------------------------------------------------------------------------------------------------- */

struct span task_last_error(const struct store_listed *task)
{
        struct span events = task->note.events;
        struct span last = { 0 };
        struct note_event event;
        while (note_event_next(&events, &event))
                if (event.text.size)
                        last = event.text;
        return last;
}

static bool is_text(struct span bytes, const char *text)
{
        return span_is(bytes, span_of_text(text));
}

bool tasks_filter_fits(const struct tasks_filter *f, const struct store_listed *task, uint64_t now_ms)
{
        bool is_dead = task->state == STATE_DEAD;
        struct span handler = task->envelope.handler;
        struct span error = task_last_error(task);
        uint64_t since_ms = is_dead ? task->at_ms : task->envelope.submitted_ms;
        if (is_dead && !handler.size)
                handler = SPAN_TEXT("unknown");
        if (f->handler && !is_text(handler, f->handler))
                return false;
        if (f->key && !is_text(task->key, f->key))
                return false;
        if (f->reason && !is_text(task->reason, f->reason))
                return false;
        if (f->cause && !is_text(store_dead_line(error), f->cause))
                return false;
        if (f->older_ms && store_age_ms(f->created_ms, since_ms, now_ms) < f->older_ms)
                return false;
        /* A task without a submission time may be newer. */
        if (f->before_ms && (!since_ms || since_ms >= f->before_ms))
                return false;
        return !f->error || !*f->error || (error.size && memmem(error.data, error.size, f->error, strlen(f->error)));
}

/* Whether the whereabouts match the filter's state and host. */
static bool is_asked_for(const struct tasks_filter *f, const json_t *where)
{
        const char *state = view_json_get_text(where, "state");
        const char *host = view_json_get_text(where, "host");
        if (f->host && strcmp(*host ? host : view_json_get_text(where, "claimed_by"), f->host) != 0)
                return false;
        if (f->state == SHOW_ALL)
                return true;
        /* Parked and held tasks wait, too. */
        if (f->state == SHOW_WAITING)
                return strcmp(state, "running") != 0;
        return !strcmp(state, state_names[f->state]);
}

/* --- keys of a shard ---------------------------------------------------------------------------------------------- */

static void keys_free(struct shard_keys *keys)
{
        arena_free(keys->arena);
        free(keys->list);
        json_decref(keys->places);
        *keys = (struct shard_keys){ 0 };
}

static void keys_add(struct shard_keys *keys, const struct store_key_info *key)
{
        if (keys->count == keys->room) {
                keys->room = keys->room ? 2 * keys->room : 64;
                keys->list = memory_resize(keys->list, keys->room * sizeof(*keys->list));
        }
        if (!keys->places)
                keys->places = json_object();
        struct store_key_info *to = &keys->list[keys->count];
        json_t *text = view_json_text_span(key->key);
        *to = *key;
        to->key = arena_copy(&keys->arena, key->key);
        to->reason = arena_copy(&keys->arena, key->reason);
        to->head = arena_copy(&keys->arena, key->head);
        to->name = arena_copy(&keys->arena, key->name);
        (void)json_object_set_new(keys->places, json_string_value(text), json_integer(keys->count++));
        json_decref(text);
}

static const struct store_key_info *keys_find(const struct shard_keys *keys, struct span key)
{
        json_t *text = view_json_text_span(key);
        const json_t *place = json_object_get(keys->places, json_string_value(text));
        json_decref(text);
        return place ? &keys->list[json_integer_value(place)] : NULL;
}

/* --- shards and states ------------------------------------------------------------------------------------------- */

static const enum store_state order[] = { STATE_IN_FLIGHT, STATE_PARKED, STATE_QUEUED, STATE_DELAYED, STATE_DEAD };

/* How many tasks of that state can match the filter. */
static uint64_t total_of(const struct tasks_filter *f, const struct store_counts *c, enum store_state state)
{
        bool is_all = f->state == SHOW_ALL;
        bool is_waiting = is_all || f->state == SHOW_WAITING;
        bool is_behind = c->keys && (f->state == SHOW_PARKED || f->state == SHOW_HELD);
        switch (state) {
        case STATE_QUEUED:
                return is_waiting || is_behind ? store_counts_queued(c) : 0;
        case STATE_DELAYED:
                return is_all || f->state == SHOW_DELAYED ? c->delayed : 0;
        case STATE_IN_FLIGHT:
                return is_waiting || is_behind || f->state == SHOW_RUNNING ? c->in_flight : 0;
        case STATE_PARKED:
                return is_waiting || is_behind ? store_counts_parked(c) : 0;
        case STATE_DEAD:
                return f->state == SHOW_DEAD ? c->dead : 0;
        default:
                return 0;
        }
}

/* A key is in one shard.  A key that looks like an id may belong to a task without a key, which is in the shard of its
 * id. */
static bool has_shard(const struct tasks_look *look, uint32_t shard)
{
        const char *key = look->filter.key;
        if (!key || task_id_check(span_of_text(key), NULL, NULL) == 0)
                return true;
        return shard_of_key(span_of_text(key), look->look.info.shards) == shard;
}

/* Moves to the next part with tasks, from `place` on; false: there is none. */
static bool seek(struct tasks_look *look)
{
        struct look_place *at = &look->place;
        while (at->shard < look->look.info.shards) {
                for (; has_shard(look, at->shard) && at->part < STATES; at->part++) {
                        if (total_of(&look->filter, &look->counts[at->shard], order[at->part]))
                                return true;
                        at->cursor = (struct store_cursor){ 0 };
                        at->skip = 0;
                }
                *at = (struct look_place){ .shard = at->shard + 1 };
                look->shard_shown = 0;
                keys_free(&look->keys);
        }
        return false;
}

static bool ask_page(struct tasks_look *look)
{
        struct look_place *at = &look->place;
        look->step = TASKS_PAGE;
        return look_ask_list(&look->look, at->shard, order[at->part], at->cursor, STORE_CALL_TASKS);
}

/* --- taking answers ----------------------------------------------------------------------------------------------- */

/* False: the look stops here. */
static bool see_task(struct tasks_look *look, const struct store_listed *task)
{
        json_t *where = NULL;
        bool has_room = true;
        if (look->looked == look->looked_max)
                return false;
        look->filter.created_ms = look->look.info.record->created_ms;
        if (!tasks_filter_fits(&look->filter, task, look->now_ms)) {
                look->looked++;
                return true;
        }
        if (!look->is_plain) {
                struct whereabouts_place place = { .shard = &look->counts[look->place.shard],
                        .key = keys_find(&look->keys, task->key) };
                where = whereabouts_of(&look->where.w, task, &place);
        }
        if (look->is_plain || is_asked_for(&look->filter, where)) {
                has_room = look->shown < look->shown_max && look->show(look->self, task, where);
                look->shown += has_room;
                look->shard_shown += has_room;
        }
        look->looked += has_room;
        json_decref(where);
        return has_room;
}

/* False: the look is over. */
static bool take_page(struct tasks_look *look)
{
        const struct store_list *page = &look->look.list;
        struct look_place *at = &look->place;
        for (; at->skip < page->tasks_count; at->skip++) {
                if (look->shard_max && look->shard_shown >= look->shard_max) {
                        *at = (struct look_place){ .shard = at->shard, .part = STATES };
                        return true;
                }
                if (see_task(look, &page->tasks[at->skip]))
                        continue;
                look->has_more = true;
                return false;
        }
        at->skip = 0;
        at->cursor = page->cursor;
        if (page->is_end) {
                at->part++;
                at->cursor = (struct store_cursor){ 0 };
        }
        return true;
}

static void take_counts(struct tasks_look *look)
{
        for (uint32_t i = 0; i < look->look.info.shards; i++) {
                const struct store_counts *c = &look->counts[i];
                /* Shards may have different clocks: the earliest time is a safe limit for what was seen. */
                if (c->time_ms && (!look->time_ms || c->time_ms < look->time_ms))
                        look->time_ms = c->time_ms;
                for (unsigned state = 0; state < STATES && has_shard(look, i); state++)
                        look->total += total_of(&look->filter, c, (enum store_state)state);
        }
}

/* Returns false if a page of tasks follows. */
static bool take_keys(struct tasks_look *look)
{
        const struct store_keys *page = &look->look.keys;
        for (uint32_t i = 0; i < page->keys_count && look->keys.count < look->keys_max; i++)
                keys_add(&look->keys, &page->keys[i]);
        if (page->key.size || page->is_end || look->keys.count >= look->keys_max)
                return false;
        return look_ask_keys(&look->look, page->shard, (struct span){ 0 }, page->cursor, STORE_CALL_TASKS);
}

/* The keys of a shard are read before its tasks. */
static bool ask_keys_or_page(struct tasks_look *look, uint32_t last_shard)
{
        uint32_t shard = look->place.shard;
        struct span key = look->filter.key ? span_of_text(look->filter.key) : (struct span){ 0 };
        if (look->is_plain || shard == last_shard || !look->counts[shard].keys)
                return ask_page(look);
        look->step = TASKS_KEYS;
        return look_ask_keys(&look->look, shard, key, (struct store_cursor){ 0 }, STORE_CALL_TASKS);
}

static bool tasks_look_next(struct look *base)
{
        struct tasks_look *look = container_of(base, struct tasks_look, look);
        uint32_t shard = UINT32_MAX;
        switch (look->step) {
        case TASKS_WHEREABOUTS:
                if (!look->is_plain && whereabouts_look_next(&look->where, base))
                        return true;
                look->step = TASKS_COUNTS;
                look->counts = memory_zero(base->info.shards, sizeof(*look->counts));
                return look_ask_count(base, 0, base->info.shards, look->counts);
        case TASKS_COUNTS:
                take_counts(look);
                break;
        case TASKS_KEYS:
                return take_keys(look) || ask_page(look);
        case TASKS_PAGE:
                shard = look->place.shard;
                if (!take_page(look)) {
                        look->step = TASKS_END;
                        return false;
                }
                break;
        case TASKS_END:
                return false;
        }
        if (seek(look))
                return ask_keys_or_page(look, shard);
        look->step = TASKS_END;
        return false;
}

void tasks_look_init(struct tasks_look *look)
{
        look->look.next = tasks_look_next;
}

void tasks_look_free(struct tasks_look *look)
{
        keys_free(&look->keys);
        free(look->counts);
        whereabouts_look_free(&look->where);
}
