/* What a leader decides, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/membership/assigner.h"

#define UNIX_MS UINT64_C(1763256000000)
#define SHARDS  8

struct room {
        struct assigner assigner;
        struct buffer assign, moves;
        uint64_t now_ms;
        uint64_t version;
};

static void open_room(struct room *r)
{
        *r = (struct room){ .now_ms = 1000 };
        assigner_init(&r->assigner, SHARDS, 0);
}

static void close_room(struct room *r)
{
        assigner_free(&r->assigner);
        buffer_free(&r->assign);
        buffer_free(&r->moves);
}

static int come_with(struct room *r, char name, uint64_t created, const char *extra)
{
        struct error error;
        struct buffer data = { 0 };
        char node[2] = { name, 0 };
        buffer_printf(&data, "quiver-member 1\nname %c\nnonce %032x\nweight 1\nstate active\nsees_store yes\n%s", name,
                (unsigned)name, extra);
        int status = assigner_member(
                &r->assigner, node, created, (struct span){ (char *)data.data, data.size }, r->now_ms, &error);
        buffer_free(&data);
        return status;
}

static void come(struct room *r, char name)
{
        assert_int_equal(come_with(r, name, (uint64_t)name, ""), 0);
}

/* Plans at the next due time, and writes. */
static bool decide(struct room *r)
{
        uint64_t due_ms = assigner_due_ms(&r->assigner);
        if (due_ms == UINT64_MAX)
                return false;
        if (due_ms > r->now_ms)
                r->now_ms = due_ms;
        if (!assigner_plan(&r->assigner, r->now_ms, UNIX_MS + r->now_ms, &r->assign, &r->moves))
                return false;
        assigner_wrote(&r->assigner, 0, ++r->version, r->now_ms);
        return true;
}

static void settle(struct room *r)
{
        for (int i = 0; i < 100 && assigner_due_ms(&r->assigner) != UINT64_MAX; i++)
                (void)decide(r);
        assert_true(assigner_due_ms(&r->assigner) == UINT64_MAX);
}

static void lead(struct room *r)
{
        struct error error;
        assigner_lead(&r->assigner, true, r->now_ms);
        assigner_know(&r->assigner, true, r->now_ms);
        assert_true(assigner_wants_read(&r->assigner));
        struct span none = { "", 0 };
        assert_int_equal(assigner_read(&r->assigner, false, none, 0, none, r->now_ms, &error), 0);
}

static unsigned owned(const struct room *r, char name)
{
        unsigned count = 0;
        for (uint32_t i = 0; i < r->assigner.current.shards_count; i++) {
                const struct assign_owner *owner = assignment_owner(&r->assigner.current, i);
                count += owner && *owner->name == name;
        }
        return count;
}

static void a_first_host_gets_everything_at_once(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        assert_true(assigner_due_ms(&r.assigner) <= r.now_ms);
        assert_true(decide(&r));
        assert_int_equal(owned(&r, 'a'), SHARDS);
        settle(&r);
        assert_int_equal(r.version, 1);
        close_room(&r);
}

static void nothing_is_decided_before_all_members_are_known(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        come(&r, 'b');
        lead(&r);
        settle(&r);
        assert_int_equal(owned(&r, 'b'), SHARDS / 2);
        /* A lost session: who is not heard of yet is not dead. */
        assigner_know(&r.assigner, false, r.now_ms);
        assigner_left(&r.assigner, "b", r.now_ms);
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        come(&r, 'b');
        assigner_know(&r.assigner, true, r.now_ms);
        uint64_t version = r.version;
        settle(&r);
        assert_int_equal(r.version, version);
        close_room(&r);
}

static void another_number_of_owners_is_planned_at_once(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        come(&r, 'b');
        lead(&r);
        settle(&r);
        assert_int_equal(owned(&r, 'b'), SHARDS / 2);
        assigner_limit(&r.assigner, 1, r.now_ms);
        settle(&r);
        assert_int_equal(owned(&r, 'a'), SHARDS);
        assigner_limit(&r.assigner, 0, r.now_ms);
        settle(&r);
        assert_int_equal(owned(&r, 'b'), SHARDS / 2);
        close_room(&r);
}

