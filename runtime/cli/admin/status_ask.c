#include "cli/admin/status_ask.h"

#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"
#include "view/json.h"

#define SAMPLE_TASKS  32u  /* of a shard's tasks in one state */
#define SAMPLE_SHARDS 256u /* that are looked at so */
#define KEYS_OF_SHARD 1000u
#define KEYS_MAX      20000u

static void add_desired(void *self, const struct store_desired *item)
{
        status_add_desired(self, item);
}

static void add_document(void *self, const struct store_status *found)
{
        status_add_document(self, found);
}

static void add_total(void *self, const struct store_total *total)
{
        status_add_total(self, total);
}

static void pass_document(void *self, const struct store_status *found)
{
        (void)self, (void)found;
}

static void add_key(void *self, const struct store_key_info *key)
{
        status_add_key(self, key);
}

static void add_sampled(void *self, const struct store_listed *task)
{
        status_add_sampled(self, task, clock_wall_ms());
}

static void add_group(void *self, const struct store_dead_group *group)
{
        status_add_dead_group(self, group);
}

/* Whether the one that holds the shard says what it has. */
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

static int sample(struct cli_store *s, struct status *status, uint32_t shard, enum store_state state, uint64_t total,
        struct error *error)
{
        if (!total)
                return 0;
        status_sample_begin(status, total);
        int r = client_list(s->client, shard, state, (struct span){ 0 }, SAMPLE_TASKS, add_sampled, status, error);
        status_sample_end(status);
        return r < 0 ? r : 0;
}

static int sample_shard(struct cli_store *s, struct status *status, const struct store_counts *c, struct error *error)
{
        int r = sample(s, status, c->shard, STATE_QUEUED, store_counts_queued(c), error);
        if (r == 0)
                r = sample(s, status, c->shard, STATE_PARKED, c->parked, error);
        if (r == 0 && !has_document(status, c))
                r = sample(s, status, c->shard, STATE_IN_FLIGHT, c->in_flight, error);
        return r;
}

/* What waits, by handler; keys that wait; the dead, by group. */
static int look_closer(struct cli_store *s, struct status *status, struct error *error)
{
        uint32_t sampled = 0;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < s->info->shards; i++) {
                const struct store_counts *c = &status->counts[i];
                bool has_waiting = store_counts_queued(c) || c->parked || c->in_flight;
                if (has_waiting && sampled++ < SAMPLE_SHARDS)
                        r = sample_shard(s, status, c, error);
                uint64_t max = min_u64(KEYS_OF_SHARD, KEYS_MAX - min_u64(KEYS_MAX, status->keys_seen));
                status->are_keys_cut |= c->keys > max;
                if (r == 0 && c->keys && max)
                        r = client_keys(s->client, i, (struct span){ 0 }, (uint32_t)max, add_key, status, error);
                r = r > 0 ? 0 : r;
                if (r == 0 && c->dead)
                        r = client_dead_groups(s->client, i, add_group, status, error);
        }
        return r;
}

int status_ask(struct cli_store *s, struct store_counts *counts, struct status *ret_status, struct error *error)
{
        int r = client_count(s->client, 0, s->info->shards, counts, error);
        status_init(ret_status, s->info, s->config.store.url.text, counts);
        if (r == 0)
                r = client_desired(s->client, add_desired, ret_status, NULL, error);
        if (r == 0)
                r = client_documents(s->client, DOCUMENT_STATUS, add_document, NULL, ret_status, error);
        if (r == 0)
                r = look_closer(s, ret_status, error);
        /* Last, since they are of handlers that are known by then. */
        if (r == 0)
                r = client_documents(s->client, DOCUMENT_STATUS, pass_document, add_total, ret_status, error);
        return r;
}
