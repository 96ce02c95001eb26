/* tls_private.h: what the files of this folder share. */
#ifndef QUIVER_TLS_TLS_PRIVATE_H
#define QUIVER_TLS_TLS_PRIVATE_H

#include "tls/openssl.h"
#include "tls/tls.h"

struct tls_context {
        const struct openssl *openssl;
        struct tls_files files; /* copies */
        SSL_CTX *ctx;
        struct tls_seen {
                struct {
                        long long changed_ns, size;
                        unsigned long long inode;
                } file[3];
        } seen; /* the files' state when they were last read */
};

struct tls_stream {
        const struct openssl *openssl;
        SSL *ssl;
        int fd;
        unsigned budget; /* reads of the socket that are left */
        int failure;     /* errno of the socket's last failure; 0: none */
        bool is_eof;     /* the peer has closed the socket */
        bool is_shaken, is_broken, wants_write, has_read;
        char *name;          /* the name that the certificate must have */
        struct error reason; /* why the server's certificate was refused; empty: it was not */
};

/* reasons.c: OpenSSL's errors in plain words. */

/* Sets stream->reason.  Called for the first problem with the certificate. */
void reason_of_certificate(struct tls_stream *stream, X509_STORE_CTX *chain);
/* The reason of SSL_get_error()'s result `what`.  Returns a negative errno and sets the text. */
int reason_of_failure(struct tls_stream *stream, int what, struct error *error);
/* Why `path` could not be read, from the first error in OpenSSL's queue. */
int reason_of_file(const struct openssl *openssl, const char *path, const char *what, struct error *error);
/* "2026-11-20 09:00:00 UTC"; returns `text`. */
#define REASON_TIME_MAX 32
const char *reason_time(const struct openssl *openssl, const ASN1_TIME *time, char text[REASON_TIME_MAX]);
/* In seconds since 1970; 0: invalid. */
uint64_t reason_time_s(const struct openssl *openssl, const ASN1_TIME *time);

#endif