static void who_does_not_lead_decides_nothing(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        assigner_know(&r.assigner, true, r.now_ms);
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        lead(&r);
        assigner_lead(&r.assigner, false, r.now_ms);
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        assert_false(assigner_plan(&r.assigner, r.now_ms + 10000, UNIX_MS, &r.assign, &r.moves));
        /* What it asked for while it led is answered now. */
        struct error error;
        struct span none = { "", 0 };
        assert_int_equal(assigner_read(&r.assigner, false, none, 0, none, r.now_ms, &error), 0);
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        assert_false(assigner_plan(&r.assigner, r.now_ms + 10000, UNIX_MS, &r.assign, &r.moves));
        close_room(&r);
}

static void joins_are_gathered_and_orphans_are_not(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        settle(&r);
        come(&r, 'b');
        assert_int_equal(assigner_due_ms(&r.assigner), r.now_ms + ASSIGNER_GATHER_MS);
        r.now_ms += 50;
        come(&r, 'c');
        r.now_ms += 50;
        come(&r, 'd');
        uint64_t version = r.version;
        settle(&r);
        assert_int_equal(r.version, version + 1); /* one document for the three */
        assert_int_equal(owned(&r, 'd'), SHARDS / 4);
        assigner_left(&r.assigner, "d", r.now_ms);
        assert_int_equal(assigner_due_ms(&r.assigner), r.now_ms);
        assert_true(decide(&r));
        assert_int_equal(owned(&r, 'd'), 0);
        close_room(&r);
}

static void a_stale_report_is_answered_with_a_higher_epoch(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        settle(&r);
        uint64_t epoch = r.assigner.current.slots[3].epoch;
        char report[64];
        (void)snprintf(report, sizeof(report), "stale 3 %llu\n", (unsigned long long)epoch + 500);
        assert_int_equal(come_with(&r, 'a', 'a', report), 0);
        assert_int_equal(assigner_due_ms(&r.assigner), r.now_ms);
        assert_true(decide(&r));
        assert_true(r.assigner.current.slots[3].epoch > epoch + 500);
        assert_true(r.assigner.current.slots[2].epoch == epoch);
        settle(&r);
        close_room(&r);
}

static void a_write_that_failed_is_read_again(void **state)
{
        (void)state;
        struct error error;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        assert_true(assigner_plan(&r.assigner, r.now_ms, UNIX_MS, &r.assign, &r.moves));
        assert_false(assigner_wants_read(&r.assigner));
        assigner_wrote(&r.assigner, -ESTALE, 0, r.now_ms);
        assert_true(assigner_wants_read(&r.assigner));
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        /* It had been written: nothing to do. */
        struct span assign = { (char *)r.assign.data, r.assign.size };
        struct span moves = { (char *)r.moves.data, r.moves.size };
        assert_int_equal(assigner_read(&r.assigner, true, assign, 7, moves, r.now_ms, &error), 0);
        settle(&r);
        assert_int_equal(r.version, 0);
        assert_int_equal(owned(&r, 'a'), SHARDS);
        assert_int_equal(r.assigner.version, 7);
        assert_int_equal(r.assigner.moves.count, SHARDS);
        close_room(&r);
}

static void a_damaged_document_is_replaced_and_a_newer_one_is_not(void **state)
{
        (void)state;
        struct error error;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        assigner_lead(&r.assigner, true, r.now_ms);
        assigner_know(&r.assigner, true, r.now_ms);
        struct span none = { "", 0 };
        assert_int_equal(
                assigner_read(&r.assigner, true, SPAN_TEXT("quiver-assign 99\n"), 4, none, r.now_ms, &error), -EPROTO);
        assert_true(assigner_due_ms(&r.assigner) == UINT64_MAX);
        assert_int_equal(assigner_read(&r.assigner, true, SPAN_TEXT("rubbish"), 4, none, r.now_ms, &error), -EBADMSG);
        assert_true(decide(&r));
        assert_true(r.assigner.exists);
        assert_int_equal(owned(&r, 'a'), SHARDS);
        close_room(&r);
}

