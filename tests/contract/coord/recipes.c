/* Membership, leadership and locks. */
#include "actors.h"

/* --- members ----------------------------------------------------------------------------------------------------- */

static void each_member_sees_every_join_and_leave_once(void **state)
{
        struct world *w = *state;
        struct actor *a[4];
        static const char *const names[] = { "a", "b", "c", "d" };
        /* The k-th sees k mates, itself among them. */
        for (unsigned k = 0; k < 4; k++) {
                a[k] = actor(w, names[k]);
                member_set(&a[k]->member, T("hello"));
                for (unsigned i = 0; i <= k; i++)
                        WAIT_FOR(w, a[i]->mates == k + 1);
        }
        assert_string_equal(a[0]->heard, "+a +b +c +d");
        for (unsigned k = 0; k < 4; k++)
                assert_int_equal(strlen(a[k]->heard), strlen("+a +b +c +d"));
        for (unsigned k = 0; k < 3; k++) {
                char left[8];
                (void)snprintf(left, sizeof(left), "-%s", names[k]);
                for (unsigned i = k; i < 4; i++)
                        a[i]->heard[0] = 0;
                leave(a[k]);
                for (unsigned i = k + 1; i < 4; i++)
                        WAIT_FOR(w, !strcmp(a[i]->heard, left));
        }
        assert_int_equal(a[3]->mates, 1);
        leave(a[3]);
}

static void a_change_of_data_is_heard_with_its_data(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        member_set(&a->member, T("one"));
        WAIT_FOR(w, !strcmp(b->heard, "+a"));
        assert_string_equal(b->data, "one");
        member_set(&a->member, T("three"));
        WAIT_FOR(w, !strcmp(b->heard, "+a ~a"));
        assert_string_equal(b->data, "three");
        /* Written over and over, the last word is what stays. */
        for (unsigned i = 0; i < 50; i++)
                member_set(&a->member, T(i == 49 ? "last" : "more"));
        WAIT_FOR(w, !strcmp(b->data, "last"));
        assert_null(strstr(b->heard, "-a"));
        leave(a);
        leave(b);
}

static void a_member_rejoins_after_it_lost_its_session(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        struct coord_stat stat;
        member_set(&b->member, T("other"));
        WAIT_FOR(w, a->mates == 1 && b->mates == 1);
        member_set(&a->member, T("data"));
        WAIT_FOR(w, a->mates == 2 && b->mates == 2);
        uint64_t created = b->created;
        a->heard[0] = b->heard[0] = 0;
        lose_session(a->client);
        WAIT_FOR(w, !strcmp(b->heard, "-a +a"));
        WAIT_FOR(w, !strcmp(a->heard, "-a +a"));
        assert_true(b->created > created);
        assert_string_equal(b->data, "data");
        assert_int_equal(get(b->client, "members/a", false, NULL, &stat), 0);
        assert_int_equal(stat.owner, session_of(a->client));
        leave(a);
        leave(b);
}

static void pending_done_unseen(struct coord_request *request)
{
        assert_int_equal(request->status, 0);
}

static void whoever_came_back_unseen_has_left_and_joined(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        struct client *c = join(w);
        assert_int_equal(create(c, "members/x", "1", COORD_EPHEMERAL, NULL, NULL), 0);
        WAIT_FOR(w, !strcmp(a->heard, "+x"));
        struct coord_multi_op ops[] = {
                { .kind = COORD_DELETE, .path = "members/x", .version = COORD_ANY_VERSION },
                { .kind = COORD_CREATE, .path = "members/x", .data = T("1"), .flags = COORD_EPHEMERAL },
        };
        int r = multi(c, ops, 2);
        if (r == -ENOTSUP) {
                /* Where it takes two steps, they follow each other at once. */
                struct pending made = { .create = { .request.done = pending_done,
                                                .path = "members/x",
                                                .data = T("1"),
                                                .flags = COORD_EPHEMERAL } };
                struct coord_delete gone = {
                        .request.done = pending_done_unseen, .path = "members/x", .version = COORD_ANY_VERSION
                };
                coord_delete(c->coord, &gone);
                coord_create(c->coord, &made.create);
                WAIT_FOR(w, made.done);
                r = made.status;
        }
        assert_int_equal(r, 0);
        WAIT_FOR(w, !strcmp(a->heard, "+x -x +x"));
        leave(a);
}

