/* Mailboxes, and who wants help. */
#include "store/mail.h"

#include "call.h"

/* The store of a world is opened as who = 1. */
static int post_bytes(struct world *w, uint8_t who, struct span bytes, uint64_t keep_ms)
{
        struct store_post p = { .bytes = bytes, .keep_ms = keep_ms };
        memset(p.nonce, who, sizeof(p.nonce));
        int r = CALL(w, store_post, &p, NULL);
        assert_true(r || p.number);
        return r;
}

static int post(struct world *w, uint8_t who, const char *text)
{
        return post_bytes(w, who, T(text), 0);
}

static void keep_mail(struct world *w, struct store_request *request)
{
        struct store_mail_take *t = (struct store_mail_take *)request;
        t->messages = keep_array(w, t->messages, t->messages_count, sizeof(*t->messages));
        for (uint32_t i = 0; i < t->messages_count; i++)
                t->messages[i].bytes = keep(w, t->messages[i].bytes);
}

static struct store_mail_take take(struct world *w, uint8_t who, uint64_t after, uint32_t max)
{
        struct store_mail_take t = { .after = after, .messages_max = max };
        memset(t.nonce, who, sizeof(t.nonce));
        assert_int_equal(CALL(w, store_mail_take, &t, keep_mail), 0);
        return t;
}

static const char *texts(struct world *w, struct store_mail_take t)
{
        struct span all = T("");
        for (uint32_t i = 0; i < t.messages_count; i++)
                all = F(w, "%.*s%s%.*s", (int)all.size, all.data, i ? " " : "", (int)t.messages[i].bytes.size,
                        t.messages[i].bytes.data);
        return F(w, "%.*s", (int)all.size, all.data).data;
}

static void expect_texts(struct world *w, struct store_mail_take t, const char *text)
{
        assert_true(span_is(T(text), (struct span){ texts(w, t), strlen(text) }));
        uint32_t words = text[0] != 0;
        for (const char *c = text; *c; c++)
                words += *c == ' ';
        assert_int_equal(t.messages_count, words);
}

static uint64_t last(struct store_mail_take t)
{
        return t.messages[t.messages_count - 1].number;
}

static void messages_come_in_order_and_stay_until_they_are_dealt_with(void **state)
{
        struct world *w = *state;
        expect_texts(w, take(w, 1, 0, 10), "");
        assert_int_equal(post(w, 1, "a"), 0);
        assert_int_equal(post(w, 2, "other"), 0);
        assert_int_equal(post(w, 1, "b"), 0);
        assert_int_equal(post(w, 1, "c"), 0);
        struct store_mail_take first = take(w, 1, 0, 2);
        expect_texts(w, first, "a b");
        assert_true(first.has_more);
        /* The answer was lost: the same again. */
        expect_texts(w, take(w, 1, 0, 2), "a b");
        world_reopen(w);
        struct store_mail_take rest = take(w, 1, last(first), 2);
        expect_texts(w, rest, "c");
        assert_false(rest.has_more);
        expect_texts(w, take(w, 1, last(first), 10), "c");
        expect_texts(w, take(w, 1, last(rest), 10), "");
        assert_int_equal(post(w, 1, "d"), 0);
        struct store_mail_take next = take(w, 1, last(rest), 10);
        expect_texts(w, next, "d");
        assert_true(next.messages[0].number > last(rest));
        expect_texts(w, take(w, 2, 0, 10), "other");
}

/* However soon after the one before. */
static void an_emptied_mailbox_gives_no_number_again(void **state)
{
        struct world *w = *state;
        uint64_t after = 0;
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(post(w, 1, "x"), 0);
                struct store_mail_take t = take(w, 1, after, 10);
                expect_texts(w, t, "x");
                assert_true(last(t) > after);
                after = last(t);
        }
}

static void any_bytes_are_a_message(void **state)
{
        struct world *w = *state;
        struct span bytes = { "a\0\r\nb", 5 };
        assert_int_equal(post_bytes(w, 1, bytes, 0), 0);
        struct store_mail_take t = take(w, 1, 0, 10);
        assert_int_equal(t.messages_count, 1);
        assert_true(span_is(t.messages[0].bytes, bytes));
        assert_int_equal(post_bytes(w, 1, (struct span){ 0 }, 0), -EINVAL);
}

static void a_mailbox_takes_so_many_messages_and_no_more(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < STORE_MAIL_MESSAGES; i++)
                assert_int_equal(post(w, 1, "x"), 0);
        assert_int_equal(post(w, 1, "x"), -EDQUOT);
        assert_int_equal(post(w, 2, "x"), 0);
        struct store_mail_take t = take(w, 1, 0, 1);
        assert_true(t.has_more);
        assert_int_equal(post(w, 1, "x"), -EDQUOT);
        (void)take(w, 1, last(t), 1);
        assert_int_equal(post(w, 1, "x"), 0);
        assert_int_equal(post(w, 1, "x"), -EDQUOT);
}

