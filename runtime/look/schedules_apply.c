#include "look/schedules_apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "view/json.h"

enum apply_step {
        APPLY_BEGIN,
        APPLY_NEWEST, /* the desired state was read */
        APPLY_LIST,
        APPLY_PUT,
        APPLY_MARKED,
        APPLY_AGAIN, /* the desired state was read once more */
        APPLY_DELETE,
        APPLY_UNMARK,
        APPLY_END
};

/* A stored schedule. */
struct file_record {
        char name[STORE_SCHEDULE_NAME_MAX + 1];
        struct store_schedule stored; /* without name and definition */
        char *definition;
        uint32_t shard;
        bool is_of_file;
        bool is_gone; /* deleted in this pass */
};

/* --- marks --- */

/* The version in a mark's name; 0: not a mark.  Anybody may have written it, so it must be a canonical number. */
static uint64_t mark_version(struct span name)
{
        char text[SCHEDULES_MARK_MAX];
        size_t prefix = sizeof(SCHEDULES_MARK) - 1;
        uint64_t version = 0;
        if (name.size <= prefix || memcmp(name.data, SCHEDULES_MARK, prefix) != 0 || name.size >= sizeof(text))
                return 0;
        for (size_t i = prefix; i < name.size; i++) {
                if (name.data[i] < '0' || name.data[i] > '9' || version > TASK_NUMBER_MAX)
                        return 0;
                version = version * 10 + (uint64_t)(name.data[i] - '0');
        }
        return version <= TASK_NUMBER_MAX && name.data[prefix] != '0' ? version : 0;
}

void schedules_mark_add(struct schedules_mark *mark, const struct store_desired *item)
{
        uint64_t version = mark_version(item->name);
        if (version <= mark->version)
                return;
        mark->version = version;
        (void)snprintf(mark->by, sizeof(mark->by), "%.*s", (int)min_u64(item->value.size, sizeof(mark->by) - 1),
                item->value.size ? item->value.data : "");
}

json_t *schedules_mark_as_json(const struct schedules_mark *mark)
{
        if (!mark->version)
                return NULL;
        json_t *o = json_object();
        view_json_number(o, "version", mark->version);
        view_json_set_text(o, "by", mark->by);
        return o;
}

static void take_marks(struct schedules_apply *a)
{
        const struct store_desired_get *get = &a->look.desired;
        a->newest = (struct schedules_mark){ 0 };
        a->olds_count = 0;
        for (uint32_t i = 0; i < get->items_count; i++)
                schedules_mark_add(&a->newest, &get->items[i]);
        for (uint32_t i = 0; i < get->items_count && a->olds_count < SCHEDULES_OLD_MAX; i++) {
                uint64_t version = mark_version(get->items[i].name);
                if (version && version < a->newest.version)
                        a->olds[a->olds_count++] = version;
        }
        a->is_older = a->version < a->newest.version;
}

/* --- records --- */

static struct file_schedule *find_file(const struct schedules_apply *a, const char *name)
{
        for (uint32_t i = 0; i < a->files_count; i++)
                if (!strcmp(a->files[i].name, name))
                        return &a->files[i];
        return NULL;
}

/* A definition that cannot be parsed belongs to nobody: it stays, and fsck reports it. */
static bool is_of_file(struct span definition)
{
        struct schedule schedule;
        if (schedule_parse(&schedule, definition, NULL) < 0)
                return false;
        bool is_file = schedule_is_of_file(&schedule);
        schedule_free(&schedule);
        return is_file;
}

static void take_records(struct schedules_apply *a)
{
        const struct store_schedule_list *list = &a->look.schedules;
        for (uint32_t i = 0; i < list->schedules_count; i++) {
                const struct store_schedule *stored = &list->schedules[i];
                struct file_record record = { .stored = *stored, .shard = list->shard };
                if (stored->name.size > STORE_SCHEDULE_NAME_MAX)
                        continue;
                memcpy(record.name, stored->name.data, stored->name.size);
                record.is_of_file = is_of_file(stored->definition);
                if (!record.is_of_file && !find_file(a, record.name))
                        continue;
                record.definition = text_copy_part(stored->definition.data, stored->definition.size);
                a->records = array_grow(a->records, a->records_count, sizeof(*a->records));
                a->records[a->records_count++] = record;
        }
}

static void forget_records(struct schedules_apply *a)
{
        for (uint32_t i = 0; i < a->records_count; i++)
                free(a->records[i].definition);
        free(a->records);
        a->records = NULL;
        a->records_count = 0;
}

static bool delete_record(struct schedules_apply *a, struct file_record *record)
{
        record->is_gone = true;
        return look_set_schedule(&a->look, &(struct store_schedule_set){ .verb = SCHEDULE_DELETE,
                                                   .shard = record->shard,
                                                   .name = span_of_text(record->name),
                                                   .version = record->stored.version });
}

/* --- ours --- */

static uint32_t shard_of(const struct schedules_apply *a, const struct file_schedule *file)
{
        return shard_of_key(schedule_key(&file->wanted, span_of_text(file->name)), a->look.info.shards);
}

