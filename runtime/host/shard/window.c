#include "host/shard/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/shard/claimed.h"

static size_t key_bytes(size_t name_size)
{
        return sizeof(struct window_key) + name_size + 1;
}

void window_init(struct window *w, uint32_t pools, uint32_t per_key)
{
        struct window_line *lines = memory_zero((size_t)(pools ? pools : 1) * WINDOW_LINES, sizeof(*lines));
        *w = (struct window){ .lines = lines,
                .pool_tasks = memory_zero(pools ? pools : 1, sizeof(*w->pool_tasks)),
                .pools = pools,
                .per_key = per_key };
}

void window_free(struct window *w)
{
        for (struct window_key *key = window_keys_first(&w->keys), *next; key; key = next) {
                next = window_keys_next(&w->keys, key);
                while (key->first) {
                        struct claimed *c = key->first;
                        key->first = c->next;
                        claimed_free(w->blocks, c);
                }
                blocks_give(w->blocks, key, key_bytes(key->size));
        }
        window_keys_free(&w->keys);
        free(w->lines);
        free(w->pool_tasks);
        *w = (struct window){ 0 };
}

void window_set_pools(struct window *w, uint32_t pools)
{
        if (pools <= w->pools)
                return;
        struct window_line *lines = memory_zero((size_t)pools * WINDOW_LINES, sizeof(*lines));
        memcpy(lines, w->lines, (size_t)w->pools * WINDOW_LINES * sizeof(*lines));
        for (struct window_key *key = window_keys_first(&w->keys); key; key = window_keys_next(&w->keys, key))
                if (key->is_ready && !key->first->is_limited)
                        key->line = lines + (key->line - w->lines);
        free(w->lines);
        w->lines = lines;
        uint32_t *tasks = memory_zero(pools, sizeof(*tasks));
        memcpy(tasks, w->pool_tasks, w->pools * sizeof(*tasks));
        free(w->pool_tasks);
        w->pool_tasks = tasks;
        w->pools = pools;
}

/* --- the lines of ready keys --- */

/* The counter of ready keys for that line's lane; NULL for lines of suspects and of limits. */
static uint32_t *count_of(struct window *w, const struct window_line *line)
{
        if (line >= w->limited && line < w->limited + LANES)
                return NULL;
        size_t kind = (size_t)(line - w->lines) % WINDOW_LINES;
        return kind == LINE_SUSPECTS ? NULL : &w->ready[kind];
}

static void leave_line(struct window *w, struct window_key *key)
{
        if (!key->is_ready)
                return;
        struct window_line *line = key->line;
        uint32_t *count = count_of(w, line);
        if (count)
                --*count;
        if (key->ready_prev)
                key->ready_prev->ready_next = key->ready_next;
        else
                line->first = key->ready_next;
        if (key->ready_next)
                key->ready_next->ready_prev = key->ready_prev;
        else
                line->last = key->ready_prev;
        key->ready_prev = key->ready_next = NULL;
        key->is_ready = false;
        line->keys--;
        line->unkeyed -= key->is_unkeyed;
}

static struct window_line *line_of(const struct window *w, uint32_t pool, uint32_t line)
{
        return &w->lines[pool * WINDOW_LINES + line];
}

/* Puts the key at the end of the line where its first task belongs, or in none. */
static void line_up(struct window *w, struct window_key *key)
{
        const struct claimed *c = key->first;
        bool can_run = c && !key->is_busy && !key->is_barred && c->pool < w->pools && c->state == CLAIMED_WAITING;
        /* A task with TRUST_DIED_ALONE needs no mark: the shard ends it instead of running it. */
        bool is_to_mark = can_run && c->trust == TRUST_SUSPECT && !c->is_marked;
        struct window_line *line = NULL;
        if (can_run && c->is_limited)
                line = &w->limited[STORE_SEQ_LANE(c->seq)];
        else if (can_run)
                line = line_of(w, c->pool, is_to_mark ? LINE_SUSPECTS : STORE_SEQ_LANE(c->seq));
        if (key->is_ready && key->line == line)
                return;
        leave_line(w, key);
        if (!line)
                return;
        uint32_t *count = count_of(w, line);
        if (count)
                ++*count;
        key->line = line;
        key->is_ready = true;
        line->keys++;
        line->unkeyed += key->is_unkeyed;
        key->ready_prev = line->last;
        if (line->last)
                line->last->ready_next = key;
        else
                line->first = key;
        line->last = key;
}

