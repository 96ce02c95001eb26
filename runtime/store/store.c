#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/driver.h"

static const struct store_driver *const drivers[] = { &sqlite_driver };

static const char *const op_names[OPS] = {
        [OP_OPEN] = "open",
        [OP_SUBMIT] = "submit",
        [OP_ACQUIRE] = "acquire",
        [OP_IN_FLIGHT] = "in flight",
        [OP_ADVANCE] = "advance",
        [OP_RENEW] = "renew",
        [OP_RELEASE] = "release",
        [OP_FORWARD] = "forward",
        [OP_CONSUME] = "consume",
        [OP_COMMIT] = "commit",
        [OP_REPLY] = "reply",
        [OP_COUNT] = "count",
        [OP_LIST] = "list",
        [OP_FIND] = "find",
        [OP_CANCEL] = "cancel",
        [OP_DEAD] = "dead",
        [OP_KEYS] = "keys",
        [OP_KEY_ACT] = "key",
        [OP_DESIRED_GET] = "desired state",
        [OP_DESIRED_SET] = "desired state",
        [OP_STATUS_PUT] = "status",
        [OP_STATUS_LIST] = "status",
        [OP_FSCK] = "fsck",
};

const char *store_op_name(unsigned op)
{
        return op < OPS ? op_names[op] : "unknown";
}

const char *store_state_name(enum store_state state)
{
        static const char *const names[STATES] = { "queued", "delayed", "in flight", "parked", "dead" };
        return (unsigned)state < STATES ? names[state] : "unknown";
}

const char *store_key_state_name(enum store_key_state state)
{
        static const char *const names[] = { "free", "waiting", "parked", "held" };
        return (unsigned)state <= KEY_HELD ? names[state] : "unknown";
}

struct arena_chunk **request_arena(struct store_request *request)
{
        return (struct arena_chunk **)&request->reply;
}

void request_finish(struct store_request *request, int status)
{
        /* done() may free the request or start it again. */
        struct arena_chunk *reply = request->reply;
        request->reply = NULL;
        request->status = status;
        request->done(request);
        arena_free(reply);
}

/* --- opening -------------------------------------------------------------------------------------------------------
 */

void store_set_limits(struct store *store, const struct store_options *options)
{
        store->payload_max = options->payload_max ? options->payload_max : 1024 * 1024;
        store->backlog_max = options->backlog_max ? options->backlog_max : UINT64_MAX;
        store->results_max = options->results_max ? options->results_max : 10000;
        store->results_age_ms = options->results_age_ms ? options->results_age_ms : 86400 * 1000;
}

static bool scheme_is(const char *url, const char *scheme)
{
        size_t size = strlen(scheme);
        return !strncmp(url, scheme, size) && url[size] == ':';
}

static int options_check(const struct store_options *options, struct error *error)
{
        if (!options->app || !options->app[0] || strlen(options->app) > 64 ||
                strspn(options->app, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(options->app))
                return error_set(error, -EINVAL, "app: 1 to 64 of a-z, 0-9, _ and -");
        if (options->shards > SHARDS_MAX)
                return error_set(error, -EINVAL, "shards: %u, at most %u are possible", options->shards, SHARDS_MAX);
        if (options->payload_max > STORE_PAYLOAD_MAX)
                return error_set(error, -EINVAL, "max_payload: at most %u bytes are possible", STORE_PAYLOAD_MAX);
        return 0;
}

void store_open(struct uv_loop_s *loop, struct store_open *open)
{
        struct store_request *request = &open->request;
        const char *url = open->options.url ? open->options.url : "";
        request->op = OP_OPEN;
        request->reply = NULL;
        open->store = NULL;
        request->status = options_check(&open->options, &request->error);
        for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
                if (scheme_is(url, drivers[i]->scheme)) {
                        drivers[i]->open(loop, open);
                        return;
                }
        }
        /* Some driver has to bring the news: done() must not be called from here. */
        if (!request->status)
                request->status = error_set(
                        &request->error, -ENOTSUP, "store url \"%s\": unknown scheme; sqlite:PATH is one", url);
        drivers[0]->open(loop, open);
}