static void whoever_leaves_is_gone(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        member_set(&a->member, T("data"));
        WAIT_FOR(w, !strcmp(b->heard, "+a"));
        member_leave(&a->member);
        WAIT_FOR(w, !strcmp(b->heard, "+a -a"));
        assert_string_equal(children(b->client, "members", false), "");
        leave(a);
        leave(b);
}

static void a_member_that_was_removed_comes_back(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        member_set(&a->member, T("data"));
        WAIT_FOR(w, !strcmp(b->heard, "+a") && member_is_settled(&a->member));
        assert_int_equal(del(b->client, "members/a", COORD_ANY_VERSION), 0);
        WAIT_FOR(w, !strcmp(b->heard, "+a -a +a"));
        assert_string_equal(b->data, "data");
        leave(a);
        leave(b);
}

static void an_old_node_of_ones_own_name_is_replaced(void **state)
{
        struct world *w = *state;
        struct client *old = join(w);
        struct coord_stat stat = { 0 };
        assert_int_equal(create(old, "members/a", "old", COORD_EPHEMERAL, NULL, NULL), 0);
        struct actor *a = actor(w, "a");
        member_set(&a->member, T("new"));
        WAIT_FOR(w, !get(a->client, "members/a", false, NULL, &stat) && stat.owner == session_of(a->client));
        client_close(old);
        assert_string_equal(children(a->client, "members", false), "a");
        leave(a);
}

static void the_list_is_known_at_some_time(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        assert_int_equal(create(c, "members/x", "", COORD_EPHEMERAL, NULL, NULL), 0);
        assert_int_equal(create(c, "members/y", "", COORD_EPHEMERAL, NULL, NULL), 0);
        struct actor *a = actor(w, "a");
        WAIT_FOR(w, a->is_known);
        assert_int_equal(a->mates, 2);
        leave(a);
}

/* --- leaders ----------------------------------------------------------------------------------------------------- */

static void ten_candidates_resign_at_once_and_all_have_led(void **state)
{
        struct world *w = *state;
        struct actor *a[ACTORS];
        for (unsigned i = 0; i < ACTORS; i++) {
                a[i] = actor(w, (char[]){ (char)('j' - i), 0 });
                a[i]->resigns_at_once = true;
                leader_stand(&a[i]->leader, true);
        }
        for (unsigned i = 0; i < ACTORS; i++)
                WAIT_FOR(w, a[i]->lost && leader_is_settled(&a[i]->leader));
        for (unsigned i = 0; i < ACTORS; i++) {
                assert_int_equal(a[i]->gained, 1);
                assert_int_equal(a[i]->lost, 1);
        }
        assert_int_equal(crowd.leaders_max, 1);
        assert_string_equal(children(a[0]->client, "election", false), "");
        for (unsigned i = 0; i < ACTORS; i++)
                leave(a[i]);
}

static void the_next_in_line_leads(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "z"), *b = actor(w, "y"), *c = actor(w, "x");
        struct actor *all[] = { a, b, c };
        for (unsigned i = 0; i < 3; i++) {
                leader_stand(&all[i]->leader, true);
                WAIT_FOR(w, leader_is_settled(&all[i]->leader));
        }
        assert_true(leader_is_leading(&a->leader));
        crowd.leaders--;
        leave(a);
        WAIT_FOR(w, leader_is_leading(&b->leader));
        assert_false(leader_is_leading(&c->leader));
        leader_stand(&b->leader, false);
        WAIT_FOR(w, leader_is_leading(&c->leader));
        assert_int_equal(crowd.leaders_max, 1);
        leave(b);
        leave(c);
}

static void a_leader_without_a_session_leads_no_more(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        leader_stand(&b->leader, true);
        WAIT_FOR(w, leader_is_settled(&b->leader));
        lose_session(a->client);
        WAIT_FOR(w, a->lost && leader_is_leading(&b->leader));
        assert_int_equal(a->lost, 1);
        /* And is a candidate again. */
        WAIT_FOR(w, leader_is_settled(&a->leader));
        assert_false(leader_is_leading(&a->leader));
        leader_stand(&b->leader, false);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        leave(a);
        leave(b);
}

