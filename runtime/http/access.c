#include "http/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/units.h"

#define FILE_MAX   ((size_t)64 * 1024)
#define MADE_BYTES 24u /* random bytes in a token that we make */

static const struct {
        const char *name;
        unsigned roles;
} role_names[] = {
        { "read", ROLE_READ },
        { "submit", ROLE_SUBMIT },
        { "work", ROLE_WORK },
        { "consume", ROLE_CONSUME },
        { "operate", ROLE_OPERATE },
        { "all", ROLE_ALL },
};

const char *http_role_name(unsigned roles)
{
        for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++)
                if (roles & role_names[i].roles)
                        return role_names[i].name;
        return "no role";
}

void http_access_free(struct http_access *access)
{
        if (access->tokens)
                explicit_bzero(access->tokens, access->tokens_count * sizeof(*access->tokens));
        free(access->tokens);
        strings_free(&access->hosts);
        *access = (struct http_access){ 0 };
}

/* --- files of tokens ---------------------------------------------------------------------------------------------- */

static int parse_roles(char *text, unsigned *ret_roles, struct error *error)
{
        unsigned roles = 0;
        char *rest = NULL;
        for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
                size_t i = 0;
                while (i < sizeof(role_names) / sizeof(role_names[0]) && strcmp(word, role_names[i].name) != 0)
                        i++;
                if (i == sizeof(role_names) / sizeof(role_names[0]))
                        return error_set(error, -EINVAL,
                                "%s is no role; there are read, submit, work, consume, operate, all", word);
                roles |= role_names[i].roles;
        }
        *ret_roles = roles;
        return 0;
}

static int parse_line(char *line, struct http_token *ret_token, struct error *error)
{
        char *rest = NULL;
        char *name = strtok_r(line, " \t", &rest);
        char *roles = strtok_r(NULL, " \t", &rest);
        char *token = strtok_r(NULL, " \t", &rest);
        if (!name || !roles || !token || strtok_r(NULL, " \t", &rest))
                return error_set(error, -EINVAL, "a line is NAME ROLE[,ROLE...] TOKEN");
        if (strlen(name) > HTTP_NAME_MAX)
                return error_set(error, -EINVAL, "the name has more than %u bytes", HTTP_NAME_MAX);
        if (strlen(token) < HTTP_TOKEN_MIN || strlen(token) > HTTP_TOKEN_MAX)
                return error_set(error, -EINVAL, "the token of %s has %zu bytes; it needs %u to %u", name,
                        strlen(token), HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
        memcpy(ret_token->name, name, strlen(name) + 1);
        memcpy(ret_token->token, token, strlen(token) + 1);
        return parse_roles(roles, &ret_token->roles, error);
}

static int parse_file(struct http_access *access, char *text, struct error *error)
{
        unsigned number = 0;
        for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
                struct http_token token = { 0 };
                number++;
                end = strchr(line, '\n');
                if (end)
                        *end = 0;
                line += strspn(line, " \t");
                if (!*line || *line == '#')
                        continue;
                int r = parse_line(line, &token, error);
                if (r == 0 && access->tokens_count == HTTP_TOKENS_MAX)
                        r = error_set(error, -E2BIG, "more than %u tokens", HTTP_TOKENS_MAX);
                if (r < 0)
                        return error_prefix(error, r, "line %u", number);
                access->tokens = array_grow(access->tokens, access->tokens_count, sizeof(token));
                access->tokens[access->tokens_count++] = token;
                explicit_bzero(&token, sizeof(token));
        }
        return 0;
}

int http_access_read(struct http_access *access, const char *path, struct error *error)
{
        struct buffer text = { 0 };
        struct stat found;
        struct file_trust trust;
        int r = file_read(path, FILE_MAX, &text, &found, &trust, error);
        if (r == 0 && trust.verdict != FILE_TRUST_SOUND)
                r = error_set(error, -EPERM, "%s", trust.why.text);
        if (r == 0 && (found.st_mode & 077))
                r = error_set(error, -EPERM, "others may read it; chmod 600 %s", path);
        if (r == 0 && text.size && memchr(text.data, 0, text.size))
                r = error_set(error, -EINVAL, "it has a NUL byte");
        if (r == 0) {
                (void)buffer_text(&text);
                r = parse_file(access, (char *)text.data, error);
        }
        if (text.data)
                explicit_bzero(text.data, text.room);
        buffer_free(&text);
        return r < 0 ? error_prefix(error, r, "tokens %s", path) : 0;
}

