#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/url.h"
#include "store/names.h"
#include "store/request.h"
#include "store/rights.h"

static const struct store_driver *const drivers[] = { &sqlite_driver, &redis_driver };

/* --- opening ----------------------------------------------------------------------------------------------------- */

void store_set_limits(struct store *store, const struct store_options *options)
{
        store->payload_max = options->payload_max ? options->payload_max : 1024 * 1024;
        store->backlog_max = options->backlog_max ? options->backlog_max : UINT64_MAX;
        store->results_max = options->results_max ? options->results_max : 10000;
        store->idempotency_max = options->idempotency_max ? options->idempotency_max : 1000000;
        store->results_age_ms = options->results_age_ms ? options->results_age_ms : 86400 * 1000;
}

static bool scheme_is(const char *url, const char *scheme)
{
        size_t size = strlen(scheme);
        if (strncmp(url, scheme, size) != 0)
                return false;
        const char *rest = url + size;
        if (*rest == 's' && url_is_redis_tls(url))
                rest++;
        return *rest == ':' || *rest == '+';
}

static int options_check(const struct store_options *options, struct error *error)
{
        if (!options->app || !options->app[0] || strlen(options->app) > 64 ||
                strspn(options->app, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(options->app))
                return error_set(error, -EINVAL, "app: 1 to 64 of a-z, 0-9, _ and -");
        if (options->shards > SHARDS_MAX)
                return error_set(error, -EINVAL, "shards: %u, at most %u are possible", options->shards, SHARDS_MAX);
        if (options->max_members > STORE_MEMBERS_MAX)
                return error_set(error, -EINVAL, "max_members: at most %u", STORE_MEMBERS_MAX);
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
        /* A driver has to finish the request, because done() must not be called inside the starting call. */
        if (!request->status)
                request->status = error_set(&request->error, -ENOTSUP,
                        "store url \"%s\": unknown scheme; write sqlite:PATH or redis://HOST:PORT", url);
        drivers[0]->open(loop, open);
}

bool store_rights(const struct store_options *options, enum store_role role, struct rights *to)
{
        for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
                if (drivers[i]->rights && scheme_is(options->url, drivers[i]->scheme))
                        return drivers[i]->rights(options, role, to);
        return false;
}

void store_close(struct store *store, void (*closed)(void *self), void *self)
{
        store->driver->close(store, closed, self);
}

void store_flush(struct store *store)
{
        if (store->driver->flush)
                store->driver->flush(store);
}

void store_info(const struct store *store, struct store_info *ret_info)
{
        *ret_info = (struct store_info){ .driver = store->driver->scheme,
                .app = store->app,
                .coordination = store->coordination,
                .durability = store->durability,
                .refuses = store->refuses,
                .endangers = store->endangers,
                .shards = store->shards,
                .record = &store->record,
                .ring_costs = store->ring_costs,
                .calls_max = store->calls_max,
                .calls_group = store->calls_group };
}

/* --- starting requests ------------------------------------------------------------------------------------------- */

/* Fills in what a producer left out, says where the task goes and what its bytes are.  `id` is where a made id is put.
 * `name` chooses the shard of a task without a key; empty: any will do. */
static int prepare(struct store_request *request, const struct envelope *envelope, uint64_t delay_ms, struct span name,
        char *id, struct store_prepared *ret_prepared, struct error *error)
{
        struct store *store = request->store;
        struct envelope e = *envelope;
        struct span place = e.key.size ? e.key : name;
        uint32_t shard = place.size ? shard_of_key(place, store->shards) : task_id_any_shard(store->shards);
        uint32_t id_shard = shard;
        int r = envelope_check(&e, error);
        if (!r)
                r = envelope_check_reserved(&e, error);
        if (r)
                return r;
        if (e.payload.size > store->payload_max)
                return error_set(error, -EMSGSIZE, "payload: %zu bytes, at most %" PRIu64 " are allowed",
                        e.payload.size, store->payload_max);
        if (e.id.size)
                (void)task_id_check(e.id, &id_shard, NULL);
        if (id_shard >= store->shards || (place.size && id_shard != shard))
                return error_set(error, -EINVAL, "id: ends in shard %u, the %s belongs to shard %u", id_shard,
                        e.key.size ? "key" : "idempotency key", shard);
        if (e.unique_ms && !e.key.size)
                return error_set(error, -EINVAL, "unique: needs a key");
        if (e.is_merge && !store_app_has(&store->record, "merge"))
                return error_set(error, -ENOTSUP,
                        "merge: the app has this feature not switched on; when all its hosts know it: quiver app "
                        "upgrade merge");
        if (!e.id.size)
                e.id = (struct span){ id, task_id_make(id, shard) };
        if (!e.submitted_ms)
                e.submitted_ms = clock_wall_ms();

        struct buffer head = { 0 };
        if (store->driver->put_head)
                store->driver->put_head(&head, &e, id_shard);
        else
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
                .delay_ms = min_u64(delay_ms, TASK_NUMBER_MAX),
                .unique_ms = e.unique_ms };
        buffer_free(&head);
        return 0;
}

