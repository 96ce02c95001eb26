/* fsck.c: does the store hold what it says it holds? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/open.h"
#include "cli/show.h"

enum { OPTION_SHARD = OPTION_OWN };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_SHARD, "shard", "N", "only this one" },
        OPTION_JSON_ROW,
};

struct sum {
        uint32_t shards;
        uint64_t tasks;
        uint64_t problems;
        struct buffer report;
};

static int check_shards(struct cli_store *s, uint32_t first, uint32_t count, struct sum *sum)
{
        struct error error = { "" };
        for (uint32_t shard = first; shard < first + count; shard++) {
                uint64_t tasks = 0;
                uint32_t problems = 0;
                int r = client_fsck(s->client, shard, &tasks, &problems, &sum->report, &error);
                if (r < 0)
                        return cli_fail(s->command, r, error.text);
                sum->shards++;
                sum->tasks += tasks;
                sum->problems += problems;
        }
        return sum->problems ? EXIT_FAILED : EXIT_DONE;
}

static void report(struct sum *sum, bool has_json)
{
        const char *text = buffer_text(&sum->report);
        if (has_json) {
                json_t *o = json_object();
                cli_json_number(o, "shards", sum->shards);
                cli_json_number(o, "tasks", sum->tasks);
                cli_json_number(o, "problems", sum->problems);
                cli_json_bytes(o, "report", text, sum->report.size);
                cli_json_print(o);
                return;
        }
        (void)fputs(text, stderr);
        (void)printf("%u shard%s, %" PRIu64 " task%s: ", sum->shards, show_plural(sum->shards), sum->tasks,
                show_plural(sum->tasks));
        if (sum->problems)
                (void)printf("%" PRIu64 " problem%s\n", sum->problems, show_plural(sum->problems));
        else
                (void)printf("sound\n");
}

int cmd_fsck(int argc, char **argv)
{
        struct options o = {
                .usage = "fsck [--shard N]",
                .about = "Counts every task and compares: each in exactly one state, every counter right, nothing left "
                         "over.\nReads all of the store, changes nothing, and may run while hosts do.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver fsck\n"
                            "  quiver fsck --shard 12 --json\n",
        };
        struct cli_words w = { 0 };
        struct cli_store s;
        struct sum sum = { 0 };
        const char *only = NULL;
        options_start(&o, argc, argv);
        while (cli_words_next(&w, &o) == OPTION_SHARD)
                only = o.value;
        int code = w.code;
        uint64_t shard = 0;
        if (!w.is_over && w.count)
                code = options_wrong(&o, "what is %s?", w.words[0]);
        else if (!w.is_over && only && !options_number(only, 0, SHARDS_MAX - 1, &shard))
                code = options_wrong(&o, "--shard: %s is not a number from 0 to %u", only, SHARDS_MAX - 1);
        if (w.is_over || code != EXIT_DONE)
                goto out;
        code = cli_open(&s, "fsck", w.config);
        if (code != EXIT_DONE)
                goto out;
        if (shard >= s.info->shards) {
                (void)fprintf(
                        stderr, "quiver fsck: there is no shard %s; the store has 0 to %u\n", only, s.info->shards - 1);
                code = EXIT_FAILED;
        } else {
                code = check_shards(&s, (uint32_t)shard, only ? 1 : s.info->shards, &sum);
                if (code != EXIT_UNREACHABLE)
                        report(&sum, w.has_json);
        }
        buffer_free(&sum.report);
        cli_close(&s);
out:
        cli_words_free(&w);
        return code;
}
