/* What the leader writes down: readable, small, the same when read again; and nothing else is taken for it. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "host/membership/assign_doc.h"
#include "host/membership/word_doc.h"

#define NONCE_A "00000000000000000000000000000001"
#define NONCE_B "3f2a94c07b1de85f6a0c2d4e8b917f35"
#define NONCE_C "00000000000000000000000000000002"
#define NONCE_D "f00000000000000000000000000000ff"
#define HEAD                                                                                                           \
        "quiver-assign 1\ngeneration 50\nshards 4\nowner 0 " NONCE_A " host-a\nowner 1 " NONCE_B " host-b draining\n"

static const char small[] = HEAD "slots\n0-1 0 40 patient\n2 1 50 firm\n3 - 0 patient\n";

static struct span text_of(const char *text)
{
        return (struct span){ text, strlen(text) };
}

static void a_document_reads_as_it_was_written(void **state)
{
        (void)state;
        struct assignment a;
        struct error error;
        struct buffer again = { 0 };
        assert_int_equal(assign_doc_parse(text_of(small), &a, &error), 0);
        assert_int_equal(a.generation, 50);
        assert_int_equal(a.shards_count, 4);
        assert_string_equal(assignment_owner(&a, 1)->name, "host-a");
        assert_int_equal(a.slots[1].epoch, 40);
        assert_string_equal(assignment_owner(&a, 2)->name, "host-b");
        assert_true(assignment_owner(&a, 2)->is_draining);
        assert_true(a.slots[2].is_firm);
        assert_null(assignment_owner(&a, 3));
        assert_int_equal(assign_doc_put(&again, &a, &error), 0);
        assert_string_equal(buffer_text(&again), small);
        buffer_free(&again);
        assignment_free(&a);
}

static void a_newer_format_means_standing_by(void **state)
{
        (void)state;
        struct assignment a;
        struct moves moves;
        struct error error;
        assert_int_equal(assign_doc_parse(text_of("quiver-assign 2 zstd\n\x01\x02"), &a, &error), -EPROTO);
        assert_contains(error.text, "format 2, this host reads up to 1; it stands by until it is upgraded");
        assert_int_equal(moves_doc_parse(text_of("quiver-moves 9\n"), &moves, &error), -EPROTO);
}

/* Members without shards: an older host skips these lines. */
static void givers_are_written_down(void **state)
{
        (void)state;
        static const char text[] = HEAD "giver " NONCE_C "\ngiver " NONCE_D "\nslots\n0-3 0 40 patient\n";
        struct assignment a;
        struct error error;
        struct buffer again = { 0 };
        assert_int_equal(assign_doc_parse(text_of(text), &a, &error), 0);
        assert_int_equal(a.givers_count, 2);
        assert_true(assignment_lists(&a, a.givers[0].nonce));
        assert_true(assignment_lists(&a, a.givers[1].nonce));
        assert_true(assignment_lists(&a, a.owners[1].nonce));
        a.givers_count = 1;
        assert_false(assignment_lists(&a, a.givers[1].nonce));
        a.givers_count = 2;
        assert_int_equal(assign_doc_put(&again, &a, &error), 0);
        assert_string_equal(buffer_text(&again), text);
        buffer_free(&again);
        assignment_free(&a);
}

static void a_newer_host_of_the_same_format_may_say_more(void **state)
{
        (void)state;
        struct assignment a;
        assert_int_equal(assign_doc_parse(text_of(HEAD "colour blue\nslots\n0-3 0 1 firm\n"), &a, NULL), 0);
        assignment_free(&a);
}

