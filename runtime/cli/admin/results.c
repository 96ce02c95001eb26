/* results.c: what handlers returned, taken and printed; and committed, if asked. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/task.h"

#define PAGE           256u
#define FOLLOW_LOOK_MS 250

struct results_request {
        const char *config;
        uint64_t max;
        uint64_t lease_ms; /* 0: store.results.lease */
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
        struct buffer scratch = { 0 };
        for (size_t i = 0; i < results->count; i++) {
                struct store_result result = as_stored(&results->items[i]);
                struct qv_client_history history = QV_CLIENT_HISTORY_INIT;
                if (request->has_json && qv_client_result_history(results, i, &history) == 0) {
                        result.note = cli_note(&history, &scratch);
                        cli_json_print(result_as_json(&result));
                } else {
                        result_as_text(&text, &result);
                }
        }
        buffer_free(&scratch);
        cli_text_print(&text);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void)fprintf(stderr,
                        "quiver results: cannot write to standard output: %s; these results are not committed, and "
                        "come back when their lease ends\n",
                        strerror(errno));
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

static int take(struct cli_store *s, void *self)
{
        const struct results_request *request = self;
        const struct sigaction on = { .sa_handler = on_interrupt };
        uint64_t lease_ms = request->lease_ms ? request->lease_ms : s->config.store.results.lease_ms;
        uint64_t left = request->max;
        (void)sigaction(SIGINT, &on, NULL);
        (void)sigaction(SIGTERM, &on, NULL);
        while (left && !is_interrupted) {
                struct qv_client_results results = { 0 };
                uint32_t want = (uint32_t)min_u64(left, PAGE);
                int r = qv_client_consume(s->client, want, lease_ms, &results);
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

int cmd_results(int argc, char **argv)
{
        struct results_request q = { .max = UINT64_MAX };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_NUMBER("--max N", &q.max, 1, UINT32_MAX, "take at most N; else all that are there"),
                OPT_FLAG("--commit", &q.has_commit, "they are done with once they are printed"),
                OPT_DURATION("--lease TIME", &q.lease_ms, 1,
                        "without --commit: they come back after TIME (store.results.lease)"),
                OPT_FLAG("--follow", &q.has_follow, "go on until interrupted"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "results [--max N] [--commit] [--follow]",
                .about =
                        "Takes results that nobody holds and prints them, one a line: id, key, handler and data, with\n"
                        "tabs between them. Without --commit they come back when the lease ends.",
                OPTIONS_TABLE(table),
                .examples = "  quiver results --max 10\n"
                            "  quiver results --commit --json >> results.jsonl\n"
                            "  quiver results --commit --follow\n",
        };
        int code;
        return options_read(&o, argc, argv, &code) ? cli_act(&o, q.config, take, &q) : code;
}
