/* The host against a runner that writes what it likes: every lie is -EBADMSG or is not believed. */
#include "ring_fixture.h"

#define ENTRIES 8

static const struct ring_shape shape = {
        .seats = 2, .entries = ENTRIES, .task_bytes_max = 8192, .answer_bytes_max = 8192
};

static struct both both;

/* One task is in flight and started by seat 0, with an honest answer written and not yet announced. */
static struct ring_taken taken;

static int open_ring(void **state)
{
        both_open(&both, &shape);
        (void)submit_one(&both, "x", &both);
        *state = &both;
        return ring_take(&both.runner, 0, &taken, 1) == 1 && answer_done(&both, &taken) == 0 ? 0 : -1;
}

static int close_ring(void **state)
{
        both_close(*state);
        return 0;
}

static struct ring_answer *answer(struct both *b)
{
        return &b->host.map.answers[taken.entry];
}

/* Refused however often one looks, and still in flight: nothing was lost. */
static void expect_refused(struct both *b)
{
        struct ring_reply reply = { .ticket = 77 };
        void *owner = NULL;
        for (int i = 0; i < 3; i++)
                assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
        assert_int_equal(reply.ticket, 77);
        assert_null(owner);
        uint32_t cursor = 0;
        struct ring_view view;
        assert_true(ring_host_each(&b->host, &cursor, &view));
        assert_int_equal(view.ticket, taken.ticket);
        assert_ptr_equal(ring_host_forget(&b->host, taken.ticket), b);
        assert_int_equal(b->host.in_flight, 0);
}

static void an_answer_for_an_entry_that_is_not_there_is_refused(void **state)
{
        struct both *b = *state;
        atomic_store(&b->host.map.answer_cells[0], UINT64_C(1) << 16 | ENTRIES);
        expect_refused(b);
}

static void an_answer_for_a_free_entry_is_refused(void **state)
{
        struct both *b = *state;
        struct ring_answer *forged = &b->host.map.answers[taken.entry + 1];
        struct ring_reply reply = reply_done(0);
        ring_pack_reply(forged->bytes, &reply);
        forged->size = (uint32_t)ring_reply_size(&reply);
        forged->spill = RING_NO_SPILL;
        forged->ticket = 0; /* what a free entry has */
        atomic_store(&b->host.map.answer_cells[0], UINT64_C(1) << 16 | (taken.entry + 1));
        expect_refused(b);
}

static void a_second_answer_for_one_task_is_refused(void **state)
{
        struct both *b = *state;
        struct ring_reply reply;
        void *owner;
        assert_int_equal(answer_done(b, &taken), 0);
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), 1);
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
        /* Nor does it answer the task that has the entry next. */
        (void)submit_one(b, "y", NULL);
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
}

static void an_answer_for_a_task_taken_back_is_refused(void **state)
{
        struct both *b = *state;
        struct ring_reply reply;
        void *owner;
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), 1);
        uint64_t ticket = submit_one(b, "y", NULL);
        assert_true(ring_host_take_back(&b->host, ticket));
        taken.ticket = ticket;
        assert_int_equal(answer_done(b, &taken), 0);
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
}

static void a_cell_number_from_the_past_or_future_is_no_answer(void **state)
{
        struct both *b = *state;
        static const uint64_t numbers[] = { 0, 2, ENTRIES + 1, UINT64_MAX >> 16 };
        for (size_t i = 0; i < COUNT(numbers); i++) {
                struct ring_reply reply;
                void *owner;
                atomic_store(&b->host.map.answer_cells[0], numbers[i] << 16 | taken.entry);
                assert_int_equal(ring_host_next(&b->host, &reply, &owner), 0);
        }
}

static void another_ticket_is_refused(void **state)
{
        struct both *b = *state;
        answer(b)->ticket++;
        expect_refused(b);
}

static void another_ticket_inside_the_answer_is_refused(void **state)
{
        struct both *b = *state;
        answer(b)->bytes[0]++;
        expect_refused(b);
}

static void a_size_beyond_the_slot_is_refused(void **state)
{
        struct both *b = *state;
        static const uint32_t sizes[] = { 0, 1, RING_SLOT - 15, UINT32_MAX };
        for (size_t i = 0; i < COUNT(sizes); i++) {
                struct ring_reply reply;
                void *owner;
                answer(b)->size = sizes[i];
                assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
        }
        expect_refused(b);
}

static void a_spill_that_is_not_there_is_refused(void **state)
{
        struct both *b = *state;
        struct ring_reply reply;
        void *owner;
        answer(b)->spill = RING_SPILLS;
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
        answer(b)->spill = RING_NO_SPILL - 1;
        expect_refused(b);
}

static void a_size_beyond_the_spill_is_refused(void **state)
{
        struct both *b = *state;
        answer(b)->spill = RING_SPILLS - 1;
        answer(b)->size = 8193;
        expect_refused(b);
}

static void an_outcome_that_is_ours_to_give_is_refused(void **state)
{
        struct both *b = *state;
        static const int32_t outcomes[] = { OUTCOME_CRASHED, OUTCOME_TIMED_OUT, QV_PENDING, -1, 1000 };
        for (size_t i = 0; i < COUNT(outcomes); i++) {
                struct ring_reply sent = reply_done(taken.ticket);
                struct ring_reply reply;
                void *owner;
                sent.outcome = outcomes[i];
                ring_pack_reply(answer(b)->bytes, &sent);
                assert_int_equal(ring_host_next(&b->host, &reply, &owner), -EBADMSG);
        }
        expect_refused(b);
}

