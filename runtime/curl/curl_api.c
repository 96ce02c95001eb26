#include "curl/curl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#define LIBRARY "libcurl.so.4"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_api api;
static bool is_loaded;
static struct error problem;

static void load(void)
{
        const struct {
                const char *name;
                void *to;
        } functions[] = {
                { "curl_easy_init", &api.easy_init },
                { "curl_easy_cleanup", &api.easy_cleanup },
                { "curl_easy_setopt", &api.easy_setopt },
                { "curl_easy_getinfo", &api.easy_getinfo },
                { "curl_easy_strerror", &api.easy_strerror },
                { "curl_multi_init", &api.multi_init },
                { "curl_multi_cleanup", &api.multi_cleanup },
                { "curl_multi_setopt", &api.multi_setopt },
                { "curl_multi_add_handle", &api.multi_add_handle },
                { "curl_multi_remove_handle", &api.multi_remove_handle },
                { "curl_multi_assign", &api.multi_assign },
                { "curl_multi_socket_action", &api.multi_socket_action },
                { "curl_multi_info_read", &api.multi_info_read },
                { "curl_slist_append", &api.slist_append },
                { "curl_slist_free_all", &api.slist_free_all },
                { "curl_global_init", &api.global_init },
        };
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                (void)error_set(&problem, 0,
                        "libcurl, which speaks to etcd and to receivers of traces, cannot be loaded (%s); install it: "
                        "apt-get install libcurl4",
                        dlerror());
                return;
        }
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
                void *found = dlsym(library, functions[i].name);
                if (!found) {
                        (void)error_set(
                                &problem, 0, "%s has no %s; install libcurl 7.85 or newer", LIBRARY, functions[i].name);
                        return;
                }
                *(void **)functions[i].to = found;
        }
        is_loaded = api.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
        if (!is_loaded)
                (void)error_set(&problem, 0, "%s cannot be initialised", LIBRARY);
}

const struct curl_api *curl_api(struct error *error)
{
        (void)pthread_once(&once, load);
        if (is_loaded)
                return &api;
        *error = problem;
        return NULL;
}
