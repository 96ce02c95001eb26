#include "client/recipes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "client/call.h"
#include "coord/lock.h"

int client_recipe_check(const char *name, struct error *error)
{
        size_t size = name ? strlen(name) : 0;
        if (size && size <= 200 && name[0] != '.' && strspn(name, LOCK_NAME_BYTES) == size)
                return 0;
        return error_set(
                error, -EINVAL, "a name is 1 to 200 of A-Z a-z 0-9 . _ : @ %% + -, and does not begin with a dot");
}

void client_recipe_nonce(char ret_nonce[RECIPE_NONCE_SIZE])
{
        uint8_t nonce[16];
        if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
                abort();
        (void)units_hex(ret_nonce, nonce, sizeof(nonce));
}

void client_recipe_says(char ret_says[QUEUE_SAYS_MAX], const char *reason)
{
        char machine[65] = "", what[256];
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        (void)snprintf(what, sizeof(what), "%s", reason ? reason : program_invocation_short_name);
        what[strcspn(what, "\n")] = 0;
        (void)snprintf(ret_says, QUEUE_SAYS_MAX, "machine=%s pid=%d since_ms=%" PRIu64 " command=%s\n", machine,
                (int)getpid(), clock_wall_ms(), what);
}

void client_recipe_answer(struct client_call *call)
{
        call->request.done(&call->request);
}
