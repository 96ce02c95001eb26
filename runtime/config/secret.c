#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "config/config.h"

static int keep(const char *text, size_t size, char ret_password[SECRET_MAX], struct error *error)
{
        if (!size)
                return error_set(error, -EINVAL, "the password is empty");
        if (size >= SECRET_MAX || memchr(text, 0, size))
                return error_set(error, -EINVAL, "a password is one line of at most %d bytes", SECRET_MAX - 1);
        memcpy(ret_password, text, size);
        ret_password[size] = 0;
        return 0;
}

static int from_file(const char *path, char ret_password[SECRET_MAX], struct file_trust *ret_trust, struct error *error)
{
        struct buffer b = { 0 };
        (void)buffer_reserve(&b, 32768); /* never reallocated while reading, so no copy stays behind in freed memory */
        int r = file_read(path, SECRET_MAX + 1, &b, NULL, ret_trust, error);
        size_t size = b.size;
        while (size && (b.data[size - 1] == '\n' || b.data[size - 1] == '\r'))
                size--;
        if (!r)
                r = keep((const char *)b.data, size, ret_password, error);
        explicit_bzero(b.data, b.size);
        buffer_free(&b);
        return r ? error_prefix(error, r, "%s", path) : 0;
}

int config_secret(const struct secret_config *secret, char ret_password[SECRET_MAX], struct file_trust *ret_trust,
        struct error *error)
{
        if (secret->file)
                return from_file(secret->file, ret_password, ret_trust, error);
        if (!secret->environment)
                return -ENOENT;
        const char *text = getenv(secret->environment);
        if (!text)
                return error_set(error, -ENXIO, "the environment has no %s", secret->environment);
        int r = keep(text, strlen(text), ret_password, error);
        return r ? error_prefix(error, r, "$%s", secret->environment) : 0;
}

/* Overwrites the value in place as well, since /proc/PID/environ shows that memory. */
static void forget_variable(const char *name)
{
        char *value = getenv(name);
        if (value)
                explicit_bzero(value, strlen(value));
        (void)unsetenv(name);
}

/* A host checks the file's owner and mode again: it may have changed since the configuration was checked. */
static int read_secret(const struct secret_config *from, bool is_host, char *to, struct error *error)
{
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        int r = config_secret(from, to, is_host ? &trust : NULL, error);
        if (r == 0 && trust.verdict != FILE_TRUST_SOUND)
                r = error_set(error, -EPERM, "%s: %s", from->file, trust.why.text);
        return r;
}

int config_secrets_read(const struct config *config, bool forget, struct config_secrets *ret, struct error *error)
{
        const struct {
                const struct secret_config *from;
                char *to;
                const char *group;
        } all[] = {
                { &config->store.password, ret->store, "store" },
                { &config->store.sentinel.password, ret->store_sentinel, "store.sentinel" },
                { &config->coordination.password, ret->coordination, "coordination" },
                { &config->coordination.sentinel.password, ret->coordination_sentinel, "coordination.sentinel" },
        };
        const size_t count = sizeof(all) / sizeof(all[0]);
        *ret = (struct config_secrets){ 0 };
        for (size_t i = 0; i < count; i++) {
                if (!all[i].from->file && !all[i].from->environment)
                        continue;
                int r = read_secret(all[i].from, forget, all[i].to, error);
                if (r < 0)
                        return error_prefix(error, r, "%s", all[i].group);
        }
        /* Variables are wiped after all were read: two passwords may use the same variable. */
        for (size_t i = 0; i < count && forget; i++)
                if (all[i].from->environment)
                        forget_variable(all[i].from->environment);
        return 0;
}