/* Whoever followed it could not be succeeded by anybody. */
static void a_document_that_leaves_no_room_is_replaced(void **state)
{
        (void)state;
        struct room r;
        struct error error;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        settle(&r);
        assigner_saw(&r.assigner, 0, r.now_ms);
        struct span last = SPAN_TEXT("quiver-assign 1\ngeneration 9007199254740991\nshards 8\nslots\n0-7 - 5 firm\n");
        assert_int_equal(assigner_read(&r.assigner, true, last, 1, (struct span){ "", 0 }, r.now_ms, &error), -EBADMSG);
        assert_non_null(strstr(error.text, "9007199254740991"));
        settle(&r);
        assert_int_equal(owned(&r, 'a'), SHARDS);
        assert_string_equal(r.assigner.failure.text, "");
        close_room(&r);
}

static void what_another_wrote_is_read_again(void **state)
{
        (void)state;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        lead(&r);
        settle(&r);
        assigner_saw(&r.assigner, r.assigner.current.generation, r.now_ms);
        assert_false(assigner_wants_read(&r.assigner));
        assigner_saw(&r.assigner, 0, r.now_ms);
        assert_true(assigner_wants_read(&r.assigner));
        close_room(&r);
}

static void a_member_that_nobody_understands_gets_nothing(void **state)
{
        (void)state;
        struct error error;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        assert_int_equal(
                assigner_member(&r.assigner, "x", 1, SPAN_TEXT("quiver-member 9\n"), r.now_ms, &error), -EPROTO);
        assert_int_equal(assigner_member(&r.assigner, "y", 1, SPAN_TEXT("hello"), r.now_ms, &error), -EBADMSG);
        lead(&r);
        settle(&r);
        assert_int_equal(owned(&r, 'a'), SHARDS);
        close_room(&r);
}

static void after_an_outage_everybody_has_time_to_come_back(void **state)
{
        (void)state;
        struct error error;
        struct room r;
        open_room(&r);
        come(&r, 'a');
        come(&r, 'b');
        lead(&r);
        settle(&r);
        uint64_t version = r.version;
        struct buffer before = r.assign;
        r.assign = (struct buffer){ 0 };
        assigner_lead(&r.assigner, false, r.now_ms);
        assigner_wait(&r.assigner, r.now_ms + 1500);
        /* The first to be back leads and sees nobody else. */
        assigner_lead(&r.assigner, true, r.now_ms);
        struct span none = { "", 0 };
        assert_int_equal(assigner_read(&r.assigner, true, (struct span){ (char *)before.data, before.size }, version,
                                 none, r.now_ms, &error),
                0);
        assigner_left(&r.assigner, "b", r.now_ms);
        assert_false(assigner_plan(&r.assigner, r.now_ms + 1000, UNIX_MS, &r.assign, &r.moves));
        assert_int_equal(come_with(&r, 'b', 99, ""), 0);
        settle(&r);
        assert_int_equal(r.version, version);
        /* Who does not come back is gone. */
        assigner_left(&r.assigner, "b", r.now_ms);
        assert_true(decide(&r));
        assert_int_equal(owned(&r, 'a'), SHARDS);
        buffer_free(&before);
        close_room(&r);
}

/* It says that it leaves and is gone at once, before a document could say so. */
static void a_clean_stop_is_no_crash(void **state)
{
        (void)state;
        struct room r;
        struct error error;
        static const char leaving[] =
                "quiver-member 1\nname b\nnonce 00000000000000000000000000000062\nweight 1\nstate "
                "draining\nsees_store yes\n";
        open_room(&r);
        come(&r, 'a');
        come(&r, 'b');
        lead(&r);
        settle(&r);
        assert_int_equal(assigner_member(&r.assigner, "b", 'b', SPAN_TEXT(leaving), r.now_ms, &error), 0);
        assigner_left(&r.assigner, "b", r.now_ms);
        assert_true(decide(&r));
        assert_int_equal(owned(&r, 'a'), SHARDS);
        assert_non_null(strstr(buffer_text(&r.moves), "leave"));
        assert_null(strstr(buffer_text(&r.moves), "crash"));
        close_room(&r);
}

