/* task.c: one task: where it is, what happened to it; cancelling it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/task.h"

enum { OPTION_PAYLOAD = OPTION_OWN };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_PAYLOAD, "payload", NULL, "print the payload's bytes and nothing else" },
        OPTION_JSON_ROW,
};

struct task_show {
        bool has_json;
        bool has_payload;
};

/* On the client's thread; nobody else prints meanwhile. */
static void show_task(void *self, const struct store_listed *task)
{
        const struct task_show *show = self;
        struct buffer text = { 0 };
        if (show->has_payload)
                (void)fwrite(task->envelope.payload.data, 1, task->envelope.payload.size, stdout);
        else if (show->has_json)
                cli_json_print_wide(listed_as_json(task));
        else
                listed_as_text(&text, task);
        cli_text_print(&text);
}

static int look(struct cli_store *s, const struct task_show *show, const char *id)
{
        struct error error = { "" };
        int r = client_find(s->client, (struct span){ id, strlen(id) }, show_task, (void *)show, &error);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static int cancel(struct cli_store *s, const struct task_show *show, const char *id)
{
        struct error error = { "" };
        bool is_pending = false;
        int r = client_cancel(s->client, (struct span){ id, strlen(id) }, &is_pending, &error);
        if (r == -EALREADY)
                (void)error_set(&error, r, "task %s is dead already; see: quiver task %s", id, id);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (show->has_json) {
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
        struct options o = {
                .usage = "task [cancel] ID",
                .about = "Says where a task is, what happened to it and what is in it. With cancel: it is not run, or\n"
                         "stopped if it runs; it is then among the dead, with reason cancelled.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver task 9kq2v7d3c0a8x1m5r4t6-12\n"
                            "  quiver task 9kq2v7d3c0a8x1m5r4t6-12 --payload > payload.bin\n"
                            "  quiver task cancel 9kq2v7d3c0a8x1m5r4t6-12\n",
        };
        struct cli_words w = { 0 };
        struct task_show show = { 0 };
        struct cli_store s;
        struct error error = { "" };
        options_start(&o, argc, argv);
        while (cli_words_next(&w, &o) == OPTION_PAYLOAD)
                show.has_payload = true;
        show.has_json = w.has_json;
        bool is_cancel = w.count && !strcmp(w.words[0], "cancel");
        int code = w.code;
        if (w.is_over)
                goto out;
        if (w.count != 1u + is_cancel) {
                code = options_wrong(&o, "which task? quiver task %sID", is_cancel ? "cancel " : "");
                goto out;
        }
        const char *id = w.words[is_cancel];
        if (task_id_check((struct span){ id, strlen(id) }, NULL, &error) < 0) {
                code = options_wrong(&o, "%s is not a task's id: %s", id, error.text);
                goto out;
        }
        code = cli_open(&s, "task", w.config);
        if (code != EXIT_DONE)
                goto out;
        code = is_cancel ? cancel(&s, &show, id) : look(&s, &show, id);
        cli_close(&s);
out:
        cli_words_free(&w);
        return code;
}
