#include "settings.h"

#include <strings.h>
#include <unistd.h>

#include "signature.h"
#include "target.h"

#define TIMEOUT_MAX_MS 3600000u

static const char *element(const struct qv_host *host, const char *list, size_t index)
{
        char name[64];
        (void)snprintf(name, sizeof(name), "%s.%zu", list, index);
        return host->config(host, name);
}

/* --- what is sent ------------------------------------------------------------------------------------------------ */

static int read_method(struct settings *s, const struct qv_host *host)
{
        static const char *const methods[] = { "POST", "PUT", "PATCH", "GET", "DELETE" };
        const char *method = qv_config(host, "method", "POST");
        for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
                if (!strcmp(method, methods[i])) {
                        s->method = methods[i];
                        s->has_body = i < 3;
                        return 0;
                }
        return qv_init_errorf(host, "method = \"%s\" is none of POST, PUT, PATCH, GET and DELETE", method);
}

/* Checks a URL that no task changes as it is checked later. */
static int check_fixed_url(const struct settings *s, const struct qv_host *host, const char *text)
{
        struct target target;
        char why[TARGET_WHY];
        if (target_parse(&target, text, &s->allowed, s->proxy != NULL, why) != TARGET_GOOD)
                return qv_init_errorf(host, "url: %s", why);
        target_free(&target);
        return 0;
}

static int read_url(struct settings *s, const struct qv_host *host)
{
        const char *text = host->config(host, "url");
        if (!text)
                return qv_init_errorf(host, "url is not set; for instance \"https://hooks.example.org/{key}\"");
        if (pattern_read(&s->url, host, "url", text, PATTERN_URL, &s->secrets) < 0)
                return -1;
        const struct part *first = s->url.count ? &s->url.parts[0] : NULL;
        bool has_scheme = first && first->kind == PART_TEXT &&
                          (!strncmp(first->text, "https://", 8) || !strncmp(first->text, "http://", 7));
        if (!has_scheme && !(first && first->is_raw))
                return qv_init_errorf(host,
                        "url = \"%s\" begins neither with https:// nor http://, nor with {+header.NAME} for a whole "
                        "URL in a header",
                        text);
        return s->url.count == 1 && has_scheme ? check_fixed_url(s, host, first->text) : 0;
}

static bool is_token(const char *name, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                char c = name[i];
                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                            strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return size > 0;
}

/* Those that say how the request itself is made, and those that prove who made it. */
static bool is_own_field(const char *name)
{
        static const char *const own[] = { "host", "content-length", "transfer-encoding", "connection", "expect", "te",
                "trailer", "upgrade", "webhook-id", "webhook-timestamp", "webhook-signature" };
        for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
                if (!strcasecmp(name, own[i]))
                        return true;
        return !strncasecmp(name, "proxy-", 6);
}

static int read_field(struct settings *s, const struct qv_host *host, const char *text)
{
        size_t size = strcspn(text, ":");
        struct field *field = &s->fields[s->fields_count];
        if (s->fields_count == HEADERS_MAX)
                return qv_init_errorf(host, "headers: more than %d", HEADERS_MAX);
        if (!text[size] || !is_token(text, size))
                return qv_init_errorf(host, "headers: \"%s\" is not of the form \"Name: value\"", text);
        field->name = strndup(text, size);
        if (!field->name)
                return qv_init_errorf(host, "out of memory");
        s->fields_count++;
        if (is_own_field(field->name))
                return qv_init_errorf(host, "headers: %s is the plugin's own; leave it out", field->name);
        text += size + 1;
        text += strspn(text, " \t");
        return pattern_read(&field->value, host, field->name, text, PATTERN_HEADER, &s->secrets);
}

static int read_fields(struct settings *s, const struct qv_host *host)
{
        const char *text;
        for (size_t i = 0; (text = element(host, "headers", i)); i++)
                if (read_field(s, host, text) < 0)
                        return -1;
        return 0;
}

static int read_keys(struct settings *s, const struct qv_host *host)
{
        const char *path;
        for (size_t i = 0; (path = element(host, "sign_keys", i)); i++) {
                char name[32];
                if (i == KEYS_MAX)
                        return qv_init_errorf(host, "sign_keys: two at most, the new one and the old one");
                (void)snprintf(name, sizeof(name), "sign_keys.%zu", i);
                s->keys_count++;
                if (secret_open(&s->keys[i], host, name, path) < 0)
                        return -1;
                if (signature_check_key(s->keys[i].text) < 0)
                        return qv_init_errorf(host,
                                "sign_keys: %s: the key is shorter than 16 bytes, or not base64 behind whsec_; make "
                                "one with: (printf whsec_; openssl rand -base64 32) > %s",
                                path, path);
        }
        return 0;
}

/* --- what comes back --------------------------------------------------------------------------------------------- */

