/* dead.c: tasks that were given up: looking at them, giving them another chance, dropping them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/listed.h"
#include "cli/open.h"
#include "cli/show.h"

enum { OPTION_HANDLER = OPTION_OWN, OPTION_ALL, OPTION_LIMIT };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_HANDLER, "handler", "NAME", "only this handler's" },
        { OPTION_ALL, "all", NULL, "requeue or drop all of them" },
        { OPTION_LIMIT, "limit", "N", "list at most N (50)" },
        OPTION_JSON_ROW,
};

struct request {
        const char *verb;
        const char *handler; /* NULL: any */
        bool has_all;
        bool has_json;
        uint32_t limit;
        const char **ids;
        size_t ids_count;
};

static struct span text_span(const char *text)
{
        return (struct span){ text, text ? strlen(text) : 0 };
}

/* How many dead tasks each shard has; the caller frees it.  NULL after it said why. */
static struct store_counts *count_shards(struct cli_store *s, int *ret_code)
{
        struct error error = { "" };
        struct store_counts *counts = calloc(s->info->shards, sizeof(*counts));
        if (!counts)
                abort();
        int r = client_count(s->client, 0, s->info->shards, counts, &error);
        if (r == 0)
                return counts;
        *ret_code = cli_fail(s->command, r, error.text);
        free(counts);
        return NULL;
}

/* --- list --------------------------------------------------------------------------------------------------------- */

static void print_line(const struct store_listed *task)
{
        char time[SHOW_TIME_MAX];
        struct span events = task->note.events;
        struct note_event last = { 0 };
        while (note_event_next(&events, &last))
                ;
        (void)printf("%.*s  %s  %-10.*s %.*s  ", (int)task->id.size, task->id.data, show_time(time, task->at_ms),
                (int)task->reason.size, task->reason.data, (int)task->envelope.handler.size,
                task->envelope.handler.size ? task->envelope.handler.data : "");
        show_bytes(stdout, task->key, TASK_KEY_MAX);
        (void)printf("  ");
        show_bytes(stdout, last.text, 100);
        (void)putchar('\n');
}

static void show_dead(void *self, const struct store_listed *task)
{
        const struct request *request = self;
        if (request->has_json)
                cli_json_print(listed_as_json(task));
        else
                print_line(task);
}

static int list(struct cli_store *s, struct request *request)
{
        struct error error = { "" };
        uint64_t all = 0;
        uint32_t left = request->limit;
        int code = EXIT_DONE;
        struct store_counts *counts = count_shards(s, &code);
        for (uint32_t i = 0; counts && i < s->info->shards; i++) {
                all += counts[i].dead;
                if (!counts[i].dead || !left)
                        continue;
                int n = client_list(
                        s->client, i, STATE_DEAD, text_span(request->handler), left, show_dead, request, &error);
                if (n < 0) {
                        code = cli_fail(s->command, n, error.text);
                        break;
                }
                left -= (uint32_t)n;
        }
        if (counts && code == EXIT_DONE && !request->has_json && !left && all > request->limit)
                (void)printf("… there are %" PRIu64 " in all; more with --limit\n", all);
        if (counts && code == EXIT_DONE && !request->has_json && left == request->limit)
                (void)printf("no dead tasks%s%s\n", request->handler ? " of " : "",
                        request->handler ? request->handler : "");
        free(counts);
        return code;
}

/* --- requeue, drop ------------------------------------------------------------------------------------------------ */

static int act_on_ids(
        struct cli_store *s, const struct request *request, enum store_dead_verb verb, uint64_t *ret_acted)
{
        struct error error = { "" };
        int code = EXIT_DONE;
        for (size_t i = 0; i < request->ids_count; i++) {
                struct span id = text_span(request->ids[i]);
                uint32_t shard = 0;
                uint64_t acted = 0;
                int r = task_id_check(id, &shard, &error);
                if (r == 0)
                        r = client_dead(s->client, shard, verb, id, (struct span){ 0 }, &acted, &error);
                if (r == 0 && !acted)
                        r = error_set(&error, -ENOENT, "no dead task %s; where it is: quiver task %s", request->ids[i],
                                request->ids[i]);
                if (r < 0)
                        code = cli_fail(s->command, r, error.text);
                *ret_acted += acted;
                if (code == EXIT_UNREACHABLE)
                        break;
        }
        return code;
}

