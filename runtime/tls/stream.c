#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/strings.h"
#include "tls/tls_private.h"

#define SHAKE_READS 16 /* per call: a server's part of the handshake is some kilobytes */

/* --- the socket below --------------------------------------------------------------------------------------------- */

/* OpenSSL's own socket BIO raises SIGPIPE, which would kill a program that uses the client library, and reads as long
 * as there is input. */

static int socket_read(BIO *bio, char *data, int size)
{
        const struct openssl *o = openssl_load(NULL);
        struct tls_stream *stream = o->BIO_get_data(bio);
        o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
        ssize_t n = -1;
        if (stream->budget) {
                stream->budget--;
                n = recv(stream->fd, data, (size_t)size, 0);
        } else {
                errno = EAGAIN;
        }
        if (n > 0)
                return (int)n;
        stream->is_eof = n == 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                o->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        else if (n < 0)
                stream->failure = errno;
        return (int)n;
}

static int socket_write(BIO *bio, const char *data, int size)
{
        const struct openssl *o = openssl_load(NULL);
        struct tls_stream *stream = o->BIO_get_data(bio);
        o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
        ssize_t n = send(stream->fd, data, (size_t)size, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
                o->BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
        else if (n < 0)
                stream->failure = errno;
        return (int)n;
}

static long socket_control(BIO *bio, int what, long number, void *pointer)
{
        const struct openssl *o = openssl_load(NULL);
        const struct tls_stream *stream = o->BIO_get_data(bio);
        (void)number;
        (void)pointer;
        if (what == BIO_CTRL_EOF)
                return stream->is_eof;
        return what == BIO_CTRL_FLUSH;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method; /* for the whole process; NULL: no memory */

static void make_method(void)
{
        const struct openssl *o = openssl_load(NULL);
        method = o->BIO_meth_new(o->BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiver socket");
        (void)o->BIO_meth_set_read(memory_or_abort(method), socket_read);
        (void)o->BIO_meth_set_write(method, socket_write);
        (void)o->BIO_meth_set_ctrl(method, socket_control);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

static bool is_address(const char *host)
{
        unsigned char address[sizeof(struct in6_addr)];
        return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* Sets the name or address that the certificate must have.  Without it any certificate of the authority would pass. */
static bool expect_name(const struct tls_stream *stream)
{
        const struct openssl *o = stream->openssl;
        if (is_address(stream->name))
                return o->X509_VERIFY_PARAM_set1_ip_asc(o->SSL_get0_param(stream->ssl), stream->name) == 1;
        o->SSL_set_hostflags(stream->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        /* SNI: tells the server which name we want, because it may have several certificates. */
        return o->SSL_set1_host(stream->ssl, stream->name) == 1 &&
               o->SSL_ctrl(stream->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, stream->name) == 1;
}

int tls_stream_open(struct tls_context *context, int fd, const char *host, struct tls_stream **ret, struct error *error)
{
        const struct openssl *o = context->openssl;
        const char *name = context->files.server_name ? context->files.server_name : host;
        (void)pthread_once(&once, make_method);
        struct tls_stream *stream = memory_zero(1, sizeof(*stream));
        stream->openssl = o;
        stream->fd = fd;
        stream->name = text_copy(name);
        stream->ssl = memory_or_abort(o->SSL_new(context->ctx));
        BIO *bio = memory_or_abort(o->BIO_new(method));
        o->BIO_set_data(bio, stream);
        o->BIO_set_init(bio, 1);
        o->SSL_set_bio(stream->ssl, bio, bio);
        (void)o->SSL_set_ex_data(stream->ssl, 0, stream);
        if (!expect_name(stream)) {
                tls_stream_close(stream);
                o->ERR_clear_error();
                return error_set(error, -EINVAL, "\"%s\" is not a name that a certificate can have", name);
        }
        o->SSL_set_connect_state(stream->ssl);
        *ret = stream;
        return 0;
}

void tls_stream_close(struct tls_stream *stream)
{
        if (!stream)
                return;
        const struct openssl *o = stream->openssl;
        if (stream->is_shaken && !stream->is_broken)
                (void)o->SSL_shutdown(stream->ssl);
        o->ERR_clear_error();
        o->SSL_free(stream->ssl);
        free(stream->name);
        free(stream);
}

/* --- handshake, reading, writing ---------------------------------------------------------------------------------- */

/* Evaluates the result of an OpenSSL call: 0 if the socket must become ready first, or a negative errno. */
static int judge(struct tls_stream *stream, int result, struct error *error)
{
        const struct openssl *o = stream->openssl;
        int what = o->SSL_get_error(stream->ssl, result);
        stream->wants_write = what == SSL_ERROR_WANT_WRITE;
        if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
                return 0;
        stream->is_broken = true;
        int r = reason_of_failure(stream, what, error);
        o->ERR_clear_error();
        return r;
}

int tls_stream_shake(struct tls_stream *stream, struct error *error)
{
        /* Errors that the surrounding program left in the queue would be taken for ours. */
        stream->openssl->ERR_clear_error();
        stream->budget = SHAKE_READS;
        int result = stream->openssl->SSL_do_handshake(stream->ssl);
        if (result != 1)
                return judge(stream, result, error);
        stream->is_shaken = true;
        return 1;
}

ssize_t tls_stream_read(struct tls_stream *stream, void *data, size_t size, struct error *error)
{
        stream->openssl->ERR_clear_error();
        int result = stream->openssl->SSL_read(stream->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
        if (result <= 0)
                return judge(stream, result, error);
        stream->has_read = true;
        return result;
}

void tls_stream_refill(struct tls_stream *stream, unsigned budget)
{
        stream->budget = budget;
}

ssize_t tls_stream_write(struct tls_stream *stream, const void *data, size_t size, struct error *error)
{
        stream->openssl->ERR_clear_error();
        int result = stream->openssl->SSL_write(stream->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
        return result > 0 ? result : judge(stream, result, error);
}

bool tls_stream_wants_write(const struct tls_stream *stream)
{
        return stream->wants_write;
}

const char *tls_stream_version(const struct tls_stream *stream)
{
        return stream->openssl->SSL_get_version(stream->ssl);
}

uint64_t tls_stream_chain_end_s(const struct tls_stream *stream)
{
        const struct openssl *o = stream->openssl;
        const OPENSSL_STACK *chain = (const OPENSSL_STACK *)o->SSL_get0_verified_chain(stream->ssl);
        uint64_t first_s = 0;
        for (int i = 0; chain && i < o->OPENSSL_sk_num(chain); i++) {
                uint64_t end_s = reason_time_s(o, o->X509_get0_notAfter(o->OPENSSL_sk_value(chain, i)));
                if (end_s && (!first_s || end_s < first_s))
                        first_s = end_s;
        }
        return first_s;
}
