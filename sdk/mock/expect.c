/* expect.c: expectations that print both values and go on. */
#include "internal.h"

static int failures;

int qv_mock_failures(void)
{
        return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

__attribute__((format(printf, 3, 4))) static int fail(const char *file, int line, const char *format, ...)
{
        va_list args;
        (void)__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
        flockfile(stderr); /* seats of several threads may fail at once */
        (void)fprintf(stderr, "%s:%d: ", file, line);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fputc('\n', stderr);
        funlockfile(stderr);
        return 0;
}

int qv_mock_expect(const char *file, int line, const char *expression, int is_true)
{
        return is_true ? 1 : fail(file, line, "%s does not hold", expression);
}

int qv_mock_expect_int(const char *file, int line, const char *expression, int64_t actual, int64_t expected)
{
        if (actual == expected)
                return 1;
        return fail(file, line, "%s is %lld, expected %lld", expression, (long long)actual, (long long)expected);
}

/* In quotes, or NULL without them. */
struct quoted {
        const char *quote, *text;
};

static struct quoted quoted(const char *text)
{
        return text ? (struct quoted){ "\"", text } : (struct quoted){ "", "NULL" };
}

int qv_mock_expect_text(
        const char *file, int line, const char *expression, const char *actual, const char *expected, int is_part)
{
        bool is_same = actual == expected;
        if (actual && expected)
                is_same = is_part ? strstr(actual, expected) != NULL : !strcmp(actual, expected);
        if (is_same)
                return 1;
        struct quoted is = quoted(actual);
        struct quoted should = quoted(expected);
        return fail(file, line, "%s is %s%s%s, expected %s%s%s%s", expression, is.quote, is.text, is.quote,
                is_part ? "a text with " : "", should.quote, should.text, should.quote);
}

static const char *outcome_text(int32_t outcome, char text[16])
{
        static const char *const names[] = { "QV_DONE", "QV_RETRY", "QV_REJECT", "QV_UNAVAILABLE", "QV_PENDING",
                "QV_LATER", "QV_LIMITED" };
        if (outcome >= QV_DONE && outcome <= QV_LIMITED)
                return names[outcome];
        if (outcome == QV_MOCK_CRASHED)
                return "QV_MOCK_CRASHED";
        (void)snprintf(text, 16, "%d", outcome);
        return text;
}

int qv_mock_expect_outcome(const char *file, int line, const struct qv_mock_task *task, int32_t expected)
{
        char actual_text[16];
        char expected_text[16];
        if (task->outcome == expected)
                return 1;
        return fail(file, line, "task %s is %s, expected %s%s%s", task->id, outcome_text(task->outcome, actual_text),
                outcome_text(expected, expected_text), task->error ? "; its error: " : "",
                task->error ? task->error : "");
}
