/* Any bytes as what clients send beside tasks: bodies of requests about limits and results, conditions of alarms.  What
 * is accepted is in its range, and nothing is read outside of it. */
#include <string.h>

#include "choices.h"
#include "look/limit_act.h"
#include "look/results_act.h"
#include "view/alarm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SHARDS       4u
#define RECEIPTS_MAX 8u

static void read_limit(struct span bytes)
{
        struct limit_override o;
        struct error error = { "" };
        if (limit_act_read(bytes, &o, &error) < 0) {
                demand(error.text[0]);
                return;
        }
        demand(o.rate <= STORE_LIMIT_MAX && o.burst <= STORE_LIMIT_MAX && o.concurrency <= STORE_LIMIT_MAX);
        demand(o.per_ms <= STORE_LIMIT_PERIOD_MS && o.until_ms <= STORE_LIMIT_PERIOD_MS);
}

static void read_commit(struct span bytes)
{
        struct results_commit commit = { 0 };
        struct error error = { "" };
        if (results_commit_read(&commit, bytes, SHARDS, RECEIPTS_MAX, &error) < 0)
                demand(error.text[0]);
        else
                demand(commit.count <= RECEIPTS_MAX);
        for (size_t i = 0; error.text[0] == 0 && i < commit.count; i++)
                demand(commit.receipts[i].shard < SHARDS);
        results_commit_free(&commit);
}

static void read_receipt(const char *text)
{
        struct result_receipt receipt, again;
        char written[RESULT_RECEIPT_MAX];
        if (!result_receipt_parse(text, SHARDS, &receipt))
                return;
        demand(receipt.shard < SHARDS);
        demand(result_receipt_parse(result_receipt_text(written, &receipt), SHARDS, &again));
        demand(again.shard == receipt.shard && again.number == receipt.number);
}

static void read_alarm(const char *text)
{
        struct alarm alarm;
        struct error error = { "" };
        demand(alarm_parse(text, &alarm, &error) == 0 || error.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct span bytes = { (const char *)data, size };
        char *text = calloc(1, size + 1);
        demand(text);
        memcpy(text, data, size);
        read_limit(bytes);
        read_commit(bytes);
        read_receipt(text);
        read_alarm(text);
        free(text);
        return 0;
}
