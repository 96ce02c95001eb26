/* The envelope: golden vectors shared by every language, and the rules one by one. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "task/envelope.h"
#include "task/id.h"
#include "task/note.h"

#define VECTORS "tests/envelopes"

static struct span text(const char *s)
{
        return (struct span){ s, strlen(s) };
}

static void file_read(const char *name, const char *ending, struct buffer *to)
{
        char path[512];
        (void)snprintf(path, sizeof(path), VECTORS "/%s%s", name, ending);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        size_t n;
        while ((n = fread(buffer_reserve(to, 4096), 1, 4096, f)) > 0)
                to->size += n;
        (void)fclose(f);
}

static void describe_span(struct buffer *to, const char *name, struct span value)
{
        if (!value.size)
                return;
        buffer_printf(to, "%s=", name);
        for (size_t i = 0; i < value.size; i++) {
                unsigned char c = (unsigned char)value.data[i];
                if (c >= 0x20 && c < 0x7f && c != '\\')
                        buffer_printf(to, "%c", c);
                else
                        buffer_printf(to, "\\x%02x", c);
        }
        buffer_printf(to, "\n");
}

static void describe_number(struct buffer *to, const char *name, uint64_t value)
{
        if (value)
                buffer_printf(to, "%s=%" PRIu64 "\n", name, value);
}

/* What a vector's .txt holds: the fields that are said, one per line, in this order; or the error. */
static void describe(struct buffer *to, const void *data, size_t size)
{
        struct envelope e;
        struct error error = { "" };
        int r = envelope_parse(data, size, &e, &error);
        if (r) {
                buffer_printf(to, "error=%s\n", error.text);
                return;
        }
        describe_span(to, "key", e.key);
        describe_span(to, "handler", e.handler);
        describe_span(to, "id", e.id);
        buffer_printf(to, "lane=%s\n", lane_name(e.lane));
        describe_number(to, "not_before", e.not_before_ms);
        describe_number(to, "unique", e.unique_ms);
        describe_number(to, "attempts", e.attempts);
        describe_number(to, "timeout", e.timeout_ms);
        describe_number(to, "reply", e.reply_ms);
        describe_number(to, "submitted", e.submitted_ms);
        describe_number(to, "merge", e.is_merge);
        describe_number(to, "debounce", e.debounce_ms);
        struct span name;
        struct span value;
        struct span needs = envelope_needs(&e);
        while (others_next(&e.others, &name, &value)) {
                buffer_printf(to, "%.*s=%.*s\n", (int)name.size, name.data, (int)value.size, value.data);
        }
        if (needs.size)
                buffer_printf(to, "needs a newer Quiver=%.*s\n", (int)needs.size, needs.data);
        struct task_header header;
        struct buffer bytes = { 0 };
        while (header_next(&e.headers, &header)) {
                buffer_printf(
                        to, "header%s.%.*s", header.is_base64 ? "64" : "", (int)header.name.size, header.name.data);
                buffer_clear(&bytes);
                header_put_value(&bytes, &header);
                if (bytes.size)
                        describe_span(to, "", (struct span){ (const char *)bytes.data, bytes.size });
                else
                        buffer_printf(to, "\n");
        }
        buffer_free(&bytes);
        describe_span(to, "payload", e.payload);
        if (e.key.size)
                buffer_printf(to, "shard of 64=%" PRIu32 "\n", shard_of_key(e.key, 64));
}

static void golden_vectors_read_as_they_say(void **state)
{
        (void)state;
        DIR *dir = opendir(VECTORS);
        assert_non_null(dir);
        unsigned count = 0;
        struct dirent *entry;
        while ((entry = readdir(dir))) {
                char *dot = strrchr(entry->d_name, '.');
                if (!dot || strcmp(dot, ".qv1") != 0)
                        continue;
                *dot = 0;
                struct buffer bytes = { 0 };
                struct buffer expected = { 0 };
                struct buffer found = { 0 };
                file_read(entry->d_name, ".qv1", &bytes);
                file_read(entry->d_name, ".txt", &expected);
                describe(&found, bytes.data, bytes.size);
                if (strcmp(buffer_text(&found), buffer_text(&expected)) != 0)
                        fail_msg("%s:\n%s\nexpected:\n%s", entry->d_name, buffer_text(&found), buffer_text(&expected));
                buffer_free(&bytes);
                buffer_free(&expected);
                buffer_free(&found);
                count++;
        }
        (void)closedir(dir);
        assert_true(count >= 20);
}

