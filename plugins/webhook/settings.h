/* settings.h: the handler's `config`, checked. */
#ifndef QUIVER_WEBHOOK_SETTINGS_H
#define QUIVER_WEBHOOK_SETTINGS_H

#include "address.h"
#include "pattern.h"
#include "rules.h"

#define HEADERS_MAX   32
#define KEYS_MAX      2
#define REDIRECTS_MAX 5

/* A header of the request. */
struct field {
        char *name;
        struct pattern value;
};

struct settings {
        const char *method; /* POST, PUT, PATCH, GET or DELETE */
        bool has_body;      /* of POST, PUT and PATCH */
        struct pattern url;
        struct field fields[HEADERS_MAX];
        size_t fields_count;
        struct secrets secrets;
        struct secret keys[KEYS_MAX]; /* what requests are signed with */
        size_t keys_count;
        struct rules rules;
        struct ranges allowed;
        uint64_t connect_timeout_ms, timeout_ms;
        int64_t redirects;
        bool has_result; /* the body of the answer is the task's result */
        uint64_t max_result;
        const char *proxy;        /* NULL: none */
        struct secret proxy_user; /* USER:PASSWORD; no path: none */
        const char *ca_file, *cert_file, *key_file;
};

/* 0, or -1 after setting the reason why init fails; then nothing has to be freed. */
int settings_read(struct settings *s, const struct qv_host *host);
void settings_free(struct settings *s);

/* Whether one of the headers has this name, in whatever case. */
bool settings_has_field(const struct settings *s, const char *name);

#endif
