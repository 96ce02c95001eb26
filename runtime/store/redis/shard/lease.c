/* Leases: acquire, in-flight pages, renew, release. */
#include <errno.h>
#include <inttypes.h>

#include "base/numbers.h"
#include "store/redis/redis_store.h"

static void page_read(struct redis_claim *c, struct redis_op *op, const redisReply *rows)
{
        size_t count = reply_count(rows);
        if (!rows || rows->type != REDIS_REPLY_ARRAY || count % 4 || count / 4 > CLAIMED_MAX) {
                op_bad_value(op, "page");
                return;
        }
        for (size_t i = 0; i < count && !op->request->status; i += 4)
                claimed_add(c, op, answer_number(op, rows->element[i], STORE_SEQ_MAX, "seq"),
                        reply_span(rows->element[i + 1]), reply_span(rows->element[i + 2]),
                        answer_bool(op, rows->element[i + 3], "page"));
}

/* Number of rows; 0 if there are too many, which page_read() reports. */
static uint32_t page_room(const redisReply *rows)
{
        return reply_count(rows) / 4 <= CLAIMED_MAX ? (uint32_t)(reply_count(rows) / 4) : 0;
}

static void page_fill(struct store_page *page, const struct redis_claim *c, bool has_more)
{
        *page = (struct store_page){ .tasks = c->tasks, .tasks_count = c->count, .has_more = has_more };
}

/* --- acquire --- */

static void acquire_aside(struct redis_call *call, const redisReply *reply)
{
        struct store_acquire *acquire = (struct store_acquire *)call->op->request;
        if (reply_is_fenced(reply))
                return; /* the next call will be FENCED, too */
        acquire->next_due_ms = min_u64(acquire->next_due_ms, answer_due(call->op, reply_at(reply, 0)));
        acquire->has_work |= !acquire->next_due_ms;
}

static void granted(struct store_acquire *acquire, struct redis_op *op, const redisReply *reply)
{
        struct redis_claim c;
        struct redis_shard *shard = &op->s->shards[acquire->lease.shard];
        acquire->call = answer_number(op, reply_at(reply, 2), TASK_NUMBER_MAX, "call");
        acquire->left_ms = answer_number(op, reply_at(reply, 3), TASK_NUMBER_MAX, "lease");
        acquire->is_recovery = answer_bool(op, reply_at(reply, 4), "recovery");
        acquire->has_work = answer_bool(op, reply_at(reply, 5), "work");
        acquire->next_due_ms = answer_due(op, reply_at(reply, 6));
        shard->has_no_keys = !answer_bool(op, reply_at(reply, 7), "keys");
        acquire->has_names = answer_bool(op, reply_at(reply, 11), "names");
        uint64_t next_ms = answer_number(op, reply_at(reply, 12), TASK_NUMBER_MAX, "next schedule");
        acquire->next_schedule_ms = next_ms ? next_ms : STORE_NEVER;
        view_begin(op->s, acquire->lease.shard);
        const redisReply *rows = reply_at(reply, 10);
        uint64_t now_ms = answer_number(op, reply_at(reply, 8), TASK_NUMBER_MAX, "time");
        claimed_init(&c, op, acquire->lease.shard, page_room(rows), now_ms);
        page_read(&c, op, rows);
        page_fill(&acquire->page, &c, answer_bool(op, reply_at(reply, 9), "page"));
        (void)claimed_set_aside(&c, op, &acquire->lease, acquire_aside);
}

static void acquire_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_acquire *acquire = (struct store_acquire *)call->op->request;
        struct redis_shard *shard = &call->op->s->shards[call->shard];
        if (reply_count(reply) < 2) {
                op_bad_answer(call->op);
                return;
        }
        acquire->grant = (enum store_grant)answer_number(call->op, reply->element[0], STORE_STALE, "grant");
        acquire->stored_epoch = answer_number(call->op, reply->element[1], TASK_NUMBER_MAX, "epoch");
        if (call->op->request->status)
                return;
        switch (acquire->grant) {
        case STORE_GRANTED:
                /* A previous lease of our own process may have held it: ring for that one. */
                bell_own_write(call->op->s, call->shard);
                shard->is_watched = true;
                granted(acquire, call->op, reply);
                break;
        case STORE_BUSY:
                acquire->busy_ms = answer_number(call->op, reply_at(reply, 2), TASK_NUMBER_MAX, "lease");
                if (!nonce_read(reply_span(reply_at(reply, 3)), acquire->holder))
                        op_bad_answer(call->op);
                bell_own_write(call->op->s, call->shard);
                shard->is_watched = true;
                break;
        case STORE_STALE:
                break;
        }
}

