/* Looking and intervening as calls that wait. */
#include "call.h"

/* --- looking ----------------------------------------------------------------------------------------------------- */

struct store_counts counts(struct world *w, uint32_t shard)
{
        struct store_counts found = { 0 };
        struct store_count c = { .first_shard = shard, .shards = 1, .counts = &found };
        assert_int_equal(CALL(w, store_count, &c, NULL), 0);
        assert_int_equal(c.counted, 1);
        assert_int_equal(found.submitted, found.queued[0] + found.queued[1] + found.queued[2] + found.delayed +
                                                  found.in_flight + store_counts_parked(&found) + found.dead +
                                                  found.done + found.dropped + found.merged);
        return found;
}

static void keep_list(struct world *w, struct store_request *request)
{
        struct store_list *l = (struct store_list *)request;
        l->tasks = keep_array(w, l->tasks, l->tasks_count, sizeof(*l->tasks));
        for (uint32_t i = 0; i < l->tasks_count; i++)
                keep_listed(w, &l->tasks[i]);
}

struct store_list list(struct world *w, uint32_t shard, enum store_state state)
{
        struct store_list l = { .shard = shard, .state = state };
        assert_int_equal(CALL(w, store_list, &l, keep_list), 0);
        return l;
}

void list_next(struct world *w, struct store_list *l)
{
        assert_int_equal(CALL(w, store_list, l, keep_list), 0);
}

uint32_t list_pages(struct world *w, uint32_t shard, enum store_state state, uint32_t size)
{
        struct store_list l = { .shard = shard, .state = state, .page_tasks = size };
        uint32_t count = 0;
        struct span seen[512];
        do {
                assert_int_equal(CALL(w, store_list, &l, keep_list), 0);
                assert_true(l.tasks_count <= size);
                for (uint32_t i = 0; i < l.tasks_count; i++) {
                        for (uint32_t j = 0; j < count; j++)
                                assert_false(span_is(seen[j], l.tasks[i].id));
                        assert_true(count < 512);
                        seen[count++] = l.tasks[i].id;
                }
        } while (!l.is_end);
        return count;
}

static void keep_find(struct world *w, struct store_request *request)
{
        struct store_find *f = (struct store_find *)request;
        if (!f->task)
                return;
        struct store_listed *copy = keep_array(w, f->task, 1, sizeof(*copy));
        keep_listed(w, copy);
        f->task = copy;
}

int call_find(struct world *w, struct store_find *f)
{
        return CALL(w, store_find, f, keep_find);
}

const struct store_listed *find(struct world *w, struct span id)
{
        struct store_find f = { .id = id };
        do {
                assert_int_equal(call_find(w, &f), 0);
        } while (!f.is_end && !f.task);
        return f.task;
}

static void keep_merged(struct world *w, struct store_request *request)
{
        struct store_find *f = (struct store_find *)request;
        f->merged_into = keep(w, f->merged_into);
}

struct store_find find_merged(struct world *w, struct span id)
{
        struct store_find f = { .id = id };
        do {
                assert_int_equal(CALL(w, store_find, &f, keep_merged), 0);
        } while (!f.is_end);
        assert_null(f.task);
        return f;
}

int cancel(struct world *w, struct span id, bool *ret_pending)
{
        const struct store_listed *task = find(w, id);
        if (!task)
                return -ENOENT;
        struct store_cancel c = { .id = id, .key = task->key, .state = task->state, .number = task->number };
        int r = CALL(w, store_cancel, &c, NULL);
        if (ret_pending)
                *ret_pending = c.is_pending;
        return r;
}

static void keep_keys(struct world *w, struct store_request *request)
{
        struct store_keys *k = (struct store_keys *)request;
        k->keys = keep_array(w, k->keys, k->keys_count, sizeof(*k->keys));
        for (uint32_t i = 0; i < k->keys_count; i++) {
                k->keys[i].key = keep(w, k->keys[i].key);
                k->keys[i].reason = keep(w, k->keys[i].reason);
                k->keys[i].head = keep(w, k->keys[i].head);
                k->keys[i].name = keep(w, k->keys[i].name);
        }
}

struct store_key_info key(struct world *w, const char *name)
{
        struct store_keys k = { .key = T(name) };
        assert_int_equal(CALL(w, store_keys, &k, keep_keys), 0);
        assert_int_equal(k.keys_count, 1);
        return k.keys[0];
}

uint32_t keys_pages(struct world *w, uint32_t shard, uint32_t size)
{
        struct store_keys k = { .shard = shard, .page_keys = size };
        uint32_t count = 0;
        do {
                assert_int_equal(CALL(w, store_keys, &k, keep_keys), 0);
                for (uint32_t i = 0; i < k.keys_count; i++) {
                        assert_true(k.keys[i].state >= KEY_WAITING);
                        assert_true(k.keys[i].head.size > 0 && k.keys[i].reason.size > 0);
                }
                count += k.keys_count;
        } while (!k.is_end);
        return count;
}

int key_act(struct world *w, enum store_control_verb verb, const char *name)
{
        struct store_key_act a = { .verb = verb, .key = T(name), .reason = T("by the test") };
        return CALL(w, store_key_act, &a, NULL);
}

uint64_t store_now_ms(struct world *w)
{
        assert_int_equal(key_act(w, CONTROL_HOLD, "clock"), 0);
        uint64_t now_ms = key(w, "clock").since_ms;
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "clock"), 0);
        return now_ms;
}

