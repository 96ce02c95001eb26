#include "host/shard/window_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "host/shard/window.h"

#define BUCKETS_LEAST 32u

static struct window_key **bucket_of(const struct window_keys *keys, uint32_t hash)
{
        return &keys->buckets[hash & (keys->buckets_count - 1)];
}

static uint32_t hash_of(struct span name)
{
        return (uint32_t)hash_bytes(HASH_START, (const uint8_t *)name.data, name.size);
}

void window_keys_free(struct window_keys *keys)
{
        free(keys->buckets);
        *keys = (struct window_keys){ 0 };
}

struct window_key *window_keys_find(const struct window_keys *keys, struct span name)
{
        if (!keys->count)
                return NULL;
        uint32_t hash = hash_of(name);
        struct window_key *key = *bucket_of(keys, hash);
        while (key && !(key->hash == hash && key->size == name.size && !memcmp(key->key, name.data, name.size)))
                key = key->bucket_next;
        return key;
}

static void put(struct window_keys *keys, struct window_key *key)
{
        struct window_key **bucket = bucket_of(keys, key->hash);
        key->bucket_next = *bucket;
        *bucket = key;
}

static void grow(struct window_keys *keys)
{
        struct window_keys larger = { .count = keys->count };
        larger.buckets_count = keys->buckets_count ? keys->buckets_count * 2 : BUCKETS_LEAST;
        larger.buckets = memory_zero(larger.buckets_count, sizeof(struct window_key *));
        for (uint32_t i = 0; i < keys->buckets_count; i++)
                for (struct window_key *key = keys->buckets[i], *next; key; key = next) {
                        next = key->bucket_next;
                        put(&larger, key);
                }
        free(keys->buckets);
        *keys = larger;
}

void window_keys_add(struct window_keys *keys, struct window_key *key)
{
        if (keys->count == keys->buckets_count)
                grow(keys);
        key->hash = hash_of((struct span){ key->key, key->size });
        put(keys, key);
        keys->count++;
}

void window_keys_remove(struct window_keys *keys, struct window_key *key)
{
        struct window_key **link = bucket_of(keys, key->hash);
        while (*link != key)
                link = &(*link)->bucket_next;
        *link = key->bucket_next;
        /* An idle shard keeps only a small table. */
        if (!--keys->count && keys->buckets_count > BUCKETS_LEAST)
                window_keys_free(keys);
}

static struct window_key *first_from(const struct window_keys *keys, uint32_t bucket)
{
        for (; bucket < keys->buckets_count; bucket++)
                if (keys->buckets[bucket])
                        return keys->buckets[bucket];
        return NULL;
}

struct window_key *window_keys_first(const struct window_keys *keys)
{
        return first_from(keys, 0);
}

struct window_key *window_keys_next(const struct window_keys *keys, const struct window_key *key)
{
        return key->bucket_next ? key->bucket_next : first_from(keys, (key->hash & (keys->buckets_count - 1)) + 1);
}
