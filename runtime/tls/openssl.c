#include "tls/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define LIBRARY "libssl.so.3"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct openssl openssl;
static bool is_loaded;
static struct error problem;

static void load(void)
{
        const struct {
                const char *name;
                void *to;
        } functions[] = {
#define ROW(name) { #name, &openssl.name },
                OPENSSL_FUNCTIONS(ROW)
#undef ROW
        };
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                (void)error_set(&problem, 0,
                        "TLS is spoken with OpenSSL, which cannot be loaded (%s); install it: apt-get install libssl3",
                        dlerror());
                return;
        }
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
                void *found = dlsym(library, functions[i].name);
                if (!found) {
                        (void)error_set(
                                &problem, 0, "%s has no %s; install OpenSSL 3.0 or newer", LIBRARY, functions[i].name);
                        return;
                }
                *(void **)functions[i].to = found;
        }
        /* It stays loaded until the process ends: other threads may use TLS while exit() runs. */
        is_loaded = openssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
        if (!is_loaded)
                (void)error_set(&problem, 0,
                        "%s cannot be initialised; look at its settings: openssl version -d, and $OPENSSL_CONF",
                        LIBRARY);
}

const struct openssl *openssl_load(struct error *error)
{
        (void)pthread_once(&once, load);
        if (is_loaded)
                return &openssl;
        if (error)
                *error = problem;
        return NULL;
}