/* --- tasks --- */

struct window_key *window_key(const struct window *w, struct span key)
{
        return window_keys_find(&w->keys, key);
}

static struct claimed *find_in(const struct window_key *key, uint64_t seq)
{
        struct claimed *c = key->first;
        while (c && c->seq != seq)
                c = c->next;
        return c;
}

struct claimed *window_find(const struct window *w, struct span key, uint64_t seq)
{
        const struct window_key *k = window_key(w, key);
        return k ? find_in(k, seq) : NULL;
}

static struct window_key *make_key(struct window *w, struct span name)
{
        struct window_key *key = blocks_take(w->blocks, key_bytes(name.size));
        *key = (struct window_key){ .size = name.size };
        key->key[name.size] = 0;
        memcpy(key->key, name.data, name.size);
        window_keys_add(&w->keys, key);
        return key;
}

static bool is_large(const struct window *w, const struct window_key *key)
{
        return w->per_key && key->live > w->per_key;
}

static void set_live(struct window *w, struct window_key *key, uint32_t live)
{
        w->large_keys -= is_large(w, key);
        key->live = live;
        w->large_keys += is_large(w, key);
}

void window_set_per_key(struct window *w, uint32_t per_key)
{
        w->per_key = per_key;
        w->large_keys = 0;
        for (struct window_key *key = window_keys_first(&w->keys); key; key = window_keys_next(&w->keys, key))
                w->large_keys += is_large(w, key);
}

/* Inserts by seq, searching from the end because most tasks come last. */
static void insert(struct window_key *key, struct claimed *c)
{
        struct claimed *after = key->last;
        while (after && after->seq > c->seq)
                after = after->prev;
        c->prev = after;
        c->next = after ? after->next : key->first;
        if (c->next)
                c->next->prev = c;
        else
                key->last = c;
        if (after)
                after->next = c;
        else
                key->first = c;
}

static enum trust file_trust_of(const struct window *w, const struct store_task *task, uint32_t hosts_died)
{
        bool is_suspect = task->note.is_suspect || hosts_died >= HOST_DEATHS_MAX;
        /* A start with an expiry was at a worker or a borrowed seat: its silence is not the death of a host. */
        bool was_running =
                task->note.started_epoch && task->note.started_epoch < w->first_epoch && !task->note.until_ms;
        if (was_running)
                return is_suspect ? TRUST_DIED_ALONE : TRUST_WAS_RUNNING;
        return is_suspect ? TRUST_SUSPECT : TRUST_FULL;
}

struct claimed *window_add(struct window *w, const struct store_task *task, uint32_t pool)
{
        if (task->seq > STORE_SEQ_MAX)
                return NULL; /* there is no line for it */
        struct window_key *key = window_key(w, task->key);
        if (!key) {
                key = make_key(w, task->key);
                key->is_unkeyed = span_is(task->key, task->envelope.id);
        }
        /* Search only if needed: nearly all tasks come behind those that are here. */
        if (key->last && task->seq <= key->last->seq && find_in(key, task->seq))
                return NULL;
        struct claimed *c = claimed_copy(w->blocks, task, pool);
        c->trust = file_trust_of(w, task, c->hosts_died);
        c->of = key;
        if (!key->count)
                key->is_barred = false; /* the bar was about tasks that are gone */
        insert(key, c);
        key->count++;
        set_live(w, key, key->live + 1);
        w->count++;
        if (pool < w->pools)
                w->pool_tasks[pool]++;
        w->lanes[STORE_SEQ_LANE(c->seq)]++;
        w->bytes += c->payload.size;
        line_up(w, key);
        return c;
}

bool window_is_behind_diverted(const struct claimed *c)
{
        if (!c->of->diverted)
                return false;
        do
                c = c->prev;
        while (c && !c->is_diverted);
        return c != NULL;
}

bool window_must_return(const struct window *w, const struct claimed *c)
{
        return c->of->is_barred || c->pool >= w->pools || window_is_behind_diverted(c);
}