/* Everybody reads every document: what happens while they do goes into one. */
static void a_document_that_many_read_is_not_followed_at_once(void **state)
{
        (void)state;
        enum { MANY = 1000 };
        struct room r;
        struct error error;
        open_room(&r);
        for (uint32_t i = 0; i < MANY; i++) {
                char node[16];
                struct buffer data = { 0 };
                (void)snprintf(node, sizeof(node), "m%u", i);
                buffer_printf(&data, "quiver-member 1\nname %s\nnonce %032x\nweight 1\nstate active\nsees_store yes\n",
                        node, i + 1);
                assert_int_equal(assigner_member(&r.assigner, node, i, (struct span){ (char *)data.data, data.size },
                                         r.now_ms, &error),
                        0);
                buffer_free(&data);
        }
        lead(&r);
        assert_true(decide(&r));
        uint64_t spread_ms = r.assign.size * MANY / ASSIGNER_BYTES_PER_MS;
        assert_in_range(spread_ms, 300, 1000);
        uint64_t written_ms = r.now_ms;
        const struct assign_owner *owner = assignment_owner(&r.assigner.current, 0);
        assigner_left(&r.assigner, owner->name, r.now_ms);
        assert_int_equal(assigner_due_ms(&r.assigner), written_ms + spread_ms);
        assert_false(assigner_plan(&r.assigner, r.now_ms, UNIX_MS, &r.assign, &r.moves));
        assert_true(decide(&r));
        close_room(&r);
}

/* --- load --- */

static bool has_load_moves(const struct room *r)
{
        for (uint32_t i = 0; i < r->assigner.moves.count; i++)
                if (r->assigner.moves.items[i].move.reason == ASSIGN_LOAD)
                        return true;
        return false;
}

/* Two hosts with four shards each, and three busy ones at the first. */
static void open_uneven(struct room *r, bool evens_load)
{
        char extra[128];
        uint32_t shards[SHARDS] = { 0 }, count = 0;
        open_room(r);
        assigner_even_load(&r->assigner, evens_load, r->now_ms);
        assert_int_equal(come_with(r, 'a', 'a', "load 0\n"), 0);
        assert_int_equal(come_with(r, 'b', 'b', "load 0\n"), 0);
        lead(r);
        settle(r);
        r->version = 0;
        for (uint32_t i = 0; i < SHARDS; i++)
                if (*assignment_owner(&r->assigner.current, i)->name == 'a')
                        shards[count++] = i;
        assert_int_equal(count, 4);
        (void)snprintf(extra, sizeof(extra), "load 3000\nbusy %u 1000\nbusy %u 1000\nbusy %u 1000\n", shards[0],
                shards[1], shards[2]);
        assert_int_equal(come_with(r, 'a', 'a', extra), 0);
}

static void uneven_load_is_evened_out_and_says_so(void **state)
{
        (void)state;
        struct room r;
        open_uneven(&r, true);
        assert_int_equal(assigner_due_ms(&r.assigner), r.now_ms + ASSIGNER_EVEN_GATHER_MS);
        assert_true(decide(&r));
        assert_int_equal(r.assigner.moves.items[r.assigner.moves.count - 1].move.reason, ASSIGN_LOAD);
        assert_non_null(strstr(buffer_text(&r.moves), " load\n"));
        assert_int_equal(owned(&r, 'a'), SHARDS / 2);
        /* Both go on telling the same: it is looked at once more, and that is all. */
        settle(&r);
        assert_int_equal(r.version, 1);
        close_room(&r);
}

static void load_is_left_alone_where_that_is_switched_off(void **state)
{
        (void)state;
        struct room r;
        open_uneven(&r, false);
        settle(&r);
        /* Nor when something else is planned. */
        r.now_ms += 2 * ASSIGNER_EVEN_ROUND_MS;
        assigner_know(&r.assigner, true, r.now_ms);
        settle(&r);
        assert_int_equal(r.version, 0);
        assigner_even_load(&r.assigner, true, r.now_ms);
        assert_true(decide(&r));
        close_room(&r);
}

/* A document more would be read by everybody. */
static void a_join_is_not_written_before_its_time_for_the_sake_of_load(void **state)
{
        (void)state;
        struct room r;
        open_uneven(&r, true);
        r.now_ms += ASSIGNER_EVEN_GATHER_MS - 50;
        assert_int_equal(come_with(&r, 'c', 'c', "load 0\n"), 0);
        assert_int_equal(assigner_due_ms(&r.assigner), r.now_ms + ASSIGNER_GATHER_MS);
        assert_true(decide(&r));
        assert_true(owned(&r, 'c') >= 2);
        close_room(&r);
}