static void a_leader_that_was_removed_leads_no_more(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        leader_stand(&b->leader, true);
        WAIT_FOR(w, leader_is_settled(&b->leader));
        assert_int_equal(del(b->client, leader_check(&a->leader).path, COORD_ANY_VERSION), 0);
        WAIT_FOR(w, a->lost && leader_is_leading(&b->leader));
        leave(a);
        leave(b);
}

static void only_the_leader_writes(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        assert_int_equal(create(a->client, "assign", "", 0, NULL, NULL), 0);
        struct coord_multi_op ops[] = {
                leader_check(&a->leader),
                { .kind = COORD_SET, .path = "assign", .data = T("a"), .version = COORD_ANY_VERSION },
        };
        ops[0].path = keep(w, ops[0].path, strlen(ops[0].path));
        assert_int_equal(multi(a->client, ops, 2), 0);
        leader_stand(&b->leader, true);
        leader_stand(&a->leader, false);
        WAIT_FOR(w, leader_is_leading(&b->leader));
        /* One that does not know yet. */
        assert_int_equal(multi(a->client, ops, 2), -ENOENT);
        leave(a);
        leave(b);
}

static void whoever_resigns_can_stand_again(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        for (unsigned i = 1; i <= 3; i++) {
                leader_stand(&a->leader, true);
                WAIT_FOR(w, a->gained == i);
                leader_stand(&a->leader, false);
                WAIT_FOR(w, a->lost == i && leader_is_settled(&a->leader));
        }
        leave(a);
}

/* The answer of the creation was lost, and it happened: found again, not taken twice. */
static void a_place_is_not_taken_twice(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        unsigned flags = COORD_EPHEMERAL | COORD_SEQUENTIAL;
        const char *election, *lock;
        assert_int_equal(create(a->client, "election/a-", "", flags, &election, NULL), 0);
        assert_int_equal(create(a->client, "locks/one/a-", "", flags, &lock, NULL), 0);
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        assert_string_equal(leader_check(&a->leader).path, election);
        a->lock.queue.step = QUEUE_FIND;
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        assert_string_equal(a->lock.queue.own, lock);
        leave(a);
}

