#include "cli/room/room_append.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/print.h"
#include "client/rooms.h"
#include "view/json.h"

#define READ_BYTES 65536u

/* As many of them as one call takes. */
static uint32_t call_size(const struct span *entries, size_t count)
{
        uint32_t n = 0;
        size_t bytes = 0;
        while (n < count && n < STORE_CALL_TASKS && (!n || bytes + entries[n].size <= STORE_CALL_BYTES))
                bytes += entries[n++].size;
        return n;
}

static int append_all(struct cli_store *s, const struct room_appending *a, const struct span *entries, size_t count)
{
        struct error error = { "" };
        while (count) {
                uint32_t n = call_size(entries, count);
                struct store_room_append append = {
                        .name = span_of_text(a->room), .entries = entries, .entries_count = n
                };
                int r = client_room_append(s->client, &append, &error);
                if (r < 0)
                        return cli_fail(s->command, r, error.text);
                for (uint32_t i = 0; i < n; i++) {
                        json_t *o = a->has_json ? json_object() : NULL;
                        if (!o) {
                                (void)printf("%" PRIu64 "\n", append.number + i);
                                continue;
                        }
                        view_json_number(o, "number", append.number + i);
                        cli_json_print(o);
                }
                (void)fflush(stdout);
                entries += n;
                count -= n;
        }
        return EXIT_DONE;
}

/* The whole lines of what was read, and at the end the last one without a newline; what is left stays in the buffer. */
static int append_lines(struct cli_store *s, const struct room_appending *a, struct buffer *input, bool is_end)
{
        struct span *entries = NULL;
        size_t count = 0;
        size_t at = 0;
        while (at < input->size) {
                const uint8_t *begin = input->data + at;
                const uint8_t *newline = memchr(begin, '\n', input->size - at);
                if (!newline && !is_end)
                        break;
                size_t size = newline ? (size_t)(newline - begin) : input->size - at;
                entries = array_grow(entries, count, sizeof(*entries));
                entries[count++] = (struct span){ (const char *)begin, size };
                at += size + (newline != NULL);
        }
        int code = append_all(s, a, entries, count);
        free(entries);
        memmove(input->data, input->data + at, input->size - at);
        input->size -= at;
        return code;
}

static int follow_input(struct cli_store *s, const struct room_appending *a)
{
        struct buffer input = { 0 };
        int code = EXIT_DONE;
        bool is_end = false;
        while (code == EXIT_DONE && !is_end) {
                ssize_t n = read(STDIN_FILENO, buffer_reserve(&input, READ_BYTES), READ_BYTES);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        code = cli_fail(s->command, -EINVAL, strerror(errno));
                else
                        input.size += (size_t)n;
                is_end = n == 0;
                if (code == EXIT_DONE && input.size)
                        code = append_lines(s, a, &input, is_end);
        }
        buffer_free(&input);
        return code;
}

static int append_input(struct cli_store *s, const struct room_appending *a)
{
        struct buffer input = { 0 };
        int r = cli_read_all(STDIN_FILENO, s->config.store.payload_max_bytes, &input);
        struct span entry = { (const char *)input.data, input.size };
        int code = r == -EMSGSIZE ? cli_fail(s->command, r, "standard input is longer than store.max_payload")
                   : r < 0        ? cli_fail(s->command, -EINVAL, strerror(-r))
                                  : append_all(s, a, &entry, 1);
        buffer_free(&input);
        return code;
}

int room_append(struct cli_store *s, const struct room_appending *a)
{
        struct span *entries = NULL;
        if (a->has_lines)
                return follow_input(s, a);
        if (!a->words_count || (a->words_count == 1 && !strcmp(a->words[0], "-")))
                return append_input(s, a);
        for (size_t i = 0; i < a->words_count; i++) {
                entries = array_grow(entries, i, sizeof(*entries));
                entries[i] = span_of_text(a->words[i]);
        }
        int code = append_all(s, a, entries, a->words_count);
        free(entries);
        return code;
}
