/* Any bytes, cut anywhere, as a connection sends them: the reader never reads outside them, what it calls a head keeps
 * to its limits, and the cuts change nothing about what comes out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "http/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

static void demand_head(const struct http_head *head)
{
        unsigned hosts = 0;
        demand(head->path.size && head->path.data[0] == '/');
        demand(head->fields_count <= HTTP_FIELDS_MAX);
        for (uint32_t i = 0; i < head->fields_count; i++) {
                const struct http_field *field = &head->fields[i];
                demand(field->name.size && field->name.size + field->value.size <= HTTP_HEAD_MAX);
                for (size_t b = 0; b < field->value.size; b++)
                        demand((unsigned char)field->value.data[b] >= ' ' || field->value.data[b] == '\t');
                hosts += span_is(field->name, SPAN_TEXT("host"));
        }
        demand(hosts == 1);
}

/* A hash of everything that comes out when the bytes come in pieces of `step`. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t step)
{
        static struct http_reader reader;
        uint64_t hash = HASH_START;
        size_t at = 0;
        http_reader_init(&reader);
        while (at < size) {
                size_t taken;
                size_t piece = size - at < step ? size - at : step;
                enum http_reading reading =
                        http_reader_feed(&reader, (struct span){ (const char *)data + at, piece }, &taken);
                demand(taken <= piece);
                at += taken;
                if (reading == READING_HEAD) {
                        demand_head(&reader.head);
                        hash = hash_bytes(hash, (const uint8_t *)reader.head.path.data, reader.head.path.size);
                } else if (reading == READING_BODY) {
                        hash = hash_bytes(hash, (const uint8_t *)reader.body.data, reader.body.size);
                } else if (reading == READING_END) {
                        http_reader_init(&reader);
                        hash = hash_bytes(hash, (const uint8_t *)"end", 3);
                } else if (reading == READING_BAD) {
                        demand(reader.status >= 400 && reader.status < 600 && reader.why);
                        return hash_bytes(hash, (const uint8_t *)"bad", 3);
                } else {
                        demand(taken == piece);
                }
        }
        return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size < 2)
                return 0;
        size_t step = 1 + data[0];
        demand(read_all(data + 1, size - 1, SIZE_MAX) == read_all(data + 1, size - 1, step));
        return 0;
}
