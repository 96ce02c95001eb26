/* curl_api.h: libcurl's functions, loaded when they are first needed. */
#ifndef QUIVER_CURL_CURL_API_H
#define QUIVER_CURL_CURL_API_H

#include <curl/curl.h>

#include "base/error.h"

struct curl_api {
        CURL *(*easy_init)(void);
        void (*easy_cleanup)(CURL *);
        CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
        CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
        const char *(*easy_strerror)(CURLcode);
        CURLM *(*multi_init)(void);
        CURLMcode (*multi_cleanup)(CURLM *);
        CURLMcode (*multi_setopt)(CURLM *, CURLMoption, ...);
        CURLMcode (*multi_add_handle)(CURLM *, CURL *);
        CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
        CURLMcode (*multi_assign)(CURLM *, curl_socket_t, void *);
        CURLMcode (*multi_socket_action)(CURLM *, curl_socket_t, int, int *);
        CURLMsg *(*multi_info_read)(CURLM *, int *);
        struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
        void (*slist_free_all)(struct curl_slist *);
        CURLcode (*global_init)(long);
};

/* NULL: it cannot be loaded, and the error says what to install. */
const struct curl_api *curl_api(struct error *error);

#endif
