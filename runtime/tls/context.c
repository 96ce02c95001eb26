#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "tls/tls_private.h"

/* Refuses keys with a passphrase: without this function OpenSSL would ask for it on the terminal. */
static int no_passphrase(char *to, int size, int is_writing, void *self)
{
        (void)to;
        (void)size;
        (void)is_writing;
        *(bool *)self = true;
        return -1;
}

/* Called for each certificate of the chain, and for each problem with it. */
static int on_verified(int is_fine, X509_STORE_CTX *chain)
{
        const struct openssl *o = openssl_load(NULL);
        if (is_fine)
                return 1;
        SSL *ssl = o->X509_STORE_CTX_get_ex_data(chain, o->SSL_get_ex_data_X509_STORE_CTX_idx());
        struct tls_stream *stream = o->SSL_get_ex_data(ssl, 0);
        reason_of_certificate(stream, chain);
        return 0;
}

static void set_rules(const struct openssl *o, SSL_CTX *ctx)
{
        (void)o->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
        (void)o->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE,
                SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY, NULL);
        (void)o->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
        /* Reads a record's head and body at once. */
        (void)o->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
        (void)o->SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
        o->SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verified);
}

static int load_authorities(const struct openssl *o, SSL_CTX *ctx, const struct tls_files *files, struct error *error)
{
        if (files->ca_file) {
                if (o->SSL_CTX_load_verify_file(ctx, files->ca_file) != 1)
                        return reason_of_file(o, files->ca_file, "the certificates of authorities", error);
        } else if (o->SSL_CTX_set_default_verify_paths(ctx) != 1) {
                return error_set(error, -EINVAL,
                        "the system's certificate authorities cannot be read; apt-get install ca-certificates, or set "
                        "tls.ca_file");
        }
        return 0;
}

static int load_own(const struct openssl *o, SSL_CTX *ctx, const struct tls_files *files, struct error *error)
{
        if (!files->cert_file && !files->key_file)
                return 0;
        if (!files->cert_file || !files->key_file)
                return error_set(error, -EINVAL, "tls.cert_file and tls.key_file belong together");
        if (o->SSL_CTX_use_certificate_chain_file(ctx, files->cert_file) != 1)
                return reason_of_file(o, files->cert_file, "our certificate", error);
        bool has_passphrase = false;
        o->SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
        o->SSL_CTX_set_default_passwd_cb_userdata(ctx, &has_passphrase);
        bool is_read = o->SSL_CTX_use_PrivateKey_file(ctx, files->key_file, SSL_FILETYPE_PEM) == 1;
        o->SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
        if (has_passphrase)
                return error_set(error, -EINVAL,
                        "%s has a passphrase; write the key without one (openssl pkey -in OLD -out NEW), readable by "
                        "the host's user alone",
                        files->key_file);
        bool is_other = !is_read && ERR_GET_LIB(o->ERR_peek_error()) == ERR_LIB_X509;
        if (!is_read && !is_other)
                return reason_of_file(o, files->key_file, "the key of our certificate", error);
        /* A key of another type is loaded, and does not match the certificate. */
        if (is_other || o->SSL_CTX_check_private_key(ctx) != 1)
                return error_set(error, -EINVAL, "%s is not the key of the certificate in %s", files->key_file,
                        files->cert_file);
        return 0;
}

static int load(const struct openssl *o, const struct tls_files *files, SSL_CTX **ret, struct error *error)
{
        o->ERR_clear_error();
        SSL_CTX *ctx = o->SSL_CTX_new(o->TLS_client_method());
        if (!ctx)
                return error_set(error, -EINVAL, "OpenSSL makes no context: %s",
                        o->ERR_reason_error_string(o->ERR_peek_error()));
        set_rules(o, ctx);
        int r = load_authorities(o, ctx, files, error);
        if (!r)
                r = load_own(o, ctx, files, error);
        o->ERR_clear_error();
        if (r)
                o->SSL_CTX_free(ctx);
        else
                *ret = ctx;
        return r;
}

/* Identifies the files' state: a file replaced by rename has another inode, one written in place another time. */
static struct tls_seen look(const struct tls_files *files)
{
        const char *const paths[] = { files->ca_file, files->cert_file, files->key_file };
        struct tls_seen seen;
        struct stat st;
        memset(&seen, 0, sizeof(seen));
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
                if (!paths[i] || stat(paths[i], &st) < 0)
                        continue;
                seen.file[i].changed_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
                seen.file[i].size = st.st_size;
                seen.file[i].inode = st.st_ino;
        }
        return seen;
}

int tls_context_open(const struct tls_files *files, struct tls_context **ret, struct error *error)
{
        const struct openssl *o = openssl_load(error);
        if (!o)
                return -ENOTSUP;
        struct tls_context *context = memory_zero(1, sizeof(*context));
        context->openssl = o;
        context->files = tls_files_copy(files);
        /* Checked before reading, so that a change during the read is noticed next time. */
        context->seen = look(&context->files);
        int r = load(o, &context->files, &context->ctx, error);
        if (r)
                tls_context_free(context);
        else
                *ret = context;
        return r;
}

void tls_context_free(struct tls_context *context)
{
        if (!context)
                return;
        context->openssl->SSL_CTX_free(context->ctx);
        tls_files_free(&context->files);
        free(context);
}

int tls_context_refresh(struct tls_context *context, struct error *error)
{
        struct tls_seen now = look(&context->files);
        SSL_CTX *ctx = NULL;
        if (!memcmp(&now, &context->seen, sizeof(now)))
                return 0;
        context->seen = now;
        int r = load(context->openssl, &context->files, &ctx, error);
        if (r)
                return r;
        context->openssl->SSL_CTX_free(context->ctx);
        context->ctx = ctx;
        return 1;
}

void tls_context_describe(const struct tls_context *context, char text[TLS_DESCRIPTION_MAX])
{
        const struct openssl *o = context->openssl;
        const struct tls_files *files = &context->files;
        const X509 *own = o->SSL_CTX_get0_certificate(context->ctx);
        char name[128] = "", until[REASON_TIME_MAX] = "";
        if (own) {
                (void)o->X509_NAME_oneline(o->X509_get_subject_name(own), name, sizeof(name));
                (void)reason_time(o, o->X509_get0_notAfter(own), until);
        }
        (void)snprintf(text, TLS_DESCRIPTION_MAX, "TLS, servers verified by %.160s%s%.64s%s%s%s%s",
                files->ca_file ? files->ca_file : "the system's authorities", files->server_name ? " as " : "",
                files->server_name ? files->server_name : "",
                own ? ", our certificate is " : ", no certificate of our own", name, own ? " until " : "", until);
}

uint64_t tls_context_own_end_s(const struct tls_context *context)
{
        const struct openssl *o = context->openssl;
        const X509 *own = o->SSL_CTX_get0_certificate(context->ctx);
        return own ? reason_time_s(o, o->X509_get0_notAfter(own)) : 0;
}
