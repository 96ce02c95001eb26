/* dead.c: tasks that were given up: looking at them, giving them another chance, dropping them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "cli/admin/dead_pick.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "look/records_look.h"
#include "view/json.h"
#include "view/table.h"
#include "view/task.h"
#include "view/text.h"

#define LIST_LIMIT 50u

struct dead_request {
        const char *config;
        const char *verb;
        struct tasks_filter filter;
        bool has_all;
        bool has_json;
        bool is_dry_run;
        bool has_yes;
        uint64_t limit; /* 0: not said */
        char **ids;
        size_t ids_count;
};

static struct span text_span(const char *text)
{
        return (struct span){ text, text ? strlen(text) : 0 };
}

/* --- list --------------------------------------------------------------------------------------------------------- */

static void print_line(const struct store_listed *task)
{
        char time[TEXT_TIME_MAX];
        (void)printf("%.*s  %s  %-10.*s %.*s  ", (int)task->id.size, task->id.data, text_time(time, task->at_ms),
                (int)task->reason.size, task->reason.data, (int)task->envelope.handler.size,
                task->envelope.handler.size ? task->envelope.handler.data : "");
        cli_bytes_print(task->key, TASK_KEY_MAX);
        (void)printf("  ");
        cli_bytes_print(note_first_line(task_last_error(task)), 100);
        (void)putchar('\n');
}

static bool show_as_json(void *self, const struct store_listed *task, const json_t *where)
{
        (void)self, (void)where;
        cli_json_print(listed_as_json(task));
        return true;
}

static bool show_as_line(void *self, const struct store_listed *task, const json_t *where)
{
        (void)self, (void)where;
        print_line(task);
        return true;
}

static int list(struct cli_store *s, const struct dead_request *request)
{
        struct error error = { "" };
        struct tasks_look look = { .filter = request->filter,
                .is_plain = true,
                .shown_max = request->limit ? request->limit : LIST_LIMIT,
                .looked_max = UINT64_MAX,
                .show = request->has_json ? show_as_json : show_as_line };
        look.filter.state = SHOW_DEAD;
        tasks_look_init(&look);
        int r = cli_look(s, &look.look, &error);
        tasks_look_free(&look);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!request->has_json && look.has_more && dead_filter_is_set(&request->filter))
                (void)printf("… there are more; see them with --limit\n");
        else if (!request->has_json && look.has_more)
                (void)printf("… there are %" PRIu64 " in all; more with --limit\n", look.total);
        if (!request->has_json && !look.shown) {
                (void)printf("no dead tasks");
                dead_filter_print(stdout, &request->filter);
                (void)putchar('\n');
        }
        return EXIT_DONE;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static void print_groups(const json_t *groups)
{
        struct table table = { .has_color = cli_has_color() };
        struct buffer text = { 0 };
        size_t i;
        const json_t *group;
        table_number_column(&table, "tasks");
        table_text_column(&table, "handler", 0);
        table_text_column(&table, "reason", 0);
        table_text_column(&table, "error", 0);
        json_array_foreach(groups, i, group)
        {
                table_row(&table);
                table_put_number(&table, TONE_PLAIN, view_json_get_number(group, "tasks"));
                table_put_text(&table, TONE_PLAIN, view_json_get_text(group, "handler"));
                table_put_text(&table, TONE_PLAIN, view_json_get_text(group, "reason"));
                table_put_text(&table, TONE_PLAIN, view_json_get_text(group, "error"));
        }
        table_print(&table, &text);
        cli_text_print(&text);
        table_free(&table);
}

