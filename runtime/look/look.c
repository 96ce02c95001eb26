#include "look/look.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* start_OP(): starts the request at the store. */
#define LOOK_START(op, member)                                                                                         \
        static void start_##op(struct store *store, struct look *look)                                                 \
        {                                                                                                              \
                store_##op(store, &look->member);                                                                      \
        }

LOOK_START(count, count)
LOOK_START(list, list)
LOOK_START(find, find)
LOOK_START(keys, keys)
LOOK_START(dead_groups, groups)
LOOK_START(desired_get, desired)
LOOK_START(desired_set, desired_set)
LOOK_START(status_list, documents)
LOOK_START(app_get, app)
LOOK_START(schedule_list, schedules)
LOOK_START(schedule_set, schedule_set)
LOOK_START(submit, submit)
LOOK_START(limit_look, limit)
LOOK_START(consume, consume)
LOOK_START(commit, commit)

bool look_ask_count(struct look *look, uint32_t first_shard, uint32_t shards, struct store_counts *counts)
{
        look->start = start_count;
        look->count = (struct store_count){ .first_shard = first_shard, .shards = shards, .counts = counts };
        return true;
}

bool look_ask_list(struct look *look, uint32_t shard, enum store_state state, struct store_cursor cursor, uint32_t page)
{
        look->start = start_list;
        look->list = (struct store_list){ .shard = shard, .state = state, .cursor = cursor, .page_tasks = page };
        return true;
}

bool look_ask_find(struct look *look, struct span id, struct store_cursor cursor)
{
        look->start = start_find;
        look->find = (struct store_find){ .id = id, .cursor = cursor };
        return true;
}

bool look_ask_keys(struct look *look, uint32_t shard, struct span key, struct store_cursor cursor, uint32_t page)
{
        look->start = start_keys;
        look->keys = (struct store_keys){ .shard = shard, .key = key, .cursor = cursor, .page_keys = page };
        return true;
}

bool look_ask_groups(struct look *look, uint32_t shard)
{
        look->start = start_dead_groups;
        look->groups = (struct store_dead_groups){ .shard = shard };
        return true;
}

bool look_ask_desired(struct look *look)
{
        look->start = start_desired_get;
        look->desired = (struct store_desired_get){ 0 };
        return true;
}

bool look_ask_documents(struct look *look, enum store_document kind)
{
        look->start = start_status_list;
        look->documents = (struct store_status_list){ .kind = kind };
        return true;
}

bool look_ask_app(struct look *look)
{
        look->start = start_app_get;
        look->app = (struct store_app_get){ 0 };
        return true;
}

bool look_ask_schedules(struct look *look, uint32_t shard, struct span name)
{
        look->start = start_schedule_list;
        look->schedules = (struct store_schedule_list){ .shard = shard, .name = name };
        return true;
}

bool look_set_schedule(struct look *look, const struct store_schedule_set *set)
{
        look->start = start_schedule_set;
        look->schedule_set = *set;
        return true;
}

bool look_unset_desired(struct look *look, struct span name)
{
        look->start = start_desired_set;
        look->desired_set = (struct store_desired_set){ .item.name = name };
        return true;
}

bool look_submit(struct look *look, struct store_submission *items, uint32_t count)
{
        look->start = start_submit;
        look->submit = (struct store_submit){ .items = items, .items_count = count };
        return true;
}

bool look_set_desired(struct look *look, struct store_desired item)
{
        look->start = start_desired_set;
        look->desired_set = (struct store_desired_set){ .item = item, .has_value = true };
        return true;
}

bool look_ask_limit(struct look *look, struct span name, uint64_t cursor)
{
        look->start = start_limit_look;
        look->limit = (struct store_limit_look){ .name = name, .cursor = cursor, .page_values = STORE_CALL_TASKS };
        return true;
}

bool look_consume(struct look *look, const struct store_consume *consume)
{
        look->start = start_consume;
        look->consume = *consume;
        return true;
}

bool look_commit(struct look *look, const struct store_commit *commit)
{
        look->start = start_commit;
        look->commit = *commit;
        return true;
}

/* --- whereabouts ------------------------------------------------------------------------------------------------- */

enum whereabouts_step {
        WHEREABOUTS_BEGIN,
        WHEREABOUTS_DESIRED,
        WHEREABOUTS_STATUS,
        WHEREABOUTS_RUNNING,
        WHEREABOUTS_END
};

bool whereabouts_look_next(struct whereabouts_look *part, struct look *look)
{
        struct whereabouts *w = &part->w;
        switch ((enum whereabouts_step)part->step) {
        case WHEREABOUTS_BEGIN:
                whereabouts_init(w);
                part->step = WHEREABOUTS_DESIRED;
                return look_ask_desired(look);
        case WHEREABOUTS_DESIRED:
                for (uint32_t i = 0; i < look->desired.items_count; i++)
                        whereabouts_add_desired(w, &look->desired.items[i]);
                part->step = WHEREABOUTS_STATUS;
                return look_ask_documents(look, DOCUMENT_STATUS);
        case WHEREABOUTS_STATUS:
                for (uint32_t i = 0; i < look->documents.items_count; i++)
                        whereabouts_add_status(w, &look->documents.items[i]);
                part->step = WHEREABOUTS_RUNNING;
                return look_ask_documents(look, DOCUMENT_RUNNING);
        case WHEREABOUTS_RUNNING:
                for (uint32_t i = 0; i < look->documents.items_count; i++)
                        whereabouts_add_running(w, &look->documents.items[i]);
                part->step = WHEREABOUTS_END;
                return false;
        case WHEREABOUTS_END:
                break;
        }
        return false;
}

void whereabouts_look_free(struct whereabouts_look *part)
{
        whereabouts_free(&part->w);
        part->step = WHEREABOUTS_BEGIN;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

const char *look_place_text(char text[LOOK_PLACE_TEXT], const struct look_place *place)
{
        (void)snprintf(text, LOOK_PLACE_TEXT, "%" PRIu32 ".%" PRIu32 ".%" PRIu64 ".%" PRIu64 ".%" PRIu32, place->shard,
                place->part, place->cursor.major, place->cursor.minor, place->skip);
        return text;
}

bool look_place_parse(const char *text, struct look_place *ret_place)
{
        struct look_place place = { 0 };
        char again[LOOK_PLACE_TEXT];
        if (sscanf(text, "%" SCNu32 ".%" SCNu32 ".%" SCNu64 ".%" SCNu64 ".%" SCNu32, &place.shard, &place.part,
                    &place.cursor.major, &place.cursor.minor, &place.skip) != 5 ||
                place.cursor.major > TASK_NUMBER_MAX || place.cursor.minor > TASK_NUMBER_MAX)
                return false;
        /* Refuses any other spelling: spaces, signs, numbers out of range, trailing text. */
        if (strcmp(look_place_text(again, &place), text) != 0)
                return false;
        *ret_place = place;
        return true;
}