/* A runner that is further than its tasks, or further behind than its ring is long, will not do what waits. */
static void an_impossible_submit_index_is_told_apart_from_a_full_ring(void **state)
{
        struct both *b = *state;
        struct ring_task task = task_with("y", 1);
        void *owner = NULL;
        uint64_t ticket = 77;
        static const uint64_t indices[] = { 2, 1000, UINT64_MAX, UINT64_MAX / 2 };
        for (size_t i = 0; i < COUNT(indices); i++) {
                atomic_store(&b->host.map.header->submit_next, indices[i]);
                assert_true(ring_host_has_room(&b->host, 1, 10));
                assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), -EBADMSG);
        }
        assert_int_equal(ticket, 77);
        assert_int_equal(b->host.in_flight, 1);
}

static void a_scribbled_word_counts_as_started(void **state)
{
        struct both *b = *state;
        uint64_t ticket = submit_one(b, "y", NULL);
        uint32_t entry = taken.entry + 1;
        static const uint64_t words[] = { 0, UINT64_MAX, RING_WORD(2, 0, ENTRY_FREE), RING_WORD(2, 0, ENTRY_TAKEN),
                RING_WORD(3, 0, ENTRY_QUEUED), RING_WORD(2, 0xfff, ENTRY_STARTED), RING_WORD(2, 1, 9) };
        assert_int_equal(ticket, 2);
        for (size_t i = 0; i < COUNT(words); i++) {
                atomic_store(&b->host.map.entries[entry].word, words[i]);
                uint32_t cursor = entry;
                struct ring_view view;
                assert_true(ring_host_each(&b->host, &cursor, &view));
                assert_int_equal(view.ticket, ticket);
                assert_true(view.is_started);
                assert_true(view.seat < shape.seats);
                assert_false(ring_host_take_back(&b->host, ticket));
        }
}

static void a_fault_text_of_any_size_ends(void **state)
{
        struct both *b = *state;
        struct ring_fault *fault = &b->host.map.seats[1].fault;
        static struct ring_fault_view view;
        memset(fault->text, 'x', sizeof(fault->text));
        fault->text_size = UINT32_MAX;
        fault->signal = 11;
        fault->kind = 77;
        ring_host_fault(&b->host, 1, &view);
        assert_int_equal(view.kind, FAULT_NONE);
        assert_string_equal(view.text, "");
        fault->kind = FAULT_SIGNAL;
        ring_host_fault(&b->host, 1, &view);
        assert_int_equal(view.signal, 11);
        assert_int_equal(strlen(view.text), RING_FAULT_TEXT - 1);
        fault->text_size = 3;
        fault->cause_size = 4;
        ring_host_fault(&b->host, 1, &view);
        assert_string_equal(view.text, "xxx");
        assert_int_equal(view.cause_size, 0);
        fault->cause_size = 3;
        ring_host_fault(&b->host, 1, &view);
        assert_int_equal(view.cause_size, 3);
}

static void a_lock_name_without_an_end_is_cut(void **state)
{
        struct both *b = *state;
        struct ring_call *call = &b->host.map.seats[0].call;
        struct ring_call_view view;
        memset((void *)call->name, 'n', sizeof(call->name));
        atomic_store(&call->word, CALL_ASKED);
        assert_true(ring_host_call(&b->host, 0, 0, &view));
        assert_int_equal(strlen(view.name), RING_CALL_NAME_MAX);
}

static void bytes_of_a_call_beyond_their_room_are_cut(void **state)
{
        struct both *b = *state;
        struct ring_call *call = &b->host.map.seats[0].call;
        struct ring_call_view view;
        atomic_store(&call->size, UINT32_MAX);
        atomic_store(&call->word, CALL_ASKED);
        assert_true(ring_host_call(&b->host, 0, 0, &view));
        assert_int_equal(view.size, QV_ROOM_ENTRY_MAX);
}

#define HOSTILE_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
        const struct CMUnitTest tests[] = {
                HOSTILE_TEST(an_answer_for_an_entry_that_is_not_there_is_refused),
                HOSTILE_TEST(an_answer_for_a_free_entry_is_refused),
                HOSTILE_TEST(a_second_answer_for_one_task_is_refused),
                HOSTILE_TEST(an_answer_for_a_task_taken_back_is_refused),
                HOSTILE_TEST(a_cell_number_from_the_past_or_future_is_no_answer),
                HOSTILE_TEST(another_ticket_is_refused),
                HOSTILE_TEST(another_ticket_inside_the_answer_is_refused),
                HOSTILE_TEST(a_size_beyond_the_slot_is_refused),
                HOSTILE_TEST(a_spill_that_is_not_there_is_refused),
                HOSTILE_TEST(a_size_beyond_the_spill_is_refused),
                HOSTILE_TEST(an_outcome_that_is_ours_to_give_is_refused),
                HOSTILE_TEST(an_impossible_submit_index_is_told_apart_from_a_full_ring),
                HOSTILE_TEST(a_scribbled_word_counts_as_started),
                HOSTILE_TEST(a_fault_text_of_any_size_ends),
                HOSTILE_TEST(a_lock_name_without_an_end_is_cut),
                HOSTILE_TEST(bytes_of_a_call_beyond_their_room_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
