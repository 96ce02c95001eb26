/* reasons.c: OpenSSL's errors in plain words, with what to do about them. */
#include <errno.h>
#include <openssl/objects.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tls/tls_private.h"

const char *reason_time(const struct openssl *openssl, const ASN1_TIME *time, char text[REASON_TIME_MAX])
{
        struct tm tm;
        if (!time || openssl->ASN1_TIME_to_tm(time, &tm) != 1 ||
                !strftime(text, REASON_TIME_MAX, "%Y-%m-%d %H:%M:%S UTC", &tm))
                (void)snprintf(text, REASON_TIME_MAX, "an unknown time");
        return text;
}

uint64_t reason_time_s(const struct openssl *openssl, const ASN1_TIME *time)
{
        struct tm tm;
        time_t at = time && openssl->ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
        return at > 0 ? (uint64_t)at : 0;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

int reason_of_file(const struct openssl *openssl, const char *path, const char *what, struct error *error)
{
        unsigned long code = openssl->ERR_peek_error();
        int reason = ERR_GET_REASON(code);
        const char *text = openssl->ERR_reason_error_string(code);
        if (ERR_SYSTEM_ERROR(code))
                return error_set(error, -EINVAL, "%s (%s): %s", path, what, strerror(reason));
        bool is_empty = (ERR_GET_LIB(code) == ERR_LIB_PEM && reason == PEM_R_NO_START_LINE) ||
                        (ERR_GET_LIB(code) == ERR_LIB_X509 && reason == X509_R_NO_CERTIFICATE_OR_CRL_FOUND);
        if (is_empty)
                return error_set(error, -EINVAL, "%s: nothing in PEM form (-----BEGIN …) that could be %s", path, what);
        return error_set(
                error, -EINVAL, "%s cannot be used as %s: %s", path, what, text ? text : "OpenSSL says no more");
}

/* --- the server's certificate ------------------------------------------------------------------------------------- */

static void put_subject(const struct openssl *o, const X509 *certificate, char *text, size_t size)
{
        (void)o->X509_NAME_oneline(o->X509_get_subject_name(certificate), text, (int)size);
}

/* "DNS:redis-1, IP Address:10.0.0.5", or the subject if the certificate has no such names. */
static void put_names(const struct openssl *o, X509 *certificate, char *text, size_t size)
{
        int at = o->X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
        BIO *memory = at < 0 ? NULL : o->BIO_new(o->BIO_s_mem());
        text[0] = 0;
        if (memory && o->X509V3_EXT_print(memory, o->X509_get_ext(certificate, at), 0, 0) == 1) {
                int n = o->BIO_read(memory, text, (int)size - 1);
                text[n > 0 ? n : 0] = 0;
        }
        if (memory)
                (void)o->BIO_free(memory);
        if (!text[0])
                put_subject(o, certificate, text, size);
}

void reason_of_certificate(struct tls_stream *stream, X509_STORE_CTX *chain)
{
        const struct openssl *o = stream->openssl;
        int code = o->X509_STORE_CTX_get_error(chain);
        X509 *certificate = o->X509_STORE_CTX_get_current_cert(chain);
        char subject[128] = "?", names[256] = "", time[REASON_TIME_MAX];
        struct error *reason = &stream->reason;
        if (reason->text[0])
                return;
        if (certificate)
                put_subject(o, certificate, subject, sizeof(subject));
        switch (code) {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
                put_subject(o, o->X509_STORE_CTX_get0_cert(chain), subject, sizeof(subject));
                (void)error_set(reason, 0,
                        "its certificate (%s) is signed by nobody whom we trust; set tls.ca_file to the authority that "
                        "signed it",
                        subject);
                break;
        case X509_V_ERR_CERT_HAS_EXPIRED:
                (void)error_set(reason, 0,
                        "the certificate %s has expired on %s; renew it, or look at this machine's clock", subject,
                        reason_time(o, certificate ? o->X509_get0_notAfter(certificate) : NULL, time));
                break;
        case X509_V_ERR_CERT_NOT_YET_VALID:
                (void)error_set(reason, 0,
                        "the certificate %s is not valid before %s; look at the clocks of both machines", subject,
                        reason_time(o, certificate ? o->X509_get0_notBefore(certificate) : NULL, time));
                break;
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
                if (certificate)
                        put_names(o, certificate, names, sizeof(names));
                (void)error_set(reason, 0,
                        "its certificate is for %s, not for %s; connect to a name that it has, give it that name, or "
                        "set tls.server_name to one that all servers' certificates have",
                        names, stream->name);
                break;
        default:
                (void)error_set(reason, 0, "the certificate %s is refused: %s", subject,
                        o->X509_verify_cert_error_string(code));
        }
}

/* --- the connection ----------------------------------------------------------------------------------------------- */

/* The meaning of the server's alert; NULL: it does not concern certificates. */
static const char *refusal(int reason)
{
        switch (reason) {
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
                return "it wants to see a certificate of ours; set tls.cert_file and tls.key_file";
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
                return "it does not know who signed our certificate (tls.cert_file); give it that authority "
                       "(tls-ca-cert-file)";
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
                return "our certificate (tls.cert_file) has expired; renew it";
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
                return "our certificate (tls.cert_file) has been revoked";
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
                return "it refuses our certificate (tls.cert_file); the server's log says why";
        default:
                return NULL;
        }
}

static int reason_of_protocol(struct tls_stream *stream, struct error *error)
{
        unsigned long code = stream->openssl->ERR_peek_error();
        const char *text = stream->openssl->ERR_reason_error_string(code);
        int reason = ERR_GET_REASON(code);
        const char *refused = refusal(reason);
        if (stream->reason.text[0])
                return error_set(error, -EACCES, "%s", stream->reason.text);
        if (refused)
                return error_set(error, -EACCES, "%s", refused);
        switch (reason) {
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_HTTP_REQUEST:
        case SSL_R_PACKET_LENGTH_TOO_LONG:
                return error_set(error, -EPROTO,
                        "it does not speak TLS on this port; use the port that does (tls-port), or redis:// in place "
                        "of "
                        "rediss://");
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
                return error_set(error, -EPROTO, "it speaks no TLS 1.2 or newer; raise tls-protocols on the server");
        case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
                return error_set(error, -EACCES,
                        "it ended the TLS handshake: it wants to see a certificate (tls.cert_file), or both sides have "
                        "no "
                        "cipher in common");
        case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
                return error_set(error, -ECONNRESET, "what it sent was changed or lost on the way (TLS: %s)", text);
        default:
                return error_set(error, stream->is_shaken ? -ECONNRESET : -EPROTO, "TLS: %s",
                        text ? text : "OpenSSL says no more");
        }
}

/* A server that requires a certificate may end the connection before its alert arrives. */
static const char *hint(const struct tls_stream *stream)
{
        if (!stream->is_shaken)
                return " during the TLS handshake";
        return stream->has_read ? ""
                                : " right after the TLS handshake; if it asks for certificates, set tls.cert_file and "
                                  "tls.key_file";
}

int reason_of_failure(struct tls_stream *stream, int what, struct error *error)
{
        bool is_end = ERR_GET_REASON(stream->openssl->ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
        if (what == SSL_ERROR_ZERO_RETURN)
                return error_set(error, -ECONNRESET, "closed the connection%s", hint(stream));
        /* An alert that was read explains more than the write that failed before. */
        if (what == SSL_ERROR_SSL && !is_end)
                return reason_of_protocol(stream, error);
        if (stream->is_eof || !stream->failure)
                return error_set(error, -ECONNRESET, "the connection ended without a close of TLS%s", hint(stream));
        return error_set(error, -ECONNRESET, "%s%s", strerror(stream->failure), hint(stream));
}
