/* task.c: one task: where it is, what happened to it; cancelling it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/task.h"

struct task_request {
        const char *config;
        const char *id;
        bool is_cancel;
        bool has_json;
        bool has_payload;
};

/* On the client's thread; nobody else prints meanwhile. */
static void show_task(void *self, const struct store_listed *task)
{
        const struct task_request *show = self;
        struct buffer text = { 0 };
        if (show->has_payload)
                (void)fwrite(task->envelope.payload.data, 1, task->envelope.payload.size, stdout);
        else if (show->has_json)
                cli_json_print_wide(listed_as_json(task));
        else
                listed_as_text(&text, task);
        cli_text_print(&text);
}

static int act(struct cli_store *s, void *self)
{
        const struct task_request *q = self;
        const char *id = q->id;
        struct error error = { "" };
        bool is_pending = false;
        struct span wanted = { id, strlen(id) };
        int r = q->is_cancel ? client_cancel(s->client, wanted, &is_pending, &error)
                             : client_find(s->client, wanted, show_task, self, &error);
        if (r == -EALREADY)
                (void)error_set(&error, r, "task %s is dead already; see: quiver task %s", id, id);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!q->is_cancel)
                return EXIT_DONE;
        if (q->has_json) {
                json_t *o = json_object();
                (void)json_object_set_new(o, "id", json_string(id));
                (void)json_object_set_new(o, "pending", json_boolean(is_pending));
                cli_json_print(o);
        } else if (is_pending) {
                (void)printf("%s is in flight; its owner has been told to stop it\n", id);
        } else {
                (void)printf("%s is cancelled\n", id);
        }
        return EXIT_DONE;
}

int cmd_task(int argc, char **argv)
{
        struct task_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--payload", &q.has_payload, "print the payload's bytes and nothing else"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "task [cancel] ID",
                .about = "Says where a task is, what happened to it and what is in it. With cancel: it is not run, or\n"
                         "stopped if it runs; it is then among the dead, with reason cancelled.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver task 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver task 9kq2v7d3c0a8x1m5r4t6-12 --payload > payload.bin\n"
                            "  quiver task cancel 9kq2v7d3c0a8x1m5r4t6-12\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        q.is_cancel = o.words_count && !strcmp(o.words[0], "cancel");
        if (o.words_count != 1u + q.is_cancel)
                return options_wrong(&o, "which task? quiver task %sID", q.is_cancel ? "cancel " : "");
        q.id = o.words[q.is_cancel];
        if (task_id_check((struct span){ q.id, strlen(q.id) }, NULL, &error) < 0)
                return options_wrong(&o, "%s is not a task's id: %s", q.id, error.text);
        return cli_act(&o, q.config, act, &q);
}
