#include "pattern.h"

#define PARTS_MAX 64

/* --- reading ----------------------------------------------------------------------------------------------------- */

void secrets_close(struct secrets *s)
{
        while (s->count)
                secret_close(&s->list[--s->count]);
}

static int find_secret(struct secrets *s, const struct qv_host *host, const char *name, struct secret **ret)
{
        char setting[128];
        (void)snprintf(setting, sizeof(setting), "secrets.%s", name);
        for (size_t i = 0; i < s->count; i++)
                if (!strcmp(s->list[i].name, setting)) {
                        *ret = &s->list[i];
                        return 0;
                }
        const char *path = host->config(host, setting);
        if (!path)
                return qv_init_errorf(
                        host, "{secret.%s}: %s is not set; it is the file whose first line is meant", name, setting);
        if (s->count == SECRETS_MAX)
                return qv_init_errorf(host, "more than %d secrets", SECRETS_MAX);
        *ret = &s->list[s->count++];
        return secret_open(*ret, host, setting, path);
}

/* `text` need not end with a NUL. */
static struct part *add_part(struct pattern *t, enum part_kind kind, const char *text, size_t size)
{
        struct part *part = &t->parts[t->count];
        *part = (struct part){ .kind = kind, .text = calloc(1, size + 1) };
        if (!part->text)
                return NULL;
        memcpy(part->text, text, size);
        t->count++;
        return part;
}

static enum part_kind kind_of(const char *name, size_t *prefix)
{
        static const struct {
                const char *name;
                enum part_kind kind;
        } kinds[] = { { "id", PART_ID }, { "key", PART_KEY }, { "handler", PART_HANDLER },
                { "attempt", PART_ATTEMPT } };
        *prefix = 0;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (!strcmp(name, kinds[i].name))
                        return kinds[i].kind;
        *prefix = 7;
        if (!strncmp(name, "header.", 7) && name[7])
                return PART_HEADER;
        return !strncmp(name, "secret.", 7) && name[7] ? PART_SECRET : PART_TEXT;
}

/* What stands between braces. */
static int read_place(struct pattern *t, const struct qv_host *host, const char *setting, char *name,
        enum pattern_use use, struct secrets *secrets)
{
        size_t prefix, size = strlen(name);
        bool is_raw = *name == '+', is_optional = size && name[size - 1] == '?';
        if (is_optional)
                name[size - 1] = 0;
        name += is_raw;
        enum part_kind kind = kind_of(name, &prefix);
        if (kind == PART_TEXT)
                return qv_init_errorf(host,
                        "%s: {%s} is unknown; there are {id}, {key}, {handler}, {attempt}, {header.NAME} and "
                        "{secret.NAME}, and {{ for a brace",
                        setting, name);
        if (is_raw && (kind != PART_HEADER || use != PATTERN_URL || t->count))
                return qv_init_errorf(host, "%s: {+header.NAME} can only stand at the beginning of a URL", setting);
        if (is_optional && (kind != PART_HEADER || is_raw))
                return qv_init_errorf(host, "%s: only a {header.NAME?} may be missing", setting);
        struct part *part = add_part(t, kind, name + prefix, strlen(name + prefix));
        if (!part)
                return qv_init_errorf(host, "out of memory");
        part->is_raw = is_raw;
        part->is_optional = is_optional;
        t->has_secret |= kind == PART_SECRET;
        return kind == PART_SECRET ? find_secret(secrets, host, part->text, &part->secret) : 0;
}

/* The text up to the next place, with doubled braces made single.  Moves *text behind it; NULL: a brace is alone. */
static int read_text(struct pattern *t, const struct qv_host *host, const char *setting, const char **text)
{
        struct bytes plain = { 0 };
        int r = 0;
        const char *at = *text;
        for (; *at && (*at != '{' || at[1] == '{'); at++) {
                if (*at == '}' && at[1] != '}') {
                        r = qv_init_errorf(host, "%s: a } without its {; write }} for a brace", setting);
                        break;
                }
                bytes_put(&plain, at, 1);
                at += *at == '{' || *at == '}';
        }
        if (r == 0 && plain.size && !add_part(t, PART_TEXT, plain.data, plain.size))
                r = qv_init_errorf(host, "out of memory");
        bytes_free(&plain);
        *text = at;
        return r;
}

