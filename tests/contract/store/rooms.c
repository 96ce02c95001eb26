/* Rooms: named logs that are replayed and followed. */
#include "store/rooms.h"

#include "call.h"

static int append_all(struct world *w, struct store_room_append *a)
{
        return CALL(w, store_room_append, a, NULL);
}

/* One entry; its number. */
static uint64_t append(struct world *w, const char *room, const char *text)
{
        struct span entry = T(text);
        struct store_room_append a = { .name = T(room), .entries = &entry, .entries_count = 1 };
        assert_int_equal(append_all(w, &a), 0);
        assert_false(a.is_repeat);
        return a.number;
}

static void keep_read(struct world *w, struct store_request *request)
{
        struct store_room_read *r = (struct store_room_read *)request;
        r->entries = keep_array(w, r->entries, r->entries_count, sizeof(*r->entries));
        for (uint32_t i = 0; i < r->entries_count; i++)
                r->entries[i].bytes = keep(w, r->entries[i].bytes);
}

static struct store_room_read read_from(struct world *w, const char *room, uint64_t from, uint32_t max)
{
        struct store_room_read r = { .name = T(room), .from = from, .entries_max = max };
        assert_int_equal(CALL(w, store_room_read, &r, keep_read), 0);
        return r;
}

/* "1:a 2:b" */
static void expect_entries(struct world *w, struct store_room_read r, const char *text)
{
        struct span all = T("");
        for (uint32_t i = 0; i < r.entries_count; i++)
                all = F(w, "%.*s%s%u:%.*s", (int)all.size, all.data, i ? " " : "", (unsigned)r.entries[i].number,
                        (int)r.entries[i].bytes.size, r.entries[i].bytes.data);
        assert_true(span_is(all, T(text)));
}

static int set(struct world *w, const char *room, uint64_t entries, uint64_t bytes, uint64_t age_ms)
{
        struct store_room_set s = { .name = T(room), .entries_max = entries, .bytes_max = bytes, .age_ms = age_ms };
        return CALL(w, store_room_set, &s, NULL);
}

static int truncate_to(struct world *w, const char *room, uint64_t through, struct store_room_truncate *ret)
{
        *ret = (struct store_room_truncate){ .name = T(room), .through = through };
        return CALL(w, store_room_truncate, ret, NULL);
}

static int delete_room(struct world *w, const char *room, bool *ret_has_more)
{
        struct store_room_delete d = { .name = T(room) };
        int r = CALL(w, store_room_delete, &d, NULL);
        if (ret_has_more)
                *ret_has_more = d.has_more;
        return r;
}

static void keep_rooms(struct world *w, struct store_request *request)
{
        struct store_room_list *l = (struct store_room_list *)request;
        l->rooms = keep_array(w, l->rooms, l->rooms_count, sizeof(*l->rooms));
        for (uint32_t i = 0; i < l->rooms_count; i++)
                l->rooms[i].name = keep(w, l->rooms[i].name);
}

static struct store_room_list list_rooms(struct world *w, uint32_t shard, struct span after, uint32_t page)
{
        struct store_room_list l = { .shard = shard, .after = after, .page_rooms = page };
        assert_int_equal(CALL(w, store_room_list, &l, keep_rooms), 0);
        return l;
}

static void entries_are_numbered_and_read_from_any_of_them(void **state)
{
        struct world *w = *state;
        struct store_room_read r = read_from(w, "chat", 0, 10);
        assert_false(r.is_there || r.is_gap || r.has_more);
        assert_int_equal(r.first, 1);
        assert_int_equal(r.last, 0);
        assert_int_equal(append(w, "chat", "a"), 1);
        assert_int_equal(append(w, "other", "x"), 1);
        struct span more[] = { T("b"), T("c"), T("") };
        struct store_room_append a = { .name = T("chat"), .entries = more, .entries_count = 3 };
        assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(a.number, 2);
        r = read_from(w, "chat", 0, 10);
        expect_entries(w, r, "1:a 2:b 3:c 4:");
        assert_true(r.is_there && !r.has_more && !r.is_gap);
        assert_true(r.first == 1 && r.last == 4 && r.entries[0].at_ms > 0);
        world_reopen(w);
        r = read_from(w, "chat", 2, 2);
        expect_entries(w, r, "2:b 3:c");
        assert_true(r.has_more);
        r = read_from(w, "chat", 4, 1);
        expect_entries(w, r, "4:");
        assert_false(r.has_more);
        expect_entries(w, read_from(w, "chat", 5, 10), "");
        expect_entries(w, read_from(w, "other", 1, 10), "1:x");
}

