/* Rooms by the client library: appending, replaying, following many over one handle. */
#include <poll.h>

#include "client/rooms.h"
#include "client_fixture.h"

static void append(struct fixture *f, const char *room, const char *text)
{
        if (qv_client_room_append(f->client, room, text, strlen(text), NULL) < 0)
                fail_msg("%s", qv_client_error());
}

static struct qv_client_follow *follow(struct fixture *f, const char *room, uint64_t from)
{
        struct qv_client_follow *follow = NULL;
        if (qv_client_room_follow(f->client, room, from, &follow) < 0)
                fail_msg("%s", qv_client_error());
        return follow;
}

/* Takes pages until so many entries came, and checks their numbers. */
static void expect(struct qv_client_follow *follow, uint64_t from, unsigned count)
{
        unsigned seen = 0;
        while (seen < count) {
                struct qv_client_room_page *page = NULL;
                assert_int_equal(qv_client_follow_next(follow, 20000, &page), 0);
                for (size_t i = 0; i < page->entries_count; i++)
                        assert_int_equal(page->entries[i].number, from + seen++);
                qv_client_room_page_free(page);
        }
        assert_int_equal(seen, count);
}

static void what_was_appended_is_read_in_order_and_byte_for_byte(void **state)
{
        struct fixture *f = *state;
        struct qv_client_room_page *page = NULL;
        uint64_t number = 0;
        assert_int_equal(qv_client_room_append(f->client, "log", "a\0b\n", 4, &number), 0);
        assert_int_equal(number, 1);
        assert_int_equal(qv_client_room_append(f->client, "log", NULL, 0, &number), 0);
        assert_int_equal(number, 2);
        assert_int_equal(qv_client_room_read(f->client, "log", 0, &page), 0);
        assert_int_equal(page->entries_count, 2);
        assert_int_equal(page->entries[0].data_size, 4);
        assert_memory_equal(page->entries[0].data, "a\0b\n", 5);
        assert_int_equal(page->entries[1].data_size, 0);
        assert_true(page->entries[0].at_ms > 0);
        assert_false(page->is_gap || page->has_more);
        assert_int_equal(page->last, 2);
        qv_client_room_page_free(page);
        assert_int_equal(qv_client_room_read(f->client, "none", 0, &page), 0);
        assert_int_equal(page->entries_count + page->last, 0);
        qv_client_room_page_free(page);
}

static void what_cannot_be_is_refused(void **state)
{
        struct fixture *f = *state;
        struct qv_client_room_page *page = NULL;
        struct qv_client_follow *none = NULL;
        assert_int_equal(qv_client_room_append(f->client, "", "x", 1, NULL), -EINVAL);
        assert_int_equal(qv_client_room_append(f->client, NULL, "x", 1, NULL), -EINVAL);
        assert_int_equal(qv_client_room_append(f->client, "a", NULL, 1, NULL), -EINVAL);
        assert_int_equal(qv_client_room_read(f->client, "a\nb", 0, &page), -EINVAL);
        assert_int_equal(qv_client_room_follow(f->client, "", 0, &none), -EINVAL);
        assert_null(none);
        assert_int_equal(qv_client_room_truncate(f->client, "none", 1), -ENOENT);
        qv_client_follow_close(NULL);
}

static void a_follower_replays_and_then_is_woken(void **state)
{
        struct fixture *f = *state;
        append(f, "log", "one");
        append(f, "log", "two");
        struct qv_client_follow *all = follow(f, "log", 0);
        struct qv_client_follow *second = follow(f, "log", 2);
        struct qv_client_follow *new = follow(f, "log", QV_CLIENT_ROOM_NEW);
        struct qv_client_room_page *page = NULL;
        expect(all, 1, 2);
        expect(second, 2, 1);
        assert_int_equal(qv_client_follow_next(new, 0, &page), -EAGAIN);
        struct pollfd waiting = { .fd = qv_client_follow_fd(new), .events = POLLIN };
        assert_int_equal(poll(&waiting, 1, 0), 0);
        append(f, "log", "three");
        assert_int_equal(poll(&waiting, 1, 20000), 1);
        expect(new, 3, 1);
        assert_int_equal(poll(&waiting, 1, 0), 0);
        expect(all, 3, 1);
        expect(second, 3, 1);
        qv_client_follow_close(all);
        qv_client_follow_close(second);
        qv_client_follow_close(new);
}

