/* client_fixture.h: the client library on a real store in a folder of its own; tests play the host (owner.h). */
#ifndef QUIVER_TESTS_CLIENT_FIXTURE_H
#define QUIVER_TESTS_CLIENT_FIXTURE_H

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/admin.h"
#include "owner.h"

#define SHARDS 4

struct fixture {
        char folder[64];
        char url[128];
        struct owner owner;
        struct qv_client *client;
};

static inline int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
        (void)stat;
        (void)type;
        (void)ftw;
        return remove(path);
}

static inline struct qv_client *open_client(const struct fixture *f)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        options.store = f->url;
        options.app = "demo";
        if (qv_client_open(&options, &client) < 0)
                fail_msg("%s", qv_client_error());
        return client;
}

static inline int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        *state = f;
        (void)snprintf(f->folder, sizeof(f->folder), "/tmp/quiver-client-XXXXXX");
        assert_non_null(mkdtemp(f->folder));
        (void)snprintf(f->url, sizeof(f->url), "sqlite:%s/q.db", f->folder);
        owner_open(&f->owner, f->url, "demo", SHARDS);
        owner_acquire(&f->owner);
        f->client = open_client(f);
        return 0;
}

static inline int teardown(void **state)
{
        struct fixture *f = *state;
        qv_client_close(f->client);
        owner_close(&f->owner);
        (void)nftw(f->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        free(f);
        return 0;
}

static inline struct qv_client_task new_task(const char *handler, const char *key, const char *payload)
{
        struct qv_client_task task = QV_CLIENT_TASK_INIT;
        task.handler = handler;
        task.key = key;
        task.payload = payload;
        task.payload_size = payload ? strlen(payload) : 0;
        return task;
}

static inline struct qv_client_counts count(struct fixture *f)
{
        struct qv_client_counts counts = QV_CLIENT_COUNTS_INIT;
        assert_int_equal(qv_client_count(f->client, QV_CLIENT_ALL_SHARDS, &counts), 0);
        return counts;
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

static inline struct store_outcome echo(void *self, const struct store_task *task)
{
        static char copy[4096];
        (void)self;
        memcpy(copy, task->envelope.payload.data, task->envelope.payload.size);
        return (struct store_outcome){
                .kind = STORE_DONE,
                .has_result = true,
                .result = { copy, task->envelope.payload.size },
        };
}

static inline struct store_outcome reject(void *self, const struct store_task *task)
{
        (void)self;
        (void)task;
        return (struct store_outcome){ .kind = STORE_DEAD,
                .cost = COST_ATTEMPT,
                .reason = SPAN_TEXT("rejected"),
                .error = SPAN_TEXT("no such user") };
}

/* Everything that was claimed, as text. */
struct seen {
        struct buffer text;
};

static inline struct store_outcome look(void *self, const struct store_task *task)
{
        struct seen *seen = self;
        const struct envelope *e = &task->envelope;
        struct span headers = e->headers;
        struct task_header h;
        buffer_printf(&seen->text, "%.*s %.*s %s %.*s timeout=%u attempts=%u", (int)e->handler.size, e->handler.data,
                (int)e->key.size, e->key.data, lane_name(e->lane), (int)e->payload.size, e->payload.data,
                (unsigned)e->timeout_ms, e->attempts);
        while (header_next(&headers, &h))
                buffer_printf(&seen->text, " %s%.*s=%.*s", h.is_base64 ? "64:" : "", (int)h.name.size, h.name.data,
                        (int)h.value.size, h.value.data);
        buffer_printf(&seen->text, "\n");
        return (struct store_outcome){ .kind = STORE_DONE };
}

static inline struct qv_client_outcome *wait_for(struct fixture *f, const char *id)
{
        struct qv_client_outcome *outcome = NULL;
        if (qv_client_wait(f->client, id, 20000, &outcome) < 0)
                fail_msg("%s", qv_client_error());
        return outcome;
}

#define client_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