int submission_prepare(struct store_request *request, const struct envelope *envelope,
        struct store_prepared *ret_prepared, struct error *error)
{
        return prepare(request, envelope, 0, (struct span){ 0 }, NULL, ret_prepared, error);
}

/* What a shard is to remember of an item that may be repeated. */
static void prepare_record(
        struct arena_chunk **arena, const struct store_submission *item, struct store_prepared *prepared)
{
        char scope[IDEMPOTENCY_SCOPE_MAX];
        uint64_t keep_ms = item->idempotency_ms ? item->idempotency_ms : STORE_IDEMPOTENCY_MS;
        prepared->idempotency = arena_copy(arena, idempotency_scope(item->idempotency, item->envelope.key, scope));
        prepared->idempotency_ms = min_u64(keep_ms, TASK_NUMBER_MAX / 2);
        idempotency_digest(&item->envelope, prepared->delay_ms, prepared->digest);
}

static void item_set_id(struct store_submission *item, struct span id)
{
        id.size = min_u64(id.size, TASK_ID_MAX);
        if (id.size)
                memcpy(item->id, id.data, id.size);
        item->id[id.size] = 0;
}

static void prepare_item(struct store_submit *submit, uint32_t i)
{
        struct store_submission *item = &submit->items[i];
        struct error error = { "" };
        char *id = arena_take(request_arena(&submit->request), TASK_ID_MAX + 1);
        item->id[0] = 0;
        item->is_repeat = false;
        item->status = item->idempotency.size ? idempotency_check(item->idempotency, &error) : 0;
        if (!item->status)
                item->status = prepare(&submit->request, &item->envelope, item->delay_ms, item->idempotency, id,
                        &submit->prepared[i], &error);
        if (!item->status && item->idempotency.size)
                prepare_record(request_arena(&submit->request), item, &submit->prepared[i]);
        item->shard = submit->prepared[i].shard;
        if (!item->status) {
                item_set_id(item, submit->prepared[i].id);
                return;
        }
        if (!submit->refused++)
                (void)error_set(&submit->request.error, 0, "task %u: %s", i + 1, error.text);
}

int submission_repeat(
        struct store_submission *item, const struct store_prepared *prepared, struct span id, struct span digest)
{
        if (digest.size != SHA256_SIZE || task_id_check(id, NULL, NULL))
                return -EBADMSG;
        item_set_id(item, id);
        item->is_repeat = !memcmp(digest.data, prepared->digest, SHA256_SIZE);
        return item->is_repeat ? 0 : -ENOTUNIQ;
}

void submission_settle(struct store_submit *submit, uint32_t index, int status, struct span first)
{
        struct store_submission *item = &submit->items[index];
        struct error *error = &submit->request.error;
        item->status = status;
        if (!status && !item->is_repeat)
                item_set_id(item, submit->prepared[index].id);
        if (status == -EEXIST)
                item_set_id(item, first);
        if (error->text[0])
                return;
        if (status == -EDQUOT)
                (void)error_set(error, 0, "task %u: the backlog of shard %u is full", index + 1, item->shard);
        else if (status == -ENOTUNIQ)
                (void)error_set(error, 0,
                        "task %u: under this idempotency key another handler, payload or option was taken: %s",
                        index + 1, item->id);
        else if (status == -ENOBUFS)
                (void)error_set(error, 0, "task %u: shard %u remembers %" PRIu64 " idempotency keys, and takes no more",
                        index + 1, item->shard, submit->request.store->idempotency_max);
        else if (status == -EBADMSG)
                (void)error_set(error, 0,
                        "task %u: what shard %u remembers of this idempotency key cannot be read; remove it: quiver "
                        "fsck --repair",
                        index + 1, item->shard);
}