static int act_on_all(
        struct cli_store *s, const struct request *request, enum store_dead_verb verb, uint64_t *ret_acted)
{
        struct error error = { "" };
        int code = EXIT_DONE;
        struct store_counts *counts = count_shards(s, &code);
        for (uint32_t i = 0; counts && i < s->info->shards; i++) {
                uint64_t acted = 0;
                if (!counts[i].dead)
                        continue;
                int r = client_dead(
                        s->client, i, verb, (struct span){ 0 }, text_span(request->handler), &acted, &error);
                *ret_acted += acted;
                if (r < 0)
                        code = cli_fail(s->command, r, error.text);
                if (r < 0 && r != -EMSGSIZE)
                        break;
        }
        free(counts);
        return code;
}

static int act(struct cli_store *s, const struct request *request)
{
        bool is_drop = !strcmp(request->verb, "drop");
        enum store_dead_verb verb = is_drop ? DEAD_DROP : DEAD_REQUEUE;
        uint64_t acted = 0;
        int code = request->ids_count ? act_on_ids(s, request, verb, &acted) : act_on_all(s, request, verb, &acted);
        if (request->has_json) {
                json_t *o = json_object();
                cli_json_number(o, is_drop ? "dropped" : "requeued", acted);
                cli_json_print(o);
        } else {
                (void)printf("%" PRIu64 " %s\n", acted, is_drop ? "dropped" : "requeued");
        }
        return code;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static int check_words(struct options *o, const struct request *request)
{
        struct error error = { "" };
        bool is_list = !strcmp(request->verb, "list");
        if (!is_list && strcmp(request->verb, "requeue") != 0 && strcmp(request->verb, "drop") != 0)
                return options_wrong(o, "what is %s? There are list, requeue and drop", request->verb);
        if (is_list && (request->ids_count || request->has_all))
                return options_wrong(o, "list takes --handler and --limit only; one task: quiver task ID");
        if (is_list)
                return EXIT_DONE;
        if (!request->ids_count && !request->handler && !request->has_all)
                return options_wrong(o, "which? quiver dead %s ID…, or --handler NAME, or --all", request->verb);
        if (request->ids_count && (request->handler || request->has_all))
                return options_wrong(o, "ids, or --handler, or --all: not together");
        for (size_t i = 0; i < request->ids_count; i++)
                if (task_id_check(text_span(request->ids[i]), NULL, &error) < 0)
                        return options_wrong(o, "%s is not a task's id: %s", request->ids[i], error.text);
        return EXIT_DONE;
}

static int take_option(struct options *o, struct request *request, int id)
{
        uint64_t number = 0;
        switch (id) {
        case OPTION_HANDLER:
                request->handler = o->value;
                return EXIT_DONE;
        case OPTION_ALL:
                request->has_all = true;
                return EXIT_DONE;
        default:
                if (!options_number(o->value, 1, UINT32_MAX, &number))
                        return options_wrong(o, "--limit: %s is not a number from 1", o->value);
                request->limit = (uint32_t)number;
                return EXIT_DONE;
        }
}

int cmd_dead(int argc, char **argv)
{
        struct options o = {
                .usage = "dead [list | requeue ID… | drop ID…]",
                .about = "Lists dead tasks, puts them back at the end of their queue with fresh budgets, or drops them "
                         "for good.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver dead list --handler mail\n"
                            "  quiver dead requeue 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver dead requeue --handler mail\n"
                            "  quiver dead drop --all\n",
        };
        struct cli_words w = { 0 };
        struct request request = { .verb = "list", .limit = 50 };
        struct cli_store s;
        int code = EXIT_DONE;
        options_start(&o, argc, argv);
        for (int id; code == EXIT_DONE && (id = cli_words_next(&w, &o)) != OPTIONS_END;)
                code = take_option(&o, &request, id);
        if (w.is_over)
                code = w.code;
        if (w.is_over || code != EXIT_DONE)
                goto out;
        request.has_json = w.has_json;
        if (w.count) {
                request.verb = w.words[0];
                request.ids = w.words + 1;
                request.ids_count = w.count - 1;
        }
        code = check_words(&o, &request);
        if (code == EXIT_DONE)
                code = cli_open(&s, "dead", w.config);
        if (code != EXIT_DONE)
                goto out;
        code = !strcmp(request.verb, "list") ? list(&s, &request) : act(&s, &request);
        cli_close(&s);
out:
        cli_words_free(&w);
        return code;
}