static void a_mailbox_takes_so_many_bytes_and_no_more(void **state)
{
        struct world *w = *state;
        static char large[STORE_MAIL_MESSAGE_MAX + 1];
        struct span message = { large, STORE_CALL_BYTES };
        memset(large, 'x', sizeof(large));
        assert_int_equal(post_bytes(w, 1, (struct span){ large, sizeof(large) }, 0), -EMSGSIZE);
        for (unsigned i = 0; i < STORE_MAIL_BYTES / STORE_CALL_BYTES; i++)
                assert_int_equal(post_bytes(w, 1, message, 0), 0);
        assert_int_equal(post(w, 1, "x"), -EDQUOT);
        /* One answer has about so many bytes, but always one message. */
        struct store_mail_take t = take(w, 1, 0, 10);
        assert_int_equal(t.messages_count, 1);
        assert_true(t.has_more);
        (void)take(w, 1, last(t), 1);
        assert_int_equal(post_bytes(w, 1, message, 0), 0);
        assert_int_equal(post(w, 1, "x"), -EDQUOT);
        assert_int_equal(post_bytes(w, 2, (struct span){ large, STORE_MAIL_MESSAGE_MAX }, 0), 0);
        assert_int_equal(take(w, 2, 0, 1).messages[0].bytes.size, STORE_MAIL_MESSAGE_MAX);
}

static void a_mailbox_that_nobody_reads_is_removed(void **state)
{
        struct world *w = *state;
        assert_int_equal(post_bytes(w, 1, T("old"), 1000), 0);
        struct store_mail_take before = take(w, 1, 0, 10);
        assert_int_equal(post_bytes(w, 2, T("kept"), 2000), 0);
        world_step(w, 999);
        expect_texts(w, take(w, 1, 0, 10), "old");
        world_step(w, 1);
        expect_texts(w, take(w, 1, 0, 10), "");
        assert_int_equal(post_bytes(w, 1, T("new"), 1000), 0);
        expect_texts(w, take(w, 1, last(before), 10), "new");
        expect_texts(w, take(w, 2, 0, 10), "kept");
        /* Each post makes it wait again. */
        world_step(w, 999);
        assert_int_equal(post_bytes(w, 1, T("newer"), 1000), 0);
        world_step(w, 999);
        expect_texts(w, take(w, 1, 0, 10), "new newer");
}

/* A number that this mailbox never gave removes nothing: the store lost what it had, and began anew. */
static void a_number_from_before_a_loss_removes_nothing(void **state)
{
        struct world *w = *state;
        assert_int_equal(post(w, 1, "a"), 0);
        uint64_t ahead = last(take(w, 1, 0, 10)) + 1000000;
        expect_texts(w, take(w, 1, ahead, 10), "a");
        assert_int_equal(post(w, 1, "b"), 0);
        expect_texts(w, take(w, 1, ahead, 10), "a b");
}

/* --- wanting -------------------------------------------------------------------------------------------------------
 */

static int wanting_set(struct world *w, uint8_t who, const char *handler, uint64_t tasks, uint64_t keep_ms)
{
        struct store_wanting_set s = { .handler = T(handler), .tasks = tasks, .keep_ms = keep_ms };
        memset(s.nonce, who, sizeof(s.nonce));
        return CALL(w, store_wanting_set, &s, NULL);
}

static void keep_wanting(struct world *w, struct store_request *request)
{
        struct store_wanting_list *l = (struct store_wanting_list *)request;
        l->items = keep_array(w, l->items, l->items_count, sizeof(*l->items));
        for (uint32_t i = 0; i < l->items_count; i++)
                l->items[i].handler = keep(w, l->items[i].handler);
}

static struct store_wanting_list wanting_list(struct world *w, const char *handler)
{
        struct store_wanting_list l = { .handler = T(handler) };
        assert_int_equal(CALL(w, store_wanting_list, &l, keep_wanting), 0);
        return l;
}

