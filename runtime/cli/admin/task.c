/* task.c: one task: where it is, what happened to it; cancelling it, and another time for a delayed one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "cli/admin/done_ask.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/open.h"
#include "cli/print.h"
#include "look/task_look.h"
#include "view/json.h"
#include "view/task.h"
#include "view/text.h"

struct task_request {
        const char *config;
        const char *id;
        bool is_cancel;
        bool is_reschedule;
        bool is_move;
        const char *lane; /* of a move */
        bool is_forced;
        bool has_at, has_delay;
        uint64_t delay_ms, at_ms; /* of a reschedule */
        bool has_json;
        bool has_payload;
};

static void print_task(const struct task_request *show, const struct store_listed *task, json_t *where)
{
        struct buffer text = { 0 };
        if (show->has_payload) {
                (void)fwrite(task->envelope.payload.data, 1, task->envelope.payload.size, stdout);
        } else if (show->has_json) {
                json_t *o = listed_as_json(task);
                (void)json_object_update(o, where);
                cli_json_print_wide(o);
        } else {
                listed_as_text(&text, task, where, clock_wall_ms());
        }
        cli_text_print(&text);
}

static void print_merged(const struct task_request *show, const struct task_look *look)
{
        struct buffer text = { 0 };
        struct span into = span_of_text(look->merged_into);
        if (show->has_json)
                cli_json_print_wide(merged_as_json(look->id, into, look->merged_ms));
        else
                merged_as_text(&text, look->id, into, look->merged_ms);
        cli_text_print(&text);
}

static int look(struct cli_store *s, const struct task_request *q, struct span id, struct error *error)
{
        struct task_look task = { 0 };
        task_look_init(&task, id);
        int r = task_id_check(id, NULL, error);
        if (r == 0)
                r = cli_look(s, &task.look, error);
        if (r == 0 && task.merged_into[0] && !q->has_payload)
                print_merged(q, &task);
        else if (r == 0 && !task.found.is_there)
                r = error_set(error, -ENOENT, "there is no task %.*s: it is done or dropped, or never was",
                        (int)id.size, id.data);
        if (r == 0 && task.found.is_there) {
                json_t *where = task_look_where(&task);
                print_task(q, &task.found.task, where);
                json_decref(where);
        }
        task_look_free(&task);
        return r;
}

/* It is not in the store: what became of it is told by whoever has done it, if that is not too long ago. */
static int look_among_done(struct cli_store *s, const struct task_request *q, struct span id, struct error *error)
{
        json_t *found = NULL;
        struct buffer text = { 0 };
        char ago[UNITS_TEXT_MAX];
        int r = done_ask(s, id, &found, error);
        if (r < 0)
                return r;
        (void)units_format_ms(ago, view_json_get_number(found, "ago_ms"));
        if (q->is_cancel) {
                r = error_set(error, -EALREADY, "task %s was done %s ago; see: quiver task %s", q->id, ago, q->id);
        } else if (q->has_payload) {
                r = error_set(error, -ENOENT, "task %s was done %s ago: its payload is gone", q->id, ago);
        } else if (q->has_json) {
                cli_json_print_wide(json_incref(found));
        } else {
                done_as_text(&text, found);
                cli_text_print(&text);
        }
        json_decref(found);
        return r;
}

static int reschedule(struct cli_store *s, const struct task_request *q, struct span id)
{
        struct error error = { "" };
        char time[TEXT_TIME_MAX];
        uint64_t due_ms = q->has_at ? q->at_ms : clock_wall_ms() + q->delay_ms;
        int r = client_reschedule(s->client, id, q->delay_ms, q->has_at ? q->at_ms : 0, &error);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (q->has_json)
                cli_json_print(json_pack("{s:s, s:I}", "id", q->id, "due_ms", (json_int_t)due_ms));
        else
                (void)printf("%s is due at %s\n", q->id, text_time(time, due_ms));
        return EXIT_DONE;
}

static int move(struct cli_store *s, const struct task_request *q, struct span id)
{
        struct error error = { "" };
        enum lane lane = LANE_NORMAL;
        bool is_pending = false;
        (void)lane_parse(span_of_text(q->lane), &lane);
        int r = client_move(s->client, id, lane, q->is_forced, &is_pending, &error);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (q->has_json)
                cli_json_print(json_pack("{s:s, s:s, s:b}", "id", q->id, "lane", q->lane, "pending", is_pending));
        else if (is_pending)
                (void)printf("%s is claimed; its owner moves it to %s, unless it has started\n", q->id, q->lane);
        else
                (void)printf("%s is in %s\n", q->id, q->lane);
        return EXIT_DONE;
}

