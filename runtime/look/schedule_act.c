#include "look/schedule_act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "schedule/time_text.h"

enum schedule_act_step { STEP_FIND, STEP_CHANGE, STEP_SET, STEP_SHOW, STEP_SUBMIT, STEP_END };

struct schedule_submissions {
        struct schedule definition;
        uint32_t count;
        struct store_submission items[SCHEDULE_BACKFILL_STEP];
        char once[SCHEDULE_BACKFILL_STEP][STORE_SCHEDULE_NAME_MAX + 32]; /* idempotency keys */
};

/* --- finding --- */

/* The at-th shard to ask: the shard of the default key comes first. */
static uint32_t shard_in_order(const struct schedule_act *act, uint32_t at)
{
        uint32_t home = shard_of_key(act->name, act->look.info.shards);
        if (at == 0)
                return home;
        return at <= home ? at - 1 : at;
}

static void free_texts(struct store_schedule *stored)
{
        free((char *)stored->name.data);
        free((char *)stored->definition.data);
        *stored = (struct store_schedule){ 0 };
}

static void keep(struct store_schedule *to, const struct store_schedule *from)
{
        *to = *from;
        to->name.data = text_copy_part(from->name.size ? from->name.data : "", from->name.size);
        to->definition.data = text_copy_part(from->definition.size ? from->definition.data : "", from->definition.size);
}

static void take_records(struct schedule_act *act)
{
        const struct store_schedule_list *list = &act->look.schedules;
        for (uint32_t i = 0; i < list->schedules_count; i++) {
                act->records = array_grow(act->records, act->records_count, sizeof(*act->records));
                struct schedule_copy *record = &act->records[act->records_count++];
                record->shard = list->shard;
                keep(&record->stored, &list->schedules[i]);
        }
}

/* A change needs all records of the name; reading is content with one. */
static bool is_found(const struct schedule_act *act)
{
        bool is_change = act->kind >= SCHEDULE_ACT_SET && act->kind <= SCHEDULE_ACT_DELETE;
        return act->at == act->look.info.shards || (act->records_count && !is_change);
}

static bool is_of_file(const struct store_schedule *stored)
{
        struct schedule schedule;
        bool is_file = false;
        if (schedule_parse(&schedule, stored->definition, NULL) == 0) {
                is_file = schedule_is_of_file(&schedule);
                schedule_free(&schedule);
        }
        return is_file;
}

static bool fail(struct schedule_act *act, int status)
{
        act->status = status;
        act->step = STEP_END;
        return false;
}

/* --- changing --- */

/* Versions grow with time, so that the last change wins, whoever made it. */
static uint64_t next_version(const struct schedule_act *act)
{
        uint64_t version = act->now_ms;
        for (uint32_t i = 0; i < act->records_count; i++)
                version = max_u64(version, act->records[i].stored.version + 1);
        return version;
}

static uint64_t as_stored(uint64_t next_ms)
{
        return next_ms == SCHEDULE_NEVER ? STORE_NEVER : next_ms;
}

/* If the key has changed, the schedule moves to another shard: its old record is deleted first, so that no time fires
 * from both.  State and counts are kept. */
static bool set_next(struct schedule_act *act)
{
        uint32_t shard = shard_of_key(schedule_key(act->wanted, act->name), act->look.info.shards);
        while (act->at < act->records_count && act->records[act->at].shard == shard)
                act->at++;
        if (act->at < act->records_count) {
                struct schedule_copy *old = &act->records[act->at++];
                return look_set_schedule(&act->look, &(struct store_schedule_set){ .verb = SCHEDULE_DELETE,
                                                             .shard = old->shard,
                                                             .name = act->name,
                                                             .version = act->version });
        }
        const struct store_schedule *old = act->records_count ? &act->records[0].stored : NULL;
        bool is_moved = old != NULL;
        for (uint32_t i = 0; i < act->records_count; i++)
                is_moved = is_moved && act->records[i].shard != shard;
        struct store_schedule_set set = { .verb = is_moved ? SCHEDULE_LOAD : SCHEDULE_PUT,
                .shard = shard,
                .name = act->name,
                .version = act->version,
                .definition = span_of_text(act->definition),
                .next_ms = as_stored(schedule_next_ms(act->wanted, act->name, act->now_ms, old ? old->fired : 0)) };
        if (is_moved) {
                set.state = old->state == SCHEDULE_PAUSED ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
                set.last_ms = old->last_ms;
                set.fired = old->fired;
                set.skipped = old->skipped;
        }
        act->shard = shard;
        act->step = STEP_SET;
        return look_set_schedule(&act->look, &set);
}

