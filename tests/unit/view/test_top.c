/* quiver top: what a state and a status are on the screen, and what a key of the keyboard does. */
#include "check.h"

#include <stdlib.h>

#include "cli/top/top.h"

static const char status_text[] =
        "{'app':'shop','store':'sqlite:/tmp/q.db',"
        "'shards':[{'shard':0,'host':'a','epoch':3,'waiting':2},{'shard':1,'host':'b','epoch':1,'waiting':9}],"
        "'members':[{'name':'a','nonce':'aa','state':'running','shards':1},{'name':'b','nonce':'bb','shards':1}],"
        "'handlers':[{'name':'mail','state':'unavailable','waiting':1204,'estimated':true,'dead':17,'oldest_ms':230000}"
        ","
        "{'name':'echo','state':'open','waiting':61,'running':4,'done':8380,'done_rate':8380.2,'failed_rate':0.25,"
        "'run_p50_ms':0.21,'run_p99_ms':1430.0,'versions':[{'host':'a','generation':2,'at_ms':1763256000123,"
        "'version':'1.4','outcome':'rolled back','by':'SIGHUP','text':'\\u001b[2J 3 failed'}]}],"
        "'dead':[{'handler':'mail','reason':'rejected','error':'no such user','tasks':2},"
        "{'handler':'mail','reason':'exhausted','error':'refused','tasks':15}],"
        "'totals':{'waiting':1265,'running':4,'dead':17,'oldest_ms':230000,'parked_keys':2,'held_keys':1,'paused':{}},"
        "'rates':{'done':8412.4,'retried':0.25,'failed':0.0},"
        "'problems':[{'level':'bad','kind':'unavailable','handler':'mail','text':'mail is unavailable.',"
        "'command':'quiver pause mail'}]}";
static const char keys_text[] =
        "[{'key':'busy','state':'waiting','tasks':900,'since_ms':5},{'key':'sick','state':'parked','tasks':3,"
        "'due_in_ms':4000,'reason':'refused','since_ms':3},{'key_base64':'/"
        "2s=','state':'held','tasks':1,'since_ms':9}]";

struct rig {
        struct top_state state;
        struct top_data data;
        struct top_size size;
        struct buffer screen;
};

static json_t *json_of(const char *text)
{
        char *quoted = strdup(text);
        assert_non_null(quoted);
        for (char *c = quoted; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        json_t *made = json_loads(quoted, 0, NULL);
        free(quoted);
        assert_non_null(made);
        return made;
}

static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        top_state_init(&rig->state);
        rig->data = (struct top_data){ .status = json_of(status_text), .keys = json_of(keys_text), .keys_total = 3 };
        rig->size = (struct top_size){ .columns = 80, .lines = 24 };
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;
        top_state_free(&rig->state);
        top_data_free(&rig->data);
        buffer_free(&rig->screen);
        free(rig);
        return 0;
}

static const char *shown(struct rig *rig)
{
        json_t *rows = top_rows(&rig->state, &rig->data);
        buffer_clear(&rig->screen);
        top_view(&rig->screen, &rig->state, &rig->data, rows, &rig->size);
        json_decref(rows);
        return buffer_text(&rig->screen);
}

/* Presses all keys of the text; what the last one asks for. */
static enum top_do press(struct rig *rig, const char *keys)
{
        enum top_do what = TOP_DO_NOTHING;
        size_t left = strlen(keys);
        while (left) {
                int key;
                size_t size = top_key_read(keys, left, &key);
                json_t *rows = top_rows(&rig->state, &rig->data);
                what = top_key(&rig->state, &rig->data, rows, key);
                json_decref(rows);
                keys += size;
                left -= size;
        }
        return what;
}

static void assert_order(const char *text, const char *first, const char *second)
{
        assert_contains(text, first);
        assert_contains(text, second);
        if (strstr(text, first) > strstr(text, second))
                fail_msg("%s is not before %s in:\n%s", first, second, text);
}