static void any_bytes_are_an_entry(void **state)
{
        struct world *w = *state;
        struct span entry = { "a\0\r\nb", 5 };
        struct store_room_append a = { .name = T("a room: {x}"), .entries = &entry, .entries_count = 1 };
        assert_int_equal(append_all(w, &a), 0);
        struct store_room_read r = read_from(w, "a room: {x}", 0, 1);
        assert_true(span_is(r.entries[0].bytes, entry));
        a.entries_count = 0;
        assert_int_equal(append_all(w, &a), -EINVAL);
        a.entries_count = 1;
        a.name = T("a\nb");
        assert_int_equal(append_all(w, &a), -EINVAL);
}

static void a_reader_is_told_of_a_gap(void **state)
{
        struct world *w = *state;
        struct store_room_truncate t;
        for (unsigned i = 0; i < 6; i++)
                (void)append(w, "chat", "x");
        assert_int_equal(truncate_to(w, "chat", 3, &t), 0);
        assert_int_equal(t.first, 4);
        assert_false(t.has_more);
        struct store_room_read r = read_from(w, "chat", 2, 10);
        assert_true(r.is_gap);
        assert_int_equal(r.first, 4);
        expect_entries(w, r, "4:x 5:x 6:x");
        assert_false(read_from(w, "chat", 0, 10).is_gap); /* whatever is there */
        assert_false(read_from(w, "chat", 4, 10).is_gap);
        assert_false(read_from(w, "chat", 7, 10).is_gap); /* the next one */
        assert_true(read_from(w, "chat", 8, 10).is_gap);  /* none that was read can have been before it */
        assert_int_equal(truncate_to(w, "chat", 1000, &t), 0);
        assert_int_equal(t.first, 7);
        r = read_from(w, "chat", 4, 10);
        assert_true(r.is_gap && r.first == 7 && r.last == 6);
        expect_entries(w, r, "");
        assert_int_equal(append(w, "chat", "y"), 7);
        expect_entries(w, read_from(w, "chat", 7, 10), "7:y");
        assert_int_equal(truncate_to(w, "none", 1, &t), -ENOENT);
}

static void the_oldest_go_by_count_bytes_and_age(void **state)
{
        struct world *w = *state;
        struct store_room_truncate t;
        assert_int_equal(set(w, "count", 3, 0, 0), 0);
        assert_int_equal(set(w, "bytes", 0, 10, 0), 0);
        assert_int_equal(set(w, "age", 0, 0, 1000), 0);
        for (unsigned i = 0; i < 5; i++) {
                (void)append(w, "count", "xxxx");
                (void)append(w, "bytes", "xxxx");
                (void)append(w, "age", "xxxx");
        }
        expect_entries(w, read_from(w, "count", 0, 10), "3:xxxx 4:xxxx 5:xxxx");
        expect_entries(w, read_from(w, "bytes", 0, 10), "4:xxxx 5:xxxx");
        (void)append(w, "bytes", "longer than ten bytes");
        expect_entries(w, read_from(w, "bytes", 0, 10), "6:longer than ten bytes");
        world_step(w, 999);
        (void)append(w, "age", "y");
        assert_int_equal(read_from(w, "age", 0, 10).first, 1);
        world_step(w, 1);
        assert_int_equal(truncate_to(w, "age", 0, &t), 0);
        assert_int_equal(t.first, 6);
        expect_entries(w, read_from(w, "age", 0, 10), "6:y");
        world_step(w, 1000);
        (void)append(w, "age", "z");
        expect_entries(w, read_from(w, "age", 0, 10), "7:z");
}