/* A host that has just begun to lead knows from the history what the one before it moved. */
static void a_new_leader_keeps_the_pace_of_exchanges(void **state)
{
        (void)state;
        struct room r;
        struct error error;
        open_uneven(&r, true);
        assert_true(decide(&r));
        uint64_t moved_ms = r.now_ms;
        struct moves moves = r.assigner.moves;
        struct buffer history = { 0 };
        moves_doc_put(&history, &moves);
        close_room(&r);
        struct room other;
        open_uneven(&other, true);
        other.now_ms = moved_ms + 1000;
        assigner_lead(&other.assigner, true, other.now_ms);
        assert_int_equal(
                assigner_read(&other.assigner, true, (struct span){ (char *)other.assign.data, other.assign.size }, 1,
                        (struct span){ (char *)history.data, history.size }, other.now_ms, &error),
                0);
        while (!has_load_moves(&other) || other.version == 0) {
                if (decide(&other))
                        break;
                assert_true(assigner_due_ms(&other.assigner) != UINT64_MAX);
        }
        assert_true(other.now_ms >= moved_ms + ASSIGNER_EVEN_ROUND_MS);
        /* What was exchanged rests. */
        const struct moves *after = &other.assigner.moves;
        for (uint32_t i = 0; i < moves.count; i++)
                for (uint32_t k = moves.count; k < after->count; k++)
                        if (moves.items[i].move.reason == ASSIGN_LOAD)
                                assert_int_not_equal(moves.items[i].move.shard, after->items[k].move.shard);
        buffer_free(&history);
        close_room(&other);
}

/* Or a damaged history would switch it off for ever. */
static void times_that_cannot_be_hinder_nobody(void **state)
{
        (void)state;
        struct room r;
        struct error error;
        open_uneven(&r, true);
        struct buffer history = { 0 };
        buffer_printf(&history, "quiver-moves 1\n9007199254740991 0 - %032x:a 1 load\n", 7);
        assigner_lead(&r.assigner, true, r.now_ms);
        assert_int_equal(assigner_read(&r.assigner, true, (struct span){ (char *)r.assign.data, r.assign.size }, 1,
                                 (struct span){ (char *)history.data, history.size }, r.now_ms, &error),
                0);
        assert_int_equal(r.assigner.moves.count, 1);
        for (int i = 0; i < 4 && !decide(&r); i++)
                assert_true(assigner_due_ms(&r.assigner) <= r.now_ms + ASSIGNER_EVEN_GATHER_MS);
        assert_int_equal(r.version, 1);
        buffer_free(&history);
        close_room(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_clean_stop_is_no_crash),
                cmocka_unit_test(a_first_host_gets_everything_at_once),
                cmocka_unit_test(nothing_is_decided_before_all_members_are_known),
                cmocka_unit_test(another_number_of_owners_is_planned_at_once),
                cmocka_unit_test(who_does_not_lead_decides_nothing),
                cmocka_unit_test(joins_are_gathered_and_orphans_are_not),
                cmocka_unit_test(a_stale_report_is_answered_with_a_higher_epoch),
                cmocka_unit_test(a_write_that_failed_is_read_again),
                cmocka_unit_test(a_damaged_document_is_replaced_and_a_newer_one_is_not),
                cmocka_unit_test(a_document_that_leaves_no_room_is_replaced),
                cmocka_unit_test(what_another_wrote_is_read_again),
                cmocka_unit_test(a_member_that_nobody_understands_gets_nothing),
                cmocka_unit_test(after_an_outage_everybody_has_time_to_come_back),
                cmocka_unit_test(a_document_that_many_read_is_not_followed_at_once),
                cmocka_unit_test(uneven_load_is_evened_out_and_says_so),
                cmocka_unit_test(load_is_left_alone_where_that_is_switched_off),
                cmocka_unit_test(a_join_is_not_written_before_its_time_for_the_sake_of_load),
                cmocka_unit_test(a_new_leader_keeps_the_pace_of_exchanges),
                cmocka_unit_test(times_that_cannot_be_hinder_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