bool window_has_next(const struct window *w, uint32_t pool)
{
        for (int lane = 0; lane < LANES; lane++)
                if (line_of(w, pool, (uint32_t)lane)->first)
                        return true;
        return false;
}

bool window_has_ready(const struct window *w)
{
        for (unsigned lane = 0; lane < LANES; lane++)
                if (w->ready[lane])
                        return true;
        return false;
}

bool window_has_ready_of(const struct window *w, enum lane lane)
{
        return w->ready[lane] > 0;
}

static void hold_key(struct claimed *c)
{
        c->of->holders++;
        c->of->is_busy = c->holds_key = true;
        c->state = CLAIMED_RUNNING;
}

static void let_key_go(struct claimed *c)
{
        if (!c->holds_key)
                return;
        c->holds_key = false;
        c->of->is_busy = --c->of->holders > 0;
}

static struct claimed *take_key(struct window *w, struct window_key *key)
{
        struct claimed *c = key->first;
        leave_line(w, key);
        hold_key(c);
        c->pool_task.is_follower = false;
        key->is_run_over = false;
        return c;
}

void window_follow(struct claimed *c)
{
        hold_key(c);
        c->pool_task.is_follower = true;
}

static struct claimed *take_first(struct window *w, struct window_line *line)
{
        return line->first ? take_key(w, line->first) : NULL;
}

struct claimed *window_next(struct window *w, uint32_t pool, enum lane lane)
{
        return take_first(w, line_of(w, pool, lane));
}

bool window_may_lend(const struct claimed *c, uint64_t before_ms)
{
        return span_is(c->key, c->id) && c->trust == TRUST_FULL && !c->hosts_died && !c->is_marked &&
               !c->is_for_owner && !c->is_cancelled && c->claimed_ms <= before_ms &&
               c->payload.size + c->checkpoint.size <= WINDOW_LEND_BYTES;
}

/* The first key from `key` on whose task may be lent; NULL.  *left counts the line's keys without a name of their own
 * that are still ahead, so that the search can stop early. */
static struct window_key *find_to_lend(struct window_key *key, uint64_t before_ms, uint32_t *left)
{
        for (; key && *left; key = key->ready_next) {
                if (!key->is_unkeyed)
                        continue;
                --*left;
                if (window_may_lend(key->first, before_ms))
                        return key;
        }
        return NULL;
}

struct claimed *window_next_to_lend(struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms)
{
        const struct window_line *line = line_of(w, pool, lane);
        uint32_t left = (uint32_t)line->unkeyed;
        struct window_key *key = find_to_lend(line->first, before_ms, &left);
        return key ? take_key(w, key) : NULL;
}

uint32_t window_count_to_lend(const struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms, uint32_t max)
{
        const struct window_line *line = line_of(w, pool, lane);
        uint32_t left = (uint32_t)line->unkeyed;
        uint32_t count = 0;
        struct window_key *key = line->first;
        while (count < max && (key = find_to_lend(key, before_ms, &left))) {
                count++;
                key = key->ready_next;
        }
        return count;
}

void window_limit(struct window *w, struct claimed *c)
{
        c->is_limited = true;
        window_put_back(w, c);
}

void window_unlimit(struct window *w, struct claimed *c)
{
        c->is_limited = false;
        line_up(w, c->of);
}

uint32_t window_count_limited(const struct window *w)
{
        uint32_t count = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
                for (const struct window_key *key = w->limited[lane].first; key; key = key->ready_next)
                        count += key->count;
        return count;
}

void window_adopt(struct window *w, struct claimed *c)
{
        hold_key(c);
        line_up(w, c->of);
}

bool window_has_suspect(const struct window *w, uint32_t pool)
{
        return line_of(w, pool, LINE_SUSPECTS)->first;
}

uint32_t window_marks(const struct window *w, uint32_t pool)
{
        return (uint32_t)line_of(w, pool, LINE_SUSPECTS)->marks;
}

bool window_has_suspects(const struct window *w)
{
        for (uint32_t pool = 0; pool < w->pools; pool++)
                if (window_has_suspect(w, pool) || window_marks(w, pool))
                        return true;
        return false;
}

