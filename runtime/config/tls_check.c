/* tls_check.c: checks that the certificates named in a configuration can be used. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_trust.h"
#include "config/connect.h"
#include "config/read.h"
#include "tls/tls.h"

#define PATH_TEXT_MAX 64

/* "store.tls.key_file" */
static const char *name_of(const char *group, const char *setting, char text[PATH_TEXT_MAX])
{
        (void)snprintf(text, PATH_TEXT_MAX, "%s.tls%s%s", group, *setting ? "." : "", setting);
        return text;
}

static void check_file(struct config_tree *t, const char *group, const char *setting, const char *file)
{
        char name[PATH_TEXT_MAX];
        if (file && access(file, R_OK) != 0)
                problems_warn(t->problems, tree_place_of(t, name_of(group, setting, name)), "%s: %s: %s", name, file,
                        strerror(errno));
}

/* Anybody who can read the key can impersonate us; anybody who can write it can replace our identity. */
static void check_key(struct config_tree *t, const char *group, const char *file)
{
        char name[PATH_TEXT_MAX];
        char prefix[PATH_MAX + 80];
        struct stat st;
        struct file_trust trust;
        if (!file)
                return;
        struct config_place place = tree_place_of(t, name_of(group, "key_file", name));
        int fd = file_trust_open(file, FILE_TRUST_OF_FILE, &trust, NULL);
        if (fd < 0)
                return; /* loading it reports why it cannot be read */
        (void)snprintf(prefix, sizeof(prefix), "%s: %s: ", name, file);
        if (problems_is_host(t->problems) && trust.verdict != FILE_TRUST_SOUND)
                problems_judge(t->problems, place, prefix, &trust);
        else if (!fstat(fd, &st) && (st.st_mode & (S_IRWXG | S_IRWXO)))
                problems_warn(t->problems, place, "%s: %s is open to others (mode %03o); chmod 600 %s", name, file,
                        (unsigned int)(st.st_mode & 0777), file);
        (void)close(fd);
}

/* Loads the files as a connection would, so that a mistake is found now, and on a reload before the configuration is
 * taken up. */
static void check_use(struct config_tree *t, const char *group, const struct tls_config *tls)
{
        const struct tls_files files = tls_files_of(tls);
        struct tls_context *context = NULL;
        struct error error = { "" };
        char name[PATH_TEXT_MAX];
        int r = tls_context_open(&files, &context, &error);
        if (r == -ENOTSUP)
                problems_error(t->problems, tree_whole(t), "%s.url: %s", group, error.text);
        else if (r)
                problems_error(t->problems, tree_place_of(t, name_of(group, "", name)), "%s: %s", name, error.text);
        tls_context_free(context);
}

void config_check_tls(struct config_tree *t, const char *group, const struct url *url, const struct tls_config *tls)
{
        char name[PATH_TEXT_MAX];
        struct config_place place = tree_place_of(t, name_of(group, "", name));
        bool is_set = tls->ca_file || tls->cert_file || tls->key_file || tls->server_name;
        if (is_set && url->kind == URL_STORE_REDIS)
                problems_error(t->problems, place,
                        "%s: coordination.url = \"redis\" is the store's Redis; set store.tls", name);
        else if (is_set && !url->is_tls)
                problems_error(t->problems, place, "%s: %s.url speaks no TLS; it would be rediss://HOST:PORT%s", name,
                        group, strcmp(group, "store") ? ", or etcd+tls://H1,H2,H3/ROOT" : "");
        if (!tls->cert_file != !tls->key_file)
                problems_error(t->problems, place, "%s: cert_file and key_file belong together", name);
        if (tls->server_name && url->kind == URL_ETCD_TLS)
                problems_error(t->problems, place,
                        "%s.server_name is for Redis; with etcd the certificate is for the host", name);
        check_key(t, group, tls->key_file);
        if (url_is_redis(url) && url->is_tls && problems_is_host(t->problems)) {
                check_use(t, group, tls);
                return;
        }
        check_file(t, group, "ca_file", tls->ca_file);
        check_file(t, group, "cert_file", tls->cert_file);
        check_file(t, group, "key_file", tls->key_file);
}
