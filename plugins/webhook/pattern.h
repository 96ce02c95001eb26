/* pattern.h: texts with places that a task fills: "https://{header.region}.example.org/orders/{key}".
 *
 *         {id} {key} {handler} {attempt}     of the task
 *         {header.NAME}                      a header of the task; {header.NAME?} may be missing
 *         {secret.NAME}                      the first line of the file that `secrets` names
 *         {+header.NAME}                     the value as it is; only at the beginning of a URL
 *         {{ and }}                          braces
 *
 * In a URL every other value is percent-encoded, so that it stays inside of its place. */
#ifndef QUIVER_WEBHOOK_PATTERN_H
#define QUIVER_WEBHOOK_PATTERN_H

#include "../common/bytes.h"
#include "secret.h"

enum part_kind { PART_TEXT, PART_ID, PART_KEY, PART_HANDLER, PART_ATTEMPT, PART_HEADER, PART_SECRET };

struct part {
        enum part_kind kind;
        char *text; /* of PART_TEXT; the name of a header or a secret */
        bool is_optional;
        bool is_raw;
        struct secret *secret; /* of PART_SECRET; owned by the list of secrets */
};

struct pattern {
        struct part *parts;
        size_t count;
        bool has_secret;
};

/* The files that patterns name, opened when the first pattern names them. */
#define SECRETS_MAX 16
struct secrets {
        struct secret list[SECRETS_MAX];
        size_t count;
};

enum pattern_use { PATTERN_URL, PATTERN_HEADER };

/* 0, or -1 after setting the reason why init fails; `setting` names the text in it. */
int pattern_read(struct pattern *t, const struct qv_host *host, const char *setting, const char *text,
        enum pattern_use use, struct secrets *secrets);
void pattern_free(struct pattern *t);
void secrets_close(struct secrets *s);

enum pattern_result {
        PATTERN_FILLED,
        PATTERN_LEFT_OUT, /* a header that may be missing is missing */
        PATTERN_BAD,      /* the task cannot fill it; its error says why */
};

/* Appends the text for this task. */
enum pattern_result pattern_fill(
        const struct pattern *t, const struct qv_task *task, enum pattern_use use, uint64_t now_ms, struct bytes *to);

#endif
