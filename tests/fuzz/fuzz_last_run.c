/* Anything in NAME.last, as bytes or nearly right: what is accepted survives put and parse unchanged. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "host/last_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_value(struct buffer *b, struct choices *c)
{
        static const char *const values[] = { "1", "2", "\"b\"", "\"1:2\"", "\"18446744073709551615:0\"",
                "\"00112233445566778899aabbccddeeff\"", "\"00112233445566778899aabbccddeefg\"", "\"\"", "null", "{}" };
        unsigned which = choose(c, 14);
        if (which < 10)
                buffer_printf(b, "%s", values[which]);
        else if (which < 12)
                buffer_printf(b, "\"%" PRIu64 ":%" PRIu64 "\"", choose_number(c), choose_number(c));
        else
                buffer_printf(b, "\"%0*d\"", (int)choose(c, 5000), 7);
}

static void put_run(struct buffer *b, struct choices *c)
{
        static const char *const right[][2] = { { "version", "1" }, { "boot", "\"b\"" }, { "alive", "\"1:2\"" },
                { "nonce", "\"00112233445566778899aabbccddeeff\"" }, { "app", "\"a\"" }, { "store", "\"s\"" },
                { "coordination", "\"c\"" }, { "session", "\"t\"" } };
        for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
                buffer_printf(b, "%c\"%s\":", i ? ',' : '{', right[i][0]);
                if (choose(c, 4))
                        buffer_printf(b, "%s", right[i][1]);
                else
                        put_value(b, c);
        }
        buffer_printf(b, "}");
}

static void check(const void *data, size_t size)
{
        static struct last_run run, back;
        struct buffer text = { 0 };
        memset(&run, 0, sizeof(run));
        memset(&back, 0, sizeof(back));
        if (last_run_parse((struct span){ data, size }, &run, NULL) < 0)
                return;
        if (last_run_put(&text, &run) < 0 ||
                last_run_parse((struct span){ (const char *)text.data, text.size }, &back, NULL) < 0 ||
                memcmp(&run, &back, sizeof(run)) != 0)
                abort();
        buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        struct buffer text = { 0 };
        check(data, size);
        put_run(&text, &c);
        check(text.data, text.size);
        buffer_free(&text);
        return 0;
}