/* The record of that name in its shard, and one in another shard from a former key; NULL: none. */
static void find_records(const struct schedules_apply *a, const struct file_schedule *file,
        struct file_record **ret_here, struct file_record **ret_elsewhere, bool *ret_is_conflict)
{
        uint32_t shard = shard_of(a, file);
        *ret_here = *ret_elsewhere = NULL;
        *ret_is_conflict = false;
        for (uint32_t i = 0; i < a->records_count; i++) {
                struct file_record *record = &a->records[i];
                if (strcmp(record->name, file->name) != 0)
                        continue;
                *ret_is_conflict |= !record->is_of_file;
                if (record->shard == shard)
                        *ret_here = record;
                else
                        *ret_elsewhere = record;
        }
}

/* The last request about the file's schedule at `at`. */
enum apply_put { PUT_NOTHING, PUT_DELETED_ELSEWHERE, PUT_PUT, PUT_LOOKED };

static bool put(struct schedules_apply *a, const struct file_schedule *file, const struct file_record *here,
        const struct file_record *elsewhere)
{
        const struct store_schedule *old = here ? &here->stored : elsewhere ? &elsewhere->stored : NULL;
        uint64_t next_ms = schedule_next_ms(&file->wanted, span_of_text(file->name), a->now_ms, old ? old->fired : 0);
        struct store_schedule_set set = { .verb = !here && elsewhere ? SCHEDULE_LOAD : SCHEDULE_PUT,
                .shard = shard_of(a, file),
                .name = span_of_text(file->name),
                .version = max_u64(a->version, a->above + 1),
                .definition = span_of_text(file->definition),
                .next_ms = next_ms == SCHEDULE_NEVER ? STORE_NEVER : next_ms };
        if (set.verb == SCHEDULE_LOAD) {
                set.state = old->state == SCHEDULE_PAUSED ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
                set.last_ms = old->last_ms;
                set.fired = old->fired;
                set.skipped = old->skipped;
        }
        a->put = PUT_PUT;
        return look_set_schedule(&a->look, &set);
}

/* Takes the answer about the current schedule.  A refused put means one of two things: a newer configuration was
 * applied, and its schedule stays; or a schedule of that name was set by command after the file was written, and
 * deleted since: then the file's one is put with a higher version.  True: a request was filled in. */
static bool put_answered(struct schedules_apply *a)
{
        const struct store_schedule_list *list = &a->look.schedules;
        struct file_schedule *file = &a->files[a->at];
        enum apply_put put = (enum apply_put)a->put;
        a->put = PUT_NOTHING;
        if (put == PUT_PUT && a->look.schedule_set.change == SCHEDULE_STALE && !a->above) {
                a->put = PUT_LOOKED;
                look_ask_schedules(&a->look, shard_of(a, file), span_of_text(file->name));
                a->look.schedules.has_deleted = true;
                return true;
        }
        if (put == PUT_LOOKED && list->schedules_count && list->schedules[0].state == SCHEDULE_DELETED) {
                a->above = list->schedules[0].version;
                return false;
        }
        if (put == PUT_LOOKED || (put == PUT_PUT && a->look.schedule_set.change == SCHEDULE_STALE))
                file->state = FILE_SCHEDULE_OLDER;
        a->set += put == PUT_PUT && a->look.schedule_set.change == SCHEDULE_CHANGED;
        if (put == PUT_PUT || put == PUT_LOOKED) {
                a->above = 0;
                a->at++;
        }
        return false;
}

static bool mark(struct schedules_apply *a)
{
        a->step = APPLY_MARKED;
        (void)snprintf(a->mark, sizeof(a->mark), SCHEDULES_MARK "%" PRIu64, a->version);
        (void)snprintf(a->by, sizeof(a->by), "host %.64s, %" PRIu32 " schedule%s", a->host, a->files_count,
                a->files_count == 1 ? "" : "s");
        return look_set_desired(&a->look, (struct store_desired){ span_of_text(a->mark), span_of_text(a->by) });
}

static bool put_next(struct schedules_apply *a)
{
        if (a->put != PUT_NOTHING && put_answered(a))
                return true;
        for (; a->at < a->files_count; a->at++) {
                struct file_schedule *file = &a->files[a->at];
                struct file_record *here, *elsewhere;
                bool is_conflict;
                find_records(a, file, &here, &elsewhere, &is_conflict);
                file->state = is_conflict ? FILE_SCHEDULE_CONFLICT : FILE_SCHEDULE_STANDS;
                if (is_conflict)
                        continue;
                /* The old record is deleted first, so that no time fires from both. */
                if (elsewhere && !elsewhere->is_gone) {
                        a->put = PUT_DELETED_ELSEWHERE;
                        return delete_record(a, elsewhere);
                }
                /* A record with the file's definition and this version or a newer one needs no change. */
                if (!here || strcmp(here->definition, file->definition) != 0 || here->stored.version < a->version)
                        return put(a, file, here, elsewhere);
        }
        if (a->newest.version != a->version)
                return mark(a);
        a->step = APPLY_DELETE;
        a->at = 0;
        return false;
}

/* --- an older configuration --- */