/* Two would hold it when that session ends: the node must be our session's own. */
/* A place whose making was never answered turns up before the one that was made instead. */
static void nobody_waits_for_a_place_of_their_own(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        assert_int_equal(create(b->client, "election/x-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
        const char *used = children(b->client, "election", false);
        char path[64];
        (void)snprintf(path, sizeof(path), "election/%s", used);
        assert_int_equal(del(b->client, path, COORD_ANY_VERSION), 0);
        leader_stand(&b->leader, true);
        WAIT_FOR(w, leader_is_leading(&b->leader));
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_settled(&a->leader));
        assert_int_equal(create(a->client, "election/a-0000000000", "", COORD_EPHEMERAL, NULL, NULL), 0);
        leader_stand(&b->leader, false);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        assert_string_equal(a->leader.queue.own, "election/a-0000000000");
        leave(a);
        leave(b);
}

static void an_old_sessions_place_counts_for_nothing(void **state)
{
        struct world *w = *state;
        struct client *old = join(w);
        struct actor *a = actor(w, "a");
        struct coord_stat stat;
        unsigned flags = COORD_EPHEMERAL | COORD_SEQUENTIAL;
        assert_int_equal(create(old, "election/a-", "", flags, NULL, NULL), 0);
        assert_int_equal(create(old, "locks/one/a-", "", flags, NULL, NULL), 0);
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        assert_int_equal(get(a->client, leader_check(&a->leader).path, false, NULL, &stat), 0);
        assert_int_equal(stat.owner, session_of(a->client));
        a->lock.queue.step = QUEUE_FIND;
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        assert_int_equal(get(a->client, a->lock.queue.own, false, NULL, &stat), 0);
        assert_int_equal(stat.owner, session_of(a->client));
        leave(a);
}

static void a_node_says_who_waits_there(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        (void)snprintf(a->lock.queue.says, sizeof(a->lock.queue.says), "machine=web pid=7\n");
        (void)snprintf(a->leader.queue.says, sizeof(a->leader.queue.says), "host=a\n");
        leader_stand(&a->leader, true);
        WAIT_FOR(w, leader_is_leading(&a->leader));
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        const char *data = NULL;
        assert_int_equal(get(a->client, a->lock.queue.own, false, &data, NULL), 0);
        assert_string_equal(data, "machine=web pid=7\n");
        assert_int_equal(get(a->client, leader_check(&a->leader).path, false, &data, NULL), 0);
        assert_string_equal(data, "host=a\n");
        leave(a);
}

/* --- locks ------------------------------------------------------------------------------------------------------- */

static void ten_contenders_hold_the_lock_one_at_a_time_in_order(void **state)
{
        struct world *w = *state;
        struct actor *a[ACTORS];
        for (unsigned i = 0; i < ACTORS; i++) {
                a[i] = actor(w, (char[]){ (char)('a' + i), 0 });
                lock_acquire(&a[i]->lock);
                WAIT_FOR(w, a[i]->lock.queue.own[0]);
        }
        WAIT_FOR(w, lock_is_held(&a[0]->lock));
        for (unsigned i = 0; i < ACTORS; i++) {
                WAIT_FOR(w, lock_is_held(&a[i]->lock));
                assert_int_equal(crowd.holders, 1);
                crowd.holders--;
                assert_true(lock_release(&a[i]->lock));
                assert_false(lock_is_held(&a[i]->lock));
        }
        for (unsigned i = 0; i < ACTORS; i++) {
                WAIT_FOR(w, a[i]->released);
                assert_ptr_equal(crowd.order[i], a[i]);
                leave(a[i]);
        }
        assert_int_equal(crowd.holders_max, 1);
        assert_int_equal(crowd.holders, 0);
        assert_true(crowd.is_token_growing);
}

static void of_ten_who_try_one_wins(void **state)
{
        struct world *w = *state;
        struct actor *a[ACTORS];
        unsigned wins = 0, losses = 0;
        for (unsigned i = 0; i < ACTORS; i++)
                a[i] = actor(w, (char[]){ (char)('a' + i), 0 });
        for (unsigned i = 0; i < ACTORS; i++)
                lock_try(&a[i]->lock);
        for (unsigned i = 0; i < ACTORS; i++) {
                WAIT_FOR(w, a[i]->acquired || a[i]->busy);
                wins += a[i]->acquired;
                losses += a[i]->busy;
        }
        assert_int_equal(wins, 1);
        assert_int_equal(losses, ACTORS - 1);
        for (unsigned i = 0; i < ACTORS; i++)
                leave(a[i]);
}

static void who_gives_up_waiting_holds_up_nobody(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b"), *c = actor(w, "c");
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        lock_acquire(&b->lock);
        WAIT_FOR(w, b->lock.queue.watched[0]);
        lock_acquire(&c->lock);
        WAIT_FOR(w, c->lock.queue.watched[0]);
        assert_true(lock_release(&b->lock));
        WAIT_FOR(w, b->released);
        assert_false(lock_is_held(&c->lock));
        crowd.holders--;
        assert_true(lock_release(&a->lock));
        WAIT_FOR(w, lock_is_held(&c->lock));
        assert_int_equal(b->acquired, 0);
        leave(a);
        leave(b);
        leave(c);
}

static void a_lost_lock_is_told_and_not_taken_again(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        lock_acquire(&b->lock);
        WAIT_FOR(w, b->lock.queue.watched[0]);
        uint64_t token = a->token;
        lose_session(a->client);
        WAIT_FOR(w, a->lock_lost && lock_is_held(&b->lock));
        assert_false(lock_is_held(&a->lock));
        assert_true(b->token > token);
        /* In the new session it first looks whether a place of its own is left over. */
        WAIT_FOR(w, a->client->looks > 1 && a->lock.queue.step == QUEUE_REST && !a->lock.queue.is_busy);
        assert_false(lock_release(&a->lock));
        /* Its own place in the line is up to it. */
        lock_acquire(&a->lock);
        WAIT_FOR(w, a->lock.queue.watched[0]);
        crowd.holders--;
        assert_true(lock_release(&b->lock));
        WAIT_FOR(w, lock_is_held(&a->lock));
        leave(a);
        leave(b);
}

/* It would hold up everybody for ever. */
static void a_place_that_no_session_holds_counts_for_nothing(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        assert_int_equal(create(a->client, "election/x-0000000000", "", 0, NULL, NULL), 0);
        assert_int_equal(create(a->client, "locks/one/x-0000000000", "", 0, NULL, NULL), 0);
        assert_int_equal(create(a->client, "election/y-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
        leader_stand(&b->leader, true);
        lock_acquire(&b->lock);
        WAIT_FOR(w, lock_is_held(&b->lock) && leader_is_settled(&b->leader));
        assert_false(leader_is_leading(&b->leader)); /* that one is held, by a */
        leave(a);
        WAIT_FOR(w, leader_is_leading(&b->leader));
        leave(b);
}

static void nobodys_node_is_no_member(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a");
        assert_int_equal(create(a->client, "members/ghost", "", 0, NULL, NULL), 0);
        member_set(&a->member, T("here"));
        WAIT_FOR(w, a->mates == 1 && a->is_known && member_is_settled(&a->member));
        assert_null(strstr(a->heard, "ghost"));
        leave(a);
}

static void a_lock_that_nobody_uses_leaves_no_node(void **state)
{
        struct world *w = *state;
        struct actor *a = actor(w, "a"), *b = actor(w, "b");
        lock_acquire(&a->lock);
        WAIT_FOR(w, lock_is_held(&a->lock));
        lock_acquire(&b->lock);
        WAIT_FOR(w, b->lock.queue.watched[0]);
        crowd.holders--;
        assert_true(lock_release(&a->lock));
        WAIT_FOR(w, a->released && lock_is_held(&b->lock));
        assert_string_equal(children(a->client, "locks", false), "one");
        crowd.holders--;
        assert_true(lock_release(&b->lock));
        WAIT_FOR(w, b->released);
        assert_string_equal(children(a->client, "locks", false), "");
        assert_int_equal(get(a->client, "locks/one", false, NULL, NULL), -ENOENT);
        leave(a);
        leave(b);
}

/* Whoever comes while the last one removes the line's node makes it again. */
static void nobody_is_lost_between_the_last_and_the_first(void **state)
{
        struct world *w = *state;
        struct actor *a[4];
        for (unsigned i = 0; i < 4; i++) {
                a[i] = actor(w, (char[]){ (char)('a' + i), 0 });
                a[i]->releases_at_once = true;
        }
        for (unsigned round = 1; round <= 25; round++) {
                for (unsigned i = 0; i < 4; i++)
                        lock_acquire(&a[(i + round) % 4]->lock);
                for (unsigned i = 0; i < 4; i++)
                        WAIT_FOR(w, a[i]->acquired == round && a[i]->released == round);
        }
        assert_int_equal(crowd.holders_max, 1);
        assert_true(crowd.is_token_growing);
        assert_string_equal(children(a[0]->client, "locks", false), "");
        for (unsigned i = 0; i < 4; i++)
                leave(a[i]);
}

const struct CMUnitTest recipe_tests[] = {
        IN_CROWD(each_member_sees_every_join_and_leave_once),
        IN_CROWD(a_change_of_data_is_heard_with_its_data),
        IN_CROWD(a_member_rejoins_after_it_lost_its_session),
        IN_CROWD(whoever_came_back_unseen_has_left_and_joined),
        IN_CROWD(whoever_leaves_is_gone),
        IN_CROWD(a_member_that_was_removed_comes_back),
        IN_CROWD(an_old_node_of_ones_own_name_is_replaced),
        IN_CROWD(the_list_is_known_at_some_time),
        IN_CROWD(ten_candidates_resign_at_once_and_all_have_led),
        IN_CROWD(the_next_in_line_leads),
        IN_CROWD(a_leader_without_a_session_leads_no_more),
        IN_CROWD(a_leader_that_was_removed_leads_no_more),
        IN_CROWD(only_the_leader_writes),
        IN_CROWD(whoever_resigns_can_stand_again),
        IN_CROWD(a_place_is_not_taken_twice),
        IN_CROWD(nobody_waits_for_a_place_of_their_own),
        IN_CROWD(an_old_sessions_place_counts_for_nothing),
        IN_CROWD(a_node_says_who_waits_there),
        IN_CROWD(ten_contenders_hold_the_lock_one_at_a_time_in_order),
        IN_CROWD(of_ten_who_try_one_wins),
        IN_CROWD(who_gives_up_waiting_holds_up_nobody),
        IN_CROWD(a_lost_lock_is_told_and_not_taken_again),
        IN_CROWD(a_place_that_no_session_holds_counts_for_nothing),
        IN_CROWD(nobodys_node_is_no_member),
        IN_CROWD(a_lock_that_nobody_uses_leaves_no_node),
        IN_CROWD(nobody_is_lost_between_the_last_and_the_first),
};
GROUP(recipe);