void store_submit(struct store *store, struct store_submit *submit)
{
        struct store_request *request = &submit->request;
        request_begin(store, request, OP_SUBMIT);
        submit->refused = 0;
        if (submit->items_count > STORE_SUBMIT_TASKS)
                request_refuse(request, "too many tasks in one request");
        if (!request->status) {
                submit->prepared =
                        arena_take(request_arena(request), submit->items_count * sizeof(struct store_prepared));
                for (uint32_t i = 0; i < submit->items_count; i++)
                        prepare_item(submit, i);
        }
        request_start(request);
}

bool store_host_is_good(struct span host)
{
        for (size_t i = 0; i < host.size; i++)
                if (host.data[i] <= ' ' || host.data[i] > '~')
                        return false;
        return host.size && host.size <= STORE_HOST_MAX;
}

void store_acquire(struct store *store, struct store_acquire *acquire)
{
        request_begin(store, &acquire->request, OP_ACQUIRE);
        request_check_lease(&acquire->request, &acquire->lease);
        if (acquire->host.size && !store_host_is_good(acquire->host))
                request_refuse(&acquire->request, "a host's name is 1 to 64 printable characters without spaces");
        if (acquire->page_tasks > STORE_CALL_TASKS)
                acquire->page_tasks = STORE_CALL_TASKS;
        request_start(&acquire->request);
}

