#include "look/status_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "view/json.h"
#include "view/limits.h"

#define SAMPLE_TASKS  32u  /* tasks sampled per shard and state */
#define SAMPLE_SHARDS 256u /* shards that are sampled */
#define KEYS_OF_SHARD 1000u
#define KEYS_MAX      20000u

/* Whether the shard's holder has a status document. */
static bool has_document(const struct status *status, const struct store_counts *c)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        size_t i;
        const json_t *member;
        if (!c->is_held || !c->left_ms)
                return false;
        (void)units_hex(nonce, c->holder, STORE_NONCE_SIZE);
        json_array_foreach(status->members, i, member)
        {
                if (!strcmp(view_json_get_text(member, "nonce"), nonce))
                        return true;
        }
        return false;
}

/* --- each shard: waiting tasks by handler, keys that wait, the dead by group ------------------------------------- */

/* The states that are sampled. */
static const enum store_state sampled_states[] = { STATE_QUEUED, STATE_PARKED, STATE_IN_FLIGHT };
#define SAMPLED_STATES (sizeof(sampled_states) / sizeof(sampled_states[0]))

static uint64_t to_sample(const struct status_look *look, enum store_state state)
{
        const struct store_counts *c = &look->counts[look->shard];
        if (state == STATE_QUEUED)
                return store_counts_queued(c);
        if (state == STATE_PARKED)
                return store_counts_parked(c);
        return has_document(&look->status, c) ? 0 : c->in_flight;
}

static bool ask_sample(struct status_look *look)
{
        for (; look->sampled <= SAMPLE_SHARDS && look->state < SAMPLED_STATES; look->state++) {
                uint64_t total = to_sample(look, sampled_states[look->state]);
                if (!total)
                        continue;
                status_sample_begin(&look->status, total);
                look->step = STATUS_SAMPLE;
                return look_ask_list(&look->look, look->shard, sampled_states[look->state], (struct store_cursor){ 0 },
                        SAMPLE_TASKS);
        }
        return false;
}

static bool ask_keys(struct status_look *look)
{
        const struct store_counts *c = &look->counts[look->shard];
        look->keys_left = min_u64(KEYS_OF_SHARD, KEYS_MAX - min_u64(KEYS_MAX, look->status.keys_seen));
        look->status.are_keys_cut |= c->keys > look->keys_left;
        look->step = STATUS_KEYS;
        return c->keys && look->keys_left &&
               look_ask_keys(&look->look, look->shard, (struct span){ 0 }, (struct store_cursor){ 0 },
                       (uint32_t)min_u64(look->keys_left, STORE_CALL_TASKS));
}

static bool ask_groups(struct status_look *look)
{
        look->step = STATUS_GROUPS;
        return look->counts[look->shard].dead && look_ask_groups(&look->look, look->shard);
}

/* Asks about the next shard with something to know; at the end asks for the totals, when all handlers are known. */
static bool ask_shard(struct status_look *look)
{
        for (; look->shard < look->look.info.shards; look->shard++) {
                const struct store_counts *c = &look->counts[look->shard];
                look->state = 0;
                look->sampled += store_counts_queued(c) || store_counts_parked(c) || c->in_flight;
                if (ask_sample(look) || ask_keys(look) || ask_groups(look))
                        return true;
        }
        if (look->status.are_keys_cut)
                limits_mark_estimated(look->status.limits);
        look->step = STATUS_TOTALS;
        return look_ask_documents(&look->look, DOCUMENT_STATUS);
}

static bool take_sample(struct status_look *look)
{
        const struct store_list *list = &look->look.list;
        for (uint32_t i = 0; i < list->tasks_count; i++)
                status_add_sampled(&look->status, &list->tasks[i], look->now_ms);
        status_sample_end(&look->status);
        look->state++;
        return ask_sample(look) || ask_keys(look) || ask_groups(look);
}

static bool take_keys(struct status_look *look)
{
        const struct store_keys *keys = &look->look.keys;
        for (uint32_t i = 0; i < keys->keys_count && look->keys_left; i++, look->keys_left--)
                status_add_key(&look->status, &keys->keys[i]);
        if (look->keys_left && !keys->is_end)
                return look_ask_keys(&look->look, look->shard, (struct span){ 0 }, keys->cursor,
                        (uint32_t)min_u64(look->keys_left, STORE_CALL_TASKS));
        return ask_groups(look);
}

static void take_groups(struct status_look *look)
{
        const struct store_dead_groups *groups = &look->look.groups;
        for (uint32_t i = 0; i < groups->groups_count; i++)
                status_add_dead_group(&look->status, &groups->groups[i]);
}

/* --- the look ---------------------------------------------------------------------------------------------------- */

static bool status_look_next(struct look *base)
{
        struct status_look *look = container_of(base, struct status_look, look);
        switch (look->step) {
        case STATUS_BEGIN:
                look->counts = memory_zero(base->info.shards, sizeof(*look->counts));
                look->step = STATUS_COUNTS;
                return look_ask_count(base, 0, base->info.shards, look->counts);
        case STATUS_COUNTS:
                status_init(&look->status, &base->info, look->store_url, look->counts);
                look->status.now_ms = look->now_ms;
                look->step = STATUS_DESIRED;
                return look_ask_desired(base);
        case STATUS_DESIRED:
                for (uint32_t i = 0; i < base->desired.items_count; i++)
                        status_add_desired(&look->status, &base->desired.items[i]);
                look->step = STATUS_DOCUMENTS;
                return look_ask_documents(base, DOCUMENT_STATUS);
        case STATUS_DOCUMENTS:
                for (uint32_t i = 0; i < base->documents.items_count; i++)
                        status_add_document(&look->status, &base->documents.items[i]);
                return ask_shard(look);
        case STATUS_SAMPLE:
                if (take_sample(look))
                        return true;
                look->shard++;
                return ask_shard(look);
        case STATUS_KEYS:
                if (take_keys(look))
                        return true;
                look->shard++;
                return ask_shard(look);
        case STATUS_GROUPS:
                take_groups(look);
                look->shard++;
                return ask_shard(look);
        case STATUS_TOTALS:
                for (uint32_t i = 0; i < base->documents.totals_count; i++)
                        status_add_total(&look->status, &base->documents.totals[i]);
                break;
        case STATUS_END:
                break;
        }
        look->step = STATUS_END;
        return false;
}

void status_look_init(struct status_look *look, const char *store_url, uint64_t now_ms)
{
        look->look.next = status_look_next;
        look->store_url = store_url;
        look->now_ms = now_ms;
}

void status_look_free(struct status_look *look)
{
        if (look->step > STATUS_COUNTS)
                status_free(&look->status);
        free(look->counts);
}
