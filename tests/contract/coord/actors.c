#include "actors.h"

struct crowd crowd;

int crowd_setup(void **state)
{
        memset(&crowd, 0, sizeof(crowd));
        crowd.is_token_growing = true;
        return world_setup(state);
}

static void hear(struct actor *a, char sign, const char *name)
{
        size_t size = strlen(a->heard);
        (void)snprintf(a->heard + size, sizeof(a->heard) - size, "%s%c%s", size ? " " : "", sign, name);
}

static void note(struct actor *a, uint64_t created, struct span data)
{
        a->created = created;
        (void)snprintf(a->data, sizeof(a->data), "%.*s", (int)data.size, data.data);
}

static void on_joined(void *self, const char *name, uint64_t created, struct span data)
{
        struct actor *a = self;
        a->mates++;
        note(a, created, data);
        hear(a, '+', name);
}

static void on_changed(void *self, const char *name, uint64_t created, struct span data)
{
        note(self, created, data);
        hear(self, '~', name);
}

static void on_left(void *self, const char *name)
{
        ((struct actor *)self)->mates--;
        hear(self, '-', name);
}

static void on_known(void *self, bool is_known)
{
        ((struct actor *)self)->is_known = is_known;
}

static void on_failed(void *self, int status, const char *text)
{
        (void)status;
        print_message("failed: %s\n", text);
        ((struct actor *)self)->failed++;
}

static void note_token(struct actor *a, uint64_t token)
{
        crowd.is_token_growing &= token > crowd.last_token;
        crowd.last_token = token;
        crowd.order[crowd.order_count++ % 64] = a;
        a->token = token;
}

static void on_gained(void *self)
{
        struct actor *a = self;
        a->gained++;
        if (++crowd.leaders > crowd.leaders_max)
                crowd.leaders_max = crowd.leaders;
        if (a->resigns_at_once)
                leader_stand(&a->leader, false);
}

static void on_lost(void *self)
{
        ((struct actor *)self)->lost++;
        crowd.leaders--;
}

static void on_acquired(void *self, uint64_t token)
{
        struct actor *a = self;
        a->acquired++;
        note_token(a, token);
        if (++crowd.holders > crowd.holders_max)
                crowd.holders_max = crowd.holders;
        if (!a->releases_at_once)
                return;
        crowd.holders--;
        assert_true(lock_release(&a->lock));
}

static void on_busy(void *self)
{
        ((struct actor *)self)->busy++;
}

static void on_lock_lost(void *self)
{
        ((struct actor *)self)->lock_lost++;
        crowd.holders--;
}

static void on_released(void *self)
{
        ((struct actor *)self)->released++;
}

static void actor_session(void *self, enum coord_state state, uint64_t session)
{
        struct actor *a = self;
        member_session(&a->member, state, session);
        leader_session(&a->leader, state, session);
        lock_session(&a->lock, state, session);
}

static void actor_changed(void *self, const char *path)
{
        struct actor *a = self;
        member_changed(&a->member, path);
        leader_changed(&a->leader, path);
        lock_changed(&a->lock, path);
}

static void actor_look(void *self)
{
        struct actor *a = self;
        member_look(&a->member);
        leader_look(&a->leader);
        lock_look(&a->lock);
}

struct actor *actor(struct world *w, const char *nonce)
{
        struct actor *a = arena_take(&w->memory, sizeof(*a));
        static const struct member_events member = { on_joined, on_changed, on_left, on_known };
        static const struct leader_events leader = { on_gained, on_lost };
        struct lock_events lock = { on_acquired, on_busy, on_lock_lost, on_released, on_failed, a };
        a->w = w;
        a->client = join(w);
        (void)snprintf(a->nonce, sizeof(a->nonce), "%s", nonce);
        member_init(&a->member, a->client->coord, "members", a->nonce, &member, a);
        member_follow(&a->member, true);
        leader_init(&a->leader, a->client->coord, "election", a->nonce, &leader, a);
        lock_init(&a->lock, a->client->coord, "one", a->nonce, &lock);
        listen_too(a->client, &(struct coord_events){ actor_session, actor_changed, actor_look, a });
        return a;
}

void leave(struct actor *a)
{
        client_close(a->client);
        member_free(&a->member);
}
