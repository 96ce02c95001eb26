#include "host/shard/shard_checkpoints.h"

#include "host/shard/shard.h"

void shard_save(struct shard *s, struct claimed *c, const void *data, size_t size)
{
        shard_stir(s);
        struct shard_saves *saves = &s->saves;
        if (c->lease_number != s->lease_number || c->state != CLAIMED_RUNNING)
                return;
        buffer_clear(&c->saved);
        buffer_put(&c->saved, data, size);
        c->has_run_saved = true;
        if (c->is_save_waiting)
                return;
        c->is_save_waiting = true;
        c->save_next = saves->waiting;
        saves->waiting = c;
}

void saves_tell(struct shard *s)
{
        struct shard_saves *saves = &s->saves;
        struct shard_telling *telling = s->telling;
        while (saves->waiting && telling->saves_count < SHARD_SAVES_MAX) {
                struct claimed *c = saves->waiting;
                /* A copy, because the task may save again while the call is under way. */
                struct pending_outcome *pending = pending_outcome_checkpoint(c->saved.data, c->saved.size);
                (void)shard_add_outcome(s, c, &pending->outcome);
                telling->saves[telling->saves_count++] = pending;
                saves->waiting = c->save_next;
                c->is_save_waiting = false;
        }
}

static void leave_list(struct shard_saves *saves, struct claimed *c)
{
        struct claimed **at = &saves->waiting;
        while (c->is_save_waiting && *at != c)
                at = &(*at)->save_next;
        if (c->is_save_waiting)
                *at = c->save_next;
        c->is_save_waiting = false;
}

void saves_stop(struct shard *s, struct claimed *c)
{
        leave_list(&s->saves, c);
        /* With has_saved set, the final answer brought a checkpoint, which is newer than `saved`. */
        if (c->has_run_saved && !c->has_saved) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, c->saved.data, c->saved.size);
                c->has_saved = true;
        }
        c->has_run_saved = false;
}

void saves_drop(struct shard *s)
{
        for (struct claimed *c = s->saves.waiting; c; c = c->save_next)
                c->is_save_waiting = false;
        s->saves.waiting = NULL;
}
