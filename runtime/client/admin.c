#include "client/admin.h"

#include <errno.h>
#include <string.h>

#include "base/numbers.h"

CALL_START(list)
CALL_START(find)
CALL_START(cancel)
CALL_START(reschedule)
CALL_START(move)
CALL_START(dead)
CALL_START(dead_groups)
CALL_START(keys)
CALL_START(key_act)
CALL_START(status_list)
CALL_START(fsck)
CALL_START(import)
CALL_START(remembered_list)

/* --- tasks -------------------------------------------------------------------------------------------------------- */

struct found {
        char merged_into[TASK_ID_MAX + 1]; /* "": it was not merged */
        void (*found)(void *self, const struct store_listed *task);
        void *self;
        bool is_there;
};

static void take_found(struct client_call *call)
{
        struct found *to = call->self;
        (void)snprintf(to->merged_into, sizeof(to->merged_into), "%.*s", (int)call->find.merged_into.size,
                call->find.merged_into.size ? call->find.merged_into.data : "");
        if (!call->find.task)
                return;
        to->is_there = true;
        to->found(to->self, call->find.task);
}

int client_find(struct qv_client *client, struct span id, void (*found)(void *self, const struct store_listed *task),
        void *self, struct error *error)
{
        struct found to = { .found = found, .self = self };
        struct client_call call = { .start = start_find, .take = take_found, .self = &to };
        call.find.id = id;
        while (!to.is_there && !call.find.is_end) {
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
        }
        if (!to.is_there && to.merged_into[0])
                return error_set(error, -EREMCHG, "task %.*s was merged into %s; see: quiver task %s", (int)id.size,
                        id.data, to.merged_into, to.merged_into);
        if (!to.is_there)
                return error_set(error, -ENOENT, "there is no task %.*s: it is done or dropped, or never was",
                        (int)id.size, id.data);
        return 0;
}

struct found_place {
        enum store_state state;
        uint64_t number;
        char key[TASK_KEY_MAX];
        size_t key_size;
};

static void take_place(void *self, const struct store_listed *task)
{
        struct found_place *place = self;
        place->state = task->state;
        place->number = task->number;
        place->key_size = min_u64(task->key.size, sizeof(place->key));
        if (place->key_size)
                memcpy(place->key, task->key.data, place->key_size);
}

int client_cancel(struct qv_client *client, struct span id, bool *ret_is_pending, struct error *error)
{
        /* The task may change its state between finding and acting: then search again.  It cannot do so for ever. */
        for (int tries = 0;; tries++) {
                struct found_place place = { 0 };
                int r = client_find(client, id, take_place, &place, error);
                if (r < 0)
                        return r;
                struct client_call call = { .start = start_cancel };
                call.cancel.id = id;
                call.cancel.key = (struct span){ place.key, place.key_size };
                call.cancel.state = place.state;
                call.cancel.number = place.number;
                r = client_call(client, &call, error);
                if (r == 0)
                        *ret_is_pending = call.cancel.is_pending;
                if (r != -ENOENT || tries == 100)
                        return r;
        }
}

struct wanted_move {
        enum lane lane;
        bool is_forced;
        struct store_move move;
        char key[TASK_KEY_MAX];
        int status;
        struct error error;
};

static void take_move(void *self, const struct store_listed *task)
{
        struct wanted_move *to = self;
        to->status = store_move_fill(task, to->lane, to->is_forced, &to->move, &to->error);
        to->move.key.size = min_u64(task->key.size, sizeof(to->key));
        if (to->move.key.size)
                memcpy(to->key, task->key.data, to->move.key.size);
        to->move.key.data = to->key;
}

int client_move(struct qv_client *client, struct span id, enum lane lane, bool is_forced, bool *ret_is_pending,
        struct error *error)
{
        /* The task may be claimed between finding and acting: then search again. */
        for (int tries = 0;; tries++) {
                struct wanted_move wanted = { .lane = lane, .is_forced = is_forced };
                int r = client_find(client, id, take_move, &wanted, error);
                if (r < 0)
                        return r;
                if (wanted.status < 0)
                        return error_set(error, wanted.status, "%s", wanted.error.text);
                struct client_call call = { .start = start_move };
                call.move = wanted.move;
                call.move.id = id;
                r = client_call(client, &call, error);
                if (r == 0)
                        *ret_is_pending = call.move.is_pending;
                if (r != -ENOENT || wanted.move.state == STATE_DEAD || tries == 100)
                        return r;
        }
}