static void what_is_put_is_parsed_back(void **state)
{
        (void)state;
        struct buffer headers = { 0 };
        assert_int_equal(header_put(&headers, text("traceparent"), text("00-ab-cd-01"), NULL), 0);
        assert_int_equal(header_put(&headers, text("empty"), text(""), NULL), 0);
        struct envelope e = {
                .key = text("k: with colon"), .handler = text("echo"), .id = text("a-63"), .lane = LANE_LOW
        };
        e.not_before_ms = TASK_NUMBER_MAX;
        e.unique_ms = 1;
        e.timeout_ms = 30000;
        e.reply_ms = 5;
        e.submitted_ms = 1763256000123;
        e.attempts = UINT32_MAX;
        e.is_merge = true;
        e.debounce_ms = TASK_DEBOUNCE_MAX;
        e.headers = (struct span){ (const char *)headers.data, headers.size };
        e.payload = (struct span){ "a\0b\n\n", 5 };
        assert_int_equal(envelope_check(&e, NULL), 0);
        struct buffer bytes = { 0 };
        envelope_put(&bytes, &e);
        struct envelope back;
        assert_int_equal(envelope_parse(bytes.data, bytes.size, &back, NULL), 0);
        assert_true(span_is(back.key, e.key) && span_is(back.handler, e.handler) && span_is(back.id, e.id));
        assert_true(span_is(back.headers, e.headers) && span_is(back.payload, e.payload));
        assert_int_equal(back.lane, e.lane);
        assert_int_equal(back.not_before_ms, e.not_before_ms);
        assert_int_equal(back.unique_ms, e.unique_ms);
        assert_int_equal(back.timeout_ms, e.timeout_ms);
        assert_int_equal(back.reply_ms, e.reply_ms);
        assert_int_equal(back.submitted_ms, e.submitted_ms);
        assert_int_equal(back.attempts, e.attempts);
        assert_true(back.is_merge);
        assert_int_equal(back.debounce_ms, e.debounce_ms);
        buffer_free(&bytes);
        buffer_free(&headers);
}

static void headers_hold_any_bytes_in_base64(void **state)
{
        (void)state;
        struct buffer lines = { 0 };
        struct error error = { "" };
        char many[TASK_HEADER_MAX + 1];
        memset(many, 'x', sizeof(many));
        assert_int_equal(header_put_bytes(&lines, text("text"), text("a b"), NULL), 0);
        assert_int_equal(header_put_bytes(&lines, text("bytes"), (struct span){ "a\0b", 3 }, NULL), 0);
        assert_int_equal(header_put_base64(&lines, text("given"), text("AQ=="), NULL), 0);
        /* What is text is written as text, however it is given: one value has one form. */
        assert_int_equal(header_put_base64(&lines, text("plain"), text("aGk="), NULL), 0);
        assert_string_equal(
                buffer_text(&lines), "header.text:a b\nheader64.bytes:YQBi\nheader64.given:AQ==\nheader.plain:hi\n");
        assert_int_equal(header_put_base64(&lines, text("given"), text("AQ="), &error), -EINVAL);
        assert_string_equal(error.text, "header64.given: is not base64 with its padding");
        buffer_clear(&lines);
        assert_int_equal(header_put_bytes(&lines, text("n"), (struct span){ many, TASK_HEADER_MAX }, NULL), 0);
        many[0] = 0;
        assert_int_equal(header_put_bytes(&lines, text("n"), (struct span){ many, TASK_HEADER_BYTES_MAX }, NULL), 0);
        assert_int_equal(
                header_put_bytes(&lines, text("n"), (struct span){ many, TASK_HEADER_BYTES_MAX + 1 }, &error), -EINVAL);
        assert_string_equal(error.text, "header64.n: 769 bytes, at most 768 are allowed");
        assert_int_equal(header_put_bytes(&lines, text("a:b"), (struct span){ "\0", 1 }, NULL), -EINVAL);
        /* As many as a build keeps that does not know them. */
        buffer_clear(&lines);
        for (unsigned i = 0; i <= TASK_OTHERS_MAX; i++) {
                struct envelope e = { .key = text("k"), .handler = text("h"), .lane = LANE_NORMAL };
                e.headers = (struct span){ (const char *)lines.data, lines.size };
                assert_int_equal(envelope_check(&e, NULL), 0);
                assert_int_equal(header_put_bytes(&lines, text("n"), (struct span){ "\1", 1 }, NULL), 0);
        }
        struct envelope e = { .key = text("k"), .handler = text("h"), .lane = LANE_NORMAL };
        e.headers = (struct span){ (const char *)lines.data, lines.size };
        assert_int_equal(envelope_check(&e, &error), -EINVAL);
        assert_string_equal(error.text, "header64: more than 16");
        buffer_free(&lines);
}

