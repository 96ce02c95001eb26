/* tls.h: TLS on a non-blocking socket, with OpenSSL.
 *
 * A context holds certificates; a stream is one connection, of which the caller owns and polls the socket.  Servers are
 * always verified: their certificate's chain, its dates, and that it is for the host that is connected to.  TLS 1.2 at
 * least; no renegotiation, no compression, no session tickets.
 *
 * Nothing here waits: a call does what is possible and says what it needs.  A stream keeps no decrypted or encrypted
 * bytes back: after tls_stream_read() has returned 0, whatever else was received is still in the socket, so that poll()
 * tells the whole truth. */
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

/* Reads the files.  -ENOTSUP: OpenSSL is not installed; -EINVAL: a file cannot be used, the error says which and why.
 */
int tls_context_open(const struct tls_files *files, struct tls_context **ret, struct error *error);
/* Streams that are open stay so.  Accepts NULL. */
void tls_context_free(struct tls_context *context);

/* Looks whether the files have changed since they were last read, and if so reads them again: for streams that are
 * opened from then on.  1: read again; 0: they have not changed, or are as wrong as the last time; -EINVAL: they have
 * changed and cannot be used, so the old certificates stay, until the files change again. */
int tls_context_refresh(struct tls_context *context, struct error *error);

#define TLS_DESCRIPTION_MAX 512
/* In one line, for people: whose certificates are trusted, and which one of our own is shown, with its end. */
void tls_context_describe(const struct tls_context *context, char text[TLS_DESCRIPTION_MAX]);

/* When our own certificate ends, in seconds since 1970; 0: we have none. */
uint64_t tls_context_own_end_s(const struct tls_context *context);

/* Begins TLS on a connected, non-blocking socket, which stays the caller's; `host` is the name or address that it was
 * asked for. */
int tls_stream_open(
        struct tls_context *context, int fd, const char *host, struct tls_stream **ret, struct error *error);
/* Tells the server that nothing follows, as far as that goes without waiting, and frees the stream.  Accepts NULL. */
void tls_stream_close(struct tls_stream *stream);

/* Goes on with the handshake.  1: it is done; 0: the socket must become readable, or writable
 * (tls_stream_wants_write()), first; or negative, with the reason in plain words and what to do about it:
 *   -EACCES      one side does not accept the other's certificate;
 *   -EPROTO      the other side speaks no TLS, or none that is safe;
 *   -ECONNRESET  the connection ended. */
int tls_stream_shake(struct tls_stream *stream, struct error *error);
/* Bytes read or written; 0: none, the socket must become ready first; or negative as above, which is also the end of
 * the connection.  At most `budget` times is the socket read between two calls of tls_stream_refill(). */
ssize_t tls_stream_read(struct tls_stream *stream, void *data, size_t size, struct error *error);
void tls_stream_refill(struct tls_stream *stream, unsigned budget);
/* After 0, the next call must begin with the same bytes, and may have more. */
ssize_t tls_stream_write(struct tls_stream *stream, const void *data, size_t size, struct error *error);
/* Whether the last call that returned 0 needs the socket to become writable, not readable. */
bool tls_stream_wants_write(const struct tls_stream *stream);

/* After the handshake: when the first certificate of the server's chain ends, in seconds since 1970; 0: not known. */
uint64_t tls_stream_chain_end_s(const struct tls_stream *stream);

/* "TLSv1.3" */
const char *tls_stream_version(const struct tls_stream *stream);

#endif
