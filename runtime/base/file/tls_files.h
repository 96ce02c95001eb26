/* tls_files.h: the names of certificate and key files for TLS. */
#ifndef QUIVER_BASE_FILE_TLS_FILES_H
#define QUIVER_BASE_FILE_TLS_FILES_H

/* All may be NULL. */
struct tls_files {
        const char *ca_file; /* the authorities (PEM) that sign servers' certificates; NULL: the system's */
        const char *cert_file, *key_file; /* our own certificate (PEM) with its chain, and its key; NULL: none */
        const char *server_name; /* the name that certificates must have; NULL: the host that is connected to */
};

/* Copies of all texts; "" becomes NULL. */
struct tls_files tls_files_copy(const struct tls_files *from);
void tls_files_free(struct tls_files *files);

#endif