struct claimed *window_mark_next(struct window *w, uint32_t pool)
{
        struct window_line *line = line_of(w, pool, LINE_SUSPECTS);
        struct claimed *c = take_first(w, line);
        if (!c)
                return NULL;
        c->has_mark = true;
        line->marks++;
        return c;
}

void window_unmark(struct window *w, struct claimed *c)
{
        if (c->has_mark)
                line_of(w, c->pool, LINE_SUSPECTS)->marks--;
        c->has_mark = c->is_marked = false;
}

void window_put_back(struct window *w, struct claimed *c)
{
        if (c->state == CLAIMED_ENDED)
                set_live(w, c->of, c->of->live + 1);
        c->state = CLAIMED_WAITING;
        let_key_go(c);
        line_up(w, c->of);
}

void window_end(struct window *w, struct claimed *c)
{
        c->state = CLAIMED_ENDED;
        set_live(w, c->of, c->of->live - 1);
        line_up(w, c->of);
}

void window_move(struct window *w, struct claimed *c, uint32_t pool)
{
        if (c->pool < w->pools)
                w->pool_tasks[c->pool]--;
        c->pool = pool;
        if (c->pool < w->pools)
                w->pool_tasks[c->pool]++;
        line_up(w, c->of);
}

void window_divert(struct window *w, struct claimed *c)
{
        c->is_diverted = true;
        c->of->diverted++;
        window_end(w, c);
}

void window_bar(struct window *w, struct window_key *key)
{
        key->is_barred = true;
        line_up(w, key);
}

/* Unlinks the task from its key and the window's counters. */
static void unlink_task(struct window *w, struct claimed *c)
{
        struct window_key *key = c->of;
        if (c->prev)
                c->prev->next = c->next;
        else
                key->first = c->next;
        if (c->next)
                c->next->prev = c->prev;
        else
                key->last = c->prev;
        key->count--;
        if (c->is_diverted)
                key->diverted--;
        if (c->state != CLAIMED_ENDED)
                set_live(w, key, key->live - 1);
        w->count--;
        if (c->pool < w->pools)
                w->pool_tasks[c->pool]--;
        w->lanes[STORE_SEQ_LANE(c->seq)]--;
        w->bytes -= c->payload.size;
        let_key_go(c);
        window_unmark(w, c);
}

void window_drop(struct window *w, struct claimed *c)
{
        struct window_key *key = c->of;
        unlink_task(w, c);
        claimed_free(w->blocks, c);
        line_up(w, key);
        if (key->count || key->is_emptied)
                return;
        key->is_emptied = true;
        key->emptied_next = w->emptied;
        w->emptied = key;
}

void window_merge(struct window *w, struct claimed *c, struct claimed *last)
{
        unlink_task(w, last);
        w->bytes += last->payload.size;
        w->bytes -= c->payload.size;
        c->payload = last->payload;
        c->headers = last->headers;
        c->timeout_ms = last->timeout_ms;
        c->attempts_max = last->attempts_max;
        c->debounce_ms = last->debounce_ms;
        /* The spans now point into the texts of `last` or of its donor: keep that one. */
        struct claimed *before = c->donor;
        c->donor = last->donor ? last->donor : last;
        if (last->donor) {
                last->donor = NULL;
                claimed_free(w->blocks, last);
        } else {
                buffer_free(&last->checkpoint);
                buffer_free(&last->saved);
                buffer_free(&last->headers_packed);
        }
        claimed_free_memory(w->blocks, before);
}

void window_prune(struct window *w)
{
        while (w->emptied) {
                struct window_key *key = w->emptied;
                w->emptied = key->emptied_next;
                key->is_emptied = false;
                if (key->count)
                        continue;
                window_keys_remove(&w->keys, key);
                blocks_give(w->blocks, key, key_bytes(key->size));
        }
}

void window_drop_idle(struct window *w)
{
        for (struct window_key *key = window_keys_first(&w->keys); key; key = window_keys_next(&w->keys, key)) {
                key->is_barred = false;
                for (struct claimed *c = key->first, *next = NULL; c; c = next) {
                        next = c->next;
                        if (c->state != CLAIMED_RUNNING)
                                window_drop(w, c);
                }
        }
        window_prune(w);
}
