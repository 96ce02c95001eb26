/* dump_format.c: what dump and load share: how far they are, and whether a host works on the store. */
#include "cli/dump/dump_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define PROGRESS_MS 200u

void dump_progress(struct dump_progress *p, uint64_t tasks)
{
        uint64_t now_ms = clock_boot_ms();
        if (now_ms < p->shown_ms + PROGRESS_MS || !isatty(STDERR_FILENO))
                return;
        p->shown_ms = now_ms;
        (void)fprintf(stderr, "\r\033[K%s: %" PRIu64, p->what, tasks);
        if (p->all)
                (void)fprintf(stderr, " of %" PRIu64, p->all);
        (void)fprintf(stderr, " tasks");
}

void dump_progress_end(struct dump_progress *p)
{
        if (p->shown_ms)
                (void)fprintf(stderr, "\r\033[K");
        p->shown_ms = 0;
}

int dump_check_idle(struct cli_store *s)
{
        struct error error = { "" };
        struct store_counts *counts = memory_zero(s->info->shards, sizeof(*counts));
        int code = EXIT_DONE;
        int r = client_count(s->client, 0, s->info->shards, counts, &error);
        if (r < 0)
                code = cli_fail(s->command, r, error.text);
        for (uint32_t i = 0; i < s->info->shards && code == EXIT_DONE; i++) {
                if (!counts[i].is_held || !counts[i].left_ms)
                        continue;
                (void)fprintf(stderr, "quiver %s: a host works on shard %u; stop all hosts of the app first\n",
                        s->command, i);
                code = EXIT_FAILED;
        }
        free(counts);
        return code;
}
