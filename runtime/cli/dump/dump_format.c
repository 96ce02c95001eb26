/* dump_format.c: what dump and load share: whether a host works on the store, and the mark at the end. */
#include "cli/dump/dump_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "view/text.h"

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

const char *dump_records_text(const struct dump_records *records, char text[DUMP_RECORDS_TEXT])
{
        const struct {
                uint64_t count;
                const char *what;
        } all[] = { { records->names, "idempotency key" }, { records->schedules, "schedule" },
                { records->rooms, "room" } };
        int size = 0;
        text[0] = 0;
        for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (all[i].count)
                        size += snprintf(text + size, DUMP_RECORDS_TEXT - (size_t)size, ", %" PRIu64 " %s%s",
                                all[i].count, all[i].what, text_plural(all[i].count));
        return text;
}
