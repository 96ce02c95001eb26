/* Locks that several may hold at once, tries, and fairness. */
#include "actors.h"

#define ROUNDS 40u

static struct actor *contender(struct world *w, unsigned number, uint32_t limit)
{
        struct actor *a = actor(w, (char[]){ (char)('a' + number), 0 });
        lock_set_limit(&a->lock, limit);
        return a;
}

/* Its place is made, and it knows whether it has to wait. */
static void ask(struct actor *a)
{
        lock_acquire(&a->lock);
        WAIT_FOR(a->w, a->lock.queue.watched[0] && a->lock.queue.step == QUEUE_REST && !a->lock.queue.is_busy);
}

static void give_back(struct actor *a)
{
        unsigned before = a->released;
        crowd.holders--;
        assert_true(lock_release(&a->lock));
        WAIT_FOR(a->w, a->released == before + 1);
}

static void readers_share_it_and_a_writer_is_not_overtaken(void **state)
{
        struct world *w = *state;
        struct actor *reader[3], *writer = contender(w, 9, 1);
        for (unsigned i = 0; i < 3; i++)
                reader[i] = contender(w, i, LOCK_SHARED);
        ask(reader[0]);
        ask(reader[1]);
        assert_true(lock_is_held(&reader[0]->lock) && lock_is_held(&reader[1]->lock));
        ask(writer);
        ask(reader[2]);
        assert_false(lock_is_held(&writer->lock) || lock_is_held(&reader[2]->lock));
        give_back(reader[1]);
        assert_false(lock_is_held(&writer->lock) || lock_is_held(&reader[2]->lock));
        give_back(reader[0]);
        WAIT_FOR(w, lock_is_held(&writer->lock));
        assert_false(lock_is_held(&reader[2]->lock));
        give_back(writer);
        WAIT_FOR(w, lock_is_held(&reader[2]->lock));
        assert_true(reader[2]->token > writer->token && writer->token > reader[1]->token);
        for (unsigned i = 0; i < 3; i++)
                leave(reader[i]);
        leave(writer);
}

static void of_a_semaphore_n_are_held_in_order(void **state)
{
        struct world *w = *state;
        struct actor *a[7];
        for (unsigned i = 0; i < 7; i++) {
                a[i] = contender(w, i, 3);
                ask(a[i]);
        }
        assert_int_equal(crowd.holders, 3);
        /* Whoever leaves first, the next in order follows. */
        const unsigned leaves[] = { 1, 0, 3, 2, 5, 4, 6 };
        for (unsigned i = 0; i < 7; i++) {
                assert_true(lock_is_held(&a[leaves[i]]->lock));
                give_back(a[leaves[i]]);
                if (i < 4)
                        WAIT_FOR(w, lock_is_held(&a[i + 3]->lock));
        }
        assert_int_equal(crowd.holders_max, 3);
        for (unsigned i = 0; i < 7; i++) {
                assert_ptr_equal(crowd.order[i], a[i]);
                leave(a[i]);
        }
}

static void of_several_limits_the_smallest_counts(void **state)
{
        struct world *w = *state;
        struct actor *two = contender(w, 0, 2), *shared = contender(w, 1, LOCK_SHARED), *three = contender(w, 2, 3);
        struct actor *alone = contender(w, 3, 1);
        ask(two);
        ask(shared);
        ask(three);
        assert_true(lock_is_held(&two->lock) && lock_is_held(&shared->lock));
        assert_false(lock_is_held(&three->lock));
        ask(alone);
        give_back(two);
        WAIT_FOR(w, lock_is_held(&three->lock));
        give_back(shared);
        assert_false(lock_is_held(&alone->lock));
        give_back(three);
        WAIT_FOR(w, lock_is_held(&alone->lock));
        leave(two);
        leave(shared);
        leave(three);
        leave(alone);
}