/* The first time after resuming: times that passed meanwhile are not caught up. */
static int resume_time(struct schedule_act *act, const struct store_schedule *stored, uint64_t *ret_ms)
{
        struct schedule schedule;
        int r = schedule_read(stored, &schedule, &act->error);
        if (r < 0)
                return r;
        *ret_ms = as_stored(schedule_next_ms(&schedule, act->name, act->now_ms, stored->fired));
        schedule_free(&schedule);
        return 0;
}

static bool change_next(struct schedule_act *act)
{
        static const enum store_schedule_verb verbs[] = { [SCHEDULE_ACT_PAUSE] = SCHEDULE_PAUSE,
                [SCHEDULE_ACT_RESUME] = SCHEDULE_RESUME,
                [SCHEDULE_ACT_DELETE] = SCHEDULE_DELETE };
        if (act->at && act->look.schedule_set.change == SCHEDULE_CHANGED)
                act->is_changed = true;
        if (act->at == act->records_count) {
                act->step = STEP_END;
                return false;
        }
        const struct schedule_copy *record = &act->records[act->at++];
        struct store_schedule_set set = { .verb = verbs[act->kind],
                .shard = record->shard,
                .name = act->name,
                .version = record->stored.version + 1 };
        if (act->kind == SCHEDULE_ACT_RESUME) {
                int r = resume_time(act, &record->stored, &set.next_ms);
                if (r < 0)
                        return fail(act, r);
        }
        return look_set_schedule(&act->look, &set);
}

/* --- submitting --- */

/* Submits under an id derived from the time, so that a repetition submits nothing twice; `at_ms` 0: now, with a new id
 * each time. */
static void add_submission(struct schedule_act *act, uint64_t at_ms)
{
        struct schedule_submissions *all = act->submissions;
        const struct schedule *schedule = &all->definition;
        struct store_submission *item = &all->items[all->count];
        char *once = all->once[all->count++];
        item->envelope = (struct envelope){
                .handler = span_of_text(schedule->handler), .payload = schedule->payload, .lane = schedule->lane
        };
        if (schedule->overlap != OVERLAP_ALLOW)
                item->envelope.key = schedule_key(schedule, act->name);
        if (!at_ms)
                return;
        (void)snprintf(once, sizeof(all->once[0]), "%.*s.%" PRIu64, (int)act->name.size, act->name.data, at_ms / 1000);
        item->idempotency = span_of_text(once);
}

static int add_times(struct schedule_act *act)
{
        const struct schedule *schedule = &act->submissions->definition;
        uint64_t from_ms, to_ms;
        int r = time_parse(act->from_text, &schedule->zone, &from_ms, &act->error);
        if (r < 0)
                return error_prefix(&act->error, r, "from");
        r = time_parse(act->to_text, &schedule->zone, &to_ms, &act->error);
        if (r < 0)
                return error_prefix(&act->error, r, "to");
        if (to_ms > act->now_ms)
                return error_set(&act->error, -EINVAL, "to: is not in the past; times to come fire by themselves");
        for (uint64_t at = from_ms - min_u64(from_ms, 1);;) {
                at = schedule_next_ms(schedule, act->name, at, 0);
                if (at >= to_ms)
                        return 0;
                if (act->submissions->count == act->tasks_max) {
                        act->more_ms = at;
                        return 0;
                }
                add_submission(act, at);
        }
}

static bool submit_next(struct schedule_act *act)
{
        act->submissions = memory_zero(1, sizeof(*act->submissions));
        act->step = STEP_SUBMIT;
        int r = schedule_read(&act->records[0].stored, &act->submissions->definition, &act->error);
        if (r < 0)
                return fail(act, r);
        if (act->kind == SCHEDULE_ACT_RUN)
                add_submission(act, 0);
        else if ((r = add_times(act)) < 0)
                return fail(act, r);
        act->tasks = act->submissions->count;
        if (act->is_dry || !act->tasks) {
                act->step = STEP_END;
                return false;
        }
        return look_submit(&act->look, act->submissions->items, act->submissions->count);
}

