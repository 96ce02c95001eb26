/* tasks.c: `quiver tasks`: which tasks wait and for what, which run and where.
 *
 * What runs comes from the hosts' documents; all else from the store, a page at a time.  Bounded: LOOK_MAX tasks are
 * looked at, and the command says how far it looked. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/open.h"
#include "cli/print.h"
#include "look/tasks_look.h"
#include "view/json.h"
#include "view/table.h"
#include "view/task.h"
#include "view/text.h"

#define LIMIT        100u
#define LOOK_MAX     100000u
#define KEYS_MAX     10000u /* of one shard */
#define KEY_SHOWN    40u
#define REASON_SHOWN 80u

static const struct option_choice states[] = { { "all", SHOW_ALL }, { "waiting", SHOW_WAITING },
        { "running", SHOW_RUNNING }, { "delayed", SHOW_DELAYED }, { "parked", SHOW_PARKED }, { "held", SHOW_HELD },
        { "dead", SHOW_DEAD }, { 0 } };

enum { ORDER_PLACE, ORDER_DUE };
static const struct option_choice orders[] = { { "due", ORDER_DUE }, { 0 } };

struct tasks_request {
        const char *config;
        int32_t order; /* ORDER_PLACE: by shard and state, as they stand there */
        int32_t state; /* enum tasks_state */
        struct tasks_filter filter;
        uint64_t limit;
        bool has_json;
};

struct tasks_list {
        const struct tasks_request *q;
        struct tasks_look look;
        struct table table;
        uint64_t created_ms; /* of the app: nothing is older */
        json_t *due;         /* ORDER_DUE: what is to be put in order */
};

/* Since when it counts: submitted; of a dead one, since it is dead. */
static uint64_t age_of(const struct tasks_list *list, const struct store_listed *task)
{
        uint64_t since_ms = task->state == STATE_DEAD ? task->at_ms : task->envelope.submitted_ms;
        return store_age_ms(list->created_ms, since_ms, list->look.now_ms);
}

static void add_row(struct tasks_list *list, const struct store_listed *task, const json_t *where)
{
        struct buffer words = { 0 };
        char age[UNITS_TEXT_MAX];
        struct span error = task_last_error(task);
        if (task->state == STATE_DEAD)
                text_put_bytes(&words, note_first_line(error.size ? error : task->reason), REASON_SHOWN);
        else if (task->state == STATE_DELAYED)
                buffer_printf(&words, "due in %s", units_format_ms(age, task->due_in_ms));
        else
                whereabouts_as_words(&words, where, list->look.now_ms);
        table_row(&list->table);
        table_put_text(&list->table, TONE_PLAIN, view_json_get_text(where, "state"));
        table_put(&list->table, TONE_PLAIN, task->id);
        table_put(&list->table, TONE_PLAIN, task->envelope.handler);
        table_put(&list->table, TONE_PLAIN, task->key);
        table_put_age(&list->table, TONE_PLAIN, age_of(list, task));
        table_put_number(&list->table, TONE_PLAIN, task->note.attempts + task->note.crashes);
        table_put(&list->table, TONE_PLAIN, (struct span){ (const char *)words.data, words.size });
        buffer_free(&words);
}

static bool show(void *self, const struct store_listed *task, const json_t *where)
{
        struct tasks_list *list = self;
        if (list->q->has_json) {
                json_t *o = listed_as_json(task);
                (void)json_object_update(o, (json_t *)(uintptr_t)where);
                cli_json_print(o);
        } else {
                add_row(list, task, where);
        }
        return true;
}

/* --- by due time --- */

static bool keep_due(void *self, const struct store_listed *task, const json_t *where)
{
        struct tasks_list *list = self;
        json_t *o = listed_as_json(task);
        (void)json_object_update(o, (json_t *)(uintptr_t)where);
        (void)json_array_append_new(list->due, o);
        return true;
}

static int by_due(const void *a, const void *b)
{
        uint64_t x = view_json_get_number(*(json_t *const *)a, "due_in_ms");
        uint64_t y = view_json_get_number(*(json_t *const *)b, "due_in_ms");
        return (x > y) - (x < y);
}

static void add_due_row(struct tasks_list *list, const json_t *o)
{
        char time[TEXT_TIME_MAX];
        uint64_t due_in_ms = view_json_get_number(o, "due_in_ms");
        table_row(&list->table);
        /* To the second: the store was asked a moment after our clock. */
        uint64_t due_s = (list->look.now_ms + due_in_ms + 500) / 1000;
        table_put_text(&list->table, TONE_PLAIN, text_time(time, 1000 * due_s));
        table_put_age(&list->table, TONE_PLAIN, due_in_ms);
        table_put_text(&list->table, TONE_PLAIN, view_json_get_text(o, "id"));
        table_put_text(&list->table, TONE_PLAIN, view_json_get_text(o, "handler"));
        table_put_text(&list->table, TONE_PLAIN, view_json_get_text(o, "key"));
}

/* Each shard has shown its first ones: of all of these the first are those of the app. */
static void show_due(struct tasks_list *list)
{
        size_t count = json_array_size(list->due);
        json_t **sorted = memory_zero(count, sizeof(json_t *));
        for (size_t i = 0; i < count; i++)
                sorted[i] = json_array_get(list->due, i);
        qsort(sorted, count, sizeof(json_t *), by_due);
        list->look.has_more |= count > list->q->limit;
        list->look.shown = min_u64(count, list->q->limit);
        list->look.shown_max = list->q->limit;
        for (size_t i = 0; i < list->look.shown; i++)
                if (list->q->has_json)
                        cli_json_print(json_incref(sorted[i]));
                else
                        add_due_row(list, sorted[i]);
        free(sorted);
}