struct store_dead dead_act(struct world *w, enum store_dead_verb verb, struct span id)
{
        struct store_dead d = { .verb = verb, .ids = &id, .ids_count = id.size ? 1 : 0 };
        assert_int_equal(CALL(w, store_dead, &d, NULL), 0);
        return d;
}

struct store_dead dead_act_on(struct world *w, enum store_dead_verb verb, const uint64_t *numbers, uint32_t count)
{
        struct store_dead d = { .verb = verb, .numbers = numbers, .numbers_count = count };
        assert_int_equal(CALL(w, store_dead, &d, NULL), 0);
        return d;
}

int call_desired_set(struct world *w, struct store_desired_set *set)
{
        return CALL(w, store_desired_set, set, NULL);
}

uint64_t desired_set(struct world *w, const char *name, const char *value)
{
        struct store_desired_set set = { .item = { .name = T(name), .value = T(value ? value : "") },
                .has_value = value != NULL };
        assert_int_equal(call_desired_set(w, &set), 0);
        return set.version;
}

static void keep_desired(struct world *w, struct store_request *request)
{
        struct store_desired_get *g = (struct store_desired_get *)request;
        g->items = keep_array(w, g->items, g->items_count, sizeof(*g->items));
        for (uint32_t i = 0; i < g->items_count; i++)
                g->items[i] = (struct store_desired){ keep(w, g->items[i].name), keep(w, g->items[i].value) };
}

struct store_desired_get desired_get(struct world *w)
{
        struct store_desired_get get = { 0 };
        assert_int_equal(CALL(w, store_desired_get, &get, keep_desired), 0);
        return get;
}

int status_put(struct world *w, uint8_t who, const char *document, uint64_t keep_ms)
{
        struct store_status_put put = { .document = T(document), .keep_ms = keep_ms };
        memset(put.nonce, who, sizeof(put.nonce));
        return CALL(w, store_status_put, &put, NULL);
}

int call_status_put(struct world *w, struct store_status_put *put)
{
        return CALL(w, store_status_put, put, NULL);
}

static void keep_groups(struct world *w, struct store_request *request)
{
        struct store_dead_groups *g = (struct store_dead_groups *)request;
        g->groups = keep_array(w, g->groups, g->groups_count, sizeof(*g->groups));
        for (uint32_t i = 0; i < g->groups_count; i++) {
                g->groups[i].handler = keep(w, g->groups[i].handler);
                g->groups[i].reason = keep(w, g->groups[i].reason);
                g->groups[i].error = keep(w, g->groups[i].error);
        }
}

struct store_dead_groups dead_groups(struct world *w, uint32_t shard)
{
        struct store_dead_groups g = { .shard = shard };
        assert_int_equal(CALL(w, store_dead_groups, &g, keep_groups), 0);
        return g;
}

static void keep_status(struct world *w, struct store_request *request)
{
        struct store_status_list *l = (struct store_status_list *)request;
        l->items = keep_array(w, l->items, l->items_count, sizeof(*l->items));
        for (uint32_t i = 0; i < l->items_count; i++)
                l->items[i].document = keep(w, l->items[i].document);
        l->totals = keep_array(w, l->totals, l->totals_count, sizeof(*l->totals));
        for (uint32_t i = 0; i < l->totals_count; i++)
                l->totals[i].name = keep(w, l->totals[i].name);
}

struct store_status_list status_list(struct world *w)
{
        return status_list_of(w, DOCUMENT_STATUS);
}

struct store_status_list status_list_of(struct world *w, enum store_document kind)
{
        return status_list_one(w, (struct store_status_list){ .kind = kind });
}

int reschedule(struct world *w, struct span id, uint64_t number, uint64_t delay_ms, uint64_t at_ms)
{
        struct store_reschedule r = { .id = id, .number = number, .delay_ms = delay_ms, .at_ms = at_ms };
        return CALL(w, store_reschedule, &r, NULL);
}

struct store_status_list status_list_one(struct world *w, struct store_status_list l)
{
        assert_int_equal(CALL(w, store_status_list, &l, keep_status), 0);
        return l;
}

int import(struct world *w, const struct store_moved *items, uint32_t count)
{
        struct store_import i = { .source = T("another"), .number = 1, .items = items, .items_count = count };
        return CALL(w, store_import, &i, NULL);
}

int import_chunk(struct world *w, struct store_import *chunk)
{
        return CALL(w, store_import, chunk, NULL);
}

static void keep_fsck(struct world *w, struct store_request *request)
{
        struct store_fsck *f = (struct store_fsck *)request;
        f->report = keep(w, f->report);
}

int repair(struct world *w, uint32_t shard)
{
        struct store_fsck f = { .shard = shard, .is_repair = true };
        return CALL(w, store_fsck, &f, keep_fsck);
}

void expect_sound(struct world *w)
{
        struct store_info info;
        store_info(w->store, &info);
        for (uint32_t i = 0; i < info.shards; i++) {
                struct store_fsck f = { .shard = i };
                assert_int_equal(CALL(w, store_fsck, &f, keep_fsck), 0);
                if (f.problems)
                        fail_msg("%s", f.report.data);
        }
}

const char *payloads(struct world *w, const struct store_task *tasks, uint32_t count)
{
        struct buffer b = { 0 };
        for (uint32_t i = 0; i < count; i++) {
                if (i)
                        buffer_put(&b, " ", 1);
                buffer_put(&b, tasks[i].envelope.payload.data, tasks[i].envelope.payload.size);
        }
        const char *text = keep(w, (struct span){ (const char *)b.data, b.size }).data;
        buffer_free(&b);
        return text;
}