static void only_exact_base64_is_taken(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int size; /* -1: refused */
        } cases[] = { { "", 0 }, { "AA==", 1 }, { "AAA=", 2 }, { "AAAA", 3 }, { "////AA==", 4 }, { "A", -1 },
                { "AA", -1 }, { "AAA", -1 }, { "A===", -1 }, { "====", -1 }, { "AB==", -1 }, { "AAB=", -1 },
                { "AA=A", -1 }, { "AA-_", -1 }, { "AA A", -1 }, { "AAAA=", -1 }, { "=AAA", -1 } };
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                size_t size = 99;
                struct buffer bytes = { 0 };
                struct buffer again = { 0 };
                bool is_exact = base64_is_exact(text(cases[i].text), &size);
                assert_int_equal(is_exact, cases[i].size >= 0);
                if (is_exact) {
                        assert_int_equal(size, cases[i].size);
                        assert_int_equal(base64_decode(text(cases[i].text), &bytes), 0);
                        assert_int_equal(bytes.size, size);
                        base64_put(&again, bytes.data, bytes.size);
                        assert_string_equal(buffer_text(&again), cases[i].text);
                }
                buffer_free(&bytes);
                buffer_free(&again);
        }
}

static void bad_fields_are_refused_by_name(void **state)
{
        (void)state;
        char long_key[300];
        memset(long_key, 'k', sizeof(long_key));
        const struct {
                struct envelope envelope;
                const char *field;
        } cases[] = {
                { { .key = { long_key, 256 }, .handler = text("h"), .lane = LANE_NORMAL }, "key:" },
                { { .key = text("a\nb"), .handler = text("h"), .lane = LANE_NORMAL }, "key:" },
                { { .key = { "a\0b", 3 }, .handler = text("h"), .lane = LANE_NORMAL }, "key:" },
                { { .key = text("k"), .lane = LANE_NORMAL }, "handler:" },
                { { .key = text("k"), .handler = text("9h"), .lane = LANE_NORMAL }, "handler:" },
                { { .key = text("k"), .handler = text("h.h"), .lane = LANE_NORMAL }, "handler:" },
                { { .key = text("k"), .handler = text("h"), .id = text("nope"), .lane = LANE_NORMAL }, "id:" },
                { { .key = text("k"), .handler = text("h"), .id = text("a-4096"), .lane = LANE_NORMAL }, "id:" },
                { { .key = text("k"), .handler = text("h"), .lane = (enum lane)7 }, "lane:" },
                { { .key = text("k"), .handler = text("h"), .headers = text("x:1\n"), .lane = LANE_NORMAL },
                        "header:" },
                { { .key = text("k"), .handler = text("h"), .others = text("a b:1\n"), .lane = LANE_NORMAL }, "a b:" },
                { { .key = text("k"), .handler = text("h"), .others = text("a:1\na:2\n"), .lane = LANE_NORMAL },
                        "a: stands twice" },
                { { .key = text("k"), .handler = text("h"), .others = text("a:1"), .lane = LANE_NORMAL }, "header:" },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct error error = { "" };
                assert_int_equal(envelope_check(&cases[i].envelope, &error), -EINVAL);
                if (strncmp(error.text, cases[i].field, strlen(cases[i].field)) != 0)
                        fail_msg("case %zu: %s", i, error.text);
        }
        struct envelope good = { .key = { long_key, 255 }, .handler = text("h"), .lane = LANE_NORMAL };
        assert_int_equal(envelope_check(&good, NULL), 0);
}

