/* task_options.h: a task as it is said on the command line, or on a line of JSON. */
#ifndef QUIVER_CLI_TASK_OPTIONS_H
#define QUIVER_CLI_TASK_OPTIONS_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"
#include "task/envelope.h"

enum {
        TASK_OPTION_LANE = 512,
        TASK_OPTION_DELAY,
        TASK_OPTION_UNIQUE,
        TASK_OPTION_ATTEMPTS,
        TASK_OPTION_TIMEOUT,
        TASK_OPTION_HEADER,
};

/* Rows for a command's table. */
#define TASK_OPTION_ROWS                                                                                               \
        { 'k', "key", "KEY", "what order is kept for; none: unordered" },                                              \
                { TASK_OPTION_LANE, "lane", "LANE", "high, normal or low" },                                           \
                { TASK_OPTION_DELAY, "delay", "TIME", "start no sooner than in 10s, 5m, 1h" },                         \
                { TASK_OPTION_UNIQUE, "unique", "TIME", "not if one for handler and key was within TIME" },            \
                { TASK_OPTION_ATTEMPTS, "attempts", "N", "starts in all, instead of the handler's" },                  \
                { TASK_OPTION_TIMEOUT, "timeout", "TIME", "what a start may take, instead of the handler's" },         \
        {                                                                                                              \
                TASK_OPTION_HEADER, "header", "NAME=VALUE", "say it again for more"                                    \
        }

/* Zero-initialised is a task with nothing said.  `task` borrows from what it was told and from the rest. */
struct task_options {
        struct qv_client_task task;
        struct qv_client_header headers[TASK_HEADERS_MAX];
        char *header_names[TASK_HEADERS_MAX]; /* owned; NULL: borrowed */
        struct buffer payload;                /* where it had to be made */
};

void task_options_init(struct task_options *t);
void task_options_free(struct task_options *t);

/* 1: it was one of the rows above; 0: it was not; -EINVAL with the text. */
int task_options_take(struct task_options *t, int id, const char *value, struct error *error);

/* {"handler", "key", "lane", "delay", "unique", "attempts", "timeout", "headers": {…}, "payload" or "payload_base64"}:
 * what is there replaces what was said before.  A payload that is no text is the JSON itself.  `object` must outlive
 * the task.  0 or -EINVAL. */
int task_options_take_json(struct task_options *t, const json_t *object, struct error *error);

/* The payload from a word: the word itself, or all of standard input for "-". */
int task_options_take_payload(struct task_options *t, const char *word, struct error *error);

#endif