void store_close(struct store *store, void (*closed)(void *self), void *self)
{
        store->driver->close(store, closed, self);
}

void store_info(const struct store *store, struct store_info *ret_info)
{
        *ret_info = (struct store_info){ .driver = store->driver->scheme,
                .app = store->app,
                .coordination = store->coordination,
                .durability = store->durability,
                .shards = store->shards };
}

/* --- starting requests ---------------------------------------------------------------------------------------------
 */

static void begin(struct store *store, struct store_request *request, enum store_op op)
{
        assert(request->done);
        request->store = store;
        request->op = op;
        request->status = 0;
        request->error.text[0] = 0;
        request->reply = NULL;
        request->next = NULL;
}

static void start(struct store_request *request)
{
        request->store->driver->start(request->store, request);
}

static void refuse(struct store_request *request, const char *what)
{
        if (!request->status)
                request->status = error_set(&request->error, -EINVAL, "%s: %s", store_op_name(request->op), what);
}

static void check_shard(struct store_request *request, uint32_t shard)
{
        if (shard >= request->store->shards)
                refuse(request, "no such shard");
}

static void check_lease(struct store_request *request, const struct store_lease *lease)
{
        check_shard(request, lease->shard);
        if (!lease->ttl_ms || lease->ttl_ms > TASK_NUMBER_MAX)
                refuse(request, "a lease needs a ttl");
        if (!lease->epoch || lease->epoch > TASK_NUMBER_MAX)
                refuse(request, "epoch out of range");
}

/* Fills in what a producer left out, says where the task goes and what its bytes are.  `id` is where a made id is put.
 */
static int prepare(struct store_request *request, const struct envelope *envelope, uint64_t delay_ms, char *id,
        struct store_prepared *ret_prepared, struct error *error)
{
        struct store *store = request->store;
        struct envelope e = *envelope;
        uint32_t shard = e.key.size ? shard_of_key(e.key, store->shards) : task_id_any_shard(store->shards);
        uint32_t id_shard = shard;
        int r = envelope_check(&e, error);
        if (r)
                return r;
        if (e.payload.size > store->payload_max)
                return error_set(error, -EMSGSIZE, "payload: %zu bytes, at most %" PRIu64 " are allowed",
                        e.payload.size, store->payload_max);
        if (e.id.size)
                (void)task_id_check(e.id, &id_shard, NULL);
        if (id_shard >= store->shards || (e.key.size && id_shard != shard))
                return error_set(error, -EINVAL, "id: ends in shard %u, the key belongs to shard %u", id_shard, shard);
        if (e.unique_ms && !e.key.size)
                return error_set(error, -EINVAL, "unique: needs a key");
        if (!e.id.size)
                e.id = (struct span){ id, task_id_make(id, shard) };
        if (!e.submitted_ms)
                e.submitted_ms = clock_wall_ms();

        struct buffer head = { 0 };
        envelope_put_head(&head, &e);
        char *bytes = arena_take(request_arena(request), head.size + e.payload.size);
        memcpy(bytes, head.data, head.size);
        if (e.payload.size)
                memcpy(bytes + head.size, e.payload.data, e.payload.size);
        *ret_prepared = (struct store_prepared){ .bytes = { bytes, head.size + e.payload.size },
                .id = e.id,
                .key = e.key,
                .handler = e.handler,
                .shard = id_shard,
                .lane = e.lane,
                .not_before_ms = e.not_before_ms,
                .delay_ms = delay_ms < TASK_NUMBER_MAX ? delay_ms : TASK_NUMBER_MAX,
                .unique_ms = e.unique_ms };
        buffer_free(&head);
        return 0;
}

