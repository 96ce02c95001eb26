/* Results wait for a consumer. */
#include "store/redis/redis_store.h"

#define RESULT_VALUES 7 /* of one result in the answer of consume.lua */

static void consume_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_consume *consume = (struct store_consume *)call->op->request;
        consume->results = arena_take(
                request_arena(call->op->request), (reply_count(reply) / RESULT_VALUES) * sizeof(*consume->results));
        for (size_t i = 0; i + RESULT_VALUES <= reply_count(reply); i += RESULT_VALUES) {
                struct store_result *result = &consume->results[consume->results_count++];
                struct span note = reply_span(reply->element[i + 6]);
                *result = (struct store_result){
                        .number = answer_number(call->op, reply->element[i], TASK_NUMBER_MAX, "number"),
                        .at_ms = answer_number(call->op, reply->element[i + 1], TASK_NUMBER_MAX, "time"),
                        .id = reply_span(reply->element[i + 2]),
                        .key = reply_span(reply->element[i + 3]),
                        .handler = reply_span(reply->element[i + 4]),
                        .data = reply_span(reply->element[i + 5]),
                };
                if (note_parse(note.data, note.size, &result->note))
                        result->note = (struct task_note){ 0 };
        }
}

void redis_consume(struct redis_store *s, struct store_request *request)
{
        struct store_consume *consume = (struct store_consume *)request;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(consume->consumer, nonce);
        consume->results_count = 0;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_consume, consume->shard, 5);
        call->answer = consume_answer;
        call_printf(call, "%s", nonce);
        call_put_number(call, consume->lease_ms);
        call_put_number(call, consume->results_max);
        call_put_number(call, s->store.results_max);
        call_put_number(call, s->store.results_age_ms);
        call_send(call);
}

static void commit_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_commit *commit = (struct store_commit *)call->op->request;
        for (uint32_t i = 0; i < commit->numbers_count; i++) {
                commit->held[i] = answer_bool(call->op, reply_at(reply, i), "verdict");
                commit->refused += !commit->held[i];
        }
}

void redis_commit(struct redis_store *s, struct store_request *request)
{
        struct store_commit *commit = (struct store_commit *)request;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(commit->consumer, nonce);
        commit->refused = 0;
        struct redis_call *call =
                call_script(op_begin(s, request), SCRIPT_commit, commit->shard, 1 + commit->numbers_count);
        call->answer = commit_answer;
        call_printf(call, "%s", nonce);
        for (uint32_t i = 0; i < commit->numbers_count; i++)
                call_put_number(call, commit->numbers[i]);
        call_send(call);
}