static void put_unknown(struct buffer *to, unsigned count)
{
        buffer_printf(to, "qv1\nkey:k\nhandler:h\n");
        for (unsigned i = 0; i < count; i++)
                buffer_printf(to, "x%u:%u\n", i, i);
        buffer_printf(to, "\np");
}

static void unknown_names_are_kept_and_bounded(void **state)
{
        (void)state;
        for (unsigned count = TASK_OTHERS_MAX; count <= TASK_OTHERS_MAX + 1; count++) {
                struct buffer b = { 0 };
                struct envelope e;
                struct error error = { "" };
                put_unknown(&b, count);
                int r = envelope_parse(b.data, b.size, &e, &error);
                assert_int_equal(r, count == TASK_OTHERS_MAX ? 0 : -EBADMSG);
                if (r)
                        assert_non_null(strstr(error.text, "unknown names"));
                buffer_free(&b);
        }
        struct buffer large = { 0 };
        struct envelope e;
        struct error error = { "" };
        buffer_printf(&large, "qv1\nkey:k\nhandler:h\n");
        for (unsigned i = 0; i < 8; i++)
                buffer_printf(&large, "x%u:%01000u\n", i, i);
        buffer_printf(&large, "\n");
        assert_int_equal(envelope_parse(large.data, large.size, &e, &error), -EBADMSG);
        buffer_free(&large);
}

/* Written again, as by a dump or a packed row, all is there: in another order, but each kind in its own. */
static void unknown_names_survive_wherever_they_stand(void **state)
{
        (void)state;
        const char *mixed =
                "qv1\nkey:k\nfirst:1\nhandler:h\n!second:2:2\nsubmitted:5\nheader.a:b\nthird:\nheader.c:d\n\np";
        const char *sorted =
                "qv1\nkey:k\nhandler:h\nsubmitted:5\nfirst:1\n!second:2:2\nthird:\nheader.a:b\nheader.c:d\n\np";
        struct envelope e;
        struct buffer again = { 0 };
        assert_int_equal(envelope_parse(mixed, strlen(mixed), &e, NULL), 0);
        assert_int_equal(envelope_check(&e, NULL), 0);
        assert_true(span_is(envelope_needs(&e), text("second")));
        envelope_put(&again, &e);
        assert_string_equal(buffer_text(&again), sorted);
        buffer_free(&again);
}

static void reserved_names_are_refused_at_submit_alone(void **state)
{
        (void)state;
        static const char *const reserved[] = { "gate", "expires", "group", "backoff", "backoff_max", "crashes",
                "!gate", "!merge", "!unique" };
        static const char *const free_names[] = { "prio", "gates", "header64", "expire" };
        for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]) + sizeof(free_names) / sizeof(free_names[0]);
                i++) {
                bool is_reserved = i < sizeof(reserved) / sizeof(reserved[0]);
                const char *name = is_reserved ? reserved[i] : free_names[i - sizeof(reserved) / sizeof(reserved[0])];
                char lines[64];
                struct error error = { "" };
                (void)snprintf(lines, sizeof(lines), "%s:1\n", name);
                struct envelope e = {
                        .key = text("k"), .handler = text("h"), .lane = LANE_NORMAL, .others = text(lines)
                };
                assert_int_equal(envelope_check(&e, NULL), 0);
                assert_int_equal(envelope_check_reserved(&e, &error), is_reserved ? -EINVAL : 0);
                if (is_reserved)
                        assert_non_null(strstr(error.text, name));
        }
}