/* A room that was filled before it had limits gets there, a portion at a time. */
static void lower_limits_are_reached_in_portions(void **state)
{
        struct world *w = *state;
        struct span entries[STORE_CALL_TASKS];
        struct store_room_truncate t;
        for (unsigned i = 0; i < STORE_CALL_TASKS; i++)
                entries[i] = T("x");
        struct store_room_append a = { .name = T("chat"), .entries = entries, .entries_count = STORE_CALL_TASKS };
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(set(w, "chat", 5, 0, 0), 0);
        assert_int_equal(read_from(w, "chat", 0, 1).first, STORE_ROOM_PORTION + 1);
        assert_int_equal(truncate_to(w, "chat", 0, &t), 0);
        assert_int_equal(t.first, 6 * STORE_CALL_TASKS - 4);
        assert_false(t.has_more);
        /* Without a set, appends alone get there as well. */
        assert_int_equal(set(w, "chat", 10000, 0, 0), 0);
        assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(read_from(w, "chat", 0, 1).first, 6 * STORE_CALL_TASKS - 4);
        for (unsigned i = 0; i < 5; i++)
                assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(truncate_to(w, "chat", 3000, &t), 0);
        assert_true(t.has_more);
        assert_int_equal(t.first, 6 * STORE_CALL_TASKS - 4 + STORE_ROOM_PORTION);
        assert_int_equal(truncate_to(w, "chat", 3000, &t), 0);
        assert_int_equal(t.first, 3001);
        assert_false(t.has_more);
}

static void an_append_of_a_source_is_done_once(void **state)
{
        struct world *w = *state;
        struct span entries[] = { T("a"), T("b") };
        struct store_room_append a = {
                .name = T("chat"), .entries = entries, .entries_count = 2, .source = T("relay-1"), .source_number = 5
        };
        assert_int_equal(append(w, "chat", "before"), 1);
        w->lose_next = true;
        assert_int_equal(append_all(w, &a), -ETIMEDOUT);
        assert_int_equal(append_all(w, &a), 0);
        assert_true(a.is_repeat);
        assert_int_equal(a.number, 2);
        a.source = T("relay-2");
        assert_int_equal(append_all(w, &a), 0);
        assert_false(a.is_repeat);
        assert_int_equal(a.number, 4);
        a.source = T("relay-1");
        a.source_number = 4;
        assert_int_equal(append_all(w, &a), 0);
        assert_true(a.is_repeat && !a.number);
        a.source_number = 9; /* a gap is no reason to wait */
        assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(a.number, 6);
        assert_int_equal(read_from(w, "chat", 0, 20).last, 7);
        a.source_number = 0;
        assert_int_equal(append_all(w, &a), -EINVAL);
}

static void a_room_remembers_so_many_sources(void **state)
{
        struct world *w = *state;
        struct span entry = T("x");
        struct store_room_append a = { .name = T("chat"), .entries = &entry, .entries_count = 1, .source_number = 1 };
        for (unsigned i = 0; i <= STORE_ROOM_SOURCES_MAX; i++) {
                a.source = F(w, "source-%02u", i);
                assert_int_equal(append_all(w, &a), 0);
                assert_false(a.is_repeat);
                world_step(w, 1);
        }
        assert_int_equal(append_all(w, &a), 0);
        assert_true(a.is_repeat);
        a.source = T("source-01");
        assert_int_equal(append_all(w, &a), 0);
        assert_true(a.is_repeat);
        a.source = T("source-00"); /* forgotten */
        assert_int_equal(append_all(w, &a), 0);
        assert_false(a.is_repeat);
}

