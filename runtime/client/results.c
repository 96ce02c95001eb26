/* results.c: takes results and commits them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "client/admin.h"
#include "client/call.h"
#include "client/events.h"
#include "client/sized_struct.h"

CALL_START(consume)
CALL_START(commit)

/* qv_client_consume() returns one piece of memory that begins with this: then the items, their histories, all events,
 * all bytes.  An item cannot grow, because programs iterate over items with the size that they were built with; so
 * later additions are kept separately. */
struct results_block {
        struct qv_client_history *histories; /* one per item */
        size_t count;
};

/* Results while they come in.  Until all are here, texts are offsets, because the memory moves as it grows. */
struct gathered {
        struct buffer items; /* array of struct gathered_result */
        struct buffer bytes;
        size_t count;
        size_t events_count;
        size_t events_bytes; /* bytes of the events' texts */
};

struct gathered_result {
        struct qv_client_result result;
        size_t id;
        size_t key;
        size_t handler;
        size_t data;
        struct qv_client_history history;
        size_t events; /* in the store's format */
        size_t events_size;
};

static size_t put_text(struct buffer *bytes, struct span text)
{
        size_t at = bytes->size;
        buffer_put(bytes, text.data, text.size);
        buffer_put(bytes, "", 1);
        return at;
}

static void take_results(struct client_call *call)
{
        struct gathered *to = call->self;
        for (uint32_t i = 0; i < call->consume.results_count; i++) {
                const struct store_result *from = &call->consume.results[i];
                struct gathered_result one = {
                        .result = { .size = sizeof(one.result),
                                .shard = call->consume.shard,
                                .number = from->number,
                                .at_ms = from->at_ms,
                                .data_size = from->data.size },
                        .id = put_text(&to->bytes, from->id),
                        .key = put_text(&to->bytes, from->key),
                        .handler = put_text(&to->bytes, from->handler),
                        .data = put_text(&to->bytes, from->data),
                        .history = { .size = sizeof(one.history),
                                .attempts = from->note.attempts,
                                .crashes = from->note.crashes,
                                .interruptions = from->note.interruptions,
                                .laters = from->note.laters },
                        .events = put_text(&to->bytes, from->note.events),
                        .events_size = from->note.events.size,
                };
                size_t texts;
                one.history.events_count = events_measure(from->note.events, &texts);
                to->events_count += one.history.events_count;
                to->events_bytes += texts;
                buffer_put(&to->items, &one, sizeof(one));
                to->count++;
        }
}

static void hand_over(const struct gathered *from, struct qv_client_results *ret_results)
{
        *ret_results = (struct qv_client_results){ 0 };
        if (!from->count)
                return;
        struct results_block *block = memory_alloc(
                sizeof(*block) + from->count * (sizeof(struct qv_client_result) + sizeof(struct qv_client_history)) +
                from->events_count * sizeof(struct qv_client_event) + from->bytes.size + from->events_bytes);
        struct qv_client_result *items = (struct qv_client_result *)(block + 1);
        *block = (struct results_block){ (struct qv_client_history *)(items + from->count), from->count };
        struct qv_client_event *events = (struct qv_client_event *)(block->histories + from->count);
        char *bytes = (char *)(events + from->events_count);
        char *texts = bytes + from->bytes.size;
        memcpy(bytes, from->bytes.data, from->bytes.size);
        for (size_t i = 0; i < from->count; i++) {
                const struct gathered_result *one = (const struct gathered_result *)(const void *)from->items.data + i;
                items[i] = one->result;
                items[i].id = bytes + one->id;
                items[i].key = bytes + one->key;
                items[i].handler = bytes + one->handler;
                items[i].data = bytes + one->data;
                block->histories[i] = one->history;
                block->histories[i].events = events;
                events_copy((struct span){ bytes + one->events, one->events_size }, events, &texts);
                events += one->history.events_count;
        }
        *ret_results = (struct qv_client_results){ items, from->count };
}

static int consume_shard(struct qv_client *client, uint32_t shard, uint32_t max, uint64_t lease_ms, struct gathered *to,
        struct error *error)
{
        for (;;) {
                uint32_t left = max - (uint32_t)to->count;
                struct client_call call = { .start = start_consume, .take = take_results, .self = to };
                call.consume.shard = shard;
                memcpy(call.consume.consumer, client_consumer(client), STORE_NONCE_SIZE);
                call.consume.lease_ms = lease_ms;
                call.consume.results_max = min_u64(left, STORE_CALL_TASKS);
                int r = client_call(client, &call, error);
                if (r < 0 || call.consume.results_count < call.consume.results_max || to->count == max)
                        return r;
        }
}

