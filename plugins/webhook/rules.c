#include "rules.h"

static void set(struct rules *r, int first, int last, int outcome)
{
        for (int status = first; status <= last; status++)
                r->by_status[status] = (uint8_t)outcome;
}

void rules_init(struct rules *r, uint64_t retry_after_max_ms)
{
        *r = (struct rules){ .down = QV_LATER, .silent = QV_RETRY, .retry_after_max_ms = retry_after_max_ms };
        set(r, 0, 199, QV_RETRY);
        set(r, 200, 299, QV_DONE);
        set(r, 300, 499, QV_REJECT);
        set(r, 500, 599, QV_RETRY);
        set(r, 408, 408, QV_RETRY);
        set(r, 425, 425, QV_RETRY);
        set(r, 429, 429, QV_LIMITED);
        set(r, 503, 503, RULE_503);
}

static int outcome_of(const char *word)
{
        static const struct {
                const char *word;
                int outcome;
        } words[] = { { "done", QV_DONE }, { "retry", QV_RETRY }, { "reject", QV_REJECT }, { "later", QV_LATER },
                { "limited", QV_LIMITED }, { "unavailable", QV_UNAVAILABLE } };
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (!strcmp(word, words[i].word))
                        return words[i].outcome;
        return -1;
}

/* "404" or "4xx", up to the '='. */
static bool read_statuses(const char *text, int *ret_first, int *ret_last)
{
        int number;
        if (text[0] < '2' || text[0] > '5')
                return false;
        number = (text[0] - '0') * 100;
        if (!strncmp(text + 1, "xx=", 3)) {
                *ret_first = number;
                *ret_last = number + 99;
                return true;
        }
        if (text[1] < '0' || text[1] > '9' || text[2] < '0' || text[2] > '9' || text[3] != '=')
                return false;
        *ret_first = *ret_last = number + (text[1] - '0') * 10 + (text[2] - '0');
        return true;
}

int rules_read(struct rules *r, const struct qv_host *host, const char *text)
{
        const char *word = strchr(text, '=');
        int outcome = word ? outcome_of(word + 1) : -1;
        int first, last;
        if (outcome < 0)
                return qv_init_errorf(host,
                        "rules: \"%s\" does not end in =done, =retry, =reject, =later, =limited or =unavailable", text);
        if (!strncmp(text, "down=", 5))
                r->down = (uint8_t)outcome;
        else if (!strncmp(text, "silent=", 7))
                r->silent = (uint8_t)outcome;
        else if (read_statuses(text, &first, &last))
                set(r, first, last, outcome);
        else
                return qv_init_errorf(host,
                        "rules: \"%s\" begins neither with a status (404), a class (2xx to 5xx), down nor silent",
                        text);
        return 0;
}

struct verdict rules_judge(const struct rules *r, const struct answer *a)
{
        struct verdict v = { .outcome = QV_RETRY };
        switch (a->kind) {
        case DOWN:
                v.outcome = r->down;
                break;
        case SILENT:
                v.outcome = r->silent;
                break;
        case FORBIDDEN:
                v.outcome = QV_REJECT;
                break;
        case STOPPED:
                break;
        case ANSWERED:
                if (a->status > 0 && a->status < STATUS_MAX)
                        v.outcome = r->by_status[a->status];
                if (v.outcome == RULE_503)
                        v.outcome = a->retry_after_ms ? QV_LATER : QV_RETRY;
                if (v.outcome == QV_RETRY || v.outcome == QV_LATER || v.outcome == QV_LIMITED)
                        v.delay_ms =
                                a->retry_after_ms < r->retry_after_max_ms ? a->retry_after_ms : r->retry_after_max_ms;
                break;
        }
        return v;
}
