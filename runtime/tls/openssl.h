/* openssl.h: OpenSSL's functions, loaded when they are first needed: a process without TLS loads no library. */
#ifndef QUIVER_TLS_OPENSSL_H
#define QUIVER_TLS_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/error.h"

/* Their names in OpenSSL 3.0; macros of its headers are called through SSL_ctrl() and SSL_CTX_ctrl(). */
#define OPENSSL_FUNCTIONS(FUNCTION)                                                                                    \
        FUNCTION(OPENSSL_init_ssl)                                                                                     \
        FUNCTION(TLS_client_method)                                                                                    \
        FUNCTION(SSL_CTX_new)                                                                                          \
        FUNCTION(SSL_CTX_free)                                                                                         \
        FUNCTION(SSL_CTX_ctrl)                                                                                         \
        FUNCTION(SSL_CTX_set_options)                                                                                  \
        FUNCTION(SSL_CTX_set_verify)                                                                                   \
        FUNCTION(SSL_CTX_set_default_passwd_cb)                                                                        \
        FUNCTION(SSL_CTX_set_default_passwd_cb_userdata)                                                               \
        FUNCTION(SSL_CTX_set_default_verify_paths)                                                                     \
        FUNCTION(SSL_CTX_load_verify_file)                                                                             \
        FUNCTION(SSL_CTX_use_certificate_chain_file)                                                                   \
        FUNCTION(SSL_CTX_use_PrivateKey_file)                                                                          \
        FUNCTION(SSL_CTX_check_private_key)                                                                            \
        FUNCTION(SSL_CTX_get0_certificate)                                                                             \
        FUNCTION(SSL_new)                                                                                              \
        FUNCTION(SSL_free)                                                                                             \
        FUNCTION(SSL_ctrl)                                                                                             \
        FUNCTION(SSL_set_bio)                                                                                          \
        FUNCTION(SSL_set1_host)                                                                                        \
        FUNCTION(SSL_set_hostflags)                                                                                    \
        FUNCTION(SSL_get0_param)                                                                                       \
        FUNCTION(SSL_set_ex_data)                                                                                      \
        FUNCTION(SSL_get_ex_data)                                                                                      \
        FUNCTION(SSL_get_ex_data_X509_STORE_CTX_idx)                                                                   \
        FUNCTION(SSL_set_connect_state)                                                                                \
        FUNCTION(SSL_do_handshake)                                                                                     \
        FUNCTION(SSL_read)                                                                                             \
        FUNCTION(SSL_write)                                                                                            \
        FUNCTION(SSL_shutdown)                                                                                         \
        FUNCTION(SSL_get_error)                                                                                        \
        FUNCTION(SSL_get_version)                                                                                      \
        FUNCTION(SSL_get0_verified_chain)                                                                              \
        FUNCTION(OPENSSL_sk_num)                                                                                       \
        FUNCTION(OPENSSL_sk_value)                                                                                     \
        FUNCTION(X509_VERIFY_PARAM_set1_ip_asc)                                                                        \
        FUNCTION(X509_STORE_CTX_get_ex_data)                                                                           \
        FUNCTION(X509_STORE_CTX_get_error)                                                                             \
        FUNCTION(X509_STORE_CTX_get0_cert)                                                                             \
        FUNCTION(X509_STORE_CTX_get_current_cert)                                                                      \
        FUNCTION(X509_verify_cert_error_string)                                                                        \
        FUNCTION(X509_get0_notBefore)                                                                                  \
        FUNCTION(X509_get0_notAfter)                                                                                   \
        FUNCTION(X509_get_subject_name)                                                                                \
        FUNCTION(X509_NAME_oneline)                                                                                    \
        FUNCTION(X509_get_ext_by_NID)                                                                                  \
        FUNCTION(X509_get_ext)                                                                                         \
        FUNCTION(X509V3_EXT_print)                                                                                     \
        FUNCTION(ASN1_TIME_to_tm)                                                                                      \
        FUNCTION(BIO_get_new_index)                                                                                    \
        FUNCTION(BIO_meth_new)                                                                                         \
        FUNCTION(BIO_meth_set_read)                                                                                    \
        FUNCTION(BIO_meth_set_write)                                                                                   \
        FUNCTION(BIO_meth_set_ctrl)                                                                                    \
        FUNCTION(BIO_new)                                                                                              \
        FUNCTION(BIO_free)                                                                                             \
        FUNCTION(BIO_s_mem)                                                                                            \
        FUNCTION(BIO_read)                                                                                             \
        FUNCTION(BIO_set_data)                                                                                         \
        FUNCTION(BIO_get_data)                                                                                         \
        FUNCTION(BIO_set_init)                                                                                         \
        FUNCTION(BIO_set_flags)                                                                                        \
        FUNCTION(BIO_clear_flags)                                                                                      \
        FUNCTION(ERR_peek_error)                                                                                       \
        FUNCTION(ERR_clear_error)                                                                                      \
        FUNCTION(ERR_reason_error_string)

struct openssl {
#define MEMBER(name) __typeof__(&name) name; /* NOLINT(bugprone-macro-parentheses): a name, not an expression */
        OPENSSL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* NULL: it cannot be loaded, and the error says what to install.  May be called from any thread. */
const struct openssl *openssl_load(struct error *error);

#endif
