/* tls.h: TLS on a non-blocking socket, with OpenSSL.
 *
 * A context holds certificates; a stream is one connection, whose socket the caller owns and polls.  Servers are always
 * verified: their certificate's chain, its dates, and its name against the host that was connected to.  At least TLS
 * 1.2; no renegotiation, no compression, no session tickets.
 *
 * Nothing here blocks: a call does what is possible and reports what it needs.  A stream keeps no bytes back: after
 * tls_stream_read() has returned 0, everything else that was received is still in the socket, so poll() is reliable. */
#ifndef QUIVER_TLS_TLS_H
#define QUIVER_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/file/tls_files.h"

struct tls_context;
struct tls_stream;

/* Reads the files.  -ENOTSUP: OpenSSL is not installed; -EINVAL: a file is unusable, the error says which and why. */
int tls_context_open(const struct tls_files *files, struct tls_context **ret, struct error *error);
/* Open streams are not affected.  Accepts NULL. */
void tls_context_free(struct tls_context *context);

/* Reads the files again if they have changed, for streams that are opened from then on.  1: read again; 0: unchanged,
 * or as wrong as the last time; -EINVAL: changed and unusable, so the old certificates stay until the files change
 * again. */
int tls_context_refresh(struct tls_context *context, struct error *error);

#define TLS_DESCRIPTION_MAX 512
/* One line for people: whose certificates are trusted, and our own certificate with its end. */
void tls_context_describe(const struct tls_context *context, char text[TLS_DESCRIPTION_MAX]);

/* When our own certificate expires, in seconds since 1970; 0: we have none. */
uint64_t tls_context_own_end_s(const struct tls_context *context);

/* Begins TLS on a connected, non-blocking socket, which the caller keeps owning; `host` is the name or address that was
 * connected to. */
int tls_stream_open(
        struct tls_context *context, int fd, const char *host, struct tls_stream **ret, struct error *error);
/* Sends close_notify, as far as that is possible without waiting, and frees the stream.  Accepts NULL. */
void tls_stream_close(struct tls_stream *stream);

/* Continues the handshake.  1: it is done; 0: the socket must become readable, or writable (tls_stream_wants_write()),
 * first; or negative, with the reason in plain words and what to do about it:
 *   -EACCES      one side does not accept the other's certificate;
 *   -EPROTO      the other side does not speak TLS, or no safe version of it;
 *   -ECONNRESET  the connection ended. */
int tls_stream_shake(struct tls_stream *stream, struct error *error);
/* Bytes read or written; 0: none, the socket must become ready first; or negative as above, which also ends the
 * connection.  The socket is read at most `budget` times between two calls of tls_stream_refill(). */
ssize_t tls_stream_read(struct tls_stream *stream, void *data, size_t size, struct error *error);
void tls_stream_refill(struct tls_stream *stream, unsigned budget);
/* After 0, the next call must begin with the same bytes, and may have more. */
ssize_t tls_stream_write(struct tls_stream *stream, const void *data, size_t size, struct error *error);
/* Whether the last call that returned 0 needs the socket to become writable, not readable. */
bool tls_stream_wants_write(const struct tls_stream *stream);

/* After the handshake: when the first certificate of the server's chain expires, in seconds since 1970; 0: unknown. */
uint64_t tls_stream_chain_end_s(const struct tls_stream *stream);

/* "TLSv1.3" */
const char *tls_stream_version(const struct tls_stream *stream);

#endif
