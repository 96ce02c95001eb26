#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void target_free(struct target *t)
{
        curl_url_cleanup(t->url);
        *t = (struct target){ 0 };
}

static bool is_name(const char *host)
{
        for (; *host; host++)
                if (!((*host >= 'a' && *host <= 'z') || (*host >= 'A' && *host <= 'Z') ||
                            (*host >= '0' && *host <= '9') || strchr(".-_", *host)))
                        return false;
        return true;
}

static bool is_this_machine(const char *host)
{
        static const char name[] = "localhost";
        size_t size = strlen(host);
        if (size && host[size - 1] == '.')
                size--;
        return size >= strlen(name) && !strncasecmp(host + size - strlen(name), name, strlen(name)) &&
               (size == strlen(name) || host[size - strlen(name) - 1] == '.');
}

/* `host` is changed: brackets are taken off. */
static enum target_result check_host(char *host, const struct ranges *allowed, bool is_proxied, char why[TARGET_WHY])
{
        char *text = host;
        if (*host == '[') {
                text = host + 1;
                text[strcspn(text, "]%")] = 0;
        } else if (!is_name(host)) {
                (void)snprintf(why, TARGET_WHY, "the host's name in the URL has characters that no name has");
                return TARGET_BAD;
        }
        const char *what = address_text_refused(text, allowed);
        if (!what && is_proxied && is_this_machine(text) && address_text_refused("127.0.0.1", allowed))
                what = "loopback";
        if (!what)
                return TARGET_GOOD;
        (void)snprintf(why, TARGET_WHY, "%.100s is %s; if it is meant, the setting `allow` has to name it", text, what);
        return TARGET_FORBIDDEN;
}

enum target_result target_parse(
        struct target *t, const char *text, const struct ranges *allowed, bool is_proxied, char why[TARGET_WHY])
{
        char *scheme = NULL, *host = NULL, *port = NULL;
        enum target_result result = TARGET_BAD;
        *t = (struct target){ .url = curl_url() };
        CURLUcode code = t->url ? curl_url_set(t->url, CURLUPART_URL, text, CURLU_DISALLOW_USER) : CURLUE_OUT_OF_MEMORY;
        if (code == CURLUE_OK)
                code = curl_url_get(t->url, CURLUPART_SCHEME, &scheme, 0);
        if (code == CURLUE_OK)
                code = curl_url_get(t->url, CURLUPART_HOST, &host, 0);
        if (code == CURLUE_OK)
                code = curl_url_get(t->url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        if (code == CURLUE_USER_NOT_ALLOWED) {
                (void)snprintf(why, TARGET_WHY,
                        "the URL has a user or a password in it; a header with a {secret.NAME} can carry them");
        } else if (code != CURLUE_OK) {
                (void)snprintf(why, TARGET_WHY, "the URL cannot be used: %s", curl_url_strerror(code));
        } else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
                (void)snprintf(why, TARGET_WHY, "the URL begins neither with http:// nor with https://");
        } else {
                t->is_https = !strcmp(scheme, "https");
                (void)snprintf(t->destination, sizeof(t->destination), "%s://%s:%s", scheme, host, port);
                for (char *c = t->destination; *c; c++)
                        if (*c >= 'A' && *c <= 'Z')
                                *c = (char)(*c - 'A' + 'a');
                result = check_host(host, allowed, is_proxied, why);
        }
        curl_free(scheme);
        curl_free(host);
        curl_free(port);
        if (result != TARGET_GOOD)
                target_free(t);
        return result;
}

bool target_has_dots(const char *text)
{
        const char *at = strstr(text, "://");
        at = at ? strpbrk(at + 3, "/?#") : NULL;
        while (at && *at == '/') {
                size_t size = strcspn(++at, "/?#");
                if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
                        return true;
                at += size;
        }
        return false;
}
