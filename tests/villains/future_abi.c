/* DONE: built for a later minor version: its table and what it submits go on behind what this host knows, and it asks
 * for a field of the task that this host does not have.  The payload "submit" has it stage a follow-up. */
#include <quiver/plugin.h>

struct future_task {
        struct qv_task known;
        uint64_t newer;
};

struct future_header {
        struct qv_header2 known;
        uint64_t newer;
};

struct future_submit {
        struct qv_submit known;
        uint64_t newer;
};

/* QV_HAS() as a later header has it: the field comes after all that the host has filled in. */
static int has_newer(const struct qv_task *task)
{
        return offsetof(struct future_task, newer) + sizeof(uint64_t) <= task->size;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        struct future_header headers[2] = { { { "first", "\1", 1, 0, 0 }, 1 }, { { "second", "two", 3, 0, 0 }, 2 } };
        struct future_submit submit = { QV_SUBMIT_INIT, 7 };
        (void)self;
        submit.known.size = sizeof(submit);
        submit.known.handler = "next";
        submit.known.headers2 = &headers[0].known;
        submit.known.headers2_count = 2;
        submit.known.headers2_stride = sizeof(headers[0]);
        if (has_newer(task) || !QV_HAS(task, headers2_stride) || !QV_HAS(task->host, ext))
                return QV_REJECT;
        if (strcmp(task->payload, "submit") != 0)
                return QV_DONE;
        return task->host->submit(task->host, task, &submit.known) == 0 ? QV_DONE : QV_REJECT;
}

struct future_plugin {
        struct qv_plugin known;
        void (*handle_later)(void *self);
        const char *more[8];
};

static void handle_later(void *self)
{
        *(volatile int *)self = 1;
}

extern QV_EXPORT const struct future_plugin quiver_plugin;
const struct future_plugin quiver_plugin = { { sizeof(struct future_plugin), QV_ABI_MAJOR, QV_ABI_MINOR + 9, QV_THREADS,
                                                     "future_abi", "2.0", NULL, handle, NULL, NULL, NULL, NULL },
        handle_later, { "more" } };
