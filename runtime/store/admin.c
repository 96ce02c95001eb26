/* Starts the operations of results.h and admin.h: checks the request, then hands it to the driver. */
#include "store/admin.h"

#include <errno.h>
#include <inttypes.h>

#include "base/numbers.h"
#include "store/request.h"

const char *store_state_name(enum store_state state)
{
        static const char *const names[STATES] = { "queued", "delayed", "in flight", "parked", "dead" };
        return (unsigned)state < STATES ? names[state] : "unknown";
}

const char *store_key_state_name(enum store_key_state state)
{
        static const char *const names[KEY_STATES] = { "free", "waiting", "parked", "held", "waiting" };
        return (unsigned)state < KEY_STATES ? names[state] : "unknown";
}

void store_counts_add(struct store_counts *to, const struct store_counts *c)
{
        for (int lane = 0; lane < LANES; lane++) {
                to->queued[lane] += c->queued[lane];
                to->parked[lane] += c->parked[lane];
        }
        to->delayed += c->delayed;
        to->in_flight += c->in_flight;
        to->dead += c->dead;
        to->results += c->results;
        to->controls += c->controls;
        to->keys += c->keys;
        to->outbox += c->outbox;
        to->submitted += c->submitted;
        to->done += c->done;
        to->dropped += c->dropped;
        to->merged += c->merged;
        to->results_dropped += c->results_dropped;
        if (c->oldest_ms > to->oldest_ms)
                to->oldest_ms = c->oldest_ms;
}

uint64_t store_counts_queued(const struct store_counts *c)
{
        uint64_t queued = 0;
        for (int lane = 0; lane < LANES; lane++)
                queued += c->queued[lane];
        return queued;
}

uint64_t store_counts_parked(const struct store_counts *c)
{
        uint64_t parked = 0;
        for (int lane = 0; lane < LANES; lane++)
                parked += c->parked[lane];
        return parked;
}

void store_counts_set_parked(struct store_counts *c, uint64_t all, uint64_t high, uint64_t low)
{
        c->parked[LANE_HIGH] = min_u64(high, all);
        c->parked[LANE_LOW] = min_u64(low, all - c->parked[LANE_HIGH]);
        c->parked[LANE_NORMAL] = all - c->parked[LANE_HIGH] - c->parked[LANE_LOW];
}

/* The last part of an id names the shard. */
static void check_id(struct store_request *request, struct span id)
{
        uint32_t shard;
        struct error error;
        if (task_id_check(id, &shard, &error))
                request_refuse(request, error.text);
        else if (shard >= request->store->shards)
                request_refuse(request, "the id names a shard that this app does not have");
}

void store_consume(struct store *store, struct store_consume *consume)
{
        request_begin(store, &consume->request, OP_CONSUME);
        request_check_shard(&consume->request, consume->shard);
        if (consume->results_max > STORE_CALL_TASKS)
                consume->results_max = STORE_CALL_TASKS;
        if (!consume->lease_ms || consume->lease_ms > TASK_NUMBER_MAX)
                request_refuse(&consume->request, "a consumer's lease needs a length");
        request_start(&consume->request);
}

void store_commit(struct store *store, struct store_commit *commit)
{
        request_begin(store, &commit->request, OP_COMMIT);
        request_check_shard(&commit->request, commit->shard);
        if (commit->numbers_count > STORE_CALL_TASKS)
                request_refuse(&commit->request, "too many results in one request");
        for (uint32_t i = 0; i < commit->numbers_count; i++)
                if (commit->numbers[i] > STORE_RESULT_NUMBER_MAX)
                        request_refuse(&commit->request, "no result has so large a number");
        request_start(&commit->request);
}

struct span store_reply_id(const struct store_reply *reply)
{
        return reply->into[0] ? span_of_text(reply->into) : reply->id;
}

