#include "look/keys_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "view/json.h"
#include "view/key.h"

#define CLAIMED_SEEN 4096u /* tasks in flight that are searched for a key's tasks */
/* With more tasks than this before it, the first task of a side queue is not searched for: it would take too long. */
#define HEAD_BEHIND_MAX 100000u

/* --- a list ------------------------------------------------------------------------------------------------------- */

/* False: the look stops here. */
static bool see_key(struct keys_look *look, const struct store_key_info *key)
{
        if (look->looked == look->looked_max)
                return false;
        if (!look->state || !strcmp(store_key_state_name(key->state), look->state)) {
                if (look->shown == look->shown_max || !look->show(look->self, key))
                        return false;
                look->shown++;
        }
        look->looked++;
        return true;
}

static bool take_keys(struct keys_look *look)
{
        const struct store_keys *page = &look->look.keys;
        struct look_place *at = &look->place;
        for (; at->skip < page->keys_count; at->skip++) {
                if (see_key(look, &page->keys[at->skip]))
                        continue;
                look->has_more = true;
                return false;
        }
        at->skip = 0;
        at->cursor = page->cursor;
        if (page->is_end)
                *at = (struct look_place){ .shard = at->shard + 1 };
        return true;
}

static bool keys_look_next(struct look *base)
{
        struct keys_look *look = container_of(base, struct keys_look, look);
        struct look_place *at = &look->place;
        switch (look->step) {
        case KEYS_BEGIN:
                look->counts = memory_zero(base->info.shards, sizeof(*look->counts));
                look->step = KEYS_COUNTS;
                return look_ask_count(base, 0, base->info.shards, look->counts);
        case KEYS_COUNTS:
                for (uint32_t i = 0; i < base->info.shards; i++)
                        look->total += look->counts[i].keys;
                break;
        case KEYS_PAGE:
                if (take_keys(look))
                        break;
                look->step = KEYS_END;
                return false;
        case KEYS_END:
                return false;
        }
        while (at->shard < base->info.shards && !look->counts[at->shard].keys)
                *at = (struct look_place){ .shard = at->shard + 1 };
        look->step = at->shard < base->info.shards ? KEYS_PAGE : KEYS_END;
        return look->step == KEYS_PAGE &&
               look_ask_keys(base, at->shard, (struct span){ 0 }, at->cursor, STORE_CALL_TASKS);
}

void keys_look_init(struct keys_look *look)
{
        look->look.next = keys_look_next;
}

void keys_look_free(struct keys_look *look)
{
        free(look->counts);
}

/* --- one key ------------------------------------------------------------------------------------------------------ */

static void set_first(struct key_look *look, const struct store_listed *task, const struct store_key_info *key)
{
        struct whereabouts_place place = { .shard = &look->shard, .key = key };
        look->first = whereabouts_of(&look->where.w, task, &place);
        view_json_span(look->first, "id", task->id);
}

/* Counts the key's claimed tasks, which a store does not count by key.  False: all were seen. */
static bool take_claimed(struct key_look *look)
{
        const struct store_list *page = &look->look.list;
        for (uint32_t i = 0; i < page->tasks_count; i++) {
                const struct store_listed *task = &page->tasks[i];
                look->looked++;
                if (!span_is(task->key, look->key))
                        continue;
                look->claimed++;
                if (!look->first)
                        set_first(look, task, NULL);
        }
        return !page->is_end && look->looked < CLAIMED_SEEN &&
               look_ask_list(&look->look, page->shard, STATE_IN_FLIGHT, page->cursor, STORE_CALL_TASKS);
}

/* If no task of the key is claimed, the others wait for the first one of its side queue. */
static bool ask_head(struct key_look *look)
{
        uint64_t others = store_counts_queued(&look->shard) + look->shard.delayed;
        if (look->first || !look->found.key.head.size || others > HEAD_BEHIND_MAX)
                return false;
        look->step = KEY_HEAD;
        return look_ask_find(&look->look, look->found.key.head, (struct store_cursor){ 0 });
}

/* Searches a slice at a time, so that other requests get their turn. */
static bool take_head(struct key_look *look)
{
        const struct store_find *find = &look->look.find;
        if (find->task)
                set_first(look, find->task, &look->found.key);
        return !find->task && !find->is_end && look_ask_find(&look->look, find->id, find->cursor);
}

static bool ask_itself(struct key_look *look)
{
        look->step = KEY_ITSELF;
        return look_ask_keys(&look->look, look->shard.shard, look->key, (struct store_cursor){ 0 }, 1);
}

static bool key_look_next(struct look *base)
{
        struct key_look *look = container_of(base, struct key_look, look);
        uint32_t shard = shard_of_key(look->key, base->info.shards);
        switch (look->step) {
        case KEY_WHEREABOUTS:
                if (whereabouts_look_next(&look->where, base))
                        return true;
                look->found.key = (struct store_key_info){ .shard = shard, .key = look->key, .state = KEY_FREE };
                look->step = KEY_COUNT;
                return look_ask_count(base, shard, 1, &look->shard);
        case KEY_COUNT:
                if (!look->shard.in_flight)
                        return ask_itself(look);
                look->step = KEY_CLAIMED;
                return look_ask_list(base, shard, STATE_IN_FLIGHT, (struct store_cursor){ 0 }, STORE_CALL_TASKS);
        case KEY_CLAIMED:
                return take_claimed(look) || ask_itself(look);
        case KEY_ITSELF:
                if (base->keys.keys_count)
                        keep_key(&look->found, &base->keys.keys[0]);
                if (ask_head(look))
                        return true;
                break;
        case KEY_HEAD:
                if (take_head(look))
                        return true;
                break;
        case KEY_END:
                break;
        }
        look->step = KEY_END;
        return false;
}

void key_look_init(struct key_look *look, struct span key)
{
        look->look.next = key_look_next;
        look->key = key;
}

void key_look_free(struct key_look *look)
{
        json_decref(look->first);
        arena_free(look->found.arena);
        whereabouts_look_free(&look->where);
}

json_t *key_look_as_json(const struct key_look *look)
{
        struct key_more more = { .w = &look->where.w, .claimed = look->claimed, .first = look->first };
        return key_more_as_json(key_as_json(&look->found.key), &more);
}