/* The command that is asked for. */
static void assert_asks(struct rig *rig, const char *expected)
{
        struct buffer text = { 0 };
        assert_int_equal(rig->state.mode, TOP_ASK);
        top_command(&text, &rig->state.asked);
        assert_string_equal(buffer_text(&text), expected);
        buffer_free(&text);
}

/* Every line fits, and there are exactly so many. */
static void assert_fits(struct rig *rig)
{
        const char *text = shown(rig);
        unsigned lines = 0;
        for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
                unsigned columns = 0;
                for (const char *c = line; *c != '\n'; c++)
                        columns += (*c & 0xc0) != 0x80;
                assert_true(columns <= rig->size.columns);
                lines++;
        }
        assert_int_equal(lines, rig->size.lines);
}

static void each_handlers_rates_and_durations_fit_on_a_small_screen(void **state)
{
        struct rig *rig = *state;
        const char *text = shown(rig);
        assert_contains(text, "done/s  fail/s  dead     p50   p99");
        assert_contains(text, "8380     0.2     0  0.21ms  1.4s");
        assert_contains(text, "0       0    17       -     -");
        assert_fits(rig);
        rig->state.sort[TOP_OVERVIEW] = top_sorts(TOP_OVERVIEW) - 1;
        assert_string_equal(top_sort_name(&rig->state), "slowest");
        assert_order(shown(rig), "echo  ", "mail  ");
}

static void what_became_of_a_handlers_versions_stands_in_its_detail(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "j\n");
        const char *text = shown(rig);
        assert_contains(text, "run_p99      1.4s");
        assert_contains(text, "done_rate    8380 per second");
        assert_contains(text, "2025-11-16 01:20:00.123Z a generation 2 1.4 rolled back, by SIGHUP");
        assert_contains(text, "\\x1b[2J 3 ");
}

static void what_is_wrong_comes_first(void **state)
{
        struct rig *rig = *state;
        const char *text = shown(rig);
        assert_contains(text, "1 thing to look at");
        assert_order(text,
                "waiting 1265  running 4  oldest 3.8m  dead 17\nper second:  done 8412  failed 0  retried 0.2\n",
                "!! mail is unavailable.");
        assert_order(text, "quiver pause mail", "handler");
        assert_contains(text, "~1204");
        assert_contains(text, "shop  live  sqlite:/tmp/q.db");
}

static void nothing_wrong_is_said_in_one_line(void **state)
{
        struct rig *rig = *state;
        (void)json_array_clear(json_object_get(rig->data.status, "problems"));
        assert_contains(shown(rig), "All is well.");
}

static void every_page_fits_every_screen(void **state)
{
        struct rig *rig = *state;
        static const unsigned sizes[][2] = { { 80, 24 }, { 200, 60 }, { 40, 10 }, { 20, 3 }, { 2, 2 } };
        static const char *const keys[] = { "1", "2", "3", "4", "5", "1\n", "\x1b?", "\0335r" };
        for (size_t i = 0; i < 5; i++)
                for (size_t k = 0; k < COUNT(keys); k++) {
                        rig->size.columns = sizes[i][0];
                        rig->size.lines = sizes[i][1];
                        (void)press(rig, keys[k]);
                        assert_fits(rig);
                        top_forget(&rig->state);
                }
}

static void a_selected_row_is_always_on_the_screen(void **state)
{
        struct rig *rig = *state;
        char line[64];
        json_t *shards = json_object_get(rig->data.status, "shards");
        for (int i = 2; i < 100; i++)
                (void)json_array_append_new(shards, json_pack("{s:i,s:s}", "shard", i, "host", "c"));
        (void)press(rig, "3");
        for (int i = 0; i < 100; i++) {
                (void)snprintf(line, sizeof(line), ">    %2d  %c", i, i == 0 ? 'a' : i == 1 ? 'b' : 'c');
                assert_contains(shown(rig), line);
                assert_contains(shown(rig), "shard  owner");
                (void)press(rig, i % 2 ? "j" : "\x1b[B");
        }
        assert_contains(shown(rig), "row 100 of 100");
        (void)press(rig, "g");
        assert_contains(shown(rig), ">     0  a");
}