bool store_reply_follow(struct store_reply *reply, struct span into)
{
        uint32_t shard = 0;
        uint32_t its_shard = 0;
        if (task_id_check(into, &its_shard, NULL) || task_id_check(reply->id, &shard, NULL) || shard != its_shard ||
                reply->hops == STORE_REPLY_HOPS)
                return false;
        reply->hops++;
        memcpy(reply->into, into.data, into.size);
        reply->into[into.size] = 0;
        return true;
}

void store_reply(struct store *store, struct store_reply *reply)
{
        request_begin(store, &reply->request, OP_REPLY);
        check_id(&reply->request, reply->id);
        request_start(&reply->request);
}

void store_count(struct store *store, struct store_count *count)
{
        request_begin(store, &count->request, OP_COUNT);
        request_check_shard(&count->request, count->first_shard);
        request_start(&count->request);
}

static void check_page(uint32_t *page)
{
        if (!*page || *page > STORE_CALL_TASKS)
                *page = STORE_CALL_TASKS;
}

void store_list(struct store *store, struct store_list *list)
{
        request_begin(store, &list->request, OP_LIST);
        request_check_shard(&list->request, list->shard);
        check_page(&list->page_tasks);
        if ((unsigned)list->state >= STATES)
                request_refuse(&list->request, "no such state");
        request_start(&list->request);
}

void store_find(struct store *store, struct store_find *find)
{
        request_begin(store, &find->request, OP_FIND);
        check_id(&find->request, find->id);
        request_start(&find->request);
}

void store_cancel(struct store *store, struct store_cancel *cancel)
{
        request_begin(store, &cancel->request, OP_CANCEL);
        check_id(&cancel->request, cancel->id);
        if ((unsigned)cancel->state >= STATES)
                request_refuse(&cancel->request, "no such state");
        request_start(&cancel->request);
}

void store_reschedule(struct store *store, struct store_reschedule *reschedule)
{
        request_begin(store, &reschedule->request, OP_RESCHEDULE);
        check_id(&reschedule->request, reschedule->id);
        if (reschedule->delay_ms > TASK_NUMBER_MAX / 2 || reschedule->at_ms > TASK_NUMBER_MAX / 2)
                request_refuse(&reschedule->request, "that time is too far away");
        request_start(&reschedule->request);
}

/* Ids of schedules' tasks are NAME.TIME-SHARD. */
static bool is_of_schedule(struct span id)
{
        const char *end = id.data + id.size;
        const char *at = id.size ? memrchr(id.data, '.', id.size) : NULL;
        const char *first = at ? at + 1 : end;
        for (at = first; at < end && *at >= '0' && *at <= '9'; at++)
                ;
        return at > first && at < end && *at == '-';
}

int store_move_fill(const struct store_listed *task, enum lane lane, bool is_forced, struct store_move *ret_move,
        struct error *error)
{
        struct span id = task->id;
        if (task->state != STATE_DELAYED && task->envelope.key.size && !is_forced)
                return error_set(error, -EPERM,
                        "task %.*s has the key %.*s: in another lane it gives up its place among that key's tasks; to "
                        "do "
                        "that anyway: --force",
                        (int)id.size, id.data, (int)task->envelope.key.size, task->envelope.key.data);
        *ret_move = (struct store_move){ .id = id,
                .key = task->key,
                .state = task->state,
                .number = task->number,
                .from = task->envelope.lane,
                .lane = lane };
        return 0;
}

static void move_refuse(struct store_move *move, int status, const char *why)
{
        if (!move->request.status)
                move->request.status =
                        error_set(&move->request.error, status, "task %.*s %s", (int)move->id.size, move->id.data, why);
}

void store_move(struct store *store, struct store_move *move)
{
        request_begin(store, &move->request, OP_MOVE);
        check_id(&move->request, move->id);
        if ((unsigned)move->state >= STATES || (unsigned)move->lane >= LANES || (unsigned)move->from >= LANES)
                request_refuse(&move->request, "no such state or lane");
        if (move->state == STATE_DEAD)
                move_refuse(move, -ENOENT, "is dead: it waits in no lane; see quiver dead requeue");
        if (move->lane == move->from)
                move_refuse(move, -EALREADY, "is in that lane already");
        if (is_of_schedule(move->id))
                move_refuse(move, -EPERM, "is a schedule's: whether its next one may run is decided by its place");
        if (move->state == STATE_IN_FLIGHT && !move->request.status)
                request_check_feature(&move->request, "move");
        request_start(&move->request);
}