static void what_is_no_assignment_is_refused_with_its_line(void **state)
{
        (void)state;
        static const struct {
                const char *text, *words;
        } wrong[] = {
                { "", "line 0: not \"quiver-assign\" and a version" },
                { "quiver-assign\n", "line 1" },
                { "quiver-assign 0\n", "line 1" },
                { "quiver-assign 1", "not \"quiver-assign\"" },
                { "quiver-assign 01\n", "line 1" },
                { "quiver-assign 1 x\n", "line 1: too many words" },
                { "quiver-moves 1\n", "line 1" },
                { "quiver-assign 1\ngeneration 1\nshards 1\n", "no slots" },
                { "quiver-assign 1\nshards 1\nslots\n0 - 0 firm\n", "slots before" },
                { "quiver-assign 1\ngeneration 1\nslots\n0 - 0 firm\n", "slots before" },
                { "quiver-assign 1\ngeneration 1\ngeneration 1\n", "line 3: said twice" },
                { "quiver-assign 1\ngeneration 9007199254740992\n", "not a number up to 9007199254740991" },
                { "quiver-assign 1\ngeneration -1\n", "not a number" },
                { "quiver-assign 1\nshards 4097\n", "not a number up to 4096" },
                { "quiver-assign 1\nshards 0\n", "0 is not possible" },
                { "quiver-assign 1\n\nshards 1\n", "line 2: a word is missing" },
                { "quiver-assign 1\nowner 1 " NONCE_A " a\n", "owner 1 where 0 follows" },
                { "quiver-assign 1\nowner 0 " NONCE_B " b\nowner 1 " NONCE_A " a\n", "by nonce" },
                { "quiver-assign 1\nowner 0 " NONCE_A " a\nowner 1 " NONCE_A " a\n", "by nonce" },
                { "quiver-assign 1\nowner 0 " NONCE_A "0 a\n", "32 digits" },
                { "quiver-assign 1\nowner 0 g0000000000000000000000000000001 a\n", "0-9 and a-f" },
                { "quiver-assign 1\nowner 0 " NONCE_A " a/b\n", "is not a letter" },
                { "quiver-assign 1\nowner 0 " NONCE_A " a\x7f\n", "cannot be shown" },
                { "quiver-assign 1\nowner 0 " NONCE_A " a dancing\n", "not \"draining\"" },
                { "quiver-assign 1\nowner 0 " NONCE_A " a draining \n", "line 2" },
                { "quiver-assign 1\nowner 0 " NONCE_A "  a\n", "a word is missing" },
                { "quiver-assign 1\ngiver " NONCE_B "\ngiver " NONCE_A "\n", "by nonce" },
                { "quiver-assign 1\ngiver " NONCE_A " a\n", "too many words" },
                { "quiver-assign 1\ngiver 12\n", "32 digits" },
                { HEAD "slots\n0-2 0 40 firm\n", "shard 3 is missing" },
                { HEAD "slots\n0-4 0 40 firm\n", "a range" },
                { HEAD "slots\n0-0 0 40 firm\n", "a range" },
                { HEAD "slots\n0- 0 40 firm\n", "a range" },
                { HEAD "slots\n1-3 0 40 firm\n", "not shard 0" },
                { HEAD "slots\n0-1 0 40 firm\n1-3 0 40 firm\n", "not shard 2" },
                { HEAD "slots\n0-3 2 40 firm\n", "no such owner" },
                { HEAD "slots\n0-3 0 51 firm\n", "not a number up to 50" },
                { HEAD "slots\n0-3 0 40 soft\n", "neither" },
                { HEAD "slots\n0-3 0 40\n", "a word is missing" },
                { HEAD "slots\n0-3 0 40 firm now\n", "too many words" },
                { HEAD "slots\n0-3 0 40 firm", "shard 0 is missing" },
                { HEAD "slots\n0-3 0 40 firm\n4 0 40 firm\n", "too much" },
                { HEAD "slots\n0-3 0 40 firm\nx", "cut off" },
                { HEAD "slots 5\n", "with more words" },
        };
        for (size_t i = 0; i < COUNT(wrong); i++) {
                struct assignment a = { 0 };
                struct error error = { 0 };
                if (assign_doc_parse(text_of(wrong[i].text), &a, &error) != -EBADMSG)
                        fail_msg("taken for an assignment:\n%s", wrong[i].text);
                assert_contains(error.text, wrong[i].words);
                assert_null(a.slots);
        }
}

static void the_largest_fleet_fits_into_a_node(void **state)
{
        (void)state;
        struct assignment a, back;
        struct buffer text = { 0 };
        assignment_init(&a, SHARDS_MAX, 200, 0);
        a.generation = TASK_NUMBER_MAX;
        for (uint32_t i = 0; i < a.owners_count; i++) {
                a.owners[i].nonce[0] = (uint8_t)i;
                memset(a.owners[i].name, 'x', ASSIGN_NAME_MAX);
        }
        for (uint32_t i = 0; i < SHARDS_MAX; i++)
                a.slots[i] = (struct assign_slot){ .owner = (uint16_t)(i % 200), .epoch = TASK_NUMBER_MAX - i };
        assert_int_equal(assign_doc_put(&text, &a, NULL), 0);
        print_message("%u shards on 200 hosts: %zu bytes\n", SHARDS_MAX, text.size);
        assert_true(text.size < ASSIGN_DOC_MAX / 2);
        assert_int_equal(assign_doc_parse(text_of(buffer_text(&text)), &back, NULL), 0);
        assert_memory_equal(back.owners, a.owners, 200 * sizeof(a.owners[0]));
        buffer_free(&text);
        assignment_free(&a);
        assignment_free(&back);
}

