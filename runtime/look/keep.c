#include "look/keep.h"

void keep_task(void *self, const struct store_listed *task)
{
        struct kept_task *kept = self;
        struct store_listed *to = &kept->task;
        kept->is_there = true;
        *to = *task;
        struct span *const spans[] = { &to->id, &to->key, &to->reason, &to->note.events, &to->note.checkpoint,
                &to->note.holder, &to->envelope.key, &to->envelope.handler, &to->envelope.id, &to->envelope.headers,
                &to->envelope.others, &to->envelope.payload };
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
                *spans[i] = arena_copy(&kept->arena, *spans[i]);
}

void keep_key(void *self, const struct store_key_info *key)
{
        struct kept_key *kept = self;
        kept->is_there = true;
        kept->key = *key;
        kept->key.key = arena_copy(&kept->arena, key->key);
        kept->key.reason = arena_copy(&kept->arena, key->reason);
        kept->key.head = arena_copy(&kept->arena, key->head);
        kept->key.name = arena_copy(&kept->arena, key->name);
}