void store_dead(struct store *store, struct store_dead *dead)
{
        request_begin(store, &dead->request, OP_DEAD);
        request_check_shard(&dead->request, dead->shard);
        if (dead->ids_count > STORE_CALL_TASKS || dead->numbers_count > STORE_CALL_TASKS)
                request_refuse(&dead->request, "too many ids in one request");
        request_start(&dead->request);
}

struct span store_dead_line(struct span error)
{
        size_t size = 0;
        while (size < min_u64(error.size, STORE_DEAD_LINE) && (unsigned char)error.data[size] >= 0x20 &&
                error.data[size] != 0x7f)
                size++;
        return (struct span){ error.data, size };
}

void store_dead_groups(struct store *store, struct store_dead_groups *groups)
{
        request_begin(store, &groups->request, OP_DEAD_GROUPS);
        request_check_shard(&groups->request, groups->shard);
        request_start(&groups->request);
}

void store_keys(struct store *store, struct store_keys *keys)
{
        request_begin(store, &keys->request, OP_KEYS);
        if (keys->key.size)
                keys->shard = shard_of_key(keys->key, store->shards);
        request_check_shard(&keys->request, keys->shard);
        check_page(&keys->page_keys);
        request_start(&keys->request);
}

void store_key_act(struct store *store, struct store_key_act *act)
{
        struct error error;
        request_begin(store, &act->request, OP_KEY_ACT);
        if (task_key_check(act->key, &error))
                request_refuse(&act->request, error.text);
        if (act->verb < CONTROL_HOLD || act->verb > CONTROL_SKIP)
                request_refuse(&act->request, "no such verb");
        if (act->reason.size > NOTE_TEXT_MAX)
                act->reason.size = NOTE_TEXT_MAX;
        request_start(&act->request);
}

void store_desired_get(struct store *store, struct store_desired_get *get)
{
        request_begin(store, &get->request, OP_DESIRED_GET);
        request_start(&get->request);
}

void store_desired_set(struct store *store, struct store_desired_set *set)
{
        request_begin(store, &set->request, OP_DESIRED_SET);
        if (!set->item.name.size || set->item.name.size > 255 || set->item.value.size > STORE_DESIRED_VALUE_MAX)
                request_refuse(&set->request, "a name has 1 to 255 bytes, a value at most 1024");
        request_start(&set->request);
}

static const uint32_t document_max[DOCUMENTS] = {
        [DOCUMENT_STATUS] = STORE_STATUS_MAX,
        [DOCUMENT_RUNNING] = STORE_RUNNING_MAX,
        [DOCUMENT_DONE] = STORE_RUNNING_MAX,
        [DOCUMENT_HISTORY] = STORE_HISTORY_MAX,
};

void store_status_put(struct store *store, struct store_status_put *put)
{
        request_begin(store, &put->request, OP_STATUS_PUT);
        if ((unsigned)put->kind >= DOCUMENTS)
                request_refuse(&put->request, "there is no such kind of document");
        else if (put->document.size > document_max[put->kind])
                request_refuse(&put->request, "a status document has at most 8192 bytes, one of what runs or was done "
                                              "65536, one of an hour 16384");
        if (put->counters_count > STORE_COUNTERS_PUT || (put->counters_count && put->kind != DOCUMENT_STATUS))
                request_refuse(&put->request, "counters: at most 2048, and with a status document");
        for (uint32_t i = 0; i < put->counters_count; i++)
                if (!put->counters[i].name.size || put->counters[i].name.size > STORE_COUNTER_NAME_MAX ||
                        put->counters[i].value > TASK_NUMBER_MAX || put->counters[i].before > put->counters[i].value)
                        request_refuse(&put->request, "a counter has a name and a number that only grows");
        request_start(&put->request);
}

