/* certificates.h: an authority and what it signs, for tests of TLS, made with the openssl command under /tmp. */
#ifndef QUIVER_TESTS_CONTRACT_CERTIFICATES_H
#define QUIVER_TESTS_CONTRACT_CERTIFICATES_H

struct certificates {
        char folder[64]; /* "": not made */
};

/* Makes ca.pem, and by it server.pem (for localhost, redis.test, 127.0.0.1 and ::1) and client.pem; each with its
 * .key. */
void certificates_make(struct certificates *c);
void certificates_free(struct certificates *c);
/* An authority NAME.pem. */
void certificates_add_authority(struct certificates *c, const char *name);
/* NAME.pem, signed by that authority, for those names ("DNS:a,IP:10.0.0.1"). */
void certificates_add(struct certificates *c, const char *name, const char *names, const char *authority);
/* The same, expired yesterday. */
void certificates_add_expired(struct certificates *c, const char *name, const char *names, const char *authority);
/* Puts NAME.pem and NAME.key in the place of others, by rename. */
void certificates_replace(struct certificates *c, const char *name, const char *by);
/* The path of a file; valid until some dozen more have been asked for. */
const char *certificates_path(const struct certificates *c, const char *file);

#endif