static void the_selection_follows_its_row(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "3j");
        assert_contains(shown(rig), ">     1  b");
        (void)press(rig, "s");
        assert_contains(shown(rig), "sort: waiting");
        assert_order(shown(rig), ">     1  b", "      0  a");
}

static void keys_that_wait_for_a_person_come_first_and_then_the_busiest(void **state)
{
        struct rig *rig = *state;
        assert_int_equal(press(rig, "2"), TOP_DO_FETCH);
        assert_contains(shown(rig), "3 keys wait: 1 parked, 1 held.");
        rig->data.keys_total = 5000;
        assert_contains(shown(rig), "5000 keys wait: of the first 3, 1 parked, 1 held.");
        assert_order(shown(rig), "\\xffk", "sick");
        assert_order(shown(rig), "sick", "busy");
        (void)press(rig, "s");
        assert_order(shown(rig), "busy", "sick");
        assert_order(shown(rig), "sick", "\\xffk");
}

static void a_filter_leaves_only_what_has_it(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "/ecx\x7fho\n");
        assert_contains(shown(rig), "echo");
        assert_null(strstr(shown(rig), "unavailable"));
        assert_contains(shown(rig), "filter: echo");
        (void)press(rig, "\x1b");
        assert_contains(shown(rig), "unavailable");
        (void)press(rig, "/nowhere\n");
        assert_contains(shown(rig), "Nothing here fits the filter.");
}

static void a_handler_is_paused_and_resumed_after_a_yes(void **state)
{
        struct rig *rig = *state;
        json_t *paused = json_object_get(json_object_get(rig->data.status, "totals"), "paused");
        (void)press(rig, "jp");
        assert_asks(rig, "quiver pause --reason 'asked for in quiver top' echo");
        assert_contains(shown(rig), "y/n? quiver pause");
        assert_int_equal(press(rig, "n"), TOP_DO_CANCEL);
        top_forget(&rig->state);
        (void)press(rig, "p");
        assert_int_equal(press(rig, "y"), TOP_DO_ACT);
        top_forget(&rig->state);
        (void)json_object_set_new(paused, "echo", json_string("why"));
        (void)press(rig, "p");
        assert_asks(rig, "quiver resume echo");
        top_forget(&rig->state);
        (void)json_object_clear(paused);
        (void)json_object_set_new(paused, "", json_string("why"));
        (void)press(rig, "p");
        assert_asks(rig, "quiver resume");
}

static void a_problem_is_about_its_handler(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "gp");
        assert_asks(rig, "quiver pause --reason 'asked for in quiver top' mail");
}

static void a_requeue_says_how_many_and_shows_the_whole_command(void **state)
{
        struct rig *rig = *state;
        assert_int_equal(press(rig, "5r"), TOP_DO_COUNT);
        assert_asks(rig, "quiver dead requeue --handler mail --reason exhausted --error refused");
        rig->state.asked.count = 15;
        assert_contains(shown(rig), "y/n? requeue 15 tasks: quiver dead requeue");
        rig->size.columns = 50;
        assert_contains(shown(rig), "requeue \n--handler mail --reason exhausted --error refused\n");
        top_forget(&rig->state);
        json_t *group = json_array_get(json_object_get(rig->data.status, "dead"), 1);
        (void)json_object_set_new(group, "error", json_string("-1: it's off"));
        (void)press(rig, "r");
        assert_asks(rig, "quiver dead requeue --handler mail --reason exhausted --error='-1: it'\\''s off'");
}

static void a_key_is_held_and_unheld(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "2u");
        assert_asks(rig, "quiver key unhold $'\\xffk'");
        (void)press(rig, "n");
        top_forget(&rig->state);
        (void)press(rig, "jh");
        assert_asks(rig, "quiver key hold sick");
}

