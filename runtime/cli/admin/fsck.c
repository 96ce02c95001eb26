/* fsck.c: does the store hold what it says it holds?  And if not, what can be done about it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin/fsck_ids.h"
#include "cli/command.h"
#include "cli/dump/dump_format.h"
#include "cli/open.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "view/json.h"
#include "view/text.h"

struct fsck_request {
        const char *config;
        uint32_t shard; /* UINT32_MAX: all */
        bool is_repair;
        bool has_json;
};

struct sum {
        uint32_t shards;
        uint64_t tasks;
        uint64_t problems;
        uint64_t mended;
        uint64_t equal_ids; /* tasks that have the id of another one */
        bool is_repair;
        struct buffer report;
};

/* Only mentioned, and only where the rest is sound: it takes a list of every task. */
static void check_ids(struct cli_store *s, uint32_t shard, struct sum *sum)
{
        struct error error = { "" };
        uint64_t count = 0;
        if (fsck_equal_ids(s, shard, &sum->report, &count, &error) < 0)
                buffer_printf(
                        &sum->report, "shard %" PRIu32 ": the ids could not be compared: %s\n", shard, error.text);
        sum->equal_ids += count;
}

static int check_shards(struct cli_store *s, uint32_t first, uint32_t count, struct sum *sum)
{
        struct error error = { "" };
        struct cli_progress progress = { .what = "fsck", .unit = "shards", .all = count };
        for (uint32_t shard = first; shard < first + count; shard++) {
                progress_show(&progress, shard - first);
                struct store_fsck fsck = { .shard = shard, .is_repair = sum->is_repair };
                int r = client_fsck(s->client, &fsck, &sum->report, &error);
                if (r < 0) {
                        progress_end(&progress);
                        return cli_fail(s->command, r, error.text);
                }
                sum->shards++;
                sum->tasks += fsck.tasks;
                sum->problems += fsck.problems;
                sum->mended += fsck.mended;
                if (!fsck.problems)
                        check_ids(s, shard, sum);
        }
        progress_end(&progress);
        return sum->problems > sum->mended ? EXIT_FAILED : EXIT_DONE;
}

static void report(struct sum *sum, bool has_json)
{
        const char *text = buffer_text(&sum->report);
        if (has_json) {
                json_t *o = json_object();
                view_json_number(o, "shards", sum->shards);
                view_json_number(o, "tasks", sum->tasks);
                view_json_number(o, "problems", sum->problems);
                if (sum->is_repair)
                        view_json_number(o, "mended", sum->mended);
                view_json_number(o, "equal_ids", sum->equal_ids);
                view_json_bytes(o, "report", text, sum->report.size);
                cli_json_print(o);
                return;
        }
        (void)fputs(text, stderr);
        (void)printf("%u shard%s, %" PRIu64 " task%s: ", sum->shards, text_plural(sum->shards), sum->tasks,
                text_plural(sum->tasks));
        if (!sum->problems && sum->equal_ids)
                (void)printf("sound; %" PRIu64 " task%s the id of another one\n", sum->equal_ids,
                        sum->equal_ids == 1 ? " has" : "s have");
        else if (!sum->problems)
                (void)printf("sound\n");
        else if (sum->is_repair)
                (void)printf("%" PRIu64 " problem%s, %" PRIu64 " mended\n", sum->problems, text_plural(sum->problems),
                        sum->mended);
        else
                (void)printf("%" PRIu64 " problem%s\n", sum->problems, text_plural(sum->problems));
}

static int fsck(struct cli_store *s, void *self)
{
        const struct fsck_request *q = self;
        struct sum sum = { .is_repair = q->is_repair };
        bool is_one = q->shard != UINT32_MAX;
        if (is_one && q->shard >= s->info->shards) {
                (void)fprintf(stderr, "quiver fsck: there is no shard %u; the store has 0 to %u\n", q->shard,
                        s->info->shards - 1);
                return EXIT_FAILED;
        }
        int code = q->is_repair ? dump_check_idle(s) : EXIT_DONE;
        if (code == EXIT_DONE)
                code = check_shards(s, is_one ? q->shard : 0, is_one ? 1 : s->info->shards, &sum);
        if (sum.shards && code != EXIT_UNREACHABLE)
                report(&sum, q->has_json);
        buffer_free(&sum.report);
        return code;
}

int cmd_fsck(int argc, char **argv)
{
        struct fsck_request q = { .shard = UINT32_MAX };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_NUMBER("--shard N", &q.shard, 0, SHARDS_MAX - 1, "only this one"),
                OPT_FLAG("--repair", &q.is_repair, "mend what can be mended without losing a task; no host may run"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "fsck [--shard N] [--repair]",
                .about = "Counts every task and compares: each in exactly one state, every counter right, nothing left "
                         "over.\nMentions tasks that have the id of another one: no damage, but two dumps of the same "
                         "tasks look so.\nReads all of the store, and may run while hosts do. With --repair none may; "
                         "every "
                         "repair is named, and what\nis not mended takes a person: quiver dump, and quiver load into "
                         "a new store.",
                OPTIONS_TABLE(table),
                .examples = "  quiver fsck\n"
                            "  quiver fsck --shard 12 --json\n"
                            "  quiver fsck --repair\n",
        };
        int code;
        return options_read(&o, argc, argv, &code) ? cli_act(&o, q.config, fsck, &q) : code;
}
