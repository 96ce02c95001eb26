/* What a member says about itself, and what is not taken for it. */
#include "check.h"

#include <errno.h>

#include "host/membership/member_doc.h"

#define NONCE "3f2a94c07b1de85f6a0c2d4e8b917f35"
#define HEAD  "quiver-member 1\nname host-a\nnonce " NONCE "\nweight 5\nstate draining\nsees_store yes\n"

static struct member_doc doc;
static struct error error;

static int parse(const char *text)
{
        return member_doc_parse((struct span){ text, strlen(text) }, &doc, &error);
}

static void a_member_reads_as_it_was_written(void **state)
{
        (void)state;
        static const char text[] =
                HEAD "handler mail 1.4.2\nhandler echo -\nfeature limits\nfeature rooms\nstale 7 1763256000\n"
                     "load 2913\nbusy 3 1000\nbusy 7 1480\n";
        struct buffer again = { 0 };
        assert_int_equal(parse(text), 0);
        assert_string_equal(doc.member.name, "host-a");
        assert_int_equal(doc.member.nonce[0], 0x3f);
        assert_int_equal(doc.member.nonce[15], 0x35);
        assert_int_equal(doc.member.weight, 5);
        assert_true(doc.member.is_draining && doc.member.sees_store);
        assert_int_equal(doc.handlers_count, 2);
        assert_string_equal(doc.handlers[0].version, "1.4.2");
        assert_string_equal(doc.handlers[1].version, "");
        assert_int_equal(doc.features_count, 2);
        assert_true(member_doc_knows(&doc, "rooms"));
        assert_false(member_doc_knows(&doc, "room"));
        assert_int_equal(doc.stale_count, 1);
        assert_int_equal(doc.stale[0].shard, 7);
        assert_int_equal(doc.stale[0].epoch, UINT64_C(1763256000));
        assert_true(doc.member.load.is_known);
        assert_int_equal(doc.member.load.total, 2913);
        assert_int_equal(doc.member.load.busy_count, 2);
        assert_int_equal(load_summary_find(&doc.member.load, 7), 1480);
        member_doc_put(&again, &doc);
        assert_string_equal(buffer_text(&again), text);
        buffer_free(&again);
}

static void a_newer_host_of_the_same_format_may_say_more(void **state)
{
        (void)state;
        assert_int_equal(parse(HEAD "zone eu-1 b\n"), 0);
}

static void an_older_host_says_nothing_of_its_load(void **state)
{
        (void)state;
        assert_int_equal(parse(HEAD), 0);
        assert_false(doc.member.load.is_known);
}

static void a_newer_format_means_standing_by(void **state)
{
        (void)state;
        doc.member.weight = 77;
        assert_int_equal(parse("quiver-member 2\nwhatever\n"), -EPROTO);
        assert_contains(error.text, "member document: format 2");
        assert_contains(error.text, "stands by");
        assert_int_equal(doc.member.weight, 77);
}

static void what_is_no_member_is_refused(void **state)
{
        (void)state;
        static const struct {
                const char *text, *words;
        } wrong[] = {
                { "", "not \"quiver-member\"" },
                { "quiver-member 1\n", "name is missing" },
                { "quiver-member 1\nname a\nnonce " NONCE "\nweight 5\nstate active\n", "sees_store is missing" },
                { HEAD "name b\n", "name is said twice" },
                { HEAD "handler 9 1\n", "line 7" },
                { HEAD "handler mail\n", "a word is missing" },
                { HEAD "handler mail 1 2\n", "too many words" },
                { HEAD "stale 4096 1\n", "up to 4095" },
                { HEAD "stale 1\n", "a word is missing" },
                { HEAD "feature\n", "a word is missing" },
                { HEAD "feature an-endless-name-of-thirty-two-xx\n", "line 7" },
                { HEAD "load\n", "a word is missing" },
                { HEAD "load 1000000001\n", "up to 1000000000" },
                { HEAD "load -1\n", "line 7" },
                { HEAD "load 1\nload 1\n", "load is said twice" },
                { HEAD "busy 4096 1\n", "up to 4095" },
                { HEAD "busy 1 1000000001\n", "up to 1000000000" },
                { HEAD "busy 1\n", "a word is missing" },
                { HEAD "busy 2 5\nbusy 2 5\n", "do not stand by number" },
                { HEAD "busy 1 1\nbusy 2 1\nbusy 3 1\nbusy 4 1\nbusy 5 1\nbusy 6 1\nbusy 7 1\nbusy 8 1\nbusy 9 1\n",
                        "more than 8 busy shards" },
                { HEAD "x", "cut off" },
                { "quiver-member 1\nweight 1001\n", "up to 1000" },
                { "quiver-member 1\nstate asleep\n", "neither" },
                { "quiver-member 1\nsees_store maybe\n", "neither" },
                { "quiver-member 1\nname a b\n", "too many words" },
        };
        for (size_t i = 0; i < COUNT(wrong); i++) {
                if (parse(wrong[i].text) != -EBADMSG)
                        fail_msg("taken for a member:\n%s", wrong[i].text);
                assert_contains(error.text, wrong[i].words);
        }
}

static void lists_are_bounded_when_written_and_when_read(void **state)
{
        (void)state;
        struct buffer text = { 0 };
        doc = (struct member_doc){ 0 };
        (void)snprintf(doc.member.name, sizeof(doc.member.name), "host-a");
        for (uint32_t i = 0; i < MEMBER_STALE_MAX + 9; i++) {
                char name[16];
                (void)snprintf(name, sizeof(name), "h%u", i);
                member_doc_add_handler(&doc, name, "a version of \x01 more than thirty-two bytes");
                member_doc_add_stale(&doc, i, TASK_NUMBER_MAX);
        }
        member_doc_add_stale(&doc, 3, 12);
        assert_int_equal(doc.stale_count, MEMBER_STALE_MAX);
        assert_int_equal(doc.stale[3].epoch, 12);
        assert_int_equal(doc.handlers_count, MEMBER_HANDLERS_MAX);
        assert_string_equal(doc.handlers[0].version, "a_version_of___more_than_thirty-");
        member_doc_put(&text, &doc);
        assert_true(text.size < MEMBER_DOC_MAX);
        assert_int_equal(parse(buffer_text(&text)), 0);
        assert_int_equal(doc.stale_count, MEMBER_STALE_MAX);
        buffer_printf(&text, "stale 4000 1\n");
        assert_int_equal(parse(buffer_text(&text)), -EBADMSG);
        assert_contains(error.text, "more than 256 stale shards");
        buffer_free(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_member_reads_as_it_was_written),
                cmocka_unit_test(a_newer_host_of_the_same_format_may_say_more),
                cmocka_unit_test(an_older_host_says_nothing_of_its_load),
                cmocka_unit_test(a_newer_format_means_standing_by),
                cmocka_unit_test(what_is_no_member_is_refused),
                cmocka_unit_test(lists_are_bounded_when_written_and_when_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