static void what_is_read_only_asks_nothing(void **state)
{
        struct rig *rig = *state;
        rig->state.is_read_only = true;
        static const char *const keys[] = { "1p", "5r", "2h", "2u" };
        for (size_t i = 0; i < COUNT(keys); i++) {
                (void)press(rig, keys[i]);
                assert_int_equal(rig->state.mode, TOP_LIST);
                assert_contains(shown(rig), "read-only");
                assert_null(rig->state.asked.item);
        }
        (void)press(rig, "?");
        assert_null(strstr(shown(rig), "requeue"));
}

static void an_action_needs_its_page(void **state)
{
        struct rig *rig = *state;
        static const char *const keys[] = { "2p", "1r", "1h", "3u" };
        for (size_t i = 0; i < COUNT(keys); i++) {
                assert_int_equal(press(rig, keys[i]), TOP_DO_NOTHING);
                assert_int_equal(rig->state.mode, TOP_LIST);
                assert_contains(shown(rig), ": press ");
        }
}

static void nothing_hostile_reaches_the_terminal(void **state)
{
        struct rig *rig = *state;
        static const char *const bad[] = { "\x1b]0;x\x07", "\x1b[31m", "\302\23331m", "a\nb\rc", "\x7f" };
        static const char *const pages = "12345";
        for (size_t i = 0; i < COUNT(bad); i++) {
                json_t *status = rig->data.status;
                json_t *item = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:i}", "name", bad[i], "handler", bad[i], "state",
                        bad[i], "error", bad[i], "reason", bad[i], "host", bad[i], "tasks", 1);
                json_t *problem = json_pack("{s:s,s:s,s:s}", "level", "bad", "text", bad[i], "command", bad[i]);
                (void)json_object_set_new(item, bad[i], json_string(bad[i]));
                (void)json_object_set_new(status, "app", json_string(bad[i]));
                (void)json_object_set_new(item, "key", json_string(bad[i]));
                (void)json_array_insert(json_object_get(status, "handlers"), 0, item);
                (void)json_array_insert(json_object_get(status, "shards"), 0, item);
                (void)json_array_insert(json_object_get(status, "members"), 0, item);
                (void)json_array_insert(json_object_get(status, "dead"), 0, item);
                (void)json_array_insert(rig->data.keys, 0, item);
                (void)json_array_insert_new(json_object_get(status, "problems"), 0, problem);
                json_decref(item);
                buffer_clear(&rig->data.error);
                buffer_printf(&rig->data.error, "%s", bad[i]);
                for (unsigned page = 0; page < 3 * TOP_PAGES; page++) {
                        char key[2] = { pages[page % TOP_PAGES], 0 };
                        (void)press(rig, key);
                        (void)press(rig, page < TOP_PAGES ? "G" : page < 2 * TOP_PAGES ? "\n" : "/\x9b\x80\n");
                        assert_null(strpbrk(shown(rig), "\x1b\x07\r\x7f"));
                        assert_null(strstr(shown(rig), "\xc2\x9b"));
                        (void)press(rig, "\x1b");
                }
        }
}

static void colours_are_there_only_if_they_are_wanted(void **state)
{
        struct rig *rig = *state;
        assert_null(strchr(shown(rig), '\x1b'));
        rig->size.has_color = true;
        assert_contains(shown(rig), "\x1b[31m");
}

static void what_is_known_stays_and_says_how_old_it_is(void **state)
{
        struct rig *rig = *state;
        rig->data.age_ms = 12345;
        buffer_printf(&rig->data.error, "connection refused\n");
        assert_contains(shown(rig), "12s old");
        assert_contains(shown(rig), "connection refused\\n");
        assert_contains(shown(rig), "1204");
        json_decref(rig->data.status);
        rig->data.status = NULL;
        assert_contains(shown(rig), "nothing is known yet");
}

