/* Takes the lock that its payload names and says what came of it: "take NAME" ends with it, "hold NAME FILE" holds it
 * until that file is there, after it has made FILE.held, "die NAME FILE" does the same and then crashes.  No villain,
 * but built like them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quiver/plugin.h>

static void hold(const struct qv_task *task, const char *file)
{
        char held[300];
        (void)snprintf(held, sizeof(held), "%s.held", file);
        FILE *made = fopen(held, "w");
        if (made)
                (void)fclose(made);
        while (access(file, F_OK) != 0 && !qv_stop(task))
                (void)usleep(1000);
}

static int32_t handle(void *self, const struct qv_task *task)
{
        char verb[16] = "", name[64] = "", file[256] = "", text[64];
        uint64_t token = 0;
        (void)self;
        (void)sscanf((const char *)task->payload, "%15s %63s %255s", verb, name, file);
        int32_t r = task->host->trylock(task->host, name, 60000, &token);
        if (!r && *file)
                hold(task, file);
        if (!strcmp(verb, "die"))
                abort();
        int n = snprintf(text, sizeof(text), "%" PRId32 " %" PRIu64, r, token);
        return task->host->result(task->host, task, text, (size_t)n) ? QV_RETRY : QV_DONE;
}

QV_PLUGIN("locks", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