static int read_rules(struct settings *s, const struct qv_host *host)
{
        uint64_t most_ms;
        const char *text;
        if (qv_config_duration(host, "retry_after_max", 3600000, 1000, 86400000, &most_ms) < 0)
                return -1;
        rules_init(&s->rules, most_ms);
        for (size_t i = 0; (text = element(host, "rules", i)); i++)
                if (rules_read(&s->rules, host, text) < 0)
                        return -1;
        return 0;
}

static int read_result(struct settings *s, const struct qv_host *host)
{
        const char *word = qv_config(host, "result", "body");
        s->has_result = !strcmp(word, "body");
        if (!s->has_result && strcmp(word, "none") != 0)
                return qv_init_errorf(host, "result = \"%s\" is neither \"body\" nor \"none\"", word);
        return qv_config_size(host, "max_result", 65536, 1, 16u << 20, &s->max_result);
}

/* --- where it goes ----------------------------------------------------------------------------------------------- */

static int read_allowed(struct settings *s, const struct qv_host *host)
{
        const char *text;
        for (size_t i = 0; (text = element(host, "allow", i)); i++) {
                if (i == RANGES_MAX)
                        return qv_init_errorf(host, "allow: more than %d", RANGES_MAX);
                if (range_parse(&s->allowed.list[i], text) < 0)
                        return qv_init_errorf(host,
                                "allow: \"%s\" is no address and no range of addresses, such as \"10.1.0.0/16\" or "
                                "\"fd00::/8\"",
                                text);
                s->allowed.count++;
        }
        return 0;
}

static int read_proxy(struct settings *s, const struct qv_host *host)
{
        const char *user = host->config(host, "proxy_user_file");
        s->proxy = host->config(host, "proxy");
        if (!s->proxy)
                return user ? qv_init_errorf(host, "proxy_user_file is set, and proxy is not") : 0;
        if (strncmp(s->proxy, "http://", 7) != 0 && strncmp(s->proxy, "https://", 8) != 0 &&
                strncmp(s->proxy, "socks5h://", 10) != 0)
                return qv_init_errorf(host, "proxy begins neither with http://, https:// nor socks5h://");
        if (strchr(s->proxy, '@'))
                return qv_init_errorf(host, "proxy: it has a user in it; use proxy_user_file, with USER:PASSWORD");
        return user ? secret_open(&s->proxy_user, host, "proxy_user_file", user) : 0;
}

static int read_file(const struct qv_host *host, const char *name, const char **ret_path)
{
        struct stat seen;
        *ret_path = host->config(host, name);
        if (!*ret_path)
                return 0;
        if (access(*ret_path, R_OK) < 0 || stat(*ret_path, &seen) < 0)
                return qv_init_errorf(host, "%s: %s: %s", name, *ret_path, strerror(errno));
        return S_ISDIR(seen.st_mode) ? qv_init_errorf(host, "%s: %s: not a file", name, *ret_path) : 0;
}

static int read_tls(struct settings *s, const struct qv_host *host)
{
        if (read_file(host, "ca_file", &s->ca_file) < 0 || read_file(host, "cert_file", &s->cert_file) < 0 ||
                read_file(host, "key_file", &s->key_file) < 0)
                return -1;
        return !s->cert_file == !s->key_file ? 0 : qv_init_errorf(host, "cert_file and key_file belong together");
}

int settings_read(struct settings *s, const struct qv_host *host)
{
        *s = (struct settings){ 0 };
        if (read_method(s, host) == 0 && read_allowed(s, host) == 0 && read_proxy(s, host) == 0 &&
                read_url(s, host) == 0 && read_fields(s, host) == 0 && read_keys(s, host) == 0 &&
                read_rules(s, host) == 0 && read_result(s, host) == 0 && read_tls(s, host) == 0 &&
                qv_config_duration(host, "connect_timeout", 5000, 1, TIMEOUT_MAX_MS, &s->connect_timeout_ms) == 0 &&
                qv_config_duration(host, "timeout", 10000, 1, TIMEOUT_MAX_MS, &s->timeout_ms) == 0 &&
                qv_config_number(host, "redirects", 0, 0, REDIRECTS_MAX, &s->redirects) == 0)
                return 0;
        settings_free(s);
        return -1;
}

void settings_free(struct settings *s)
{
        pattern_free(&s->url);
        for (size_t i = 0; i < s->fields_count; i++) {
                free(s->fields[i].name);
                pattern_free(&s->fields[i].value);
        }
        for (size_t i = 0; i < s->keys_count; i++)
                secret_close(&s->keys[i]);
        secret_close(&s->proxy_user);
        secrets_close(&s->secrets);
        *s = (struct settings){ 0 };
}

bool settings_has_field(const struct settings *s, const char *name)
{
        for (size_t i = 0; i < s->fields_count; i++)
                if (!strcasecmp(s->fields[i].name, name))
                        return true;
        return false;
}