static void a_head_without_end_is_refused_without_a_search(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        struct envelope e;
        struct error error = { "" };
        buffer_printf(&b, "qv1\nkey:k\nhandler:h\nid:");
        while (b.size < 3 * TASK_HEAD_MAX)
                buffer_put(&b, "x", 1);
        buffer_put(&b, "\n\n", 2);
        assert_int_equal(envelope_parse(b.data, b.size, &e, &error), -EBADMSG);
        assert_non_null(strstr(error.text, "no empty line"));
        buffer_free(&b);
}

static void ids_end_in_their_shard_and_do_not_repeat(void **state)
{
        (void)state;
        enum { COUNT = 20000 };
        char(*ids)[TASK_ID_MAX + 1] = calloc(COUNT, sizeof(*ids));
        assert_non_null(ids);
        for (uint32_t i = 0; i < COUNT; i++) {
                uint32_t shard;
                size_t size = task_id_make(ids[i], i % SHARDS_MAX);
                assert_int_equal(size, strlen(ids[i]));
                assert_int_equal(task_id_check((struct span){ ids[i], size }, &shard, NULL), 0);
                assert_int_equal(shard, i % SHARDS_MAX);
        }
        qsort(ids, COUNT, sizeof(*ids), (int (*)(const void *, const void *))strcmp);
        for (uint32_t i = 1; i < COUNT; i++)
                assert_string_not_equal(ids[i - 1], ids[i]);
        free(ids);
}

static void shards_are_zlibs_crc32(void **state)
{
        (void)state;
        /* python3: zlib.crc32(b"user-17") % 64 */
        assert_int_equal(shard_of_key(text("user-17"), 64), 57);
        assert_int_equal(shard_of_key(text("123456789"), 4096), 0xcbf43926u % 4096);
}

static void a_merged_task_keeps_its_own_and_gets_all_else(void **state)
{
        (void)state;
        struct envelope first = { .key = text("k"),
                .handler = text("h"),
                .id = text("a-1"),
                .headers = text("header.a:1\n"),
                .payload = text("old"),
                .submitted_ms = 5,
                .reply_ms = 70,
                .timeout_ms = 1,
                .attempts = 2,
                .is_merge = true,
                .lane = LANE_LOW };
        struct envelope later = { .key = text("k"),
                .handler = text("h"),
                .id = text("b-1"),
                .headers = text("header.b:2\n"),
                .others = text("prio:1\n"),
                .payload = text("new"),
                .submitted_ms = 9,
                .reply_ms = 60,
                .attempts = 3,
                .is_merge = true,
                .lane = LANE_NORMAL };
        struct envelope merged = envelope_merge(&first, &later);
        assert_true(span_is(merged.id, text("a-1")) && span_is(merged.payload, text("new")));
        assert_true(span_is(merged.headers, later.headers) && span_is(merged.others, later.others));
        assert_int_equal(merged.submitted_ms, 5);
        assert_int_equal(merged.reply_ms, 70);
        assert_int_equal(merged.timeout_ms, 0);
        assert_int_equal(merged.attempts, 3);
        assert_int_equal(merged.lane, LANE_LOW);
        assert_int_equal(envelope_merge(&later, &first).reply_ms, 70);
}