int client_reschedule(struct qv_client *client, struct span id, uint64_t delay_ms, uint64_t at_ms, struct error *error)
{
        struct found_place place = { 0 };
        int r = client_find(client, id, take_place, &place, error);
        if (r < 0)
                return r;
        if (place.state != STATE_DELAYED)
                return error_set(error, -EBUSY,
                        "task %.*s is %s, not delayed: only what waits for its time gets another", (int)id.size,
                        id.data, store_state_name(place.state));
        struct client_call call = { .start = start_reschedule };
        call.reschedule.id = id;
        call.reschedule.number = place.number;
        call.reschedule.delay_ms = delay_ms;
        call.reschedule.at_ms = at_ms;
        return client_call(client, &call, error);
}

struct each_task {
        void (*each)(void *self, const struct store_listed *task);
        void *self;
        uint32_t left;
};

static void take_tasks(struct client_call *call)
{
        struct each_task *to = call->self;
        for (uint32_t i = 0; i < call->list.tasks_count && to->left; i++, to->left--)
                to->each(to->self, &call->list.tasks[i]);
}

int client_list(struct qv_client *client, uint32_t shard, enum store_state state, struct span handler, uint32_t max,
        void (*each)(void *self, const struct store_listed *task), void *self, struct error *error)
{
        struct each_task to = { .each = each, .self = self, .left = max };
        struct client_call call = { .start = start_list, .take = take_tasks, .self = &to };
        call.list.shard = shard;
        call.list.state = state;
        call.list.handler = handler;
        call.list.page_tasks = handler.size || max > STORE_CALL_TASKS ? STORE_CALL_TASKS : max;
        while (to.left && !call.list.is_end) {
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
        }
        return (int)(max - to.left);
}

struct scan_task {
        bool (*each)(void *self, const struct store_listed *task);
        void *self;
        uint64_t left;
};

static void take_scanned(struct client_call *call)
{
        struct scan_task *to = call->self;
        for (uint32_t i = 0; i < call->list.tasks_count && to->left; i++) {
                to->left--;
                if (!to->each(to->self, &call->list.tasks[i]))
                        to->left = 0;
        }
}

