/* vet_command.c: a payload as something to type, so that what was found can be seen again. */
#include <inttypes.h>
#include <string.h>

#include "cli/vet/vet.h"

#define TYPED_MAX 200 /* bytes of a payload that stand in the command itself */

static void put_quoted(struct buffer *to, const char *text, size_t size)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
        bool is_plain = size > 0;
        for (size_t i = 0; i < size; i++)
                is_plain = is_plain && memchr(plain, text[i], sizeof(plain) - 1);
        if (is_plain) {
                buffer_put(to, text, size);
                return;
        }
        buffer_put(to, "'", 1);
        for (size_t i = 0; i < size; i++)
                if (text[i] == '\'')
                        buffer_put(to, "'\\''", 4);
                else
                        buffer_put(to, text + i, 1);
        buffer_put(to, "'", 1);
}

/* Printable ASCII, short, and not the word that means standard input. */
static bool can_be_typed(const struct buffer *payload)
{
        if (payload->size > TYPED_MAX || (payload->size == 1 && payload->data[0] == '-'))
                return false;
        for (size_t i = 0; i < payload->size; i++)
                if (payload->data[i] < ' ' || payload->data[i] > '~')
                        return false;
        return true;
}

static void put_arguments(const struct vet_request *request, struct buffer *to)
{
        put_quoted(to, request->args.plugin, strlen(request->args.plugin));
        if (request->args.config) {
                buffer_printf(to, " --config ");
                put_quoted(to, request->args.config, strlen(request->args.config));
        }
        for (size_t i = 0; i < request->args.sets.count; i++) {
                buffer_printf(to, " --set ");
                put_quoted(to, request->args.sets.items[i], strlen(request->args.sets.items[i]));
        }
}

void vet_put_command(const struct vet_request *request, const char *more, uint64_t number, const struct buffer *payload,
        struct buffer *to)
{
        bool is_typed = can_be_typed(payload);
        if (!is_typed) {
                buffer_printf(to, "quiver vet ");
                put_quoted(to, request->args.plugin, strlen(request->args.plugin));
                if (request->corpus_path) {
                        buffer_printf(to, " --corpus ");
                        put_quoted(to, request->corpus_path, strlen(request->corpus_path));
                }
                buffer_printf(to, " --seed %" PRIu64 " --print %" PRIu64 " | ", request->seed, number);
        }
        buffer_printf(to, "quiver try ");
        put_arguments(request, to);
        buffer_printf(to, "%s --payload ", more);
        if (is_typed)
                put_quoted(to, (const char *)payload->data, payload->size);
        else
                buffer_printf(to, "-");
}