static void what_another_store_had_keeps_its_numbers_and_times(void **state)
{
        struct world *w = *state;
        struct span entries[] = { T("a"), T("b") };
        uint64_t now_ms = (append(w, "clock", "x"), read_from(w, "clock", 0, 1).entries[0].at_ms);
        uint64_t times[] = { now_ms - 60000, TASK_NUMBER_MAX };
        struct store_room_append a = { .name = T("chat"), .source = T("dump"), .source_number = 40, .begin = 40 };
        assert_int_equal(append_all(w, &a), 0); /* a room whose entries are all gone */
        struct store_room_read r = read_from(w, "chat", 0, 9);
        assert_true(r.is_there && r.first == 40 && r.last == 39);
        a.source_number = a.begin = 41;
        a.entries = entries;
        a.entries_count = 2;
        a.at_ms = times;
        assert_int_equal(append_all(w, &a), -ESTALE);
        a.begin = 40;
        for (unsigned i = 0; i < 2; i++) { /* again: nothing is taken twice */
                assert_int_equal(append_all(w, &a), 0);
                assert_true(a.number == 40 && a.is_repeat == (i == 1));
        }
        r = read_from(w, "chat", 0, 9);
        expect_entries(w, r, "40:a 41:b");
        assert_int_equal(r.entries[0].at_ms, times[0]);
        assert_in_range(r.entries[1].at_ms, now_ms, now_ms + 600000); /* a time to come is now */
        assert_int_equal(append(w, "chat", "c"), 42);
        a.source = T("another");
        assert_int_equal(append_all(w, &a), -ESTALE);
        a.begin = 43;
        a.entries_count = 0;
        assert_int_equal(append_all(w, &a), -ESTALE); /* it has begun */
        a.entries_count = 2;
        /* One that was made and has given no number yet begins there; what is too old is gone at once. */
        assert_int_equal(set(w, "short", 0, 0, 1000), 0);
        a.name = T("short");
        a.begin = 7;
        assert_int_equal(append_all(w, &a), 0);
        expect_entries(w, read_from(w, "short", 0, 9), "8:b");
        a.source_number++;
        a.begin = 9;
        times[0] = TASK_NUMBER_MAX + 1;
        assert_int_equal(append_all(w, &a), -EINVAL);
        times[0] = 1;
        a.begin = STORE_ROOM_BEGIN_MAX + 1;
        assert_int_equal(append_all(w, &a), -EINVAL);
        expect_sound(w);
}

static void one_answer_has_so_many_bytes(void **state)
{
        struct world *w = *state;
        static char large[STORE_CALL_BYTES + 1];
        memset(large, 'x', sizeof(large));
        struct span two[] = { { large, STORE_CALL_BYTES }, { large, 1 } };
        struct store_room_append a = { .name = T("chat"), .entries = two, .entries_count = 2 };
        assert_int_equal(append_all(w, &a), -EMSGSIZE);
        a.entries_count = 1;
        assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(append_all(w, &a), 0);
        assert_int_equal(append(w, "chat", "small"), 3);
        two[0].size++;
        assert_int_equal(append_all(w, &a), -EMSGSIZE); /* longer than max_payload */
        struct store_room_read r = read_from(w, "chat", 0, 10);
        assert_int_equal(r.entries_count, 1);
        assert_true(r.has_more);
        r = read_from(w, "chat", 3, 10);
        expect_entries(w, r, "3:small");
}

static void rooms_are_listed_by_name_and_deleted(void **state)
{
        struct world *w = *state;
        bool has_more;
        for (unsigned i = 0; i < 7; i++) {
                struct span name = key_of(w, 2, i);
                (void)append(w, F(w, "%.*s", (int)name.size, name.data).data, "x");
        }
        assert_int_equal(list_rooms(w, 1, T(""), 10).rooms_count, 0);
        struct store_room_list all = list_rooms(w, 2, T(""), 10);
        assert_int_equal(all.rooms_count, 7);
        assert_true(all.is_end);
        assert_true(all.rooms[0].first == 1 && all.rooms[0].last == 1 && all.rooms[0].bytes == 1);
        assert_int_equal(all.rooms[0].entries_max, STORE_ROOM_ENTRIES);
        assert_int_equal(all.rooms[0].bytes_max, STORE_ROOM_BYTES);
        assert_int_equal(all.rooms[0].age_ms, STORE_ROOM_AGE_MS);
        struct span after = T("");
        uint32_t seen = 0;
        struct store_room_list page;
        do {
                page = list_rooms(w, 2, after, 3);
                for (uint32_t i = 0; i < page.rooms_count; i++)
                        assert_true(span_is(page.rooms[i].name, all.rooms[seen++].name));
                after = page.rooms_count ? page.rooms[page.rooms_count - 1].name : after;
        } while (!page.is_end);
        assert_int_equal(seen, 7);
        struct store_room_delete d = { .name = all.rooms[3].name };
        assert_int_equal(CALL(w, store_room_delete, &d, NULL), 0);
        assert_false(d.has_more);
        assert_int_equal(CALL(w, store_room_delete, &d, NULL), -ENOENT);
        assert_int_equal(list_rooms(w, 2, T(""), 10).rooms_count, 6);
        assert_int_equal(delete_room(w, "none", &has_more), -ENOENT);
}

