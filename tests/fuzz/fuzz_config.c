/* Any bytes as a runtime.cfg: an answer, and what is accepted shows, compares and loads again as the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct config *config)
{
        struct config again = { 0 };
        struct problems problems = { 0 };
        struct config_changes changes = { 0 };
        char *shown = NULL;
        size_t shown_size = 0;
        FILE *out = open_memstream(&shown, &shown_size);
        if (!out)
                abort();
        config_show(config, out);
        (void)fclose(out);
        if (config_parse("/fuzz/again.cfg", shown, shown_size, &again, &problems) < 0)
                abort();
        config_compare(config, &again, &changes);
        if (changes.count)
                abort();
        config_changes_free(&changes);
        config_free(&again);
        problems_free(&problems);
        free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct config config = { 0 };
        struct problems problems = { 0 };
        int r = config_parse("/fuzz/runtime.cfg", size ? (const char *)data : "", size, &config, &problems);
        if ((r != 0) != (problems.errors != 0))
                abort();
        if (!r)
                check_accepted(&config);
        config_free(&config);
        problems_free(&problems);
        return 0;
}