static void say_how_far(const struct tasks_list *list)
{
        const struct tasks_look *look = &list->look;
        FILE *to = list->q->has_json ? stderr : stdout;
        if (look->shown == look->shown_max && look->has_more)
                (void)fprintf(to,
                        "… the first %" PRIu64 " are shown; %" PRIu64 " of %" PRIu64
                        " tasks were looked at. More: --limit\n",
                        look->shown, look->looked, look->total);
        else if (look->has_more)
                (void)fprintf(to,
                        "… %" PRIu64 " of %" PRIu64
                        " tasks were looked at, the most at once; --key looks at one key's shard only\n",
                        look->looked, look->total);
        else if (!look->shown && !list->q->has_json)
                (void)fprintf(to, "no such task; %" PRIu64 " were looked at\n", look->looked);
        if (look->where.w.more)
                (void)fprintf(to, "… and %" PRIu64 " that run, which the documents of their hosts have no room for\n",
                        look->where.w.more);
}

static void print_table(const struct tasks_list *list)
{
        struct buffer text = { 0 };
        table_print(&list->table, &text);
        cli_text_print(&text);
}

static void add_columns(struct tasks_list *list)
{
        static const char *const titles[] = { "state", "task", "handler", "key" };
        static const char *const due_titles[] = { "due at", "in", "task", "handler", "key" };
        if (list->q->order == ORDER_DUE) {
                for (size_t i = 0; i < sizeof(due_titles) / sizeof(due_titles[0]); i++)
                        if (i == 1)
                                table_number_column(&list->table, due_titles[i]);
                        else
                                table_text_column(&list->table, due_titles[i], i == 4 ? KEY_SHOWN : 0);
                return;
        }
        for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
                table_text_column(&list->table, titles[i], i == 3 ? KEY_SHOWN : 0);
        table_number_column(&list->table, "age");
        table_number_column(&list->table, "failed");
        table_text_column(&list->table, list->q->state == SHOW_DEAD ? "error" : "where, or what it waits for", 0);
}

static int act(struct cli_store *s, void *self)
{
        const struct tasks_request *q = self;
        struct error error = { "" };
        struct tasks_list list = { .q = q,
                .created_ms = s->info->record->created_ms,
                .look = { .filter = q->filter,
                        .now_ms = clock_wall_ms(),
                        .shown_max = q->limit,
                        .looked_max = LOOK_MAX,
                        .keys_max = KEYS_MAX,
                        .show = show,
                        .self = &list },
                .table.has_color = cli_has_color() };
        add_columns(&list);
        list.look.filter.state = (enum tasks_state)q->state;
        if (q->order == ORDER_DUE) {
                list.due = json_array();
                list.look.show = keep_due;
                list.look.shown_max = UINT64_MAX;
                list.look.shard_max = q->limit;
        }
        tasks_look_init(&list.look);
        int r = cli_look(s, &list.look.look, &error);
        if (r == 0 && q->order == ORDER_DUE)
                show_due(&list);
        if (r == 0 && !q->has_json && list.look.shown)
                print_table(&list);
        if (r == 0)
                say_how_far(&list);
        tasks_look_free(&list.look);
        table_free(&list.table);
        json_decref(list.due);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

int cmd_tasks(int argc, char **argv)
{
        struct tasks_request q = { .limit = LIMIT };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_CHOICE("--state STATE", &q.state, states,
                        "waiting (also parked and held), running, delayed, parked, held, dead; else all but dead"),
                OPT_TEXT("--handler NAME", &q.filter.handler, "only this handler's"),
                OPT_TEXT("--key KEY", &q.filter.key, "only this key's; looks at its shard only"),
                OPT_TEXT("--host NAME", &q.filter.host, "only what that host runs or has claimed"),
                OPT_TEXT("--error TEXT", &q.filter.error, "only those whose last error has the text in it"),
                OPT_DURATION(
                        "--older TIME", &q.filter.older_ms, 1, "only those submitted (dead: given up) so long ago"),
                OPT_CHOICE("--order ORDER", &q.order, orders, "due: delayed tasks, the next first"),
                OPT_NUMBER("--limit N", &q.limit, 1, UINT32_MAX, "show at most N; else 100"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "tasks [--state STATE] [--handler NAME] [--key KEY] [--host NAME] [--error TEXT] [--older "
                         "TIME]",
                .about = "Lists tasks: which wait and for what, which run, where and for how long. A task shows as "
                         "running when\nits host has said so, after about a second. At most 100 000 tasks are looked "
                         "at; it says how far it looked.",
                OPTIONS_TABLE(table),
                .examples = "  quiver tasks --state running\n"
                            "  quiver tasks --state waiting --handler mail --older 5m\n"
                            "  quiver tasks --key user-17 --json\n"
                            "  quiver tasks --state delayed --order due\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (q.order == ORDER_DUE && q.state != SHOW_DELAYED)
                return options_wrong(&o, "--order due is for what has a time: --state delayed");
        return cli_act(&o, q.config, act, &q);
}
