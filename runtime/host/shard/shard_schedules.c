#include "host/shard/shard_schedules.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"

static void forget(struct shard_schedules *s)
{
        for (uint32_t i = 0; i < s->count; i++) {
                schedule_free(s->list[i].definition);
                free(s->list[i].definition);
        }
        free(s->list);
        s->list = NULL;
        s->count = 0;
        s->next_ms = STORE_NEVER;
}

void shard_schedules_clear(struct shard_schedules *s)
{
        forget(s);
        *s = (struct shard_schedules){ .next_ms = STORE_NEVER };
}

void shard_schedules_acquired(struct shard_schedules *s, uint64_t next_ms)
{
        s->must_list = next_ms != STORE_NEVER;
}

void shard_schedules_begin(struct shard_schedules *s)
{
        forget(s);
        s->must_list = false;
}

void shard_schedules_add(struct shard_schedules *s, const struct store_schedule *stored, struct schedule *definition)
{
        s->list = array_grow(s->list, s->count, sizeof(*s->list));
        struct shard_schedule *added = &s->list[s->count++];
        *added = (struct shard_schedule){ .version = stored->version,
                .next_ms = stored->next_ms,
                .last_seq = stored->last_seq,
                .fired = stored->fired,
                .skipped = stored->skipped,
                .definition = definition };
        memcpy(added->name, stored->name.data, min_u64(stored->name.size, STORE_SCHEDULE_NAME_MAX));
        s->next_ms = min_u64(s->next_ms, added->next_ms);
}

static struct span name_of(const struct shard_schedule *one)
{
        return span_of_text(one->name);
}

/* The schedule's last task, if it runs here; NULL. */
static struct claimed *running(const struct shard_schedule *one, const struct window *window)
{
        struct claimed *c =
                one->last_seq ? window_find(window, schedule_key(one->definition, name_of(one)), one->last_seq) : NULL;
        return c && c->state == CLAIMED_RUNNING ? c : NULL;
}

/* Whether to fire only if the schedule's last task is gone.  A last task that still waits makes a second one
 * superfluous. */
static bool is_unless_alive(
        const struct shard_schedule *one, const struct window *window, struct claimed **ret_replaced)
{
        struct claimed *last = running(one, window);
        *ret_replaced = NULL;
        switch (one->definition->overlap) {
        case OVERLAP_SKIP:
                return true;
        case OVERLAP_QUEUE_ONE:
                return !last;
        case OVERLAP_REPLACE:
                *ret_replaced = last;
                return !last;
        case OVERLAP_QUEUE_ALL:
        case OVERLAP_ALLOW:
                break;
        }
        return false;
}

void shard_schedules_fill(struct shard_schedules *s, const struct window *window, uint64_t wall_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count)
{
        s->fires_count = 0;
        s->fires_at_ms = wall_ms;
        *ret_replaced_count = 0;
        for (uint32_t i = 0; i < s->count && s->fires_count < STORE_CALL_FIRES; i++) {
                const struct shard_schedule *one = &s->list[i];
                const struct schedule *definition = one->definition;
                struct schedule_plan plan;
                struct claimed *replaced = NULL;
                struct span key = schedule_key(definition, name_of(one));
                if (one->next_ms > wall_ms)
                        continue;
                schedule_plan(definition, name_of(one), one->next_ms, one->fired, wall_ms, &plan);
                struct store_fire *fire = &s->fires[s->fires_count++];
                *fire = (struct store_fire){ .name = name_of(one),
                        .version = one->version,
                        .expected_ms = one->next_ms,
                        .next_ms = plan.next_ms == SCHEDULE_NEVER ? STORE_NEVER : plan.next_ms,
                        .passed = plan.passed,
                        .has_task = plan.has_task };
                if (!plan.has_task)
                        continue;
                fire->unless_alive = is_unless_alive(one, window, &replaced);
                if (definition->overlap == OVERLAP_ALLOW)
                        key.size = 0;
                fire->task = (struct envelope){ .handler = span_of_text(definition->handler),
                        .key = key,
                        .payload = definition->payload,
                        .submitted_ms = wall_ms,
                        .lane = definition->lane };
                if (replaced)
                        ret_replaced[(*ret_replaced_count)++] = replaced;
        }
}

static struct shard_schedule *find(struct shard_schedules *s, struct span name)
{
        for (uint32_t i = 0; i < s->count; i++)
                if (span_is(name_of(&s->list[i]), name))
                        return &s->list[i];
        return NULL;
}

static void set_next(struct shard_schedules *s)
{
        s->next_ms = STORE_NEVER;
        for (uint32_t i = 0; i < s->count; i++)
                s->next_ms = min_u64(s->next_ms, s->list[i].next_ms);
}

void shard_schedules_drop_due(struct shard_schedules *s)
{
        for (uint32_t i = 0; i < s->fires_count; i++) {
                struct shard_schedule *one = find(s, s->fires[i].name);
                if (one)
                        one->next_ms = STORE_NEVER;
        }
        s->fires_count = 0;
        set_next(s);
}

void shard_schedules_fired(struct shard_schedules *s)
{
        for (uint32_t i = 0; i < s->fires_count; i++) {
                const struct store_fire *fire = &s->fires[i];
                struct shard_schedule *one = find(s, fire->name);
                if (fire->fired == STORE_FIRE_STALE || !one) {
                        s->must_list = true;
                        continue;
                }
                one->next_ms = fire->stored.next_ms;
                one->last_seq = fire->stored.last_seq;
                one->fired = fire->stored.fired;
                one->skipped = fire->stored.skipped;
        }
        s->fires_count = 0;
        set_next(s);
}
