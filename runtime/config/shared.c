#include "config/shared.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

int shared_config_load(
        const char *path, const struct strings *set, struct shared_config **ret, struct problems *problems)
{
        struct shared_config *shared = memory_zero(1, sizeof(*shared));
        int r = config_load(path, set, &shared->config, problems);
        if (r < 0) {
                free(shared);
                return r;
        }
        shared->users = 1;
        *ret = shared;
        return 0;
}

struct shared_config *shared_config_get(struct shared_config *shared)
{
        if (shared)
                shared->users++;
        return shared;
}

void shared_config_free(struct shared_config *shared)
{
        if (!shared || --shared->users)
                return;
        config_free(&shared->config);
        free(shared);
}
