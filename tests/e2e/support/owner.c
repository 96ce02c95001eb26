/* owner.c: plays the host for end-to-end tests of the commands.
 *
 *         owner URL APP SHARDS create              makes the store
 *         owner URL APP SHARDS work VERDICT        works off what is there, and releases the shards
 *         owner URL APP SHARDS own VERDICT         the same, and keeps the shards
 *         owner URL APP SHARDS announce DOCUMENT   publishes a status document
 *
 * VERDICT: echo (done, the payload is the result), second (the same, but not at the first start), done, reject, retry,
 * hold, keep (leaves it in flight). Prints `HANDLER KEY PAYLOAD` for each task. */
#include "owner.h"

#include <unistd.h>

#include "store/admin.h"

static char result[2 << 20];

static struct store_outcome judge(void *self, const struct store_task *task)
{
        const char *verdict = self;
        const struct envelope *e = &task->envelope;
        (void)printf("%.*s %.*s ", (int)e->handler.size, e->handler.data, (int)e->key.size, e->key.data);
        (void)fwrite(e->payload.data, 1, e->payload.size, stdout);
        (void)putchar('\n');
        if (!strcmp(verdict, "reject"))
                return (struct store_outcome){ .kind = STORE_DEAD,
                        .cost = COST_ATTEMPT,
                        .reason = SPAN_TEXT("rejected"),
                        .error = SPAN_TEXT("no such user") };
        if (!strcmp(verdict, "second") && !task->note.attempts)
                return (struct store_outcome){
                        .kind = STORE_RETRY, .cost = COST_ATTEMPT, .error = SPAN_TEXT("connection refused")
                };
        if (!strcmp(verdict, "retry"))
                return (struct store_outcome){ .kind = STORE_RETRY,
                        .cost = COST_ATTEMPT,
                        .delay_ms = 3600000,
                        .error = SPAN_TEXT("connection refused") };
        if (!strcmp(verdict, "hold"))
                return (struct store_outcome){ .kind = STORE_HOLD,
                        .cost = COST_ATTEMPT,
                        .reason = SPAN_TEXT("exhausted"),
                        .error = SPAN_TEXT("gave up") };
        if (!strcmp(verdict, "keep"))
                return (struct store_outcome){ .kind = STORE_START, .holder = SPAN_TEXT("owner") };
        if (!strcmp(verdict, "done"))
                return (struct store_outcome){ .kind = STORE_DONE };
        memcpy(result, e->payload.data, e->payload.size);
        return (struct store_outcome){ .kind = STORE_DONE, .has_result = true, .result = { result, e->payload.size } };
}

static void announce(struct owner *o, const char *document)
{
        struct store_status_put put = {
                .request.done = owner_on_done, .document = { document, strlen(document) }, .keep_ms = 600000
        };
        memset(put.nonce, 7, STORE_NONCE_SIZE);
        store_status_put(o->store, &put);
        owner_wait(o, &put.request, "announce");
}

int main(int argc, char **argv)
{
        struct owner o;
        if (argc < 5 || (strcmp(argv[4], "create") != 0 && argc < 6)) {
                (void)fprintf(stderr, "usage: owner URL APP SHARDS create|work|own|announce …\n");
                return 2;
        }
        const char *verb = argv[4];
        owner_open(&o, argv[1], argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
        if (!strcmp(verb, "announce"))
                announce(&o, argv[5]);
        if (!strcmp(verb, "work") || !strcmp(verb, "own")) {
                owner_acquire(&o);
                (void)owner_work(&o, judge, argv[5]);
        }
        if (!strcmp(verb, "work"))
                owner_release(&o);
        owner_close(&o);
        return 0;
}
