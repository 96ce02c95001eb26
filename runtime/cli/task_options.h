/* task_options.h: a task given as options on the command line, or as a line of JSON. */
#ifndef QUIVER_CLI_TASK_OPTIONS_H
#define QUIVER_CLI_TASK_OPTIONS_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"
#include "task/envelope.h"

/* TASK_OPTIONS_INIT is a task without options.  `task` borrows from argv or the line, and from the other fields. */
struct task_options {
        struct qv_client_task task;
        struct qv_client_header headers[TASK_HEADERS_MAX];
        struct qv_client_header2 headers2[TASK_HEADERS_MAX];
        char *header_texts[4 * TASK_HEADERS_MAX]; /* allocated names and values; owned */
        size_t header_texts_count;
        struct buffer payload; /* the payload, if it had to be built */
};
#define TASK_OPTIONS_INIT                                                                                              \
        {                                                                                                              \
                .task = QV_CLIENT_TASK_INIT                                                                            \
        }

void task_options_free(struct task_options *t);

/* Rows for a command's table; `t` is a struct task_options *. */
#define TASK_OPTIONS(t)                                                                                                \
        OPT_TEXT("-k, --key KEY", &(t)->task.key, "what order is kept for; none: unordered"),                          \
                OPT_CHOICE("--lane LANE", &(t)->task.lane, task_lanes, "high, normal or low"),                         \
                OPT_DURATION("--delay TIME", &(t)->task.delay_ms, 0, "start no sooner than in 10s, 5m, 1h"),           \
                OPT_CALL("--at TIME", task_options_take_at, t,                                                         \
                        "start no sooner than then: 2026-11-20T09:00:00Z; by the local clock: 2026-11-20 09:00, "      \
                        "09:00"),                                                                                      \
                OPT_DURATION(                                                                                          \
                        "--unique TIME", &(t)->task.unique_ms, 0, "no second one for handler and key within TIME"),    \
                OPT_FLAG("--merge", &(t)->task.merge,                                                                  \
                        "with those that wait, if they say so too: the last payload runs"),                            \
                OPT_DURATION(                                                                                          \
                        "--debounce TIME", &(t)->task.debounce_ms, 0, "--merge, and the first waits TIME for others"), \
                OPT_NUMBER("--attempts N", &(t)->task.attempts, 1, UINT32_MAX,                                         \
                        "starts in all, instead of the handler's"),                                                    \
                OPT_DURATION("--timeout TIME", &(t)->task.timeout_ms, 0,                                               \
                        "what a start may take, instead of the handler's"),                                            \
                OPT_CALL("--header NAME=VALUE", task_options_take_header, t, "say it again for more"),                 \
                OPT_CALL("--header64 NAME=BASE64", task_options_take_header64, t, "the same, for any bytes")

extern const struct option_choice task_lanes[];
int task_options_take_at(void *self, const char *value, struct error *error);
int task_options_take_header(void *self, const char *value, struct error *error);
int task_options_take_header64(void *self, const char *value, struct error *error);

/* {"handler", "key", "lane", "delay", "at", "unique", "merge", "debounce", "attempts", "timeout", "headers": {…},
 * "headers_base64": {…},
 * "idempotency_key", "payload" or "payload_base64"}: what is there replaces what was said before.  A payload that is no
 * text is the JSON itself. `object` must outlive the task.  0 or -EINVAL. */
int task_options_take_json(struct task_options *t, const json_t *object, struct error *error);

/* Puts the task into a trace, unless it has a traceparent or no room for one.  `state` may be NULL. */
void task_options_add_trace(struct task_options *t, const char *parent, const char *state);

/* The payload from a word: the word itself, or all of standard input for "-". */
int task_options_take_payload(struct task_options *t, const char *word, struct error *error);

#endif