static void who_tries_in_vain_makes_no_node(void **state)
{
        struct world *w = *state;
        struct actor *a = contender(w, 0, 1), *b = contender(w, 1, 1), *c = contender(w, 2, LOCK_SHARED);
        ask(a);
        lock_try(&b->lock);
        WAIT_FOR(w, b->busy == 1);
        lock_try(&c->lock);
        WAIT_FOR(w, c->busy == 1);
        ask(b);
        /* The numbers of a queue are given without gaps. */
        assert_int_equal(strtoull(queue_number_of(b->lock.queue.own), NULL, 10),
                strtoull(queue_number_of(a->lock.queue.own), NULL, 10) + 1);
        give_back(a);
        WAIT_FOR(w, lock_is_held(&b->lock));
        give_back(b);
        lock_try(&c->lock);
        WAIT_FOR(w, lock_is_held(&c->lock));
        lock_set_limit(&a->lock, LOCK_SHARED);
        lock_try(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        leave(a);
        leave(b);
        leave(c);
}

/* A stranger's node would be in the way for ever. */
static void a_try_is_not_held_up_by_a_place_that_no_session_holds(void **state)
{
        struct world *w = *state;
        struct actor *a = contender(w, 0, 1);
        assert_int_equal(create(a->client, "locks/one/x-0000000000", "", 0, NULL, NULL), 0);
        lock_try(&a->lock);
        WAIT_FOR(w, a->acquired == 1);
        leave(a);
}

static void a_waiter_that_loses_its_session_holds_up_nobody(void **state)
{
        struct world *w = *state;
        struct actor *a = contender(w, 0, 2), *b = contender(w, 1, 2), *c = contender(w, 2, 2), *d = contender(w, 3, 2);
        ask(a);
        ask(b);
        ask(c);
        ask(d);
        lose_session(c->client);
        WAIT_FOR(w, c->client->looks > 1);
        give_back(a);
        WAIT_FOR(w, lock_is_held(&d->lock) || lock_is_held(&c->lock));
        give_back(b);
        WAIT_FOR(w, lock_is_held(&d->lock) && lock_is_held(&c->lock));
        assert_int_equal(crowd.holders_max, 2);
        leave(a);
        leave(b);
        leave(c);
        leave(d);
}

static bool waits(const struct actor *a)
{
        return a->lock.queue.wants && a->lock.queue.own[0] && !lock_is_held(&a->lock);
}

static bool is_holder_and_all_wait(struct actor *const *a, unsigned holder)
{
        for (unsigned i = 0; i < 4; i++)
                if (i == holder ? !lock_is_held(&a[i]->lock) : !waits(a[i]))
                        return false;
        return true;
}

/* Each asks again as soon as it has given it back, and gives it back when all others wait. */
static void contenders_have_equal_shares(void **state)
{
        struct world *w = *state;
        struct actor *a[4];
        unsigned most = 0;
        for (unsigned i = 0; i < 4; i++)
                a[i] = contender(w, i, 1);
        while (most < ROUNDS) {
                for (unsigned i = 0; i < 4; i++) {
                        if (!a[i]->lock.queue.wants && a[i]->released == a[i]->acquired)
                                lock_acquire(&a[i]->lock);
                        if (is_holder_and_all_wait(a, i)) {
                                crowd.holders--;
                                assert_true(lock_release(&a[i]->lock));
                        }
                        most = a[i]->acquired > most ? a[i]->acquired : most;
                }
                (void)uv_run(&w->loop, UV_RUN_ONCE);
        }
        assert_int_equal(crowd.holders_max, 1);
        assert_true(crowd.is_token_growing);
        for (unsigned i = 0; i < 4; i++)
                assert_true(a[i]->acquired + 2 >= most); /* within 5 % */
        for (unsigned i = 0; i < 4; i++)
                leave(a[i]);
}

const struct CMUnitTest lock_tests[] = {
        IN_CROWD(readers_share_it_and_a_writer_is_not_overtaken),
        IN_CROWD(of_a_semaphore_n_are_held_in_order),
        IN_CROWD(of_several_limits_the_smallest_counts),
        IN_CROWD(who_tries_in_vain_makes_no_node),
        IN_CROWD(a_try_is_not_held_up_by_a_place_that_no_session_holds),
        IN_CROWD(a_waiter_that_loses_its_session_holds_up_nobody),
        IN_CROWD(contenders_have_equal_shares),
};
GROUP(lock);