int pattern_read(struct pattern *t, const struct qv_host *host, const char *setting, const char *text,
        enum pattern_use use, struct secrets *secrets)
{
        *t = (struct pattern){ .parts = calloc(PARTS_MAX, sizeof(struct part)) };
        if (!t->parts)
                return qv_init_errorf(host, "out of memory");
        while (*text) {
                char name[128];
                if (t->count + 2 > PARTS_MAX)
                        return qv_init_errorf(host, "%s: more than %d places", setting, PARTS_MAX / 2);
                if (read_text(t, host, setting, &text) < 0)
                        return -1;
                if (!*text)
                        break;
                size_t size = strcspn(text + 1, "{}");
                if (text[1 + size] != '}' || size >= sizeof(name))
                        return qv_init_errorf(host, "%s: a { without its }; write {{ for a brace", setting);
                memcpy(name, text + 1, size);
                name[size] = 0;
                if (read_place(t, host, setting, name, use, secrets) < 0)
                        return -1;
                text += size + 2;
        }
        return 0;
}

void pattern_free(struct pattern *t)
{
        for (size_t i = 0; i < t->count; i++)
                free(t->parts[i].text);
        free(t->parts);
        *t = (struct pattern){ 0 };
}

/* --- filling ----------------------------------------------------------------------------------------------------- */

/* RFC 3986: unreserved characters stand for themselves, everything else is encoded byte by byte. */
static void put_encoded(struct bytes *to, const char *value, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)value[i];
                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                        c == '.' || c == '_' || c == '~')
                        bytes_put(to, value + i, 1);
                else
                        bytes_printf(to, "%%%02X", c);
        }
}

static bool has_control(const char *value, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
                        return true;
        return false;
}

/* The value of a place; NULL: the task has no such header. */
static const char *value_of(
        const struct part *part, const struct qv_task *task, uint64_t now_ms, char number[16], size_t *ret_size)
{
        const struct qv_header2 *header;
        const char *value = NULL;
        switch (part->kind) {
        case PART_TEXT:
                value = part->text;
                break;
        case PART_ID:
                value = task->id;
                break;
        case PART_KEY:
                value = task->key;
                break;
        case PART_HANDLER:
                value = task->handler;
                break;
        case PART_ATTEMPT:
                (void)snprintf(number, 16, "%u", task->attempt);
                value = number;
                break;
        case PART_SECRET:
                value = secret_get(part->secret, task->host, now_ms);
                break;
        case PART_HEADER:
                header = qv_find_header(task, part->text);
                if (!header)
                        return NULL;
                *ret_size = header->value_size;
                return header->value;
        }
        *ret_size = strlen(value);
        return value;
}

enum pattern_result pattern_fill(
        const struct pattern *t, const struct qv_task *task, enum pattern_use use, uint64_t now_ms, struct bytes *to)
{
        for (size_t i = 0; i < t->count; i++) {
                const struct part *part = &t->parts[i];
                char number[16];
                size_t size = 0;
                const char *value = value_of(part, task, now_ms, number, &size);
                if (!value && part->is_optional) {
                        if (use == PATTERN_HEADER)
                                return PATTERN_LEFT_OUT;
                        continue;
                }
                if (!value) {
                        qv_errorf(task, "the task has no header \"%s\", which the handler's settings need", part->text);
                        return PATTERN_BAD;
                }
                bool is_plain = part->kind == PART_TEXT || part->is_raw || use == PATTERN_HEADER;
                if (is_plain && has_control(value, size)) {
                        qv_errorf(task, "the header \"%s\" has control characters", part->text);
                        return PATTERN_BAD;
                }
                if (is_plain)
                        bytes_put(to, value, size);
                else
                        put_encoded(to, value, size);
        }
        return PATTERN_FILLED;
}
