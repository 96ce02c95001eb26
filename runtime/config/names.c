#include "config/names.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/timestamp.h"

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"
#define LETTERS LOWER UPPER

/* Whether `text` is 1 to `most` characters of `set` and begins with one of `first`. */
static bool is_made_of(const char *text, const char *first, const char *set, size_t most)
{
        size_t size = strlen(text);
        return size >= 1 && size <= most && strchr(first, *text) && strspn(text, set) == size;
}

int name_check_app(const char *text, struct error *error)
{
        if (is_made_of(text, LOWER DIGITS "_-", LOWER DIGITS "_-", 64))
                return 0;
        return error_set(error, -EINVAL, "\"%.80s\" is not 1 to 64 of a-z, 0-9, _ and -", text);
}

int name_check_handler(const char *text, struct error *error)
{
        if (is_made_of(text, LETTERS, LETTERS DIGITS "_-", NAME_HANDLER_MAX))
                return 0;
        return error_set(error, -EINVAL, "\"%.80s\" is not a letter and up to 63 more of A-Z, a-z, 0-9, _ and -", text);
}

int name_check_host(const char *text, struct error *error)
{
        if (is_made_of(text, LETTERS DIGITS, LETTERS DIGITS "_.-", 64))
                return 0;
        return error_set(error, -EINVAL,
                "\"%.80s\" is not a letter or digit and up to 63 more of A-Z, a-z, 0-9, _, . and -", text);
}

int name_check_user(const char *text, struct error *error)
{
        size_t size = strlen(text);
        for (const char *c = text; *c; c++)
                if (!isgraph((unsigned char)*c) || *c == ':')
                        size = 0;
        if (size >= 1 && size <= 128)
                return 0;
        return error_set(error, -EINVAL, "a user is 1 to 128 characters without spaces and colons");
}

int name_check_environment(const char *text, struct error *error)
{
        if (is_made_of(text, LETTERS "_", LETTERS DIGITS "_", 128))
                return 0;
        /* The message does not repeat the text: some people write the password itself here. */
        return error_set(error, -EINVAL, "that is not the name of an environment variable: A-Z, a-z, 0-9 and _");
}

int name_check_limit_by(const char *text, struct error *error)
{
        static const char header[] = "header.";
        bool is_header = !strncmp(text, header, sizeof(header) - 1);
        if (!strcmp(text, "key") ||
                (is_header && is_made_of(text + sizeof(header) - 1, LETTERS DIGITS "_-", LETTERS DIGITS "_-", 64)))
                return 0;
        return error_set(error, -EINVAL, "\"%.80s\" is neither \"key\" nor \"header.NAME\"", text);
}

int name_check_listen(const char *text, struct error *error)
{
        const char *colon = strrchr(text, ':');
        size_t digits = colon ? strspn(colon + 1, DIGITS) : 0;
        bool has_port = digits >= 1 && digits <= 5 && !colon[1 + digits] && strtol(colon + 1, NULL, 10) <= 65535;
        bool is_bracketed = colon && text[0] == '[' && colon > text + 2 && colon[-1] == ']';
        bool has_address = colon && colon > text && (is_bracketed || memchr(text, ':', (size_t)(colon - text)) == NULL);
        if (has_port && has_address && strcspn(text, " \t/@") == strlen(text))
                return 0;
        return error_set(
                error, -EINVAL, "\"%.80s\" is not ADDRESS:PORT, such as \"127.0.0.1:7070\" or \"[::1]:7070\"", text);
}

int name_check_traces_url(const char *text, struct error *error)
{
        size_t scheme = !strncmp(text, "http://", 7) ? 7 : !strncmp(text, "https://", 8) ? 8 : 0;
        size_t place = scheme ? strcspn(text + scheme, "/") : 0;
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c <= ' ' || *c == 0x7f)
                        place = 0;
        /* URLs are shown and logged, so they must not hold a login. */
        if (place && memchr(text + scheme, '@', place))
                return error_set(error, -EINVAL, "has a login; write it as a header into traces.headers_file");
        if (!place)
                return error_set(error, -EINVAL,
                        "\"%.80s\" is not http://HOST:PORT/PATH or https://HOST:PORT/PATH, such as "
                        "\"http://127.0.0.1:4318/v1/traces\"",
                        text);
        return 0;
}

int name_check_header_line(const char *text, struct error *error)
{
        static const char *const secrets[] = { "authorization", "cookie", "token", "key", "secret", "password" };
        char name[65] = "";
        size_t size = strspn(text, LETTERS DIGITS "-_.");
        bool is_good = size >= 1 && size < sizeof(name) && text[size] == ':';
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                is_good &= *c >= ' ' && *c != 0x7f;
        if (!is_good)
                return error_set(error, -EINVAL, "\"%.40s\" is not NAME: VALUE", text);
        for (size_t i = 0; i < size; i++)
                name[i] = (char)tolower((unsigned char)text[i]);
        for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
                if (strstr(name, secrets[i]))
                        return error_set(error, -EINVAL, "%s may be a secret; write it into headers_file", name);
        return 0;
}

int name_check_plugin(const char *text, struct error *error)
{
        size_t size = strlen(text);
        if (!size || text[size - 1] == '/')
                return error_set(error, -EINVAL, "\"%.80s\" does not name a file; write \"NAME.so\"", text);
        return 0;
}

int name_check_time(const char *text, struct error *error)
{
        uint64_t ms;
        return timestamp_parse(text, false, 0, &ms, error);
}

int name_check_machine(const char *text, struct error *error)
{
        size_t digits = strspn(text, DIGITS);
        if (!strcmp(text, "address") || (digits && digits <= 7 && !text[digits]))
                return 0;
        return error_set(error, -EINVAL, "\"%.80s\" is neither a number nor \"address\"", text);
}
