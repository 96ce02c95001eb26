#include "base/file/tls_files.h"

#include <stdlib.h>

#include "base/strings.h"

static const char *copy(const char *text)
{
        return text && *text ? text_copy(text) : NULL;
}

struct tls_files tls_files_copy(const struct tls_files *from)
{
        return (struct tls_files){ copy(from->ca_file), copy(from->cert_file), copy(from->key_file),
                copy(from->server_name) };
}

void tls_files_free(struct tls_files *files)
{
        free((char *)files->ca_file);
        free((char *)files->cert_file);
        free((char *)files->key_file);
        free((char *)files->server_name);
        *files = (struct tls_files){ 0 };
}