static void prepare_item(struct store_submit *submit, uint32_t i)
{
        struct store_submission *item = &submit->items[i];
        struct error error = { "" };
        item->id[0] = 0;
        item->status =
                prepare(&submit->request, &item->envelope, item->delay_ms, item->id, &submit->prepared[i], &error);
        item->shard = submit->prepared[i].shard;
        if (!item->status) {
                if (item->envelope.id.size) {
                        memcpy(item->id, item->envelope.id.data, item->envelope.id.size);
                        item->id[item->envelope.id.size] = 0;
                }
                return;
        }
        if (!submit->refused++)
                (void)error_set(&submit->request.error, 0, "task %u: %s", i + 1, error.text);
}

void store_submit(struct store *store, struct store_submit *submit)
{
        struct store_request *request = &submit->request;
        begin(store, request, OP_SUBMIT);
        submit->refused = 0;
        if (submit->items_count > STORE_SUBMIT_TASKS)
                refuse(request, "too many tasks in one request");
        if (!request->status) {
                submit->prepared =
                        arena_take(request_arena(request), submit->items_count * sizeof(struct store_prepared));
                for (uint32_t i = 0; i < submit->items_count; i++)
                        prepare_item(submit, i);
        }
        start(request);
}

void store_acquire(struct store *store, struct store_acquire *acquire)
{
        begin(store, &acquire->request, OP_ACQUIRE);
        check_lease(&acquire->request, &acquire->lease);
        if (acquire->page_tasks > STORE_CALL_TASKS)
                acquire->page_tasks = STORE_CALL_TASKS;
        start(&acquire->request);
}

void store_in_flight(struct store *store, struct store_in_flight *in_flight)
{
        begin(store, &in_flight->request, OP_IN_FLIGHT);
        check_lease(&in_flight->request, &in_flight->lease);
        if (!in_flight->page_tasks || in_flight->page_tasks > STORE_CALL_TASKS)
                in_flight->page_tasks = STORE_CALL_TASKS;
        start(&in_flight->request);
}

static void prepare_follow_ups(struct store_advance *advance, uint32_t count)
{
        struct store_request *request = &advance->request;
        struct error error = { "" };
        uint32_t at = 0;
        advance->prepared = arena_take(request_arena(request), count * sizeof(struct store_prepared));
        for (uint32_t i = 0; i < advance->outcomes_count; i++) {
                const struct store_outcome *outcome = &advance->outcomes[i];
                for (uint32_t j = 0; j < outcome->follow_ups_count && !request->status; j++) {
                        const struct store_follow_up *follow_up = &outcome->follow_ups[j];
                        char *id = arena_take(request_arena(request), TASK_ID_MAX + 1);
                        request->status = prepare(request, &follow_up->envelope, follow_up->delay_ms, id,
                                &advance->prepared[at++], &error);
                        if (!request->status && follow_up->envelope.unique_ms)
                                request->status = error_set(&error, -EINVAL, "unique: not for follow-ups");
                        if (request->status)
                                (void)error_set(&request->error, 0, "advance: follow-up %u of %.*s: %s", j + 1,
                                        (int)outcome->task.id.size, outcome->task.id.data, error.text);
                }
        }
}

static void check_outcome(struct store_request *request, const struct store_outcome *outcome)
{
        if ((unsigned)outcome->kind > STORE_CHECKPOINT || (unsigned)outcome->cost > COST_INTERRUPTION)
                refuse(request, "unknown outcome");
        if (outcome->follow_ups_count && outcome->kind != STORE_DONE)
                refuse(request, "follow-ups come with DONE only");
        if (outcome->checkpoint.size > NOTE_CHECKPOINT_MAX)
                refuse(request, "checkpoint too long");
        if (STORE_SEQ_LANE(outcome->task.seq) >= LANES)
                refuse(request, "no such seq");
}