static void a_detail_has_all_fields_and_scrolls(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "5j\n");
        assert_int_equal(rig->state.mode, TOP_DETAIL);
        assert_contains(shown(rig), "error        no such user");
        assert_contains(shown(rig), "quiver dead requeue --handler mail --reason rejected --error 'no such user'");
        rig->size.lines = 8;
        assert_null(strstr(shown(rig), "quiver dead"));
        (void)press(rig, "G");
        assert_contains(shown(rig), "quiver dead");
        (void)press(rig, "\x1b");
        assert_int_equal(rig->state.mode, TOP_LIST);
}

static void a_print_counts_what_does_not_fit(void **state)
{
        struct rig *rig = *state;
        json_t *rows = top_rows(&rig->state, &rig->data);
        rig->size = (struct top_size){ .columns = UINT32_MAX };
        top_print(&rig->screen, &rig->state, &rig->data, rows, &rig->size);
        assert_contains(buffer_text(&rig->screen), "echo");
        assert_null(strstr(buffer_text(&rig->screen), "> "));
        assert_null(strstr(buffer_text(&rig->screen), "q quit"));
        buffer_clear(&rig->screen);
        rig->size.lines = 8;
        top_print(&rig->screen, &rig->state, &rig->data, rows, &rig->size);
        assert_contains(buffer_text(&rig->screen), "… and 5 lines more");
        json_decref(rows);
}

static void bytes_become_keys(void **state)
{
        static const struct {
                const char *bytes;
                size_t size;
                int key;
        } cases[] = {
                { "q", 1, 'q' },
                { "\r", 1, KEY_ENTER },
                { "\x1b", 1, KEY_ESCAPE },
                { "\x1bq", 1, KEY_ESCAPE },
                { "\x1b[A", 3, KEY_UP },
                { "\x1bOBx", 3, KEY_DOWN },
                { "\x1b[6~", 4, KEY_PAGE_DOWN },
                { "\x1b[1;5Cq", 6, KEY_UNKNOWN },
                { "\x1b[", 2, KEY_UNKNOWN },
                { "\x1b[Z", 3, KEY_BACK_TAB },
        };
        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                int key = 0;
                assert_int_equal(top_key_read(cases[i].bytes, strlen(cases[i].bytes), &key), cases[i].size);
                assert_int_equal(key, cases[i].key);
        }
}

static void tab_goes_round(void **state)
{
        struct rig *rig = *state;
        (void)press(rig, "\t\t\t\t\t");
        assert_int_equal(rig->state.page, TOP_OVERVIEW);
        (void)press(rig, "\x1b[Z");
        assert_int_equal(rig->state.page, TOP_DEAD);
        assert_int_equal(press(rig, "q"), TOP_DO_QUIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(each_handlers_rates_and_durations_fit_on_a_small_screen),
                TEST(what_became_of_a_handlers_versions_stands_in_its_detail),
                TEST(what_is_wrong_comes_first),
                TEST(nothing_wrong_is_said_in_one_line),
                TEST(every_page_fits_every_screen),
                TEST(a_selected_row_is_always_on_the_screen),
                TEST(the_selection_follows_its_row),
                TEST(keys_that_wait_for_a_person_come_first_and_then_the_busiest),
                TEST(a_filter_leaves_only_what_has_it),
                TEST(a_handler_is_paused_and_resumed_after_a_yes),
                TEST(a_problem_is_about_its_handler),
                TEST(a_requeue_says_how_many_and_shows_the_whole_command),
                TEST(a_key_is_held_and_unheld),
                TEST(what_is_read_only_asks_nothing),
                TEST(an_action_needs_its_page),
                TEST(nothing_hostile_reaches_the_terminal),
                TEST(colours_are_there_only_if_they_are_wanted),
                TEST(what_is_known_stays_and_says_how_old_it_is),
                TEST(a_detail_has_all_fields_and_scrolls),
                TEST(a_print_counts_what_does_not_fit),
                TEST(bytes_become_keys),
                TEST(tab_goes_round),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