/* A reader that had read up to 1500 is told that these are others. */
static void a_deleted_room_begins_anew(void **state)
{
        struct world *w = *state;
        struct span entries[STORE_CALL_TASKS];
        bool has_more = true;
        for (unsigned i = 0; i < STORE_CALL_TASKS; i++)
                entries[i] = T("x");
        struct store_room_append a = { .name = T("chat"),
                .entries = entries,
                .entries_count = STORE_CALL_TASKS,
                .source = T("s"),
                .source_number = 1 };
        for (unsigned i = 0; i < 6; i++, a.source_number++)
                assert_int_equal(append_all(w, &a), 0);
        for (unsigned i = 0; i < 3 && has_more; i++)
                assert_int_equal(delete_room(w, "chat", &has_more), 0);
        assert_false(has_more);
        a.entries_count = a.source_number = 1;
        assert_int_equal(append_all(w, &a), 0);
        assert_true(a.number == 1 && !a.is_repeat);
        struct store_room_read r = read_from(w, "chat", 1501, 10);
        assert_true(r.is_gap);
        assert_int_equal(r.last, 1);
}

static void a_shard_has_so_many_rooms_and_no_more(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < STORE_ROOMS_MAX; i++)
                assert_int_equal(set(w, F(w, "room %u", i).data, 0, 0, 0), 0);
        assert_int_equal(set(w, "one more", 0, 0, 0), -E2BIG);
        struct span entry = T("x");
        struct store_room_append a = { .name = T("one more"), .entries = &entry, .entries_count = 1 };
        assert_int_equal(append_all(w, &a), -E2BIG);
        assert_int_equal(append(w, "room 7", "x"), 1);
        assert_int_equal(set(w, "room 7", STORE_ROOM_ENTRIES_MAX + 1, 0, 0), -EINVAL);
}

static void a_follower_is_rung(void **state)
{
        struct world *w = *state;
        struct world other = { .place = w->place };
        struct store_options options = { .sync = STORE_SYNC_NORMAL };
        (void)uv_loop_init(&other.loop);
        memset(options.nonce, 2, sizeof(options.nonce));
        assert_int_equal(world_open(&other, options, NULL), 0);
        struct span name = key_of(w, 3, 1);
        const char *room = F(w, "%.*s", (int)name.size, name.data).data;
        for (unsigned i = 1; i < 4; i++) {
                struct store_room_read r = { .name = T(room), .from = i, .follow_ms = 60000 };
                assert_int_equal(CALL(w, store_room_read, &r, keep_read), 0);
                assert_int_equal(r.entries_count, 0);
                unsigned before = w->rang_room;
                assert_int_equal(append(&other, room, "x"), i);
                world_wait(w, &w->rang_room, before + 1);
                assert_int_equal(w->rang_shard, 3);
        }
        world_close(&other);
        (void)uv_run(&other.loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&other.loop), 0);
        arena_free(other.memory);
}

const struct CMUnitTest room_tests[] = {
        IN_WORLD(entries_are_numbered_and_read_from_any_of_them),
        IN_WORLD(any_bytes_are_an_entry),
        IN_WORLD(a_reader_is_told_of_a_gap),
        IN_WORLD(the_oldest_go_by_count_bytes_and_age),
        IN_WORLD(lower_limits_are_reached_in_portions),
        IN_WORLD(an_append_of_a_source_is_done_once),
        IN_WORLD(a_room_remembers_so_many_sources),
        IN_WORLD(what_another_store_had_keeps_its_numbers_and_times),
        IN_WORLD(one_answer_has_so_many_bytes),
        IN_WORLD_4(rooms_are_listed_by_name_and_deleted),
        IN_WORLD(a_deleted_room_begins_anew),
        IN_WORLD(a_shard_has_so_many_rooms_and_no_more),
        IN_WORLD_4(a_follower_is_rung),
};
GROUP(room);