int http_access_ensure(struct http_access *access, const char *path, bool *ret_is_made, struct error *error)
{
        uint8_t bytes[MADE_BYTES];
        char token[2 * MADE_BYTES + 1];
        char line[sizeof(token) + 32];
        *ret_is_made = false;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == EEXIST)
                return http_access_read(access, path, error);
        if (fd < 0)
                return error_set(error, -errno, "tokens %s: %s", path, strerror(errno));
        int r = getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -EIO;
        (void)units_hex(token, bytes, sizeof(bytes));
        int size = snprintf(line, sizeof(line), "admin all %s\n", token);
        if (r == 0 && write(fd, line, (size_t)size) != size)
                r = -EIO;
        (void)close(fd);
        explicit_bzero(line, sizeof(line));
        explicit_bzero(token, sizeof(token));
        if (r < 0) {
                (void)unlink(path);
                return error_set(error, r, "tokens %s: cannot be written", path);
        }
        *ret_is_made = true;
        return http_access_read(access, path, error);
}

/* --- one request -------------------------------------------------------------------------------------------------- */

/* The host without its port: "[::1]:7070" gives [::1]. */
static struct span host_name(struct span host)
{
        const char *end = host.size && host.data[0] == '[' ? memchr(host.data, ']', host.size) : NULL;
        if (end)
                return (struct span){ host.data, (size_t)(end - host.data) + 1 };
        const char *colon = memchr(host.data, ':', host.size);
        return (struct span){ host.data, colon ? (size_t)(colon - host.data) : host.size };
}

bool http_access_has_host(const struct http_access *access, struct span host)
{
        static const char *const always[] = { "localhost", "127.0.0.1", "[::1]" };
        struct span name = host_name(host);
        for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
                if (name.size == strlen(always[i]) && !strncasecmp(name.data, always[i], name.size))
                        return true;
        for (size_t i = 0; i < access->hosts.count; i++)
                if (name.size == strlen(access->hosts.items[i]) &&
                        !strncasecmp(name.data, access->hosts.items[i], name.size))
                        return true;
        return false;
}

bool http_access_is_own_page(const struct http_head *head)
{
        if (head->verb == VERB_GET || head->verb == VERB_HEAD)
                return true;
        const struct span *site = http_head_field(head, "sec-fetch-site");
        if (site)
                return span_is(*site, SPAN_TEXT("same-origin")) || span_is(*site, SPAN_TEXT("none"));
        const struct span *origin = http_head_field(head, "origin");
        const struct span *host = http_head_field(head, "host");
        if (!origin)
                return true; /* without Origin it is not a browser */
        static const char *const schemes[] = { "http://", "https://" };
        for (size_t i = 0; host && i < 2; i++) {
                size_t size = strlen(schemes[i]);
                if (origin->size == size + host->size && !memcmp(origin->data, schemes[i], size) &&
                        !memcmp(origin->data + size, host->data, host->size))
                        return true;
        }
        return false;
}

/* Constant time: does not reveal where the first difference is. */
static bool is_equal(struct span a, const char *b)
{
        size_t size = strlen(b);
        unsigned difference = a.size != size;
        for (size_t i = 0; i < a.size; i++)
                difference |= (unsigned char)a.data[i] ^ (unsigned char)b[size ? i % size : 0];
        return !difference;
}

bool http_access_by_token(const struct http_access *access, const struct http_head *head, struct http_who *ret_who)
{
        static const char bearer[] = "bearer ";
        const struct span *field = http_head_field(head, "authorization");
        *ret_who = (struct http_who){ 0 };
        if (!field)
                return true;
        if (field->size < sizeof(bearer) || strncasecmp(field->data, bearer, sizeof(bearer) - 1) != 0)
                return false;
        struct span token = { field->data + sizeof(bearer) - 1, field->size - (sizeof(bearer) - 1) };
        const struct http_token *found = NULL;
        for (size_t i = 0; i < access->tokens_count; i++)
                if (is_equal(token, access->tokens[i].token))
                        found = &access->tokens[i];
        if (!found)
                return false;
        ret_who->roles = found->roles;
        memcpy(ret_who->name, found->name, sizeof(ret_who->name));
        return true;
}

void http_access_by_peer(const struct socket_peer *peer, struct http_who *ret_who)
{
        bool may = (peer->uid == 0 || peer->uid == geteuid()) && !peer->is_ours;
        *ret_who = (struct http_who){ .roles = may ? ROLE_ALL : ROLE_NONE };
        (void)snprintf(ret_who->name, sizeof(ret_who->name), "uid %u%s", (unsigned)peer->uid,
                peer->is_ours ? ", a runner" : "");
}