static void a_note_says_what_was_merged(void **state)
{
        (void)state;
        struct task_note note = { 0 };
        struct buffer bytes = { 0 };
        note_merge(&note, 7, 3);
        note_merge(&note, 9, NOTE_COUNT_MAX);
        note.is_debounced = true;
        assert_false(note_is_empty(&note));
        note_put(&bytes, &note);
        assert_int_equal(note_parse(bytes.data, bytes.size, &note), 0);
        assert_int_equal(note.merged, NOTE_COUNT_MAX);
        assert_int_equal(note.merged_ms, 9);
        assert_true(note.is_debounced);
        assert_false(note_has_started(&note));
        buffer_free(&bytes);
        const struct task_note merged = { .merged = 1 };
        const struct task_note debounced = { .is_debounced = true };
        assert_false(note_is_empty(&merged) || note_is_empty(&debounced));
        const struct task_note started[] = { { .attempts = 1 }, { .crashes = 1 }, { .interruptions = 1 },
                { .started_epoch = 1 }, { .is_suspect = true }, { .checkpoint = text("c") } };
        for (size_t i = 0; i < sizeof(started) / sizeof(started[0]); i++)
                assert_true(note_has_started(&started[i]));
}

static void a_note_with_a_number_out_of_range_is_none(void **state)
{
        (void)state;
        static const char *const bad[] = { "qn1\nattempts:4294967295\n\n", "qn1\ncrashes:nan\n\n",
                "qn1\nstarted:9007199254740992\n\n", "qn1\nstarted:99999999999999999999\n\n", "qn1\nsuspect:2\n\n",
                "qn1\nmerged:4294967295\n\n", "qn1\nmergedat:9007199254740992\n\n", "qn1\ndebounced:2\n\n" };
        struct task_note note;
        struct buffer scratch = { 0 };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(note_parse(bad[i], strlen(bad[i]), &note), -EBADMSG);
        char long_checkpoint[NOTE_CHECKPOINT_MAX + 6] = "qn1\n\n";
        assert_int_equal(note_parse(long_checkpoint, sizeof(long_checkpoint) - 1, &note), 0);
        assert_int_equal(note_parse(long_checkpoint, sizeof(long_checkpoint), &note), -EBADMSG);
        /* One that is as high as it goes stays there. */
        assert_int_equal(note_parse("qn1\nattempts:4294967294\n\n", 26, &note), 0);
        note_charge(&note, &scratch, 1, COST_ATTEMPT, (struct span){ 0 });
        assert_int_equal(note.attempts, NOTE_COUNT_MAX);
        buffer_free(&scratch);
}

static void a_note_keeps_counts_checkpoint_and_the_latest_events(void **state)
{
        (void)state;
        struct task_note note = {
                .started_epoch = 42, .holder = SPAN_TEXT("host-b"), .until_ms = 99, .is_suspect = true
        };
        struct buffer scratch = { 0 };
        struct buffer bytes = { 0 };
        for (unsigned i = 0; i < 12; i++) {
                char why[32];
                (void)snprintf(why, sizeof(why), "try\n%u", i);
                note_charge(&note, &scratch, 1000 + i, i % 2 ? COST_CRASH : COST_ATTEMPT, text(why));
        }
        note.checkpoint = (struct span){ "\0\n\n!", 4 };
        note_put(&bytes, &note);
        struct task_note back;
        assert_int_equal(note_parse(bytes.data, bytes.size, &back), 0);
        assert_int_equal(back.attempts, 6);
        assert_int_equal(back.crashes, 6);
        assert_int_equal(back.interruptions, 0);
        assert_int_equal(back.started_epoch, 42);
        assert_true(back.is_suspect);
        assert_true(span_is(back.checkpoint, note.checkpoint));
        assert_true(span_is(back.holder, SPAN_TEXT("host-b")));
        assert_int_equal(back.until_ms, 99);
        struct note_event event;
        unsigned count = 0;
        while (note_event_next(&back.events, &event)) {
                char why[32];
                (void)snprintf(why, sizeof(why), "try\x1f%u", 4 + count);
                assert_int_equal(event.at_ms, 1004 + count);
                assert_true(span_is(event.text, text(why)));
                assert_true(span_is(event.kind, text(count % 2 ? "crash" : "attempt")));
                count++;
        }
        assert_int_equal(count, NOTE_EVENTS_MAX);
        buffer_free(&bytes);
        buffer_free(&scratch);
}

