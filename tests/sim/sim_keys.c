/* sim_keys.c: keys that wait in the store, for a time or for a name: see "The life of a task" in
 * runtime/store/README.md. */
#include "sim.h"

/* The first of a key's queue; SHARD_TASKS: it is empty. */
static uint32_t head_of(const struct sim_store_shard *s, uint32_t key)
{
        uint32_t i = 0;
        while (i < SHARD_TASKS && (s->tasks[i].key != key || s->tasks[i].state != TASK_PARKED))
                i++;
        return i;
}

bool sim_key_is_waiting(const struct sim_store_shard *s, uint32_t number)
{
        uint32_t key = s->tasks[number].key;
        return s->keys[key].state == SIM_KEY_NAMED || head_of(s, key) < number;
}

static void tidy(struct sim_store_shard *s, uint32_t key)
{
        if (head_of(s, key) == SHARD_TASKS)
                s->keys[key].state = SIM_KEY_FREE;
}

void sim_key_divert(
        struct sim *sim, struct sim_store_shard *s, uint32_t number, uint32_t name, const struct store_outcome *outcome)
{
        struct sim_key *k = &s->keys[s->tasks[number].key];
        uint64_t due_ms = sim->now_ms + outcome->delay_ms;
        s->tasks[number].state = TASK_PARKED;
        s->tasks[number].is_debounced |= outcome->is_debounce;
        /* A key waits for what its first task waits for. */
        bool is_first = head_of(s, s->tasks[number].key) == number;
        sim->counts.limited += name >= POOLS && name < NAMES;
        if (name < NAMES && (is_first || k->state == SIM_KEY_FREE))
                *k = (struct sim_key){ .state = SIM_KEY_NAMED, .name = name, .since_ms = sim->now_ms };
        else if (k->state == SIM_KEY_FREE || (is_first && (k->state == SIM_KEY_NAMED || outcome->is_debounce)))
                *k = (struct sim_key){ .state = SIM_KEY_WAITING, .due_ms = due_ms };
        else if (k->state == SIM_KEY_WAITING && due_ms < k->due_ms)
                k->due_ms = due_ms;
}

static void take(const struct sim *sim, struct sim_store_shard *s, uint32_t key, uint32_t max)
{
        for (uint32_t head; max-- && s->last_count < CALL_MAX && (head = head_of(s, key)) < SHARD_TASKS;) {
                s->tasks[head].state = TASK_FLIGHT;
                s->last[s->last_count++] = head;
        }
        s->keys[key].state = SIM_KEY_WAITING;
        s->keys[key].due_ms = sim->now_ms + STORE_WAITING_MS;
        tidy(s, key);
}

void sim_key_refill(const struct sim *sim, struct sim_store_shard *s, uint32_t key, uint32_t max)
{
        if (max && s->keys[key].state == SIM_KEY_WAITING)
                take(sim, s, key, max);
}

void sim_keys_take_due(const struct sim *sim, struct sim_store_shard *s, uint32_t max)
{
        for (uint32_t key = 0; key < SHARD_KEYS && max; key++) {
                if (s->keys[key].state != SIM_KEY_WAITING || s->keys[key].due_ms > sim->now_ms)
                        continue;
                uint32_t head = head_of(s, key);
                take(sim, s, key, head < SHARD_TASKS && s->tasks[head].may_merge ? STORE_MERGE_TASKS : 1);
                max--;
        }
}

uint64_t sim_keys_due_ms(const struct sim *sim, const struct sim_store_shard *s)
{
        uint64_t due_ms = STORE_NEVER;
        for (uint32_t key = 0; key < SHARD_KEYS; key++) {
                if (s->keys[key].state != SIM_KEY_WAITING)
                        continue;
                uint64_t key_ms = s->keys[key].due_ms > sim->now_ms ? s->keys[key].due_ms - sim->now_ms : 0;
                due_ms = key_ms < due_ms ? key_ms : due_ms;
        }
        return due_ms;
}

static bool waits_for(const struct sim_store_shard *s, uint32_t key, uint32_t name)
{
        return s->keys[key].state == SIM_KEY_NAMED && s->keys[key].name == name;
}

bool sim_keys_wait_for(const struct sim_store_shard *s, uint32_t name)
{
        for (uint32_t key = 0; key < SHARD_KEYS; key++)
                if (waits_for(s, key, name))
                        return true;
        return false;
}

uint32_t sim_keys_wake(const struct sim *sim, struct sim_store_shard *s, uint32_t name, uint32_t max)
{
        uint32_t woken = 0;
        for (uint32_t key = 0; key < SHARD_KEYS && woken < max; key++) {
                if (!waits_for(s, key, name))
                        continue;
                s->keys[key] = (struct sim_key){ .state = SIM_KEY_WAITING, .due_ms = sim->now_ms };
                woken++;
        }
        return woken;
}