/* Submissions after a refused one may have been stored: the error says so, and repeating is harmless. */
static void take_submitted(struct schedule_act *act)
{
        const struct schedule_submissions *all = act->submissions;
        act->step = STEP_END;
        (void)snprintf(act->id, sizeof(act->id), "%s", all->items[0].id);
        act->tasks = 0;
        for (uint32_t i = 0; i < all->count; i++) {
                act->tasks += all->items[i].status == 0;
                if (all->items[i].status < 0 && !act->status)
                        act->status =
                                error_set(&act->error, all->items[i].status, "shard %" PRIu32 " refuses a task: %s",
                                        all->items[i].shard, strerror(-all->items[i].status));
        }
        if (act->status && act->kind == SCHEDULE_ACT_BACKFILL)
                (void)error_prefix(
                        &act->error, act->status, "%" PRIu32 " tasks are there, it may be repeated", act->tasks);
}

/* --- the look --- */

static bool begin_change(struct schedule_act *act)
{
        bool is_set = act->kind == SCHEDULE_ACT_SET;
        act->at = 0;
        act->version = next_version(act);
        if (!act->records_count && !is_set) {
                (void)error_set(&act->error, -ENOENT,
                        "there is no schedule %.*s; quiver schedule list names those that "
                        "there are",
                        (int)act->name.size, act->name.data);
                return fail(act, -ENOENT);
        }
        for (uint32_t i = 0; i < act->records_count; i++)
                if ((is_set || (act->kind == SCHEDULE_ACT_DELETE && !act->is_forced)) &&
                        is_of_file(&act->records[i].stored)) {
                        (void)error_set(&act->error, -EEXIST,
                                "schedule %.*s stands in a host's configuration: change it there, and reload; "
                                "pause it, if it shall not fire now",
                                (int)act->name.size, act->name.data);
                        return fail(act, -EEXIST);
                }
        act->step = STEP_CHANGE;
        return true;
}

static bool on_found(struct schedule_act *act)
{
        if (!begin_change(act))
                return false;
        switch (act->kind) {
        case SCHEDULE_ACT_SHOW:
                act->found = act->records[0].stored;
                act->shard = act->records[0].shard;
                act->step = STEP_END;
                return false;
        case SCHEDULE_ACT_SET:
                act->definition = schedule_text(act->wanted);
                return set_next(act);
        case SCHEDULE_ACT_PAUSE:
        case SCHEDULE_ACT_RESUME:
        case SCHEDULE_ACT_DELETE:
                return change_next(act);
        case SCHEDULE_ACT_RUN:
        case SCHEDULE_ACT_BACKFILL:
                return submit_next(act);
        }
        return false;
}

/* Reads the record again, to show it as the next reader sees it. */
static bool ask_again(struct schedule_act *act)
{
        if (act->look.schedule_set.change == SCHEDULE_STALE) {
                (void)error_set(&act->error, -EAGAIN,
                        "somebody else set this schedule at the same time; look at it "
                        "again");
                return fail(act, -EAGAIN);
        }
        for (uint32_t i = 0; i < act->records_count; i++)
                free_texts(&act->records[i].stored);
        act->records_count = 0;
        act->step = STEP_SHOW;
        return look_ask_schedules(&act->look, act->shard, act->name);
}

static bool show(struct schedule_act *act)
{
        take_records(act);
        act->step = STEP_END;
        if (!act->records_count) {
                (void)error_set(&act->error, -EAGAIN, "somebody else deleted this schedule at the same time");
                return fail(act, -EAGAIN);
        }
        act->found = act->records[0].stored;
        return false;
}

static bool act_next(struct look *look)
{
        struct schedule_act *act = container_of(look, struct schedule_act, look);
        switch ((enum schedule_act_step)act->step) {
        case STEP_FIND:
                if (act->at)
                        take_records(act);
                if (is_found(act))
                        return on_found(act);
                return look_ask_schedules(look, shard_in_order(act, act->at++), act->name);
        case STEP_CHANGE:
                return act->kind == SCHEDULE_ACT_SET ? set_next(act) : change_next(act);
        case STEP_SET:
                return ask_again(act);
        case STEP_SHOW:
                return show(act);
        case STEP_SUBMIT:
                take_submitted(act);
                return false;
        case STEP_END:
                break;
        }
        return false;
}

void schedule_act_init(struct schedule_act *act)
{
        act->look.next = act_next;
}

void schedule_act_free(struct schedule_act *act)
{
        for (uint32_t i = 0; i < act->records_count; i++)
                free_texts(&act->records[i].stored);
        free(act->records);
        free(act->definition);
        if (act->submissions)
                schedule_free(&act->submissions->definition);
        free(act->submissions);
}