void redis_acquire(struct redis_store *s, struct store_request *request)
{
        struct store_acquire *acquire = (struct store_acquire *)request;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        acquire->busy_ms = 0;
        acquire->page = (struct store_page){ 0 };
        nonce_text(acquire->lease.nonce, nonce);
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_acquire, acquire->lease.shard, 7);
        call->answer = acquire_answer;
        call_put_number(call, acquire->lease.epoch);
        call_printf(call, "%s", nonce);
        call_put_number(call, acquire->lease.ttl_ms);
        call_put_number(call, acquire->is_firm);
        call_put_number(call, acquire->drain_ms);
        call_put_number(call, acquire->page_tasks);
        call_put(call, acquire->host);
        call_send_tracked(call);
}

/* --- in flight --- */

static void in_flight_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_in_flight *in_flight = (struct store_in_flight *)call->op->request;
        struct redis_claim c;
        in_flight->verdict = reply_is_fenced(reply) ? STORE_FENCED : STORE_OK;
        if (in_flight->verdict == STORE_FENCED)
                return;
        const redisReply *rows = reply_at(reply, 1);
        uint64_t now_ms = answer_number(call->op, reply_at(reply, 2), TASK_NUMBER_MAX, "time");
        claimed_init(&c, call->op, call->shard, page_room(rows), now_ms);
        page_read(&c, call->op, rows);
        page_fill(&in_flight->page, &c, answer_bool(call->op, reply_at(reply, 0), "page"));
        (void)claimed_set_aside(&c, call->op, &in_flight->lease, NULL);
}

void redis_in_flight(struct redis_store *s, struct store_request *request)
{
        struct store_in_flight *in_flight = (struct store_in_flight *)request;
        in_flight->page = (struct store_page){ 0 };
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_in_flight, in_flight->lease.shard, 3);
        call->answer = in_flight_answer;
        call_put_lease(call, &in_flight->lease);
        call_put_number(call, in_flight->after_seq);
        call_put_number(call, in_flight->page_tasks);
        call_send(call);
}

/* --- renew --- */

static void renew_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_renewal *item = &((struct store_renew *)call->op->request)->items[call->number];
        struct redis_op *op = call->op;
        if (reply_is_fenced(reply)) {
                op->s->shards[call->shard].is_watched = false;
                return;
        }
        item->verdict = STORE_OK;
        item->has_work = answer_bool(op, reply_at(reply, 0), "work");
        item->next_due_ms = answer_due(op, reply_at(reply, 1));
        item->wanted = (enum store_wanted)answer_number(op, reply_at(reply, 2), STORE_WANTED_FIRM, "want");
        item->is_refused = answer_bool(op, reply_at(reply, 3), "refusal");
        item->left_ms = answer_number(op, reply_at(reply, 4), TASK_NUMBER_MAX, "lease");
}

/* A bad record of one shard must not cost us the others: only this one is not renewed, and acquiring it again reports
 * why. */
static void renew_failed(struct redis_call *call)
{
        int status = call->command.status;
        if (status == -EPROTO || status == -EREMOTEIO)
                call->op->s->shards[call->shard].is_watched = false;
        else
                op_fail(call->op, status, "renew: %s", call->command.error.text);
}

static void version_answer(struct redis_call *call, const redisReply *reply)
{
        ((struct store_renew *)call->op->request)->desired_version = version_read(reply);
}

void redis_renew(struct redis_store *s, struct store_request *request)
{
        struct store_renew *renew = (struct store_renew *)request;
        struct redis_op *op = op_begin(s, request);
        for (uint32_t i = 0; i < renew->items_count; i++) {
                struct store_renewal *item = &renew->items[i];
                *item = (struct store_renewal){
                        .lease = item->lease, .verdict = STORE_FENCED, .next_due_ms = STORE_NEVER
                };
                struct redis_call *call = call_script(op, SCRIPT_renew, item->lease.shard, 2);
                call->answer = renew_answer;
                call->failed = renew_failed;
                call->number = i;
                call_put_lease(call, &item->lease);
                call_put_number(call, item->lease.ttl_ms);
                call_send_tracked(call);
        }
        struct redis_call *version = call_new(op, "HGET", 2);
        version->answer = version_answer;
        call_put(version, key_of_app(op, "app"));
        call_put(version, SPAN_TEXT("desired_version"));
        call_send_tracked(version);
        if (s->is_host)
                writable_ask(op);
}

/* --- release --- */

static void release_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_release *release = (struct store_release *)call->op->request;
        release->verdict = reply_is_fenced(reply) ? STORE_FENCED : STORE_OK;
        if (release->verdict == STORE_OK)
                bell_own_write(call->op->s, call->shard);
}

void redis_release(struct redis_store *s, struct store_request *request)
{
        struct store_release *release = (struct store_release *)request;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(release->lease.nonce, nonce);
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_release, release->lease.shard, 3);
        call->answer = release_answer;
        call_printf(call, "%" PRIu64 " %s", release->lease.epoch, nonce);
        call_put_number(call, release->call);
        call_put(call, release->is_death ? SPAN_TEXT("held") : SPAN_TEXT("free"));
        call_send(call);
}