/* Counts the schedules in which the newer configuration differs. */
static void compare(struct schedules_apply *a)
{
        for (uint32_t i = 0; i < a->files_count; i++) {
                struct file_schedule *file = &a->files[i];
                struct file_record *here, *elsewhere;
                bool is_conflict;
                find_records(a, file, &here, &elsewhere, &is_conflict);
                file->state = is_conflict ? FILE_SCHEDULE_CONFLICT
                              : here && !strcmp(here->definition, file->definition) &&
                                              here->stored.version >= a->newest.version
                                      ? FILE_SCHEDULE_STANDS
                                      : FILE_SCHEDULE_OLDER;
                a->others += file->state == FILE_SCHEDULE_OLDER;
        }
        for (uint32_t i = 0; i < a->records_count; i++)
                a->others += a->records[i].is_of_file && a->records[i].stored.version >= a->newest.version &&
                             !find_file(a, a->records[i].name);
}

/* --- the end --- */

static bool delete_next(struct schedules_apply *a)
{
        if (a->at)
                a->deleted += a->look.schedule_set.change == SCHEDULE_CHANGED;
        for (uint32_t i = 0; i < a->records_count; i++) {
                struct file_record *record = &a->records[i];
                /* A newer version than ours belongs to a host that has not set its mark yet. */
                bool is_left = a->is_older ? record->stored.version < a->newest.version
                                           : record->stored.version <= a->version && !find_file(a, record->name);
                if (!record->is_of_file || record->is_gone || !is_left)
                        continue;
                a->at = 1;
                return delete_record(a, record);
        }
        a->step = APPLY_UNMARK;
        a->at = 0;
        return false;
}

static bool unmark_next(struct schedules_apply *a)
{
        if (a->at == a->olds_count) {
                a->step = APPLY_END;
                return false;
        }
        (void)snprintf(a->mark, sizeof(a->mark), SCHEDULES_MARK "%" PRIu64, a->olds[a->at++]);
        return look_unset_desired(&a->look, span_of_text(a->mark));
}

/* --- the look --- */

static bool list_next(struct schedules_apply *a)
{
        if (a->at)
                take_records(a);
        if (a->at < a->look.info.shards)
                return look_ask_schedules(&a->look, a->at++, (struct span){ 0 });
        a->at = 0;
        a->step = a->is_older || a->has_put ? APPLY_DELETE : APPLY_PUT;
        if (a->is_older)
                compare(a);
        return false;
}

/* True: a request was filled in; false: continue with the new step. */
static bool go_on(struct schedules_apply *a)
{
        switch ((enum apply_step)a->step) {
        case APPLY_BEGIN:
                a->step = APPLY_NEWEST;
                return look_ask_desired(&a->look);
        case APPLY_NEWEST:
                take_marks(a);
                a->at = 0;
                /* No configuration ever had schedules: an app without schedules costs no requests. */
                a->step = !a->files_count && !a->newest.version ? APPLY_END : APPLY_LIST;
                return false;
        case APPLY_LIST:
                return list_next(a);
        case APPLY_PUT:
                return put_next(a);
        case APPLY_MARKED:
                a->step = APPLY_AGAIN;
                return look_ask_desired(&a->look);
        case APPLY_AGAIN:
                /* From now on other hosts see our mark.  Before it, an older host may have put a schedule, or a newer
                 * one may have come, for which ours are left over: so everything is read again. */
                take_marks(a);
                forget_records(a);
                a->at = 0;
                a->has_put = true;
                a->step = APPLY_LIST;
                return false;
        case APPLY_DELETE:
                return delete_next(a);
        case APPLY_UNMARK:
                return unmark_next(a);
        case APPLY_END:
                break;
        }
        return false;
}

static bool apply_next(struct look *look)
{
        struct schedules_apply *a = container_of(look, struct schedules_apply, look);
        while (a->step != APPLY_END)
                if (go_on(a))
                        return true;
        return false;
}

void schedules_apply_init(struct schedules_apply *apply)
{
        apply->look.next = apply_next;
}

struct schedules_apply *schedules_apply_again(struct schedules_apply *apply)
{
        struct schedules_apply *again = memory_zero(1, sizeof(*again));
        schedules_apply_init(again);
        again->files = apply->files;
        again->files_count = apply->files_count;
        again->version = apply->version;
        again->host = apply->host;
        apply->files = NULL;
        apply->files_count = 0;
        return again;
}

void schedules_apply_add(struct schedules_apply *apply, const char *name, struct schedule *wanted)
{
        apply->files = array_grow(apply->files, apply->files_count, sizeof(*apply->files));
        struct file_schedule *file = &apply->files[apply->files_count++];
        (void)snprintf(file->name, sizeof(file->name), "%s", name);
        file->wanted = *wanted;
        file->definition = schedule_text(wanted);
        *wanted = (struct schedule){ 0 };
}

void schedules_apply_free(struct schedules_apply *apply)
{
        for (uint32_t i = 0; i < apply->files_count; i++) {
                schedule_free(&apply->files[i].wanted);
                free(apply->files[i].definition);
        }
        free(apply->files);
        forget_records(apply);
}