static void many_laters_leave_the_rest_of_the_history(void **state)
{
        (void)state;
        struct task_note note = { 0 };
        struct task_note back;
        struct buffer scratch = { 0 };
        struct buffer bytes = { 0 };
        struct note_event event;
        assert_true(note_is_empty(&note));
        note_charge(&note, &scratch, 1, COST_LATER, text("x"));
        note_charge(&note, &scratch, 2, COST_ATTEMPT, text("failed"));
        for (unsigned i = 0; i < 100; i++)
                note_charge(&note, &scratch, 10 + i, COST_LATER, text("away"));
        note_charge(&note, &scratch, 200, COST_CRASH, text("later"));
        note_charge(&note, &scratch, 201, COST_LATER, text(""));
        assert_int_equal(note.laters, 102);
        note_put(&bytes, &note);
        assert_int_equal(note_parse(bytes.data, bytes.size, &back), 0);
        assert_int_equal(back.laters, 102);
        static const struct {
                const char *kind, *text;
                uint64_t at_ms;
        } expected[] = { { "later", "x", 1 }, { "attempt", "failed", 2 }, { "later", "away", 109 },
                { "crash", "later", 200 }, { "later", "", 201 } };
        for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
                assert_true(note_event_next(&back.events, &event));
                assert_true(span_is(event.kind, text(expected[i].kind)));
                assert_true(span_is(event.text, text(expected[i].text)));
                assert_int_equal(event.at_ms, expected[i].at_ms);
        }
        assert_false(note_event_next(&back.events, &event));
        struct task_note only = { .laters = 1 };
        assert_false(note_is_empty(&only));
        buffer_free(&bytes);
        buffer_free(&scratch);
}

static void the_lines_of_an_events_text_come_back(void **state)
{
        (void)state;
        struct task_note note = { 0 };
        struct buffer scratch = { 0 };
        struct buffer lines = { 0 };
        struct note_event event;
        note_charge(&note, &scratch, 1, COST_CRASH,
                SPAN_TEXT("crashed: SIGSEGV\nhandle\tx\x1b\n@a pid=7 generation=1 plugin=9f0c1a2b version=1.0"));
        struct span rest = note.events;
        assert_true(note_event_next(&rest, &event));
        assert_true(span_is(event.where, SPAN_TEXT("a pid=7 generation=1 plugin=9f0c1a2b version=1.0")));
        assert_true(span_is(note_first_line(event.text), SPAN_TEXT("crashed: SIGSEGV")));
        note_put_lines(&lines, event.text);
        assert_string_equal(buffer_text(&lines), "crashed: SIGSEGV\nhandle x ");
        assert_true(span_is(note_first_line(SPAN_TEXT("one\ntwo")), SPAN_TEXT("one")));
        assert_int_equal(note_first_line((struct span){ 0 }).size, 0);
        buffer_free(&lines);
        buffer_free(&scratch);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(golden_vectors_read_as_they_say),
                cmocka_unit_test(what_is_put_is_parsed_back),
                cmocka_unit_test(bad_fields_are_refused_by_name),
                cmocka_unit_test(headers_hold_any_bytes_in_base64),
                cmocka_unit_test(only_exact_base64_is_taken),
                cmocka_unit_test(unknown_names_are_kept_and_bounded),
                cmocka_unit_test(unknown_names_survive_wherever_they_stand),
                cmocka_unit_test(reserved_names_are_refused_at_submit_alone),
                cmocka_unit_test(a_head_without_end_is_refused_without_a_search),
                cmocka_unit_test(ids_end_in_their_shard_and_do_not_repeat),
                cmocka_unit_test(shards_are_zlibs_crc32),
                cmocka_unit_test(a_merged_task_keeps_its_own_and_gets_all_else),
                cmocka_unit_test(a_note_says_what_was_merged),
                cmocka_unit_test(a_note_with_a_number_out_of_range_is_none),
                cmocka_unit_test(a_note_keeps_counts_checkpoint_and_the_latest_events),
                cmocka_unit_test(the_lines_of_an_events_text_come_back),
                cmocka_unit_test(many_laters_leave_the_rest_of_the_history),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