int client_scan(struct qv_client *client, uint32_t shard, enum store_state state, uint64_t max,
        bool (*each)(void *self, const struct store_listed *task), void *self, struct error *error)
{
        struct scan_task to = { .each = each, .self = self, .left = max };
        struct client_call call = { .start = start_list, .take = take_scanned, .self = &to };
        call.list.shard = shard;
        call.list.state = state;
        call.list.page_tasks = STORE_CALL_TASKS;
        while (to.left && !call.list.is_end) {
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

int client_dead_id(struct qv_client *client, uint32_t shard, enum store_dead_verb verb, struct span id,
        struct store_dead *ret_dead, struct error *error)
{
        struct client_call call = { .start = start_dead };
        call.dead.shard = shard;
        call.dead.verb = verb;
        call.dead.ids = &id;
        call.dead.ids_count = id.size ? 1 : 0;
        int r = client_call(client, &call, error);
        if (r == 0)
                *ret_dead = call.dead;
        return r;
}

int client_dead_numbers(struct qv_client *client, uint32_t shard, enum store_dead_verb verb, const uint64_t *numbers,
        size_t count, struct store_dead *dead, struct error *error)
{
        for (size_t at = 0; at < count;) {
                struct client_call call = { .start = start_dead };
                size_t left = count - at;
                call.dead.shard = shard;
                call.dead.verb = verb;
                call.dead.numbers = numbers + at;
                call.dead.numbers_count = (uint32_t)min_u64(left, STORE_CALL_TASKS);
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
                at += call.dead.looked;
                dead->acted += call.dead.acted;
                dead->unreadable += call.dead.unreadable;
                dead->refused += call.dead.refused;
        }
        return 0;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

struct each_key {
        void (*each)(void *self, const struct store_key_info *key);
        void *self;
        uint32_t left;
};

static void take_keys(struct client_call *call)
{
        struct each_key *to = call->self;
        for (uint32_t i = 0; i < call->keys.keys_count && to->left; i++, to->left--)
                to->each(to->self, &call->keys.keys[i]);
}

int client_keys(struct qv_client *client, uint32_t shard, struct span key, uint32_t max,
        void (*each)(void *self, const struct store_key_info *key), void *self, struct error *error)
{
        struct each_key to = { .each = each, .self = self, .left = max };
        struct client_call call = { .start = start_keys, .take = take_keys, .self = &to };
        call.keys.shard = shard;
        call.keys.key = key;
        call.keys.page_keys = min_u64(max, STORE_CALL_TASKS);
        while (to.left && !call.keys.is_end) {
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
                if (key.size)
                        break;
        }
        return (int)(max - to.left);
}

int client_key_act(struct qv_client *client, enum store_control_verb verb, struct span key, struct span reason,
        bool *ret_is_pending, struct error *error)
{
        struct client_call call = { .start = start_key_act };
        call.key_act.verb = verb;
        call.key_act.key = key;
        call.key_act.reason = reason;
        int r = client_call(client, &call, error);
        if (r == 0)
                *ret_is_pending = call.key_act.is_pending;
        return r;
}

/* --- hosts, proof ------------------------------------------------------------------------------------------------- */

struct each_document {
        void (*each)(void *self, const struct store_status *status);
        void (*total)(void *self, const struct store_total *total);
        void *self;
};

static void take_documents(struct client_call *call)
{
        const struct each_document *to = call->self;
        for (uint32_t i = 0; i < call->status_list.items_count; i++)
                to->each(to->self, &call->status_list.items[i]);
        for (uint32_t i = 0; to->total && i < call->status_list.totals_count; i++)
                to->total(to->self, &call->status_list.totals[i]);
}

int client_documents(struct qv_client *client, enum store_document kind,
        void (*each)(void *self, const struct store_status *status),
        void (*total)(void *self, const struct store_total *total), void *self, struct error *error)
{
        struct each_document to = { each, total, self };
        struct client_call call = { .start = start_status_list, .take = take_documents, .self = &to };
        call.status_list.kind = kind;
        return client_call(client, &call, error);
}

struct each_group {
        void (*each)(void *self, const struct store_dead_group *group);
        void *self;
};

static void take_groups(struct client_call *call)
{
        const struct each_group *to = call->self;
        for (uint32_t i = 0; i < call->dead_groups.groups_count; i++)
                to->each(to->self, &call->dead_groups.groups[i]);
}

int client_dead_groups(struct qv_client *client, uint32_t shard,
        void (*each)(void *self, const struct store_dead_group *group), void *self, struct error *error)
{
        struct each_group to = { each, self };
        struct client_call call = { .start = start_dead_groups, .take = take_groups, .self = &to };
        call.dead_groups.shard = shard;
        return client_call(client, &call, error);
}

static void take_report(struct client_call *call)
{
        buffer_put(call->self, call->fsck.report.data, call->fsck.report.size);
}

int client_fsck(struct qv_client *client, struct store_fsck *fsck, struct buffer *report, struct error *error)
{
        struct client_call call = { .start = start_fsck, .take = take_report, .self = report };
        call.fsck.shard = fsck->shard;
        call.fsck.is_repair = fsck->is_repair;
        int r = client_call(client, &call, error);
        if (r < 0)
                return r;
        fsck->tasks = call.fsck.tasks;
        fsck->problems = call.fsck.problems;
        fsck->mended = call.fsck.mended;
        return 0;
}

int client_import(struct qv_client *client, struct store_import *import, struct error *error)
{
        struct client_call call = { .start = start_import };
        call.import = *import;
        int r = client_call(client, &call, error);
        import->taken = call.import.taken;
        import->is_repeat = call.import.is_repeat;
        import->names_left = call.import.names_left;
        return r;
}

struct remembered {
        void (*see)(void *self, const struct store_remembered *record);
        void *self;
        struct buffer next;
        uint32_t unreadable;
        bool is_end;
};

/* Called on the client's thread. */
static void take_remembered(struct client_call *call)
{
        struct remembered *to = call->self;
        const struct store_remembered_list *list = &call->remembered_list;
        for (uint32_t i = 0; i < list->names_count; i++)
                to->see(to->self, &list->names[i]);
        buffer_clear(&to->next);
        buffer_put(&to->next, list->next.data, list->next.size);
        to->unreadable += list->unreadable;
        to->is_end = list->is_end || !list->next.size;
}

int client_remembered(struct qv_client *client, uint32_t shard,
        void (*see)(void *self, const struct store_remembered *record), void *self, uint32_t *ret_unreadable,
        struct error *error)
{
        struct remembered to = { .see = see, .self = self };
        int r = 0;
        while (r >= 0 && !to.is_end) {
                struct client_call call = { .start = start_remembered_list, .take = take_remembered, .self = &to };
                call.remembered_list.shard = shard;
                call.remembered_list.after = (struct span){ (const char *)to.next.data, to.next.size };
                r = client_call(client, &call, error);
        }
        buffer_free(&to.next);
        *ret_unreadable = to.unreadable;
        return r;
}