void store_in_flight(struct store *store, struct store_in_flight *in_flight)
{
        request_begin(store, &in_flight->request, OP_IN_FLIGHT);
        request_check_lease(&in_flight->request, &in_flight->lease);
        if (!in_flight->page_tasks || in_flight->page_tasks > STORE_CALL_TASKS)
                in_flight->page_tasks = STORE_CALL_TASKS;
        request_start(&in_flight->request);
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
                        struct envelope e = follow_up->envelope;
                        char *id = arena_take(request_arena(request), TASK_ID_MAX + 1);
                        /* Its handler has ended, and nobody is there to be refused: each is run, as before. */
                        if (!store_app_has(&request->store->record, "merge")) {
                                e.is_merge = false;
                                e.debounce_ms = 0;
                        }
                        request->status = prepare(request, &e, follow_up->delay_ms, (struct span){ 0 }, id,
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
        if ((unsigned)outcome->kind > STORE_MOVE || (unsigned)outcome->cost >= COSTS)
                request_refuse(request, "unknown outcome");
        if (outcome->kind == STORE_DIVERT && outcome->cost != COST_NONE && outcome->cost != COST_INTERRUPTION)
                request_refuse(request, "a diverted task costs nothing, or an interruption");
        if (outcome->cost == COST_LATER && outcome->kind != STORE_RETRY)
                request_refuse(request, "LATER is a cost of RETRY only");
        if (outcome->cost == COST_LATER)
                request_check_feature(request, "later");
        if (outcome->follow_ups_count && outcome->kind != STORE_DONE)
                request_refuse(request, "follow-ups come with DONE only");
        if (outcome->checkpoint.size > NOTE_CHECKPOINT_MAX)
                request_refuse(request, "checkpoint too long");
        if (outcome->task.seq > STORE_SEQ_MAX)
                request_refuse(request, "no such seq");
        if (outcome->kind == STORE_START ? !note_holder_is_good(outcome->holder) : outcome->holder.size > 0)
                request_refuse(request, "a holder comes with START only: 1 to 64 printable characters without spaces");
        if (outcome->name.size && (outcome->kind != STORE_DIVERT || !store_name_is_good(outcome->name)))
                request_refuse(request, "a name comes with DIVERT only: 1 to 200 printable characters without spaces");
        if (outcome->is_debounce && outcome->kind != STORE_DIVERT)
                request_refuse(request, "a key is debounced with DIVERT only");
        if ((outcome->kind == STORE_MERGE) != (outcome->merged_count > 0))
                request_refuse(request, "tasks are merged with MERGE only, which names some");
        for (uint32_t i = 0; i < outcome->merged_count && !request->status; i++)
                if (outcome->merged[i].seq > STORE_SEQ_MAX)
                        request_refuse(request, "no such seq");
        if (outcome->kind == STORE_MERGE)
                request_check_feature(request, "merge");
        if (outcome->kind == STORE_MOVE &&
                ((unsigned)outcome->lane >= LANES || outcome->lane == STORE_SEQ_LANE(outcome->task.seq)))
                request_refuse(request, "a task moves to another lane");
}

void store_advance(struct store *store, struct store_advance *advance)
{
        struct store_request *request = &advance->request;
        uint32_t follow_ups = 0;
        uint32_t merged = 0;
        request_begin(store, request, OP_ADVANCE);
        request_check_lease(request, &advance->lease);
        if (advance->outcomes_count > STORE_CALL_TASKS)
                request_refuse(request, "too many outcomes in one call");
        for (unsigned lane = 0; lane < LANES; lane++)
                advance->want[lane] = min_u64(advance->want[lane], STORE_CALL_TASKS);
        if (!advance->want_bytes || advance->want_bytes > STORE_CALL_BYTES)
                advance->want_bytes = STORE_CALL_BYTES;
        for (uint32_t i = 0; i < advance->outcomes_count && !request->status; i++) {
                check_outcome(request, &advance->outcomes[i]);
                follow_ups += advance->outcomes[i].follow_ups_count;
                merged += advance->outcomes[i].merged_count;
        }
        if (merged > STORE_CALL_MERGED)
                request_refuse(request, "too many merged tasks in one call");
        if (follow_ups > STORE_CALL_FOLLOW_UPS)
                request_refuse(request, "too many follow-ups in one call");
        if (!request->status && follow_ups)
                prepare_follow_ups(advance, follow_ups);
        request_start(request);
}

void store_renew(struct store *store, struct store_renew *renew)
{
        request_begin(store, &renew->request, OP_RENEW);
        for (uint32_t i = 0; i < renew->items_count; i++)
                request_check_lease(&renew->request, &renew->items[i].lease);
        request_start(&renew->request);
}

void store_release(struct store *store, struct store_release *release)
{
        request_begin(store, &release->request, OP_RELEASE);
        request_check_lease(&release->request, &release->lease);
        request_start(&release->request);
}

void store_forward(struct store *store, struct store_forward *forward)
{
        request_begin(store, &forward->request, OP_FORWARD);
        request_check_lease(&forward->request, &forward->lease);
        request_start(&forward->request);
}

/* --- reading what is in a log ------------------------------------------------------------------------------------ */

int store_task_place(const struct store *store, uint32_t shard, struct arena_chunk **arena, struct store_task *task,
        struct error *error)
{
        struct envelope *e = &task->envelope;
        uint32_t id_shard = shard;
        if (task->seq > STORE_SEQ_MAX)
                return error_set(error, -EBADMSG, "seq %" PRIu64 ": it is larger than any number of a task", task->seq);
        if (e->payload.size > store->payload_max)
                return error_set(error, -EMSGSIZE, "payload: %zu bytes, at most %" PRIu64 " are allowed",
                        e->payload.size, store->payload_max);
        if (e->key.size && shard_of_key(e->key, store->shards) != shard)
                return error_set(error, -EXDEV, "key: belongs to shard %u of %u, was pushed to shard %u",
                        shard_of_key(e->key, store->shards), store->shards, shard);
        if (e->id.size)
                (void)task_id_shard(e->id, &id_shard);
        if (id_shard != shard)
                return error_set(error, -EXDEV, "id: ends in shard %u, was pushed to shard %u", id_shard, shard);
        e->lane = STORE_SEQ_LANE(task->seq);
        if (!e->id.size) {
                char *id = arena_take(arena, TASK_ID_MAX + 1);
                int size = snprintf(id, TASK_ID_MAX + 1, "%s.%" PRIu64 "-%u", lane_name(e->lane),
                        task->seq & ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) - 1), shard);
                e->id = (struct span){ id, (size_t)size };
        }
        task->key = e->key.size ? e->key : e->id;
        return 0;
}

void store_task_note(struct store_task *task, struct span note, uint64_t now_ms)
{
        if (note_parse(note.data, note.size, &task->note))
                task->note = (struct task_note){ 0 };
        uint64_t until_ms = task->note.started_epoch ? task->note.until_ms : 0;
        task->busy_ms = until_ms > now_ms ? min_u64(until_ms - now_ms, STORE_START_MAX_MS) : 0;
}

struct span store_set_aside_reason(int error)
{
        if (error == -EXDEV)
                return SPAN_TEXT("misplaced");
        return error == -EMSGSIZE ? SPAN_TEXT("too long") : SPAN_TEXT("malformed");
}

int store_task_read(const struct store *store, uint32_t shard, uint64_t seq, struct span bytes,
        struct arena_chunk **arena, struct store_task *ret_task, struct error *error)
{
        struct store_task task = { .seq = seq };
        int r = envelope_parse(bytes.data, bytes.size, &task.envelope, error);
        if (!r)
                r = store_task_place(store, shard, arena, &task, error);
        if (!r)
                *ret_task = task;
        return r;
}
