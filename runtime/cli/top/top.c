/* top.c: `quiver top`: a live view in the terminal.  Looks at the store again and again, draws, and obeys keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/print.h"
#include "cli/top/terminal.h"
#include "cli/top/top.h"
#include "cli/top/top_act.h"
#include "look/keys_look.h"
#include "look/status_look.h"
#include "view/key.h"
#include "view/text.h"

#define INTERVAL_MS       2000u
#define INTERVAL_LEAST_MS 100u
#define KEYS_SHOWN        1000u

struct top {
        struct cli_store *store;
        struct top_state state;
        struct top_data data;
        struct dead_survey survey; /* what state.asked is about */
        uint64_t interval_ms;
        uint64_t fetched_ms;
        bool has_color;
};

/* --- looking at the store --- */

static int fetch_status(struct top *top, struct error *error)
{
        struct status_look look = { 0 };
        status_look_init(&look, top->store->config.store.url.text, clock_wall_ms());
        int r = cli_look(top->store, &look.look, error);
        if (r == 0) {
                json_decref(top->data.status);
                top->data.status = status_as_json(&look.status);
        }
        status_look_free(&look);
        return r;
}

static bool take_key(void *self, const struct store_key_info *key)
{
        (void)json_array_append_new(self, key_as_json(key));
        return true;
}

static int fetch_keys(struct top *top, struct error *error)
{
        json_t *keys = json_array();
        struct keys_look look = { .shown_max = KEYS_SHOWN, .looked_max = KEYS_SHOWN, .show = take_key, .self = keys };
        keys_look_init(&look);
        int r = cli_look(top->store, &look.look, error);
        if (r == 0) {
                json_decref(top->data.keys);
                top->data.keys = json_incref(keys);
                top->data.keys_total = look.total;
        }
        keys_look_free(&look);
        json_decref(keys);
        return r;
}

static int fetch_detail(struct top *top, struct error *error)
{
        struct key_look look = { 0 };
        struct buffer key = { 0 };
        json_t *rows = top_rows(&top->state, &top->data);
        int r = 0;
        top_bytes(top_selected(&top->state, rows), "key", &key);
        buffer_clear(&top->data.detail);
        if (key.size) {
                key_look_init(&look, (struct span){ (const char *)key.data, key.size });
                r = cli_look(top->store, &look.look, error);
                struct key_more more = { .w = &look.where.w, .claimed = look.claimed, .first = look.first };
                if (r == 0)
                        key_as_text(&top->data.detail, &look.found.key, &more, clock_wall_ms());
                key_look_free(&look);
        }
        buffer_free(&key);
        json_decref(rows);
        return r;
}

/* 0, or -errno: what is known stays, and grows old. */
static int fetch(struct top *top, struct error *error)
{
        int r = fetch_status(top, error);
        if (r == 0 && top->state.page == TOP_KEYS)
                r = fetch_keys(top, error);
        if (r == 0 && top->state.page == TOP_KEYS && top->state.mode == TOP_DETAIL)
                r = fetch_detail(top, error);
        buffer_clear(&top->data.error);
        if (r < 0)
                buffer_printf(&top->data.error, "%s", error->text);
        else
                top->fetched_ms = clock_boot_ms();
        return r;
}

/* --- once --- */

static int print_once(struct top *top)
{
        struct error error = { "" };
        struct buffer text = { 0 };
        /* In a pipe nothing is cut. */
        struct top_size size = { .columns = UINT32_MAX, .has_color = top->has_color };
        int r = fetch(top, &error);
        if (r < 0)
                return cli_fail(top->store->command, r, error.text);
        if (isatty(STDOUT_FILENO))
                terminal_size(&size.columns, &size.lines);
        json_t *rows = top_rows(&top->state, &top->data);
        top_print(&text, &top->state, &top->data, rows, &size);
        cli_text_print(&text);
        json_decref(rows);
        return EXIT_DONE;
}

/* --- again and again --- */

static void say_slow(void *self)
{
        (void)self;
        terminal_say("The store does not answer; this waits for it. Ctrl-C ends it.");
}

static void draw(struct top *top)
{
        struct buffer text = { 0 };
        struct top_size size = { .has_color = top->has_color };
        terminal_size(&size.columns, &size.lines);
        top->data.age_ms = clock_boot_ms() - top->fetched_ms;
        json_t *rows = top_rows(&top->state, &top->data);
        top_view(&text, &top->state, &top->data, rows, &size);
        terminal_draw(&text);
        json_decref(rows);
        buffer_free(&text);
}

static void forget(struct top *top)
{
        top_forget(&top->state);
        dead_survey_free(&top->survey);
}