static void who_wants_help_is_listed_until_it_does_not(void **state)
{
        struct world *w = *state;
        assert_int_equal(wanting_list(w, "").items_count, 0);
        assert_int_equal(wanting_set(w, 2, "mail", 5, 10000), 0);
        assert_int_equal(wanting_set(w, 1, "mail", 7, 10000), 0);
        assert_int_equal(wanting_set(w, 1, "echo", 1, 10000), 0);
        struct store_wanting_list l = wanting_list(w, "");
        assert_int_equal(l.items_count, 3);
        assert_true(span_is(l.items[0].handler, T("echo")) && l.items[0].nonce[0] == 1 && l.items[0].tasks == 1);
        assert_true(span_is(l.items[1].handler, T("mail")) && l.items[1].nonce[0] == 1 && l.items[1].tasks == 7);
        assert_true(span_is(l.items[2].handler, T("mail")) && l.items[2].nonce[15] == 2 && l.items[2].tasks == 5);
        uint64_t since = l.items[1].since_ms;
        assert_true(since > 0);
        world_step(w, 50);
        assert_int_equal(wanting_set(w, 1, "mail", 3, 10000), 0); /* since when stays */
        l = wanting_list(w, "mail");
        assert_int_equal(l.items_count, 2);
        assert_int_equal(l.items[0].tasks, 3);
        assert_int_equal(l.items[0].since_ms, since);
        assert_int_equal(wanting_set(w, 1, "mail", 0, 10000), 0);
        assert_int_equal(wanting_set(w, 3, "mail", 0, 10000), 0); /* it did not */
        l = wanting_list(w, "mail");
        assert_int_equal(l.items_count, 1);
        assert_int_equal(l.items[0].nonce[0], 2);
}

static void a_wish_that_is_not_said_again_is_forgotten(void **state)
{
        struct world *w = *state;
        assert_int_equal(wanting_set(w, 1, "mail", 1, 1000), 0);
        assert_int_equal(wanting_set(w, 2, "mail", 1, 1000), 0);
        world_step(w, 600);
        assert_int_equal(wanting_set(w, 2, "mail", 1, 1000), 0);
        world_step(w, 400);
        struct store_wanting_list l = wanting_list(w, "");
        assert_int_equal(l.items_count, 1);
        assert_int_equal(l.items[0].nonce[0], 2);
        assert_int_equal(wanting_set(w, 1, "no such name!", 1, 1000), -EINVAL);
        assert_int_equal(wanting_set(w, 1, "mail", 1, 0), -EINVAL);
}

/* --- the doorbell --------------------------------------------------------------------------------------------------
 */

/* A second process's store, as far as the driver can tell. */
static void other_open(struct world *other, const struct world *w, uint8_t who)
{
        struct store_options options = { .sync = STORE_SYNC_NORMAL };
        *other = (struct world){ .place = w->place };
        (void)uv_loop_init(&other->loop);
        memset(options.nonce, who, sizeof(options.nonce));
        assert_int_equal(world_open(other, options, NULL), 0);
}

static void other_close(struct world *other)
{
        world_close(other);
        (void)uv_run(&other->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&other->loop), 0);
        arena_free(other->memory);
}

static void a_message_rings_its_reader(void **state)
{
        struct world *w = *state;
        struct world other;
        other_open(&other, w, 2);
        (void)take(w, 1, 0, 10);
        (void)take(&other, 2, 0, 10);
        unsigned before = w->rang_mail;
        assert_int_equal(post(&other, 1, "hello"), 0);
        world_wait(w, &w->rang_mail, before + 1);
        assert_int_equal(other.rang_mail, 0);
        /* A take makes it ring again. */
        struct store_mail_take t = take(w, 1, 0, 10);
        before = w->rang_mail;
        assert_int_equal(post(&other, 1, "again"), 0);
        world_wait(w, &w->rang_mail, before + 1);
        expect_texts(w, take(w, 1, last(t), 10), "again");
        /* One may write to oneself. */
        before = w->rang_mail;
        assert_int_equal(post(w, 1, "me"), 0);
        world_wait(w, &w->rang_mail, before + 1);
        other_close(&other);
}

static void who_listed_is_rung_when_somebody_wants_help(void **state)
{
        struct world *w = *state;
        struct world other;
        other_open(&other, w, 2);
        (void)wanting_list(w, "");
        unsigned before = w->rang_wanting;
        assert_int_equal(wanting_set(&other, 2, "mail", 1, 10000), 0);
        world_wait(w, &w->rang_wanting, before + 1);
        assert_int_equal(wanting_list(w, "mail").items_count, 1);
        before = w->rang_wanting;
        assert_int_equal(wanting_set(&other, 2, "echo", 1, 10000), 0);
        world_wait(w, &w->rang_wanting, before + 1);
        other_close(&other);
}

const struct CMUnitTest mail_tests[] = {
        IN_WORLD(messages_come_in_order_and_stay_until_they_are_dealt_with),
        IN_WORLD(an_emptied_mailbox_gives_no_number_again),
        IN_WORLD(any_bytes_are_a_message),
        IN_WORLD(a_mailbox_takes_so_many_messages_and_no_more),
        IN_WORLD(a_mailbox_takes_so_many_bytes_and_no_more),
        IN_WORLD(a_mailbox_that_nobody_reads_is_removed),
        IN_WORLD(a_number_from_before_a_loss_removes_nothing),
        IN_WORLD(who_wants_help_is_listed_until_it_does_not),
        IN_WORLD(a_wish_that_is_not_said_again_is_forgotten),
        IN_WORLD(a_message_rings_its_reader),
        IN_WORLD(who_listed_is_rung_when_somebody_wants_help),
};
GROUP(mail);
