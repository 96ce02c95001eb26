/* Growing: what a newer Quiver wrote is kept, ignored and passed on. */
#include "harness.h"

#define NEWER  "qv1\nkey:k\nprio:5\nhandler:h\n!gate:a\nheader.x:1\nheader9.y:AAE=\n\n"
#define SORTED "prio:5\n!gate:a\nheader9.y:AAE=\n"

/* The unknown lines of an envelope, wherever they stood. */
static const char *unknown(struct world *w, const struct envelope *e)
{
        struct span lines = e->others;
        struct span name;
        struct span value;
        struct buffer b = { 0 };
        while (others_next(&lines, &name, &value))
                buffer_printf(&b, "%.*s:%.*s\n", (int)name.size, name.data, (int)value.size, value.data);
        const char *text = F(w, "%s", b.size ? buffer_text(&b) : "").data;
        buffer_free(&b);
        return text;
}

static void unknown_names_stay_with_their_task(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        driver->push(w->place, 0, LANE_NORMAL, T(NEWER "p"));
        struct store_advance a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        assert_string_equal(unknown(w, &a.tasks[0].envelope), SORTED);
        (void)settle(w, &o, retry(&a.tasks[0], 0)); /* through the side queue */
        a = claim(w, &o, 1);
        assert_string_equal(unknown(w, &a.tasks[0].envelope), SORTED);
        o = own(w, 0, 2, 1); /* through the in-flight table */
        assert_int_equal(o.granted.page.tasks_count, 1);
        assert_string_equal(unknown(w, &o.granted.page.tasks[0].envelope), SORTED);
        (void)settle(w, &o, dead(&o.granted.page.tasks[0], "rejected"));
        struct store_list l = list(w, 0, STATE_DEAD);
        assert_string_equal(unknown(w, &l.tasks[0].envelope), SORTED);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, l.tasks[0].id).acted, 1);
        a = claim(w, &o, 1);
        assert_string_equal(unknown(w, &a.tasks[0].envelope), SORTED);
        assert_true(span_is(envelope_needs(&a.tasks[0].envelope), T("gate")));
        struct span headers = a.tasks[0].envelope.headers;
        struct task_header header;
        assert_true(header_next(&headers, &header) && span_is(header.name, T("x")) && span_is(header.value, T("1")));
        expect_sound(w);
}

/* Also where the driver packs, and through a retry and a takeover. */
static void headers_of_bytes_stay_as_they_are(void **state)
{
        struct world *w = *state;
        static const char lines[] = "header.x:1\nheader64.b:AAEC\n";
        struct store_submission item = {
                .envelope = { .key = T("k"), .handler = T("h"), .headers = T(lines), .lane = LANE_NORMAL }
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 1);
        assert_true(span_is(a.tasks[0].envelope.headers, T(lines)));
        (void)settle(w, &o, retry(&a.tasks[0], 0));
        a = claim(w, &o, 1);
        assert_true(span_is(a.tasks[0].envelope.headers, T(lines)));
        o = own(w, 0, 2, 1);
        assert_true(span_is(o.granted.page.tasks[0].envelope.headers, T(lines)));
        item.envelope.headers = T("header64.b:AAE\n");
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, -EINVAL);
        expect_sound(w);
}

/* Submitted here, they are packed where the driver packs. */
static void unknown_names_may_be_submitted_and_reserved_ones_not(void **state)
{
        struct world *w = *state;
        struct store_submission items[2] = {
                { .envelope = { .key = T("k"), .handler = T("h"), .others = T("prio:5\n!x:\n"), .lane = LANE_NORMAL } },
                { .envelope = { .key = T("k"), .handler = T("h"), .others = T("group:1\n"), .lane = LANE_NORMAL } },
        };
        assert_int_equal(submit_items(w, items, 2), 0);
        assert_int_equal(items[0].status, 0);
        assert_int_equal(items[1].status, -EINVAL);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 8);
        assert_int_equal(a.tasks_count, 1);
        assert_string_equal(unknown(w, &a.tasks[0].envelope), "prio:5\n!x:\n");
}

static void a_loaded_task_keeps_unknown_names(void **state)
{
        struct world *w = *state;
        struct store_moved moved = { .state = STATE_QUEUED, .lane = LANE_NORMAL, .bytes = T(NEWER "p") };
        assert_int_equal(import(w, &moved, 1), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 8);
        assert_int_equal(a.tasks_count, 1);
        assert_string_equal(unknown(w, &a.tasks[0].envelope), SORTED);
}

const struct CMUnitTest grow_tests[] = {
        IN_WORLD(unknown_names_stay_with_their_task),
        IN_WORLD(unknown_names_may_be_submitted_and_reserved_ones_not),
        IN_WORLD(headers_of_bytes_stay_as_they_are),
        IN_WORLD(a_loaded_task_keeps_unknown_names),
};
GROUP(grow);