static void what_does_not_fit_is_not_written(void **state)
{
        (void)state;
        struct assignment a;
        struct error error;
        struct buffer text = { 0 };
        assignment_init(&a, SHARDS_MAX, 16 * ASSIGN_MEMBERS_MAX - 1, 0);
        buffer_put(&text, "before", 6);
        assert_int_equal(assign_doc_put(&text, &a, &error), -E2BIG);
        assert_string_equal(buffer_text(&text), "before");
        buffer_free(&text);
        assignment_free(&a);
}

/* --- moves ------------------------------------------------------------------------------------------------------- */

static struct assign_move move_of(uint32_t shard)
{
        struct assign_move move = { .shard = shard, .epoch = 100 + shard, .reason = shard % ASSIGN_REASONS };
        move.to.nonce[0] = 0xab;
        (void)snprintf(move.to.name, sizeof(move.to.name), "host-b");
        if (shard % 2) {
                move.from.nonce[15] = 0x01;
                (void)snprintf(move.from.name, sizeof(move.from.name), "host-a");
        }
        return move;
}

static void the_latest_moves_are_remembered(void **state)
{
        (void)state;
        static struct moves moves, back;
        struct assign_move many[MOVES_MAX + 7];
        for (uint32_t i = 0; i < COUNT(many); i++)
                many[i] = move_of(i);
        moves_add(&moves, 5, many, 3);
        assert_int_equal(moves.count, 3);
        moves_add(&moves, 6, many, MOVES_MAX - 1);
        assert_int_equal(moves.count, MOVES_MAX);
        assert_int_equal(moves.items[0].at_ms, 5);
        assert_int_equal(moves.items[0].move.shard, 2);
        assert_int_equal(moves.items[MOVES_MAX - 1].move.shard, MOVES_MAX - 2);
        moves_add(&moves, 7, many, COUNT(many));
        assert_int_equal(moves.items[0].move.shard, 7);
        assert_int_equal(moves.items[MOVES_MAX - 1].move.shard, MOVES_MAX + 6);

        struct buffer text = { 0 };
        struct error error;
        moves_doc_put(&text, &moves);
        assert_contains(buffer_text(&text), "7 8 - ab000000000000000000000000000000:host-b 108 leave\n");
        assert_contains(
                buffer_text(&text), "7 9 " NONCE_A ":host-a ab000000000000000000000000000000:host-b 109 crash\n");
        assert_int_equal(moves_doc_parse(text_of(buffer_text(&text)), &back, &error), 0);
        assert_memory_equal(&back, &moves, sizeof(moves));
        /* One too many is not ours. */
        buffer_printf(&text, "7 9 - - 1 join\n");
        assert_int_equal(moves_doc_parse(text_of(buffer_text(&text)), &back, &error), -EBADMSG);
        buffer_free(&text);
}

static void what_is_no_history_is_refused(void **state)
{
        (void)state;
        static const char *const wrong[] = { "quiver-moves 1", "quiver-moves 1\nx\n",
                "quiver-moves 1\n1 4096 - - 1 join\n", "quiver-moves 1\n1 1 - - 1 whim\n",
                "quiver-moves 1\n1 1 - - 1 join x\n", "quiver-moves 1\n1 1 a:b - 1 join\n",
                "quiver-moves 1\n1 1 " NONCE_A "host - 1 join\n", "quiver-moves 1\n1 1 " NONCE_A ": - 1 join\n",
                "quiver-moves 1\n1 1 - - 1 join" };
        static struct moves moves;
        struct error error;
        for (size_t i = 0; i < COUNT(wrong); i++)
                if (moves_doc_parse(text_of(wrong[i]), &moves, &error) != -EBADMSG)
                        fail_msg("taken for a history: %s", wrong[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_document_reads_as_it_was_written),
                cmocka_unit_test(a_newer_format_means_standing_by),
                cmocka_unit_test(givers_are_written_down),
                cmocka_unit_test(a_newer_host_of_the_same_format_may_say_more),
                cmocka_unit_test(what_is_no_assignment_is_refused_with_its_line),
                cmocka_unit_test(the_largest_fleet_fits_into_a_node),
                cmocka_unit_test(what_does_not_fit_is_not_written),
                cmocka_unit_test(the_latest_moves_are_remembered),
                cmocka_unit_test(what_is_no_history_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
