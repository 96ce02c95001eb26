/* results.c: what handlers returned, taken and printed; and committed, if asked. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/task.h"

#define PAGE           256u
#define FOLLOW_LOOK_MS 250

enum { OPTION_MAX = OPTION_OWN, OPTION_COMMIT, OPTION_FOLLOW, OPTION_LEASE };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_MAX, "max", "N", "take at most N; else all that are there" },
        { OPTION_COMMIT, "commit", NULL, "they are done with once they are printed" },
        { OPTION_LEASE, "lease", "TIME", "without --commit: they come back after TIME (store.results.lease)" },
        { OPTION_FOLLOW, "follow", NULL, "go on until interrupted" },
        OPTION_JSON_ROW,
};

struct results_request {
        uint64_t max;
        uint64_t lease_ms;
        bool has_commit;
        bool has_follow;
        bool has_json;
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int signal)
{
        (void)signal;
        is_interrupted = 1;
}

static struct store_result as_stored(const struct qv_client_result *r)
{
        return (struct store_result){
                .at_ms = r->at_ms,
                .id = span_of_text(r->id),
                .key = span_of_text(r->key),
                .handler = span_of_text(r->handler),
                .data = { r->data, r->data_size },
        };
}

/* Prints, and commits only what has been written. */
static int deliver(struct cli_store *s, const struct results_request *request, const struct qv_client_results *results)
{
        struct buffer text = { 0 };
        for (size_t i = 0; i < results->count; i++) {
                struct store_result result = as_stored(&results->items[i]);
                if (request->has_json)
                        cli_json_print(result_as_json(&result));
                else
                        result_as_text(&text, &result);
        }
        cli_text_print(&text);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void)fprintf(
                        stderr, "quiver results: cannot write: %s; nothing of this is committed\n", strerror(errno));
                return EXIT_FAILED;
        }
        if (!request->has_commit || !results->count)
                return EXIT_DONE;
        int r = qv_client_commit(s->client, results->items, results->count, NULL);
        if (r < 0)
                return cli_fail(s->command, r, qv_client_error());
        if (r > 0) {
                (void)fprintf(stderr, "quiver results: %s; a longer --lease helps\n", qv_client_error());
                return EXIT_FAILED;
        }
        return EXIT_DONE;
}

static int run(struct cli_store *s, const struct results_request *request)
{
        uint64_t left = request->max;
        while (left && !is_interrupted) {
                struct qv_client_results results = { 0 };
                uint32_t want = left < PAGE ? (uint32_t)left : PAGE;
                int r = qv_client_consume(s->client, want, request->lease_ms, &results);
                if (r < 0)
                        return cli_fail(s->command, r, qv_client_error());
                size_t count = results.count;
                int code = deliver(s, request, &results);
                qv_client_results_free(&results);
                if (code != EXIT_DONE)
                        return code;
                left -= count;
                if (count < want && !request->has_follow)
                        break;
                if (!count) {
                        const struct timespec pause = { .tv_nsec = FOLLOW_LOOK_MS * (long)NS_PER_MS };
                        (void)nanosleep(&pause, NULL);
                }
        }
        return EXIT_DONE;
}

static int take_option(struct options *o, struct results_request *request, int id)
{
        struct error error = { "" };
        switch (id) {
        case OPTION_MAX:
                if (!options_number(o->value, 1, UINT32_MAX, &request->max))
                        return options_wrong(o, "--max: %s is not a number from 1", o->value);
                return EXIT_DONE;
        case OPTION_COMMIT:
                request->has_commit = true;
                return EXIT_DONE;
        case OPTION_FOLLOW:
                request->has_follow = true;
                return EXIT_DONE;
        default:
                if (units_duration_ms(o->value, &request->lease_ms, &error) < 0 || !request->lease_ms)
                        return options_wrong(o, "--lease: %s is not a time like 30s", o->value);
                return EXIT_DONE;
        }
}

int cmd_results(int argc, char **argv)
{
        struct options o = {
                .usage = "results [--max N] [--commit] [--follow]",
                .about =
                        "Takes results that nobody holds and prints them, one a line: id, key, handler and data, with\n"
                        "tabs between them. Without --commit they come back when the lease ends.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver results --max 10\n"
                            "  quiver results --commit --json >> results.jsonl\n"
                            "  quiver results --commit --follow\n",
        };
        struct cli_words w = { 0 };
        struct results_request request = { .max = UINT64_MAX };
        struct cli_store s;
        int code = EXIT_DONE;
        options_start(&o, argc, argv);
        for (int id; code == EXIT_DONE && (id = cli_words_next(&w, &o)) != OPTIONS_END;)
                code = take_option(&o, &request, id);
        if (w.is_over)
                code = w.code;
        else if (code == EXIT_DONE && w.count)
                code = options_wrong(&o, "what is %s?", w.words[0]);
        if (w.is_over || code != EXIT_DONE)
                goto out;
        request.has_json = w.has_json;
        code = cli_open(&s, "results", w.config);
        if (code != EXIT_DONE)
                goto out;
        if (!request.lease_ms)
                request.lease_ms = s.config.store.results.lease_ms;
        struct sigaction on = { .sa_handler = on_interrupt };
        (void)sigaction(SIGINT, &on, NULL);
        (void)sigaction(SIGTERM, &on, NULL);
        code = run(&s, &request);
        cli_close(&s);
out:
        cli_words_free(&w);
        return code;
}