void store_advance(struct store *store, struct store_advance *advance)
{
        struct store_request *request = &advance->request;
        uint32_t follow_ups = 0;
        begin(store, request, OP_ADVANCE);
        check_lease(request, &advance->lease);
        if (advance->outcomes_count > STORE_CALL_TASKS)
                refuse(request, "too many outcomes in one call");
        if (advance->want_tasks > STORE_CALL_TASKS)
                advance->want_tasks = STORE_CALL_TASKS;
        if (!advance->want_bytes || advance->want_bytes > STORE_CALL_BYTES)
                advance->want_bytes = STORE_CALL_BYTES;
        for (uint32_t i = 0; i < advance->outcomes_count && !request->status; i++) {
                check_outcome(request, &advance->outcomes[i]);
                follow_ups += advance->outcomes[i].follow_ups_count;
        }
        if (follow_ups > STORE_CALL_FOLLOW_UPS)
                refuse(request, "too many follow-ups in one call");
        if (!request->status && follow_ups)
                prepare_follow_ups(advance, follow_ups);
        start(request);
}

void store_renew(struct store *store, struct store_renew *renew)
{
        begin(store, &renew->request, OP_RENEW);
        for (uint32_t i = 0; i < renew->items_count; i++)
                check_lease(&renew->request, &renew->items[i].lease);
        start(&renew->request);
}

void store_release(struct store *store, struct store_release *release)
{
        begin(store, &release->request, OP_RELEASE);
        check_lease(&release->request, &release->lease);
        start(&release->request);
}

void store_forward(struct store *store, struct store_forward *forward)
{
        begin(store, &forward->request, OP_FORWARD);
        check_lease(&forward->request, &forward->lease);
        start(&forward->request);
}

void store_consume(struct store *store, struct store_consume *consume)
{
        begin(store, &consume->request, OP_CONSUME);
        check_shard(&consume->request, consume->shard);
        if (consume->results_max > STORE_CALL_TASKS)
                consume->results_max = STORE_CALL_TASKS;
        if (!consume->lease_ms || consume->lease_ms > TASK_NUMBER_MAX)
                refuse(&consume->request, "a consumer's lease needs a length");
        start(&consume->request);
}

void store_commit(struct store *store, struct store_commit *commit)
{
        begin(store, &commit->request, OP_COMMIT);
        check_shard(&commit->request, commit->shard);
        if (commit->numbers_count > STORE_CALL_TASKS)
                refuse(&commit->request, "too many results in one request");
        start(&commit->request);
}

/* Any command finds a task by its id's last part. */
static void check_id(struct store_request *request, struct span id)
{
        uint32_t shard;
        struct error error;
        if (task_id_check(id, &shard, &error))
                refuse(request, error.text);
        else if (shard >= request->store->shards)
                refuse(request, "the id names a shard that this app does not have");
}

void store_reply(struct store *store, struct store_reply *reply)
{
        begin(store, &reply->request, OP_REPLY);
        check_id(&reply->request, reply->id);
        start(&reply->request);
}

void store_count(struct store *store, struct store_count *count)
{
        begin(store, &count->request, OP_COUNT);
        check_shard(&count->request, count->first_shard);
        start(&count->request);
}

static void check_page(uint32_t *page)
{
        if (!*page || *page > STORE_CALL_TASKS)
                *page = STORE_CALL_TASKS;
}

void store_list(struct store *store, struct store_list *list)
{
        begin(store, &list->request, OP_LIST);
        check_shard(&list->request, list->shard);
        check_page(&list->page_tasks);
        if ((unsigned)list->state >= STATES)
                refuse(&list->request, "no such state");
        start(&list->request);
}

void store_find(struct store *store, struct store_find *find)
{
        begin(store, &find->request, OP_FIND);
        check_id(&find->request, find->id);
        start(&find->request);
}

void store_cancel(struct store *store, struct store_cancel *cancel)
{
        begin(store, &cancel->request, OP_CANCEL);
        check_id(&cancel->request, cancel->id);
        if ((unsigned)cancel->state >= STATES)
                refuse(&cancel->request, "no such state");
        start(&cancel->request);
}