static int groups(struct cli_store *s, const struct dead_request *request)
{
        struct error error = { "" };
        struct records_look look = { 0 };
        size_t i;
        json_t *group;
        records_look_init(&look, RECORDS_DEAD_GROUPS);
        int r = cli_look(s, &look.look, &error);
        if (r == 0 && request->has_json) {
                json_array_foreach(look.found, i, group)
                {
                        cli_json_print(json_incref(group));
                }
        } else if (r == 0 && json_array_size(look.found)) {
                print_groups(look.found);
        } else if (r == 0) {
                (void)printf("no dead tasks\n");
        }
        records_look_free(&look);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

/* --- requeue, drop ------------------------------------------------------------------------------------------------ */

static enum store_dead_verb verb_of(const struct dead_request *request)
{
        return !strcmp(request->verb, "drop") ? DEAD_DROP : DEAD_REQUEUE;
}

static const char *done_word(const struct dead_request *request)
{
        return verb_of(request) == DEAD_DROP ? "dropped" : "requeued";
}

#define TOO_LONG "too long to be requeued, dead as before; drop it, or raise max_payload and submit it again"

static int act_on_ids(struct cli_store *s, const struct dead_request *request)
{
        struct error error = { "" };
        int code = EXIT_DONE;
        uint64_t acted = 0;
        for (size_t i = 0; i < request->ids_count && code != EXIT_UNREACHABLE; i++) {
                struct span id = text_span(request->ids[i]);
                uint32_t shard = 0;
                struct store_dead dead = { 0 };
                int r = task_id_check(id, &shard, &error);
                if (r == 0)
                        r = client_dead_id(s->client, shard, verb_of(request), id, &dead, &error);
                if (r == 0 && dead.unreadable)
                        r = error_set(&error, -EINVAL,
                                "dead task %s cannot be read and stays as it is; what is wrong with it: quiver fsck",
                                request->ids[i]);
                else if (r == 0 && dead.refused)
                        r = error_set(&error, -EMSGSIZE, "dead task %s: " TOO_LONG, request->ids[i]);
                else if (r == 0 && !dead.acted)
                        r = error_set(&error, -ENOENT, "no dead task %s; where it is: quiver task %s", request->ids[i],
                                request->ids[i]);
                if (r < 0)
                        code = cli_fail(s->command, r, error.text);
                acted += dead.acted;
        }
        if (request->has_json) {
                json_t *o = json_object();
                view_json_number(o, done_word(request), acted);
                cli_json_print(o);
        } else {
                (void)printf("%" PRIu64 " %s\n", acted, done_word(request));
        }
        return code;
}

/* On a terminal somebody may have meant something else. */
static bool is_agreed(const struct dead_request *request, const struct dead_survey *survey, uint64_t count)
{
        char answer[16];
        if (request->has_yes || !count || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
                return true;
        (void)fprintf(stderr, "%s %" PRIu64, request->verb, count);
        if (count < survey->matched)
                (void)fprintf(stderr, " of %" PRIu64, survey->matched);
        (void)fprintf(stderr, " task%s", text_plural(survey->matched));
        dead_filter_print(stderr, &request->filter);
        (void)fprintf(stderr, "? [y/N] ");
        return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int act_on_picked(struct cli_store *s, const struct dead_request *request, const struct dead_survey *survey,
        struct store_dead *dead)
{
        struct error error = { "" };
        uint64_t left = request->limit ? request->limit : UINT64_MAX;
        struct cli_progress progress = {
                .what = request->verb, .unit = "tasks", .all = min_u64(left, survey->matched)
        };
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < survey->shards_count && left; i++) {
                const struct dead_picked *picked = &survey->shards[i];
                size_t count = picked->count < left ? picked->count : (size_t)left;
                for (size_t at = 0; r == 0 && at < count; at += STORE_CALL_TASKS) {
                        progress_show(&progress, dead->acted);
                        r = client_dead_numbers(s->client, picked->shard, verb_of(request), picked->numbers + at,
                                min_u64(STORE_CALL_TASKS, count - at), dead, &error);
                }
                left -= count;
        }
        progress_end(&progress);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static void report(
        const struct dead_request *request, const struct dead_survey *survey, uint64_t chosen, uint64_t acted)
{
        if (request->has_json) {
                json_t *o = json_object();
                view_json_number(o, "seen", survey->seen);
                view_json_number(o, "matched", survey->matched);
                view_json_number(o, "chosen", chosen);
                view_json_number(o, done_word(request), acted);
                cli_json_print(o);
                return;
        }
        if (request->is_dry_run)
                (void)printf("%" PRIu64 " would be %s", chosen, done_word(request));
        else
                (void)printf("%" PRIu64 " %s", acted, done_word(request));
        (void)printf(": %" PRIu64 " dead, %" PRIu64 " of them matched\n", survey->seen, survey->matched);
}

static int act_on_all(struct cli_store *s, const struct dead_request *request)
{
        struct error error = { "" };
        struct dead_survey survey = { 0 };
        struct store_dead dead = { 0 };
        int code = EXIT_DONE;
        int r = dead_survey(s, &request->filter, &survey, &error);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        uint64_t chosen = request->limit && request->limit < survey.matched ? request->limit : survey.matched;
        if (!request->is_dry_run && !is_agreed(request, &survey, chosen)) {
                (void)fprintf(stderr, "quiver dead: nothing was %s\n", done_word(request));
                code = EXIT_FAILED;
        } else {
                if (!request->is_dry_run)
                        code = act_on_picked(s, request, &survey, &dead);
                report(request, &survey, chosen, dead.acted);
        }
        if (dead.unreadable) {
                (void)fprintf(stderr,
                        "quiver dead: %" PRIu32
                        " cannot be read and stay as they are; what is wrong with them: quiver fsck\n",
                        dead.unreadable);
                code = code == EXIT_DONE ? EXIT_FAILED : code;
        }
        if (dead.refused) {
                (void)fprintf(stderr, "quiver dead: %" PRIu32 " " TOO_LONG "\n", dead.refused);
                code = code == EXIT_DONE ? EXIT_FAILED : code;
        }
        dead_survey_free(&survey);
        return code;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static int check_words(struct options *o, const struct dead_request *request)
{
        struct error error = { "" };
        bool is_list = !strcmp(request->verb, "list");
        bool is_groups = !strcmp(request->verb, "groups");
        bool has_choice = dead_filter_is_set(&request->filter) || request->has_all || request->limit;
        if (!is_list && !is_groups && strcmp(request->verb, "requeue") != 0 && strcmp(request->verb, "drop") != 0)
                return options_wrong(
                        o, "there is no \"quiver dead %s\"; there are list, groups, requeue and drop", request->verb);
        if (is_groups && (request->ids_count || has_choice || request->is_dry_run || request->has_yes))
                return options_wrong(o, "groups takes no filters: it counts all that is dead; some: quiver dead list");
        if (is_groups)
                return EXIT_DONE;
        if (is_list && (request->ids_count || request->has_all || request->is_dry_run || request->has_yes))
                return options_wrong(o, "list takes filters and --limit only; one task: quiver task ID");
        if (is_list)
                return EXIT_DONE;
        if (!request->ids_count && !has_choice)
                return options_wrong(o,
                        "which tasks? quiver dead %s ID…, or --handler NAME or another filter, or --all",
                        request->verb);
        if (request->ids_count && (has_choice || request->is_dry_run))
                return options_wrong(o, "give ids, filters or --all: only one of the three");
        for (size_t i = 0; i < request->ids_count; i++)
                if (task_id_check(text_span(request->ids[i]), NULL, &error) < 0)
                        return options_wrong(o, "%s is not a task's id: %s", request->ids[i], error.text);
        return EXIT_DONE;
}

static int take_before(void *self, const char *value, struct error *error)
{
        return dead_before_parse(value, clock_wall_ms(), self, error) < 0 ? -EINVAL : 0;
}

static int run(struct cli_store *s, void *self)
{
        struct dead_request *request = self;
        if (!strcmp(request->verb, "list"))
                return list(s, request);
        if (!strcmp(request->verb, "groups"))
                return groups(s, request);
        return request->ids_count ? act_on_ids(s, request) : act_on_all(s, request);
}

int cmd_dead(int argc, char **argv)
{
        struct dead_request q = { .verb = "list" };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_TEXT("--handler NAME", &q.filter.handler, "only this handler's"),
                OPT_TEXT("--key KEY", &q.filter.key, "only this key's"),
                OPT_TEXT("--reason WORD", &q.filter.reason,
                        "only those with this reason: exhausted, rejected, cancelled, …"),
                OPT_TEXT("--error TEXT", &q.filter.error, "only those whose last error has this in it"),
                OPT_CALL("--before WHEN", take_before, &q.filter.before_ms,
                        "only those that died before then: 2026-11-16 10:00 (UTC), or an age: 2h"),
                OPT_FLAG("--all", &q.has_all, "requeue or drop all of them"),
                OPT_NUMBER("--limit N", &q.limit, 1, UINT32_MAX, "at most N, in the order of the list (list: 50)"),
                OPT_FLAG("--dry-run", &q.is_dry_run, "only say how many would be requeued or dropped"),
                OPT_FLAG("--yes", &q.has_yes, "do not ask; on anything but a terminal nobody is asked"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "dead [list | groups | requeue ID… | drop ID…]",
                .about = "Lists dead tasks, or counts them by handler, reason and first line of the error (groups); "
                         "puts "
                         "them back at the\nend of their queue with fresh budgets, or drops them for good: those with "
                         "the ids given, or all that fit every\nfilter given.  What dies after it began is left "
                         "alone.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver dead list --handler mail\n"
                            "  quiver dead requeue 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver dead requeue --handler mail --error 'connection refused' --limit 100\n"
                            "  quiver dead drop --reason rejected --before 30d --dry-run\n"
                            "  quiver dead drop --all\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (o.words_count) {
                q.verb = o.words[0];
                q.ids = o.words + 1;
                q.ids_count = o.words_count - 1;
        }
        code = check_words(&o, &q);
        return code == EXIT_DONE ? cli_act(&o, q.config, run, &q) : code;
}
