#include "certificates.h"

#include <stdlib.h>

#include "check.h"

#define PATHS     32
#define NEW_KEY   "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
#define ALL_NAMES "DNS:localhost,DNS:redis.test,IP:127.0.0.1,IP:::1"

__attribute__((format(printf, 2, 3))) static void run(const struct certificates *c, const char *format, ...)
{
        char words[768], command[1024];
        va_list list;
        va_start(list, format);
        (void)vsnprintf(words, sizeof(words), format, list);
        va_end(list);
        (void)snprintf(command, sizeof(command), "cd '%s' && { %s; } >openssl.log 2>&1", c->folder, words);
        if (system(command) != 0)
                fail_msg("%s; see %s/openssl.log", words, c->folder);
}

const char *certificates_path(const struct certificates *c, const char *file)
{
        static char paths[PATHS][128];
        static unsigned next;
        char *path = paths[next++ % PATHS];
        (void)snprintf(path, sizeof(paths[0]), "%s/%s", c->folder, file);
        return path;
}

void certificates_add_authority(struct certificates *c, const char *name)
{
        run(c, "openssl req -x509 " NEW_KEY " -days 2 -subj /CN=%s -keyout %s.key -out %s.pem", name, name, name);
}

void certificates_add(struct certificates *c, const char *name, const char *names, const char *authority)
{
        run(c,
                "openssl req -x509 -CA %s.pem -CAkey %s.key " NEW_KEY " -days 2 -subj /CN=%s "
                "-addext subjectAltName=%s -addext basicConstraints=critical,CA:FALSE -keyout %s.key -out %s.pem",
                authority, authority, name, names, name, name);
}

void certificates_add_expired(struct certificates *c, const char *name, const char *names, const char *authority)
{
        run(c,
                "openssl req " NEW_KEY " -subj /CN=%s -keyout %s.key -out %s.csr && "
                "echo subjectAltName=%s > names && openssl x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -days -1 "
                "-extfile names -out %s.pem",
                name, name, name, names, name, authority, authority, name);
}

void certificates_replace(struct certificates *c, const char *name, const char *by)
{
        run(c, "cp %s.key new.key && cp %s.pem new.pem && mv new.key %s.key && mv new.pem %s.pem", by, by, name, name);
}

void certificates_make(struct certificates *c)
{
        *c = (struct certificates){ .folder = "/tmp/quiver-tls-XXXXXX" };
        assert_non_null(mkdtemp(c->folder));
        certificates_add_authority(c, "ca");
        certificates_add(c, "server", ALL_NAMES, "ca");
        certificates_add(c, "client", "DNS:host-a", "ca");
}

void certificates_free(struct certificates *c)
{
        char command[128];
        if (!c->folder[0])
                return;
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", c->folder);
        assert_int_equal(system(command), 0);
        c->folder[0] = 0;
}