void store_status_list(struct store *store, struct store_status_list *list)
{
        request_begin(store, &list->request, OP_STATUS_LIST);
        if ((unsigned)list->kind >= DOCUMENTS)
                request_refuse(&list->request, "there is no such kind of document");
        request_start(&list->request);
}

/* What is wrong with a task of another store; NULL: nothing. */
static const char *moved_fault(const struct store_moved *item)
{
        if ((unsigned)item->lane >= LANES || !item->bytes.size ||
                (item->state != STATE_QUEUED && item->state != STATE_DELAYED && item->state != STATE_DEAD))
                return "a task has bytes, a lane, and is queued, delayed or dead";
        if (item->due_in_ms > TASK_NUMBER_MAX / 2 || item->at_ms > TASK_NUMBER_MAX / 2)
                return "a task's time is out of range";
        if (item->id.size > TASK_ID_MAX || item->handler.size > TASK_HANDLER_MAX || item->reason.size > NOTE_TEXT_MAX)
                return "a dead task's id, handler or reason is too long";
        if (item->state == STATE_DEAD && !item->id.size)
                return "a dead task has an id";
        return NULL;
}

void import_refuse(struct store_import *import)
{
        import->request.status = error_set(&import->request.error, -EAGAIN,
                "import: shard %" PRIu32 " has %.*s up to chunk %" PRIu64 ", not up to %" PRIu64
                ": it lost what it had taken, or forgot the source; begin again",
                import->shard, (int)import->source.size, import->source.data, import->taken, import->after);
}

static bool is_source(struct span name)
{
        bool is_fit = name.size && name.size <= STORE_SOURCE_SIZE;
        for (size_t i = 0; i < name.size && is_fit; i++)
                is_fit = name.data[i] > ' ' && name.data[i] <= '~';
        return is_fit;
}

void store_import(struct store *store, struct store_import *import)
{
        request_begin(store, &import->request, OP_IMPORT);
        request_check_shard(&import->request, import->shard);
        import->taken = 0;
        import->is_repeat = false;
        import->names_left = 0;
        if (!is_source(import->source))
                request_refuse(&import->request, "a source has a name of 1 to 64 letters");
        if (import->items_count > STORE_CALL_TASKS || import->names_count > STORE_CALL_TASKS ||
                (import->items_count + import->names_count && !import->number))
                request_refuse(
                        &import->request, "too many tasks or names in one request, or some without a chunk's number");
        if (import->number > TASK_NUMBER_MAX || (import->number && import->after >= import->number))
                request_refuse(&import->request, "a source's chunks have growing numbers");
        for (uint32_t i = 0; i < import->items_count && !import->request.status; i++) {
                const char *fault = moved_fault(&import->items[i]);
                if (fault)
                        request_refuse(&import->request, fault);
        }
        for (uint32_t i = 0; i < import->names_count && !import->request.status; i++)
                if (!idempotency_is_fit(&import->names[i]))
                        request_refuse(&import->request,
                                "an idempotency name has 1 to 255 bytes, a task's id, a digest, and time that is left");
        request_start(&import->request);
}

void store_remembered_list(struct store *store, struct store_remembered_list *list)
{
        request_begin(store, &list->request, OP_REMEMBERED_LIST);
        request_check_shard(&list->request, list->shard);
        if (!list->page_names || list->page_names > STORE_CALL_TASKS)
                list->page_names = STORE_CALL_TASKS;
        list->names_count = list->unreadable = 0;
        list->next = (struct span){ 0 };
        list->is_end = false;
        request_start(&list->request);
}

void store_fsck(struct store *store, struct store_fsck *fsck)
{
        request_begin(store, &fsck->request, OP_FSCK);
        request_check_shard(&fsck->request, fsck->shard);
        request_start(&fsck->request);
}