void store_dead(struct store *store, struct store_dead *dead)
{
        begin(store, &dead->request, OP_DEAD);
        check_shard(&dead->request, dead->shard);
        check_page(&dead->page_tasks);
        if (dead->ids_count > STORE_CALL_TASKS)
                refuse(&dead->request, "too many ids in one request");
        start(&dead->request);
}

void store_keys(struct store *store, struct store_keys *keys)
{
        begin(store, &keys->request, OP_KEYS);
        if (keys->key.size)
                keys->shard = shard_of_key(keys->key, store->shards);
        check_shard(&keys->request, keys->shard);
        check_page(&keys->page_keys);
        start(&keys->request);
}

void store_key_act(struct store *store, struct store_key_act *act)
{
        struct error error;
        begin(store, &act->request, OP_KEY_ACT);
        if (task_key_check(act->key, &error))
                refuse(&act->request, error.text);
        if (act->verb < CONTROL_HOLD || act->verb > CONTROL_SKIP)
                refuse(&act->request, "no such verb");
        if (act->reason.size > NOTE_TEXT_MAX)
                act->reason.size = NOTE_TEXT_MAX;
        start(&act->request);
}

void store_desired_get(struct store *store, struct store_desired_get *get)
{
        begin(store, &get->request, OP_DESIRED_GET);
        start(&get->request);
}

void store_desired_set(struct store *store, struct store_desired_set *set)
{
        begin(store, &set->request, OP_DESIRED_SET);
        if (!set->item.name.size || set->item.name.size > 255 || set->item.value.size > STORE_DESIRED_VALUE_MAX)
                refuse(&set->request, "a name has 1 to 255 bytes, a value at most 1024");
        start(&set->request);
}

void store_status_put(struct store *store, struct store_status_put *put)
{
        begin(store, &put->request, OP_STATUS_PUT);
        if (put->document.size > STORE_STATUS_MAX)
                refuse(&put->request, "a document has at most 8192 bytes");
        start(&put->request);
}

void store_status_list(struct store *store, struct store_status_list *list)
{
        begin(store, &list->request, OP_STATUS_LIST);
        start(&list->request);
}

void store_fsck(struct store *store, struct store_fsck *fsck)
{
        begin(store, &fsck->request, OP_FSCK);
        check_shard(&fsck->request, fsck->shard);
        start(&fsck->request);
}

/* --- reading what is in a log --------------------------------------------------------------------------------------
 */

int store_task_read(const struct store *store, uint32_t shard, uint64_t seq, struct span bytes,
        struct arena_chunk **arena, struct store_task *ret_task, struct error *error)
{
        struct store_task task = { .seq = seq };
        struct envelope *e = &task.envelope;
        uint32_t id_shard = shard;
        int r = envelope_parse(bytes.data, bytes.size, e, error);
        if (r)
                return r;
        if (e->payload.size > store->payload_max)
                return error_set(error, -EBADMSG, "payload: %zu bytes, at most %" PRIu64 " are allowed",
                        e->payload.size, store->payload_max);
        if (e->key.size && shard_of_key(e->key, store->shards) != shard)
                return error_set(error, -EXDEV, "key: belongs to shard %u of %u, was pushed to shard %u",
                        shard_of_key(e->key, store->shards), store->shards, shard);
        if (e->id.size)
                (void)task_id_check(e->id, &id_shard, NULL);
        if (id_shard != shard)
                return error_set(error, -EXDEV, "id: ends in shard %u, was pushed to shard %u", id_shard, shard);
        e->lane = STORE_SEQ_LANE(seq);
        if (!e->id.size) {
                char *id = arena_take(arena, TASK_ID_MAX + 1);
                int size = snprintf(id, TASK_ID_MAX + 1, "%s.%" PRIu64 "-%u", lane_name(e->lane),
                        seq & ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) - 1), shard);
                e->id = (struct span){ id, (size_t)size };
        }
        task.key = e->key.size ? e->key : e->id;
        *ret_task = task;
        return 0;
}
