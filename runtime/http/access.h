/* access.h: who may ask for what.
 *
 * A client identifies itself by a token (Authorization: Bearer TOKEN), or by its user if it came through the Unix
 * socket.  Without either it has no role, and may only read health.  A browser's request is accepted only with a Host
 * that is ours (DNS rebinding), and must not change anything on behalf of a page of another origin.
 *
 * No I/O except reading the token files. */
#ifndef QUIVER_HTTP_ACCESS_H
#define QUIVER_HTTP_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process/peer.h"
#include "base/strings.h"
#include "http/reader.h"

/* A set of bits. */
enum http_role {
        ROLE_NONE = 0,
        ROLE_READ = 1,
        ROLE_SUBMIT = 2,
        ROLE_WORK = 4,
        ROLE_OPERATE = 8,
        ROLE_CONSUME = 16,
        ROLE_ALL = 31,
        /* For a request: one of both is enough. */
        ROLE_WORK_OR_OPERATE = ROLE_WORK | ROLE_OPERATE,
        ROLE_CONSUME_OR_OPERATE = ROLE_CONSUME | ROLE_OPERATE,
};

#define HTTP_TOKEN_MIN  16u
#define HTTP_TOKEN_MAX  128u
#define HTTP_NAME_MAX   64u
#define HTTP_TOKENS_MAX 256u

struct http_token {
        char name[HTTP_NAME_MAX + 1]; /* for the audit log */
        char token[HTTP_TOKEN_MAX + 1];
        unsigned roles;
};

/* Zero-initialised knows nobody. */
struct http_access {
        struct http_token *tokens;
        size_t tokens_count;
        struct strings hosts; /* the host names that we answer to, without a port */
};

/* The client of a request. */
struct http_who {
        unsigned roles;
        char name[HTTP_NAME_MAX + 1]; /* the token's name, "uid 1000", or "" */
};

void http_access_free(struct http_access *access);

/* Adds the tokens of a file: lines `NAME ROLE[,ROLE…] TOKEN`, empty lines and `#` comments.  ROLE is read, submit,
 * work, consume, operate or all.  The file must be one that only its owner may read, ours or root's.
 * 0, or -errno with a text that names the line. */
int http_access_read(struct http_access *access, const char *path, struct error *error);

/* Makes the file with one new token of all roles if it is not there.  Then as http_access_read(). */
int http_access_ensure(struct http_access *access, const char *path, bool *ret_is_made, struct error *error);

/* Whether a request with this Host may be answered.  A port in it is ignored.  Loopback addresses and localhost always
 * may. */
bool http_access_has_host(const struct http_access *access, struct span host);

/* False if a browser sends the request on behalf of a page of another origin, and the request could change
 * something. */
bool http_access_is_own_page(const struct http_head *head);

/* Finds the token's owner; false if the request has an unknown token.  Without a token: true, and no role. */
bool http_access_by_token(const struct http_access *access, const struct http_head *head, struct http_who *ret_who);
/* For a client of the Unix socket: root and our own user have all roles; others, and our runners, have none. */
void http_access_by_peer(const struct socket_peer *peer, struct http_who *ret_who);

/* "read", "submit", …: the first role of the set. */
const char *http_role_name(unsigned roles);

#endif