static int take_at(void *self, const char *value, struct error *error)
{
        struct task_request *q = self;
        q->has_at = true;
        return timestamp_parse(value, true, clock_wall_ms(), &q->at_ms, error);
}

static int take_delay(void *self, const char *value, struct error *error)
{
        struct task_request *q = self;
        q->has_delay = true;
        return units_duration_ms(value, &q->delay_ms, error);
}

static int act(struct cli_store *s, void *self)
{
        const struct task_request *q = self;
        const char *id = q->id;
        struct error error = { "" };
        bool is_pending = false;
        struct span wanted = { id, strlen(id) };
        if (q->is_reschedule)
                return reschedule(s, q, wanted);
        if (q->is_move)
                return move(s, q, wanted);
        int r = q->is_cancel ? client_cancel(s->client, wanted, &is_pending, &error) : look(s, q, wanted, &error);
        if (r == -ENOENT)
                r = look_among_done(s, q, wanted, &error);
        else if (r == -EALREADY)
                (void)error_set(&error, r, "task %s is dead already; see: quiver task %s", id, id);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!q->is_cancel)
                return EXIT_DONE;
        if (q->has_json) {
                json_t *o = json_object();
                (void)json_object_set_new(o, "id", json_string(id));
                (void)json_object_set_new(o, "pending", json_boolean(is_pending));
                cli_json_print(o);
        } else if (is_pending) {
                (void)printf("%s is in flight; its owner has been told to stop it\n", id);
        } else {
                (void)printf("%s is cancelled\n", id);
        }
        return EXIT_DONE;
}

int cmd_task(int argc, char **argv)
{
        struct task_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--payload", &q.has_payload, "print the payload's bytes and nothing else"),
                OPT_CALL("--delay TIME", take_delay, &q, "reschedule: in 10s, 5m, 1h; 0s: now"),
                OPT_CALL("--at TIME", take_at, &q,
                        "reschedule: 2026-11-20T09:00:00Z; by the local clock: 2026-11-20 09:00, 09:00"),
                OPT_TEXT("--lane LANE", &q.lane, "move: high, normal or low"),
                OPT_FLAG("--force", &q.is_forced,
                        "move: also a task with a key, which gives up its place among the key's"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "task [cancel|reschedule|move] ID",
                .about = "Says where a task is, what happened to it and what is in it. With cancel: it is not run, or\n"
                         "stopped if it runs; it is then among the dead, with reason cancelled. With reschedule: a "
                         "delayed task\n"
                         "gets another time. With move: a waiting task goes to the end of another lane.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver task 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver task 9kq2v7d3c0a8x1m5r4t6-12 --payload > payload.bin\n"
                            "  quiver task cancel 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver task reschedule 9kq2v7d3c0a8x1m5r4t6-12 --at \"2026-11-20 09:00\"\n"
                            "  quiver task move 9kq2v7d3c0a8x1m5r4t6-12 --lane high\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        q.is_cancel = o.words_count && !strcmp(o.words[0], "cancel");
        q.is_reschedule = o.words_count && !strcmp(o.words[0], "reschedule");
        q.is_move = o.words_count && !strcmp(o.words[0], "move");
        bool has_verb = q.is_cancel || q.is_reschedule || q.is_move;
        if (o.words_count != 1u + has_verb)
                return options_wrong(&o, "which task? quiver task %sID",
                        q.is_cancel ? "cancel "
                        : q.is_move ? "move "
                        : has_verb  ? "reschedule "
                                    : "");
        if (q.is_reschedule ? q.has_at == q.has_delay : q.has_at || q.has_delay)
                return options_wrong(&o, "--at or --delay: one of them, with quiver task reschedule ID");
        enum lane lane;
        if (q.is_move ? !q.lane : q.lane || q.is_forced)
                return options_wrong(&o, "--lane goes with quiver task move ID, which needs it; --force, too");
        if (q.lane && !lane_parse(span_of_text(q.lane), &lane))
                return options_wrong(&o, "%s is no lane: high, normal or low", q.lane);
        q.id = o.words[has_verb];
        if (task_id_check((struct span){ q.id, strlen(q.id) }, NULL, &error) < 0)
                return options_wrong(&o, "%s is not a task's id: %s", q.id, error.text);
        return cli_act(&o, q.config, act, &q);
}
