/* shard_excess.c: which claimed tasks go back to the store because their key has too many (window.per_key).
 *
 * A key with many tasks must not fill the window, or tasks of other keys behind them would never be claimed.  But to
 * put a task into its key's side queue and to fetch it from there costs the store as much as claiming and committing
 * ten others, and while a shard has such a key every call of it is dearer.  So nothing goes back while the store is
 * busy and several keys work their tasks off soon: then the tasks behind them are reached sooner by going on. */
#include "host/shard/shard_private.h"

#include "base/numbers.h"

/* A key works its tasks off soon if its first one was claimed less than this ago. */
#define SOON_MS 1000

/* Returns the newest tasks of the key that are beyond its share. */
static void return_newest(struct shard *s, struct window_key *key, uint64_t now_ms)
{
        for (struct claimed *c = key->last; c && key->live > shard_per_key(s, c->pool); c = c->prev)
                if (c->state == CLAIMED_WAITING && !c->is_marked)
                        shard_divert(s, c, now_ms);
}

void shard_return_excess(struct shard *s, uint64_t now_ms)
{
        s->excess_ms = STORE_NEVER;
        if (!s->window.large_keys)
                return;
        bool goes_on = shard_goes_on(s);
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key)) {
                if (!key->first || key->live <= s->window.per_key)
                        continue;
                uint64_t slow_ms = key->first->claimed_ms + SOON_MS;
                if (goes_on && now_ms < slow_ms)
                        s->excess_ms = min_u64(slow_ms, s->excess_ms);
                else
                        return_newest(s, key, now_ms);
        }
}

void shard_excess_tick(struct shard *s, uint64_t now_ms)
{
        /* A call under way ends with another look. */
        if (now_ms < s->excess_ms || s->is_calling || s->state != SHARD_OWNED)
                return;
        shard_return_excess(s, now_ms);
}
