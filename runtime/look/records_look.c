#include "look/records_look.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"
#include "schedule/record.h"
#include "view/app.h"
#include "view/json.h"
#include "view/records.h"

/* --- dead tasks by group ------------------------------------------------------------------------------------------ */

static void take_counts(struct records_look *look)
{
        for (uint32_t i = 0; i < look->look.info.shards; i++) {
                const struct store_counts *c = &look->counts[i];
                look->total += c->dead;
                if (c->time_ms && (!look->time_ms || c->time_ms < look->time_ms))
                        look->time_ms = c->time_ms;
        }
}

static bool groups_next(struct records_look *look)
{
        struct look *base = &look->look;
        if (!look->counts) {
                look->found = json_array();
                look->counts = memory_zero(base->info.shards, sizeof(*look->counts));
                return look_ask_count(base, 0, base->info.shards, look->counts);
        }
        if (!look->has_begun) {
                look->has_begun = true;
                take_counts(look);
        } else {
                for (uint32_t i = 0; i < base->groups.groups_count; i++)
                        dead_groups_add(look->found, &base->groups.groups[i]);
                look->place.shard++;
        }
        while (look->place.shard < base->info.shards && !look->counts[look->place.shard].dead)
                look->place.shard++;
        return look->place.shard < base->info.shards && look_ask_groups(base, look->place.shard);
}

/* --- schedules ---------------------------------------------------------------------------------------------------- */

/* Shows all schedules of a shard or none, because they are few. */
static bool schedules_next(struct records_look *look)
{
        struct look *base = &look->look;
        if (!look->has_begun) {
                look->has_begun = true;
                look->found = json_array();
                return look_ask_desired(base);
        }
        if (look->has_marks) {
                for (uint32_t i = 0; i < base->schedules.schedules_count; i++)
                        (void)json_array_append_new(
                                look->found, schedule_as_json(&base->schedules.schedules[i], base->schedules.shard));
                look->unreadable += base->schedules.unreadable;
                look->place.shard++;
        } else {
                look->has_marks = true;
                for (uint32_t i = 0; i < base->desired.items_count; i++)
                        schedules_mark_add(&look->in_force, &base->desired.items[i]);
        }
        bool is_end = look->place.shard >= base->info.shards;
        look->has_more = !is_end && json_array_size(look->found) >= look->shown_max;
        return !is_end && !look->has_more && look_ask_schedules(base, look->place.shard, (struct span){ 0 });
}

/* --- the app ------------------------------------------------------------------------------------------------------ */

static bool app_next(struct records_look *look)
{
        struct look *base = &look->look;
        if (!look->has_begun) {
                look->has_begun = true;
                return look_ask_app(base);
        }
        char *coordination = text_copy_part(
                base->app.coordination.size ? base->app.coordination.data : "", base->app.coordination.size);
        struct app_view view = { .app = base->info.app,
                .driver = base->info.driver,
                .coordination = coordination,
                .record = &base->app.app };
        look->found = app_as_json(&view);
        free(coordination);
        return false;
}

/* --- the look ---------------------------------------------------------------------------------------------------- */

static bool records_look_next(struct look *base)
{
        struct records_look *look = container_of(base, struct records_look, look);
        switch (look->kind) {
        case RECORDS_DEAD_GROUPS:
                return groups_next(look);
        case RECORDS_SCHEDULES:
                return schedules_next(look);
        case RECORDS_APP:
                return app_next(look);
        }
        return false;
}

void records_look_init(struct records_look *look, enum records_kind kind)
{
        look->look.next = records_look_next;
        look->kind = kind;
}

void records_look_free(struct records_look *look)
{
        json_decref(look->found);
        free(look->counts);
}
