#include "look/results_act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "view/json.h"
#include "view/task.h"

/* --- receipts ----------------------------------------------------------------------------------------------------- */

const char *result_receipt_text(char text[RESULT_RECEIPT_MAX], const struct result_receipt *receipt)
{
        char consumer[2 * STORE_NONCE_SIZE + 1];
        (void)snprintf(text, RESULT_RECEIPT_MAX, "%" PRIu32 ".%" PRIu64 ".%s", receipt->shard, receipt->number,
                units_hex(consumer, receipt->consumer, STORE_NONCE_SIZE));
        return text;
}

/* Reads digits and a dot; NULL: anything else, or a number above `max`. */
static const char *read_number(const char *text, uint64_t max, uint64_t *ret)
{
        uint64_t number = 0;
        const char *at = text;
        for (; *at >= '0' && *at <= '9'; at++) {
                number = number * 10 + (uint64_t)(*at - '0');
                if (number > max)
                        return NULL;
        }
        *ret = number;
        return at > text && *at == '.' ? at + 1 : NULL;
}

bool result_receipt_parse(const char *text, uint32_t shards, struct result_receipt *ret_receipt)
{
        uint64_t shard = 0;
        uint64_t number = 0;
        const char *at = shards ? read_number(text, shards - 1, &shard) : NULL;
        if (at)
                at = read_number(at, STORE_RESULT_NUMBER_MAX, &number);
        if (!at || !units_hex_read(at, strlen(at), ret_receipt->consumer, STORE_NONCE_SIZE))
                return false;
        ret_receipt->shard = (uint32_t)shard;
        ret_receipt->number = number;
        return true;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

static uint32_t shard_at(const struct results_take *take)
{
        return (take->first + take->at) % take->look.info.shards;
}

static uint32_t wanted(const struct results_take *take)
{
        return (uint32_t)min_u64(take->max - json_array_size(take->found), RESULTS_TAKE_STEP);
}

static void take_answer(struct results_take *take)
{
        const struct store_consume *consume = &take->look.consume;
        for (uint32_t i = 0; i < consume->results_count; i++) {
                const struct store_result *result = &consume->results[i];
                struct result_receipt receipt = { .shard = consume->shard, .number = result->number };
                char text[RESULT_RECEIPT_MAX];
                json_t *o = result_as_json(result);
                memcpy(receipt.consumer, take->consumer, STORE_NONCE_SIZE);
                view_json_set_text(o, "receipt", result_receipt_text(text, &receipt));
                (void)json_array_append_new(take->found, o);
                take->bytes += result->data.size + result->key.size + result->note.events.size;
        }
        /* Fewer than requested: other consumers hold the rest of this shard. */
        if (consume->results_count < consume->results_max)
                take->counts[consume->shard].results = 0;
        else
                take->counts[consume->shard].results -=
                        min_u64(consume->results_count, take->counts[consume->shard].results);
}

static bool ask_next(struct results_take *take)
{
        while (take->at < take->look.info.shards && !take->counts[shard_at(take)].results)
                take->at++;
        if (take->at == take->look.info.shards)
                return false;
        take->has_more = json_array_size(take->found) >= take->max || take->bytes >= take->bytes_max ||
                         take->calls == RESULTS_TAKE_CALLS;
        if (take->has_more)
                return false;
        struct store_consume consume = {
                .shard = shard_at(take), .lease_ms = take->lease_ms, .results_max = wanted(take)
        };
        memcpy(consume.consumer, take->consumer, STORE_NONCE_SIZE);
        take->calls++;
        return look_consume(&take->look, &consume);
}

static bool results_take_next(struct look *base)
{
        struct results_take *take = container_of(base, struct results_take, look);
        if (!take->counts) {
                take->counts = memory_zero(base->info.shards, sizeof(*take->counts));
                /* Begins at a random shard, so that consumers that take few do not all use the same shards. */
                take->first = task_id_any_shard(base->info.shards);
                return look_ask_count(base, 0, base->info.shards, take->counts);
        }
        if (take->has_counts)
                take_answer(take);
        take->has_counts = true;
        return ask_next(take);
}

void results_take_init(struct results_take *take)
{
        take->look.next = results_take_next;
        take->found = json_array();
}

void results_take_free(struct results_take *take)
{
        json_decref(take->found);
        free(take->counts);
}

/* --- committing --------------------------------------------------------------------------------------------------- */

static bool results_commit_next(struct look *base);

int results_commit_read(
        struct results_commit *commit, struct span body, uint32_t shards, size_t max, struct error *error)
{
        json_error_t problem;
        json_t *object = json_loadb(body.size ? body.data : "", body.size, JSON_REJECT_DUPLICATES, &problem);
        const json_t *list = json_object_get(object, "receipts");
        size_t count = json_array_size(list);
        int r = 0;
        commit->look.next = results_commit_next;
        commit->refused = json_array();
        if (!json_is_array(list) || json_object_size(object) != 1)
                r = error_set(error, -EINVAL, "the body is {\"receipts\": [\"…\", …]}, with those of the results%s%s",
                        object ? "" : ": ", object ? "" : problem.text);
        else if (count > max)
                r = error_set(error, -EINVAL, "receipts: %zu of them; send at most %zu in one request", count, max);
        else
                commit->receipts = memory_zero(count + 1, sizeof(*commit->receipts));
        for (size_t i = 0; r == 0 && i < count; i++) {
                const char *text = json_string_value(json_array_get(list, i));
                if (!text || !result_receipt_parse(text, shards, &commit->receipts[i]))
                        r = error_set(error, -EINVAL,
                                "receipts: number %zu is none; send each as it came with its result", i + 1);
        }
        commit->count = r == 0 ? count : 0;
        json_decref(object);
        return r;
}

static bool is_with(const struct result_receipt *a, const struct result_receipt *b)
{
        return a->shard == b->shard && !memcmp(a->consumer, b->consumer, STORE_NONCE_SIZE);
}

static void refuse(struct results_commit *commit, const struct result_receipt *receipt)
{
        char text[RESULT_RECEIPT_MAX];
        (void)json_array_append_new(commit->refused, json_string(result_receipt_text(text, receipt)));
}

static bool results_commit_next(struct look *base)
{
        struct results_commit *commit = container_of(base, struct results_commit, look);
        const struct store_commit *answer = base->start ? &base->commit : NULL;
        for (uint32_t i = 0; answer && i < answer->numbers_count; i++) {
                const struct result_receipt *receipt = &commit->receipts[commit->at++];
                commit->committed += commit->held[i];
                if (!commit->held[i])
                        refuse(commit, receipt);
        }
        if (commit->at == commit->count)
                return false;
        const struct result_receipt *first = &commit->receipts[commit->at];
        uint32_t n = 0;
        while (n < STORE_CALL_TASKS && commit->at + n < commit->count && is_with(first, &first[n])) {
                commit->numbers[n] = first[n].number;
                commit->held[n++] = false;
        }
        struct store_commit next = {
                .shard = first->shard, .numbers = commit->numbers, .numbers_count = n, .held = commit->held
        };
        memcpy(next.consumer, first->consumer, STORE_NONCE_SIZE);
        return look_commit(base, &next);
}

void results_commit_free(struct results_commit *commit)
{
        json_decref(commit->refused);
        free(commit->receipts);
}