/* A writer of another process rings too. */
static void a_room_that_comes_later_is_heard_of_from_another_handle(void **state)
{
        struct fixture *f = *state;
        struct qv_client_follow *later = follow(f, "later", QV_CLIENT_ROOM_NEW);
        struct qv_client *other = open_client(f);
        assert_int_equal(qv_client_room_append(other, "later", "x", 1, NULL), 0);
        expect(later, 1, 1);
        qv_client_close(other);
        qv_client_follow_close(later);
}

static void more_than_a_program_takes_waits_in_the_store(void **state)
{
        struct fixture *f = *state;
        struct span entries[250];
        struct error error;
        for (unsigned i = 0; i < 250; i++)
                entries[i] = (struct span){ "entry", 5 };
        struct qv_client_follow *slow = follow(f, "big", 0);
        for (unsigned i = 0; i < 40; i++) {
                struct store_room_append many = { .name = SPAN_TEXT("big"), .entries = entries, .entries_count = 250 };
                assert_int_equal(client_room_append(f->client, &many, &error), 0);
        }
        expect(slow, 1, 10000);
        qv_client_follow_close(slow);
}

static void a_gap_is_said(void **state)
{
        struct fixture *f = *state;
        struct qv_client_room_page *page = NULL;
        struct error error;
        for (unsigned i = 0; i < 5; i++)
                append(f, "log", "x");
        assert_int_equal(qv_client_room_truncate(f->client, "log", 3), 0);
        assert_int_equal(qv_client_room_read(f->client, "log", 2, &page), 0);
        assert_true(page->is_gap);
        assert_int_equal(page->first, 4);
        assert_int_equal(page->entries[0].number, 4);
        qv_client_room_page_free(page);
        struct qv_client_follow *all = follow(f, "log", 2);
        assert_int_equal(qv_client_follow_next(all, 20000, &page), 0);
        assert_true(page->is_gap);
        qv_client_room_page_free(page);
        /* A room that was deleted and made anew: its entries are others. */
        assert_int_equal(client_room_delete(f->client, SPAN_TEXT("log"), &error), 0);
        append(f, "log", "new");
        assert_int_equal(qv_client_follow_next(all, 20000, &page), 0);
        assert_true(page->is_gap);
        bool has_entry = page->entries_count;
        qv_client_room_page_free(page);
        if (!has_entry)
                expect(all, 1, 1);
        qv_client_follow_close(all);
}

#define CHANNELS 25
#define ENTRIES  25

static void one_handle_follows_many_rooms(void **state)
{
        struct fixture *f = *state;
        struct qv_client_follow *follows[CHANNELS];
        char name[CHANNELS][16];
        for (unsigned c = 0; c < CHANNELS; c++) {
                (void)snprintf(name[c], sizeof(name[c]), "channel-%u", c);
                follows[c] = follow(f, name[c], 0);
        }
        for (unsigned i = 0; i < ENTRIES; i++)
                for (unsigned c = 0; c < CHANNELS; c++)
                        append(f, name[c], "entry");
        for (unsigned c = 0; c < CHANNELS; c++)
                expect(follows[c], 1, ENTRIES);
        for (unsigned c = 0; c < CHANNELS; c++) {
                struct qv_client_room_page *page = NULL;
                assert_int_equal(qv_client_follow_next(follows[c], 0, &page), -EAGAIN);
                assert_int_equal(qv_client_room_truncate(f->client, name[c], ENTRIES), 0);
                assert_int_equal(qv_client_room_read(f->client, name[c], 0, &page), 0);
                assert_int_equal(page->entries_count, 0);
                qv_client_room_page_free(page);
                qv_client_follow_close(follows[c]);
        }
}

static void a_follower_survives_the_end_of_its_handle(void **state)
{
        struct fixture *f = *state;
        struct qv_client_room_page *page = NULL;
        struct qv_client *other = open_client(f);
        struct qv_client_follow *last = NULL;
        assert_int_equal(qv_client_room_follow(other, "log", 0, &last), 0);
        qv_client_close(other);
        assert_int_equal(qv_client_follow_next(last, UINT64_MAX, &page), -ECANCELED);
        qv_client_follow_close(last);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_was_appended_is_read_in_order_and_byte_for_byte, setup, teardown),
                cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_follower_replays_and_then_is_woken, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        a_room_that_comes_later_is_heard_of_from_another_handle, setup, teardown),
                cmocka_unit_test_setup_teardown(more_than_a_program_takes_waits_in_the_store, setup, teardown),
                cmocka_unit_test_setup_teardown(a_gap_is_said, setup, teardown),
                cmocka_unit_test_setup_teardown(one_handle_follows_many_rooms, setup, teardown),
                cmocka_unit_test_setup_teardown(a_follower_survives_the_end_of_its_handle, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
