#include "cli/take/say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/open.h"
#include "cli/print.h"
#include "client/take.h"
#include "view/json.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)

const char *const take_outcomes[] = { "done", "retry", "later", "reject", "unavailable", "limited", NULL };

int take_exit_code(int r)
{
        return r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EBUSY ? EXIT_UNREACHABLE
                                                                                        : EXIT_FAILED;
}

struct say_request {
        const char *config;
        const char *fence;
        uint64_t retry_after_ms;
        bool has_json;
        struct qv_client_work work;
};

#define OPT_FENCE(field) OPT_TEXT("--fence FENCE", field, "the text that the task came with")

/* HANDLER and ID; -1, or an exit code after it said why. */
static int read_words(struct options *o, struct say_request *q, int argc, char **argv)
{
        int code;
        if (!options_read(o, argc, argv, &code))
                return code;
        if (o->words_count < 2 || !q->fence)
                return options_wrong(
                        o, "a handler, the id of a task and its --fence are needed, as quiver take printed them");
        q->work = (struct qv_client_work)QV_CLIENT_WORK_INIT;
        q->work.handler = o->words[0];
        q->work.id = o->words[1];
        q->work.fence = q->fence;
        return -1;
}

static int fail(const char *command, int r, const struct error *error)
{
        (void)fprintf(stderr, "quiver take %s: %s\n", command, error->text);
        return take_exit_code(r);
}

/* --- heartbeat ---------------------------------------------------------------------------------------------------- */

static int print_kept(const struct say_request *q, const struct qv_client_kept *kept)
{
        char left[UNITS_TEXT_MAX];
        if (q->has_json) {
                json_t *o = json_object();
                view_json_number(o, "remaining_ms", kept->remaining_ms);
                (void)json_object_set_new(o, "stop", json_boolean(kept->stop));
                cli_json_print(o);
        } else {
                (void)printf("%s left%s\n", units_format_ms(left, kept->remaining_ms),
                        kept->stop ? "; stop: it was cancelled, or its timeout is over, and it gets no more" : "");
        }
        return kept->stop ? EXIT_FAILED : EXIT_DONE;
}

int take_heartbeat(int argc, char **argv)
{
        struct say_request q = { 0 };
        struct qv_client_heartbeat heartbeat = QV_CLIENT_HEARTBEAT_INIT;
        struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
        struct error error = { "" };
        struct cli_store s = { 0 };
        const char *checkpoint = NULL;
        const struct option table[] = { OPT_CONFIG(&q.config), OPT_FENCE(&q.fence),
                OPT_TEXT("--checkpoint TEXT", &checkpoint, "kept for the next start of the task"),
                OPT_JSON(&q.has_json) };
        struct options o = {
                .usage = "take heartbeat HANDLER ID --fence FENCE",
                .about = "Keeps a task that quiver take has printed for another ttl_ms. Exit code 1: it has to stop, "
                         "or it "
                         "is another's.",
                OPTIONS_TABLE(table),
                .words_max = 2,
        };
        int code = read_words(&o, &q, argc, argv);
        if (code >= 0)
                return code;
        heartbeat.checkpoint = checkpoint;
        heartbeat.checkpoint_size = checkpoint ? strlen(checkpoint) : 0;
        code = cli_load(&s, "take heartbeat", q.config, READER_COMMAND);
        if (code == EXIT_DONE) {
                int r = keep_work(s.config.state, &q.work, &heartbeat, KEEP_TIMEOUT_MS, &kept, &error);
                code = r < 0 ? fail("heartbeat", r, &error) : print_kept(&q, &kept);
        }
        cli_close(&s);
        return code;
}

/* --- finish ------------------------------------------------------------------------------------------------------- */

static int say_finish(const struct say_request *q, const char *state, const struct qv_client_finish *finish)
{
        struct error error = { "" };
        int r = finish_work(state, &q->work, finish, &error);
        if (r < 0)
                return fail("finish", r, &error);
        if (q->has_json) {
                json_t *o = json_object();
                view_json_set_text(o, "id", q->work.id);
                view_json_set_text(o, "outcome", take_outcomes[finish->outcome]);
                cli_json_print(o);
        } else {
                (void)printf("%s %s\n", q->work.id, take_outcomes[finish->outcome]);
        }
        return EXIT_DONE;
}

/* -1: it is no outcome. */
static int32_t outcome_of(const char *word)
{
        for (int32_t i = 0; take_outcomes[i]; i++)
                if (!strcmp(word, take_outcomes[i]))
                        return i;
        return -1;
}

/* A result or an error: the word, or for "-" standard input. */
static int read_text(const char *word, struct buffer *to, struct error *error)
{
        if (strcmp(word, "-") != 0) {
                buffer_put(to, word, strlen(word));
                return 0;
        }
        int r = cli_read_all(STDIN_FILENO, TEXT_MAX, to);
        return r < 0 ? error_set(error, -EINVAL, "standard input: %s", strerror(-r)) : 0;
}

static int run_finish(const struct say_request *q, struct qv_client_finish *finish, const char *word)
{
        struct cli_store s = { 0 };
        struct error error = { "" };
        struct buffer text = { 0 };
        int code = cli_load(&s, "take finish", q->config, READER_COMMAND);
        if (code == EXIT_DONE && word && read_text(word, &text, &error) < 0)
                code = fail("finish", -EINVAL, &error);
        if (word && finish->outcome == QV_CLIENT_FINISH_DONE) {
                finish->result = buffer_text(&text);
                finish->result_size = text.size;
        } else if (word) {
                finish->error = buffer_text(&text);
        }
        if (code == EXIT_DONE)
                code = say_finish(q, s.config.state, finish);
        buffer_free(&text);
        cli_close(&s);
        return code;
}

int take_finish(int argc, char **argv)
{
        struct say_request q = { 0 };
        struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
        const struct option table[] = { OPT_CONFIG(&q.config), OPT_FENCE(&q.fence),
                OPT_DURATION("--retry-after TIME", &q.retry_after_ms, 1,
                        "retry, later, unavailable, limited: so long (default: as the handler's settings say)"),
                OPT_JSON(&q.has_json) };
        struct options o = {
                .usage = "take finish HANDLER ID --fence FENCE done|retry|later|reject|unavailable|limited [TEXT|-]",
                .about = "Says how a task that quiver take has printed has ended. TEXT is the result of done, and the "
                         "error "
                         "of the others;\n"
                         "- reads it from standard input. Exit code 1: refused, since the task was ended or is "
                         "another's.",
                OPTIONS_TABLE(table),
                .words_max = 4,
                .examples =
                        "  quiver take finish mail 1m7mbn8tr7ppbrg3637w-1 --fence 1794905906.1.281474976711680 done "
                        "sent\n"
                        "  quiver take finish mail 1m7mbn8tr7ppbrg3637w-1 --fence 1794905906.1.281474976711680 retry "
                        "'no route' --retry-after 30s\n",
        };
        int code = read_words(&o, &q, argc, argv);
        if (code >= 0)
                return code;
        finish.outcome = o.words_count > 2 ? outcome_of(o.words[2]) : -1;
        finish.retry_after_ms = q.retry_after_ms;
        if (finish.outcome < 0)
                return options_wrong(&o, "how did it end? done, retry, later, reject or unavailable");
        return run_finish(&q, &finish, o.words_count > 3 ? o.words[3] : NULL);
}