static void count(struct top *top)
{
        struct error error = { "" };
        int r = top_act_count(top->store, &top->state.asked, &top->survey, &error);
        if (r == 0 && top->survey.matched)
                return;
        buffer_clear(&top->state.message);
        text_put_between(&top->state.message,
                "Nothing was done: ", r < 0 ? error.text : "no dead task is left of this cause", ".");
        forget(top);
}

/* False: it ends. */
static bool obey(struct top *top, int key, bool *ret_is_due)
{
        json_t *rows = top_rows(&top->state, &top->data);
        enum top_do what = top_key(&top->state, &top->data, rows, key);
        json_decref(rows);
        switch (what) {
        case TOP_DO_QUIT:
                return false;
        case TOP_DO_COUNT:
                count(top);
                break;
        case TOP_DO_ACT:
                buffer_clear(&top->state.message);
                top_act(top->store, &top->state.asked, &top->survey, &top->state.message);
                forget(top);
                *ret_is_due = true;
                break;
        case TOP_DO_CANCEL:
                buffer_clear(&top->state.message);
                buffer_printf(&top->state.message, "Nothing was done.");
                forget(top);
                break;
        case TOP_DO_FETCH:
                *ret_is_due = true;
                break;
        case TOP_DO_NOTHING:
                break;
        }
        return true;
}

static int watch(struct top *top)
{
        struct error error = { "" };
        struct buffer keys = { 0 };
        bool is_due = true;
        bool goes_on = true;
        uint64_t tried_ms = 0;
        int r = terminal_open(&error);
        if (r < 0)
                return cli_fail(top->store->command, r, error.text);
        client_when_slow(say_slow, NULL);
        while (goes_on) {
                uint64_t now_ms = clock_boot_ms();
                if (is_due || now_ms - tried_ms >= top->interval_ms) {
                        (void)fetch(top, &error);
                        tried_ms = clock_boot_ms();
                        is_due = false;
                }
                draw(top);
                now_ms = clock_boot_ms();
                uint64_t passed_ms = now_ms - tried_ms;
                uint64_t wait_ms = passed_ms < top->interval_ms ? top->interval_ms - passed_ms : 0;
                buffer_clear(&keys);
                goes_on = terminal_wait(wait_ms, &keys) == 0;
                for (size_t at = 0; goes_on && at < keys.size;) {
                        int key;
                        at += top_key_read((const char *)keys.data + at, keys.size - at, &key);
                        goes_on = obey(top, key, &is_due);
                }
        }
        terminal_close();
        buffer_free(&keys);
        return EXIT_DONE;
}

/* --- the command --- */

struct top_request {
        const char *config;
        uint64_t interval_ms;
        int32_t page;
        bool is_once;
        bool is_read_only;
};

static int act(struct cli_store *s, void *self)
{
        const struct top_request *q = self;
        struct top top = { .store = s,
                .interval_ms = q->interval_ms,
                .has_color = cli_has_color(),
                .state = { .page = (enum top_page)q->page, .is_read_only = q->is_read_only } };
        top_state_init(&top.state);
        int code = q->is_once ? print_once(&top) : watch(&top);
        forget(&top);
        top_state_free(&top.state);
        top_data_free(&top.data);
        return code;
}

int cmd_top(int argc, char **argv)
{
        static const struct option_choice pages[] = { { "overview", TOP_OVERVIEW }, { "keys", TOP_KEYS },
                { "shards", TOP_SHARDS }, { "members", TOP_MEMBERS }, { "dead", TOP_DEAD }, { NULL, 0 } };
        struct top_request q = { .interval_ms = INTERVAL_MS };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_DURATION("--interval TIME", &q.interval_ms, INTERVAL_LEAST_MS, "how often it looks; else 2s"),
                OPT_CHOICE("--page NAME", &q.page, pages, "begin with overview, keys, shards, members or dead"),
                OPT_FLAG("--read-only", &q.is_read_only, "only look: no key changes anything"),
                OPT_FLAG("--once", &q.is_once, "print the page once, and end"),
        };
        struct options o = {
                .usage = "top [-c FILE] [--interval TIME] [--page NAME] [--read-only] [--once]",
                .about = "A live view in the terminal: what is wrong, what waits and runs, handlers, keys, shards, "
                         "members, dead\ntasks by cause. ? shows the keys. What changes something shows the command "
                         "that it equals, and asks.",
                OPTIONS_TABLE(table),
                .examples = "  quiver top\n"
                            "  quiver top --read-only --interval 5s\n"
                            "  quiver top --once --page dead\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (!q.is_once && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
                return options_wrong(&o, "it needs a terminal; without one: quiver top --once, or quiver status");
        return cli_act(&o, q.config, act, &q);
}
