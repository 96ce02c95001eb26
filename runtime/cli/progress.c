#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"

#define PROGRESS_MS 200u
#define BAR         20u

static void put_bar(const struct cli_progress *p, uint64_t part, uint64_t whole, uint64_t now_ms)
{
        char bar[BAR + 1];
        char left[UNITS_TEXT_MAX];
        double share = (double)min_u64(part, whole) / (double)whole;
        double took_ms = (double)(now_ms - p->began_ms);
        memset(bar, '.', BAR);
        memset(bar, '#', (size_t)(share * BAR));
        bar[BAR] = 0;
        (void)fprintf(stderr, "  [%s] %.0f %%", bar, 100 * share);
        if (share > 0 && took_ms >= 1000)
                (void)fprintf(stderr, ", %s left", units_format_ms(left, (uint64_t)(took_ms * (1 - share) / share)));
}

void progress_show_part(struct cli_progress *p, uint64_t done, uint64_t part, uint64_t whole)
{
        uint64_t now_ms = clock_boot_ms();
        if (!p->began_ms) {
                p->began_ms = now_ms;
                p->began_at = done;
        }
        if (now_ms < max_u64(p->shown_ms, p->began_ms) + PROGRESS_MS || !isatty(STDERR_FILENO))
                return;
        p->shown_ms = now_ms;
        (void)fprintf(stderr, "\r\033[K%s: %" PRIu64, p->what, done);
        if (p->all)
                (void)fprintf(stderr, " of %" PRIu64, p->all);
        (void)fprintf(stderr, " %s, %" PRIu64 "/s", p->unit,
                (done - min_u64(done, p->began_at)) * 1000 / (now_ms - p->began_ms + 1));
        if (whole)
                put_bar(p, part, whole, now_ms);
        (void)fflush(stderr);
}

void progress_show(struct cli_progress *p, uint64_t done)
{
        progress_show_part(p, done, done, p->all);
}

void progress_end(struct cli_progress *p)
{
        if (p->shown_ms)
                (void)fprintf(stderr, "\r\033[K");
        p->shown_ms = 0;
}
