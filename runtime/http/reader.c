#include "http/reader.h"

#include <ctype.h>
#include <string.h>

static int refuse(struct http_reader *reader, unsigned status, const char *why)
{
        if (reader->reading != READING_BAD) {
                reader->reading = READING_BAD;
                reader->status = status;
                reader->why = why;
        }
        return -1;
}

/* Pauses the parser, so that the caller sees each event separately. */
static int stop(struct http_reader *reader, enum http_reading reading)
{
        reader->reading = reading;
        http_parser_pause(&reader->parser, 1);
        return 0;
}

static int text_add(struct http_reader *reader, const char *at, size_t size)
{
        if (reader->text_size + size > sizeof(reader->text))
                return refuse(reader, 431, "the head of the request is longer than 8 KiB");
        memcpy(reader->text + reader->text_size, at, size);
        reader->text_size += size;
        return 0;
}

static bool is_token(unsigned char c)
{
        return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* --- callbacks of the parser ------------------------------------------------------------------------------------- */

static int on_url(http_parser *parser, const char *at, size_t size)
{
        struct http_reader *reader = parser->data;
        for (size_t i = 0; i < size; i++)
                if ((unsigned char)at[i] <= ' ' || (unsigned char)at[i] >= 0x7f)
                        return refuse(reader, 400, "the request line has a byte that must be percent-encoded");
        reader->url_size += size;
        return text_add(reader, at, size);
}

static int on_field_name(http_parser *parser, const char *at, size_t size)
{
        struct http_reader *reader = parser->data;
        struct http_head *head = &reader->head;
        if (reader->is_in_body)
                return 0;
        if (reader->is_value || !head->fields_count) {
                if (head->fields_count == HTTP_FIELDS_MAX)
                        return refuse(reader, 431, "the request has more than 64 fields");
                head->fields[head->fields_count++].name.data = reader->text + reader->text_size;
                reader->is_value = false;
        }
        size_t begin = reader->text_size;
        if (text_add(reader, at, size) < 0)
                return -1;
        for (size_t i = begin; i < reader->text_size; i++) {
                if (!is_token((unsigned char)reader->text[i]))
                        return refuse(reader, 400, "the name of a field has a byte that no name may have");
                reader->text[i] = (char)tolower((unsigned char)reader->text[i]);
        }
        head->fields[head->fields_count - 1].name.size += size;
        return 0;
}

static int on_field_value(http_parser *parser, const char *at, size_t size)
{
        struct http_reader *reader = parser->data;
        struct http_head *head = &reader->head;
        if (reader->is_in_body)
                return 0;
        if (!head->fields_count)
                return refuse(reader, 400, "a field has no name");
        struct span *value = &head->fields[head->fields_count - 1].value;
        if (!reader->is_value)
                value->data = reader->text + reader->text_size;
        reader->is_value = true;
        for (size_t i = 0; i < size; i++)
                if (((unsigned char)at[i] < ' ' && at[i] != '\t') || at[i] == 0x7f)
                        return refuse(reader, 400, "the value of a field has a control character");
        value->size += size;
        return text_add(reader, at, size);
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

static enum http_verb verb_of(unsigned method)
{
        switch (method) {
        case HTTP_GET:
                return VERB_GET;
        case HTTP_HEAD:
                return VERB_HEAD;
        case HTTP_POST:
                return VERB_POST;
        case HTTP_PUT:
                return VERB_PUT;
        case HTTP_DELETE:
                return VERB_DELETE;
        default:
                return VERB_OTHER;
        }
}

static bool span_is_word(struct span value, const char *word)
{
        return value.size == strlen(word) && !strncasecmp(value.data, word, value.size);
}

/* Two servers could each use another of two such fields: for the client, the task's id or the page's origin. */
static bool is_single(struct span name)
{
        return span_is(name, SPAN_TEXT("authorization")) || span_is(name, SPAN_TEXT("idempotency-key")) ||
               span_is(name, SPAN_TEXT("origin")) || span_is(name, SPAN_TEXT("sec-fetch-site"));
}

static bool is_repeated(const struct http_head *head, uint32_t index)
{
        for (uint32_t i = 0; i < index; i++)
                if (span_is(head->fields[i].name, head->fields[index].name))
                        return true;
        return false;
}

/* Refuses repeated fields, and what a proxy in front could interpret differently. */
static int check_fields(struct http_reader *reader)
{
        struct http_head *head = &reader->head;
        unsigned hosts = 0;
        unsigned lengths = 0;
        unsigned codings = 0;
        for (uint32_t i = 0; i < head->fields_count; i++) {
                struct http_field *field = &head->fields[i];
                while (field->value.size && strchr(" \t", field->value.data[field->value.size - 1]))
                        field->value.size--;
                if (span_is(field->name, SPAN_TEXT("host")))
                        hosts++;
                else if (span_is(field->name, SPAN_TEXT("content-length")))
                        lengths++;
                else if (span_is(field->name, SPAN_TEXT("transfer-encoding"))) {
                        codings++;
                        if (!span_is_word(field->value, "chunked"))
                                return refuse(reader, 501, "the only transfer coding known here is chunked");
                } else if (span_is(field->name, SPAN_TEXT("expect"))) {
                        if (!span_is_word(field->value, "100-continue"))
                                return refuse(reader, 417, "the only expectation known here is 100-continue");
                        head->expects_continue = true;
                } else if (is_single(field->name) && is_repeated(head, i)) {
                        return refuse(reader, 400, "a field that may stand once only stands twice");
                }
        }
        if (hosts != 1)
                return refuse(reader, 400, hosts ? "the request has two Host fields" : "the request has no Host field");
        if (lengths > 1 || codings > 1 || (lengths && codings))
                return refuse(reader, 400, "the length of the body is given twice");
        if (codings && reader->parser.http_minor == 0)
                return refuse(reader, 400, "HTTP/1.0 has no chunks");
        return 0;
}

static int on_head(http_parser *parser)
{
        struct http_reader *reader = parser->data;
        struct http_head *head = &reader->head;
        if (parser->http_major != 1 || parser->http_minor > 1)
                return refuse(reader, 505, "this server speaks HTTP/1.1");
        if (check_fields(reader) < 0)
                return -1;
        if (parser->upgrade)
                return refuse(reader, 501, "this server speaks no other protocol than HTTP/1.1");
        head->verb = verb_of(parser->method);
        struct span target = { reader->text, reader->url_size };
        if (!target.size || target.data[0] != '/')
                return refuse(reader, 400, "the request line does not name a path");
        const char *question = memchr(target.data, '?', target.size);
        head->path = (struct span){ target.data, question ? (size_t)(question - target.data) : target.size };
        if (question)
                head->query = (struct span){ question + 1, target.size - head->path.size - 1 };
        head->body_bytes = parser->flags & F_CHUNKED              ? UINT64_MAX
                           : parser->content_length == UINT64_MAX ? 0
                                                                  : parser->content_length;
        head->is_kept_alive = parser->http_minor == 1 && http_should_keep_alive(parser);
        reader->is_in_body = true;
        return stop(reader, READING_HEAD);
}

static int on_body(http_parser *parser, const char *at, size_t size)
{
        struct http_reader *reader = parser->data;
        reader->body = (struct span){ at, size };
        return stop(reader, READING_BODY);
}

static int on_end(http_parser *parser)
{
        return stop(parser->data, READING_END);
}

/* --- the door ----------------------------------------------------------------------------------------------------- */

static const http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_field_name,
        .on_header_value = on_field_value,
        .on_headers_complete = on_head,
        .on_body = on_body,
        .on_message_complete = on_end,
};

void http_reader_init(struct http_reader *reader)
{
        memset(reader, 0, sizeof(*reader));
        http_parser_set_max_header_size(HTTP_HEAD_MAX); /* a setting of the whole process, the same for every reader */
        http_parser_init(&reader->parser, HTTP_REQUEST);
        reader->parser.data = reader;
}

/* The parser accepts a bare line feed as the end of a line and joins folded lines; a proxy may not.  Checks the bytes
 * of the head that were just read. */
static void look_at_lines(struct http_reader *reader, const char *data, size_t size)
{
        for (size_t i = 0; i < size && reader->reading != READING_BAD; i++) {
                if (data[i] == '\n' && reader->before != '\r')
                        (void)refuse(reader, 400, "a line of the head ends without a carriage return");
                if ((data[i] == ' ' || data[i] == '\t') && reader->before == '\n' && reader->before_that == '\r')
                        (void)refuse(reader, 400, "a line of the head is folded");
                reader->before_that = reader->before;
                reader->before = data[i];
        }
}

static void refuse_as_parsed(struct http_reader *reader)
{
        switch (HTTP_PARSER_ERRNO(&reader->parser)) {
        case HPE_INVALID_METHOD:
                (void)refuse(reader, 400, "no such method");
                return;
        case HPE_INVALID_VERSION:
                (void)refuse(reader, 400, "the request line has no version of HTTP");
                return;
        case HPE_HEADER_OVERFLOW:
                (void)refuse(reader, 431, "the head of the request is longer than 8 KiB");
                return;
        case HPE_INVALID_CONTENT_LENGTH:
        case HPE_UNEXPECTED_CONTENT_LENGTH:
        case HPE_INVALID_TRANSFER_ENCODING:
                (void)refuse(reader, 400,
                        "Content-Length or Transfer-Encoding is not valid, so the length of the body is not known");
                return;
        case HPE_INVALID_CHUNK_SIZE:
                (void)refuse(reader, 400, "the size of a chunk is no number");
                return;
        default:
                (void)refuse(reader, 400, "this is no HTTP request");
        }
}

enum http_reading http_reader_feed(struct http_reader *reader, struct span bytes, size_t *ret_taken)
{
        *ret_taken = 0;
        if (reader->reading == READING_BAD)
                return READING_BAD;
        bool was_in_body = reader->is_in_body;
        reader->reading = READING_MORE;
        if (!bytes.size)
                return READING_MORE; /* the parser would take no bytes for the end of the connection */
        http_parser_pause(&reader->parser, 0);
        size_t taken = http_parser_execute(&reader->parser, &settings, bytes.data, bytes.size);
        if (reader->reading != READING_BAD && HTTP_PARSER_ERRNO(&reader->parser) != HPE_OK &&
                HTTP_PARSER_ERRNO(&reader->parser) != HPE_PAUSED)
                refuse_as_parsed(reader);
        if (!was_in_body) {
                reader->head_bytes += taken;
                if (reader->head_bytes > HTTP_HEAD_MAX)
                        (void)refuse(reader, 431, "the head of the request is longer than 8 KiB");
                /* The parser stops before the line feed that ends the head. */
                look_at_lines(reader, bytes.data, taken + (reader->reading == READING_HEAD && taken < bytes.size));
        }
        *ret_taken = taken;
        return reader->reading;
}

const struct span *http_head_field(const struct http_head *head, const char *name)
{
        for (uint32_t i = 0; i < head->fields_count; i++)
                if (span_is(head->fields[i].name, span_of_text(name)))
                        return &head->fields[i].value;
        return NULL;
}