int qv_client_consume(struct qv_client *client, uint32_t max, uint64_t lease_ms, struct qv_client_results *ret_results)
{
        struct error *error = client_error_start();
        struct gathered gathered = { 0 };
        uint32_t shards = client_store_info(client)->shards;
        if (!lease_ms)
                return error_set(error, -EINVAL, "lease_ms: must be more than 0");
        struct store_counts *counts = memory_zero(shards, sizeof(*counts));
        int r = client_count(client, 0, shards, counts, error);
        /* Begins at a random shard, so that consumers that take few do not all use the same shards. */
        uint32_t first = task_id_any_shard(shards);
        for (uint32_t i = 0; i < shards && r == 0 && gathered.count < max; i++) {
                uint32_t shard = (first + i) % shards;
                if (counts[shard].results)
                        r = consume_shard(client, shard, max, lease_ms, &gathered, error);
        }
        /* Results taken before the failure would only come back when their lease ends, so they are returned. */
        if (gathered.count || r == 0) {
                hand_over(&gathered, ret_results);
                r = 0;
        }
        free(counts);
        buffer_free(&gathered.items);
        buffer_free(&gathered.bytes);
        return r;
}

void qv_client_results_free(struct qv_client_results *results)
{
        if (!results)
                return;
        if (results->items)
                free((struct results_block *)(void *)results->items - 1);
        *results = (struct qv_client_results){ 0 };
}

int qv_client_result_history(const struct qv_client_results *results, size_t index, struct qv_client_history *history)
{
        struct error *error = client_error_start();
        const struct results_block *block =
                results && results->items ? (const struct results_block *)(const void *)results->items - 1 : NULL;
        if (!block || index >= block->count)
                return error_set(error, -EINVAL, "index: there is no result %zu", index);
        if (!history || SIZED_FILL(history, &block->histories[index]) < 0)
                return error_set(error, -EINVAL, "history.size: start from QV_CLIENT_HISTORY_INIT");
        return 0;
}

/* Commits a run of items of one shard, as many as fit one request.  Returns their number; *ret_refused grows. */
static int commit_run(struct qv_client *client, const char *items, size_t item_size, size_t count,
        unsigned char *ret_refused, int *refused, struct error *error)
{
        uint64_t numbers[STORE_CALL_TASKS];
        bool held[STORE_CALL_TASKS] = { false };
        struct client_call call = { .start = start_commit };
        uint32_t n = 0;
        for (; n < count && n < STORE_CALL_TASKS; n++) {
                const struct qv_client_result *item = (const void *)(items + n * item_size);
                if (!n)
                        call.commit.shard = item->shard;
                if (item->shard != call.commit.shard)
                        break;
                numbers[n] = item->number;
        }
        memcpy(call.commit.consumer, client_consumer(client), STORE_NONCE_SIZE);
        call.commit.numbers = numbers;
        call.commit.numbers_count = n;
        call.commit.held = held;
        int r = client_call(client, &call, error);
        if (r < 0)
                return r;
        *refused += (int)call.commit.refused;
        for (uint32_t i = 0; ret_refused && i < n; i++)
                ret_refused[i] = !held[i];
        return (int)n;
}

int qv_client_commit(
        struct qv_client *client, const struct qv_client_result *items, size_t count, unsigned char *ret_refused)
{
        struct error *error = client_error_start();
        int refused = 0;
        if (count && (items->size < SIZED_MIN || items->size > SIZED_MAX))
                return error_set(error, -EINVAL, "result.size: hand back what qv_client_consume() gave");
        for (size_t at = 0; at < count;) {
                int n = commit_run(client, (const char *)items + at * items->size, items->size, count - at,
                        ret_refused ? ret_refused + at : NULL, &refused, error);
                if (n < 0)
                        return n;
                at += (size_t)n;
        }
        if (refused)
                (void)error_set(
                        error, 0, "%d of %zu: the lease was over, and another consumer has taken them", refused, count);
        return refused;
}
